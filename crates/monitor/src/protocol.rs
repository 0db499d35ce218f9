//! The values that a server sends and receives on its monitor socket.
//!
//! Times are milliseconds since 1970. Texts of files, commands and models are not escaped. Each is bounded, and `cut`
//! names the fields that were truncated. Readers ignore unknown fields.

mod question;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::question::{
    AnswerWord, Answerer, Command, Proposal, Question, Settled, Span, SpanKind, Step, TimeLeft,
};

/// Description of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// `serve`, `run` or `call`.
    pub program: String,
    /// Start time.
    pub started: u64,
    /// The directories that it serves.
    pub roots: Vec<String>,
    /// Profile of the policy.
    pub profile: String,
    /// Network setting of commands.
    pub network: String,
    /// The sandbox of commands, as one line.
    pub sandbox: String,
    /// Name and version of the MCP client, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The file to which answers add rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_file: Option<String>,
}

/// An event of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A call has begun, and its accesses are known.
    CallBegun(RunningCall),
    /// A call has ended.
    CallEnded(Box<Call>),
    /// A command that went on after its call has ended.
    CommandEnded {
        /// Id of the call.
        id: String,
        /// How it ended.
        end: EndedCommand,
    },
    /// A question was opened.
    QuestionOpened(Box<Question>),
    /// A question was settled.
    QuestionSettled {
        /// Id of the question.
        id: String,
        /// How it was settled.
        settled: Settled,
    },
    /// The time limits of a question have changed.
    QuestionTime {
        /// Id of the question.
        id: String,
        /// Id of the call that asks it now.
        call: String,
        /// The time limits.
        #[serde(flatten)]
        time_left: TimeLeft,
    },
    /// A command has connected to a host, or was refused.
    Connection(Connection),
    /// The MCP client has sent its name.
    ClientNamed(Server),
}

/// A call that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunningCall {
    /// Id, unique over servers and time.
    pub id: String,
    /// Session of the call, unique within its server.
    pub session: String,
    /// Name of the tool.
    pub tool: String,
    /// One line, such as `Edit src/main.rs`, or the first line of a command.
    pub title: String,
    /// Purpose of the call, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Start time.
    pub started: u64,
    /// Accesses of the call.
    pub accesses: Vec<Access>,
    /// Id of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Whether the call has ended and its command still runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_background: bool,
    /// Fields that were truncated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// The fields of the running call.
    #[serde(flatten)]
    pub call: RunningCall,
    /// The first root of its server.
    pub workspace: String,
    /// Duration in milliseconds.
    pub ms: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
    /// Message of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// `allow`, `ask` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The answer, if the call needed approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Id of its change in the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// Number of files that it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u64>,
    /// Accesses of its command that the sandbox denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// Arguments of the call, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    #[default]
    Done,
    /// It failed.
    Failed,
    /// The policy or an answer denied it.
    Denied,
    /// It has ended, and its command still runs.
    Running,
}

/// How a command ended after its call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndedCommand {
    /// `completed`, `failed`, `killed` or `timeout`.
    pub status: String,
    /// The exit code of its shell. `None` if a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When.
    pub at: u64,
    /// All accesses and connections that were refused to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// The answer to the question of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answered {
    /// The answer.
    pub answer: String,
    /// Who gave it.
    pub by: String,
}

/// An access of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// `read`, `write`, `command`, `connect` or `reach`.
    pub effect: String,
    /// The path, command or host.
    pub text: String,
}

/// A connection of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// Id of the call whose command connected, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Name or address of the host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `allow` or `deny`.
    pub decision: String,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Bytes sent, once the connection has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes received, once the connection has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
    /// When.
    pub at: u64,
}

/// An access that the sandbox denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// The access, such as `write /etc/passwd`.
    pub what: String,
    /// What would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// When.
    pub at: u64,
}
