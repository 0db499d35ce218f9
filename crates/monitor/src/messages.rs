//! The messages on a monitor socket: one JSON object per line, in both directions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::{AnswerWord, Answerer, Event, Question, RunningCall, Settled};

/// A request of a client, with the id that its reply repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// Id of the request.
    pub id: u64,
    /// The request.
    #[serde(flatten)]
    pub request: Request,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Request {
    /// Asks for the description of the server.
    Hello,
    /// Asks for the current state and for all later events.
    Subscribe {
        /// The last event that the client has seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
    },
    /// Answers a question.
    Answer(GivenAnswer),
    /// Asks for the output of the command of a call.
    Output {
        /// Id of the call.
        call: String,
        /// First byte.
        #[serde(default)]
        from: u64,
    },
    /// Ends the command of a call.
    Stop {
        /// Id of the call.
        call: String,
    },
    /// Reports whether a viewer is active at this client. It expires soon, so it has to be repeated.
    Visible {
        /// Whether a viewer is active.
        visible: bool,
    },
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// Id of the question.
    pub question: String,
    /// Digest of the question that the user has read.
    pub digest: String,
    /// The answer.
    pub answer: AnswerWord,
    /// The minutes of the answer `minutes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// A message to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who answers: `page` or `watch`.
    #[serde(default = "page")]
    pub by: Answerer,
}

fn page() -> Answerer {
    Answerer::Page
}

/// A line of a server: the reply to a request, or an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServerLine {
    /// A request failed.
    Failed {
        /// Id of the request.
        id: u64,
        /// Why.
        error: RequestError,
    },
    /// A request succeeded.
    Done {
        /// Id of the request.
        id: u64,
        /// Its result.
        result: Value,
    },
    /// An event.
    Event {
        /// Its number.
        seq: u64,
        /// The event.
        event: Event,
    },
    /// The client reads too slowly. Events before this number were dropped.
    Missed {
        /// Number of the next event.
        seq: u64,
        /// Number of dropped events.
        missed: u64,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestError {
    /// Kind of the error.
    pub kind: RequestErrorKind,
    /// A sentence for people.
    pub message: String,
    /// How the question had been settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestErrorKind {
    /// The question or call does not exist.
    NotFound,
    /// The question was settled before.
    Conflict,
    /// The request is not valid.
    Invalid,
    /// A file could not be written, or the connection failed.
    Io,
}

impl RequestError {
    /// An error without a settled question.
    pub fn new(kind: RequestErrorKind, message: impl Into<String>) -> RequestError {
        RequestError { kind, message: message.into(), settled: None }
    }
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RequestError {}

/// Result of `subscribe`: the state after event `seq`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Number of the last event before the state. Later events follow as lines.
    pub seq: u64,
    /// Events that are no longer known.
    pub missed: u64,
    /// Open questions, oldest first.
    pub waiting: Vec<Question>,
    /// Running calls, oldest first.
    pub running: Vec<RunningCall>,
}

/// Result of `output`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputPart {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset after the last byte.
    pub next: u64,
    /// The text. Invalid UTF-8 is replaced.
    pub text: String,
    /// Bytes before `from` that are no longer available.
    pub dropped: u64,
    /// Whether the command has ended and this is its last output.
    pub ended: bool,
}
