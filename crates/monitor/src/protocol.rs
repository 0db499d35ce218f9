//! The values that a server sends and receives on its monitor socket.
//!
//! Times are milliseconds since 1970. Texts of files, commands and models are not escaped. Each is bounded, and `cut`
//! names the fields that were truncated. Readers ignore unknown fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// A question was opened.
    QuestionOpened(Box<Question>),
    /// A question was settled.
    QuestionSettled {
        /// Id of the question.
        id: String,
        /// How it was settled.
        settled: Settled,
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

/// An approval request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// Id, unique over servers and time.
    pub id: String,
    /// Digest of everything that the answer covers. An answer repeats it.
    pub digest: String,
    /// Id of the call.
    pub call: String,
    /// Session of the call.
    pub session: String,
    /// Name of the tool.
    pub tool: String,
    /// Purpose of the call, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it was opened.
    pub opened: u64,
    /// When it expires without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Working directory of the call.
    pub directory: String,
    /// Accesses of the call.
    pub accesses: Vec<Access>,
    /// The command, if the call runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// What the call would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The rule that asks.
    pub rule: String,
    /// Its reason.
    pub why: String,
    /// How to allow the call without asking.
    pub remedy: String,
    /// Rules that would always allow the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<Proposal>,
    /// Rules that would always allow it in the directories of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_directory: Option<Proposal>,
    /// Rules that would always deny the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never: Option<Proposal>,
    /// The sandbox that a command will have, as one line.
    pub sandbox: String,
    /// Name and version of the MCP client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The first root of the server.
    pub workspace: String,
    /// Fields that were truncated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// A shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// Its text.
    pub text: String,
    /// Its simple commands in running order. Empty if it was not parsed.
    pub steps: Vec<Step>,
    /// Why it was not parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unparsed: Option<String>,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its text.
    pub text: String,
    /// Whether it may change files.
    pub writes: bool,
    /// Marked parts of the text.
    pub spans: Vec<Span>,
}

/// A marked part of a step. Offsets count UTF-16 code units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First code unit.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
    /// What the part is.
    pub kind: SpanKind,
}

/// The kinds of marked parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// The program.
    Program,
    /// A path that is read, or may be.
    Path,
    /// A path that is written.
    Write,
    /// A redirection.
    Redirect,
    /// An operator between commands.
    Operator,
}

/// Rules that an answer would add.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proposal {
    /// The text that is added to the rules file.
    pub toml: String,
    /// What the rules cover.
    pub covers: Vec<String>,
}

/// An answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerWord {
    /// Allow this call.
    Once,
    /// Allow it for the session.
    Session,
    /// Allow it for some minutes.
    Minutes,
    /// Allow it always.
    Always,
    /// Allow it always in the directories of its files.
    AlwaysDirectory,
    /// Deny this call.
    No,
    /// Deny it always.
    Never,
}

impl AnswerWord {
    /// The word of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            AnswerWord::Once => "once",
            AnswerWord::Session => "session",
            AnswerWord::Minutes => "minutes",
            AnswerWord::Always => "always",
            AnswerWord::AlwaysDirectory => "always_directory",
            AnswerWord::No => "no",
            AnswerWord::Never => "never",
        }
    }
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The answer. For a timeout or a cancelled call, `no`.
    pub answer: AnswerWord,
    /// The minutes of the answer `minutes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// Who answered.
    pub by: Answerer,
    /// When.
    pub at: u64,
    /// The message to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Who settled a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// The user at the terminal of the process.
    Terminal,
    /// The MCP client.
    Client,
    /// The program that started `toolcrib run`.
    Program,
    /// The user on the page.
    Page,
    /// The user of `toolcrib watch`.
    Watch,
    /// Nobody: it expired.
    Timeout,
    /// Nobody: its call was cancelled.
    Cancelled,
}

impl Answerer {
    /// The word of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Answerer::Terminal => "terminal",
            Answerer::Client => "client",
            Answerer::Program => "program",
            Answerer::Page => "page",
            Answerer::Watch => "watch",
            Answerer::Timeout => "timeout",
            Answerer::Cancelled => "cancelled",
        }
    }
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
