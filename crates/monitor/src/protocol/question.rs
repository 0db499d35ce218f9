//! Approval requests and their answers in the protocol.

use serde::{Deserialize, Serialize};

use super::Access;

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
    /// How long it can be answered.
    #[serde(flatten)]
    pub time_left: TimeLeft,
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
    /// What an answer for the session covers, in two or three words: `all edits`, `this command`.
    pub session_scope: String,
    /// The same, in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_covers: Vec<String>,
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

/// How long a question can be answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeLeft {
    /// When its call stops waiting and is denied. `None` if it waits as long as its client does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_waits_until: Option<u64>,
    /// Whether its call has ended without an answer. An answer counts if the agent makes the same call again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub call_ended: bool,
    /// After how many milliseconds the agent was told no. `None` if it was not: its client has the question too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_after: Option<u64>,
    /// When it can no longer be answered. `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
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
    /// The operator, in the store that machines share.
    Store,
    /// Nobody: it expired.
    Timeout,
    /// Nobody: its call was cancelled.
    Cancelled,
    /// Nobody: another answer has decided it, or a file that it is about was changed.
    Withdrawn,
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
            Answerer::Store => "store",
            Answerer::Timeout => "timeout",
            Answerer::Cancelled => "cancelled",
            Answerer::Withdrawn => "withdrawn",
        }
    }
}
