//! Answers to questions of agents.

use serde::Deserialize;
use serde_json::Value;
use toolcrib_monitor::GivenAnswer;
use toolcrib_monitor::protocol::{AnswerWord, Answerer};

use crate::api_error::ApiError;
use crate::live::Live;
use crate::monitors::Monitors;

/// The longest message to an agent, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// The body of `POST /api/questions/ID`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    digest: String,
    answer: AnswerWord,
    minutes: Option<u32>,
    message: Option<String>,
}

/// `POST /api/questions/ID`
pub(crate) fn answer(
    live: &Live,
    monitors: &Monitors,
    id: &str,
    given: Answer,
) -> Result<Value, ApiError> {
    let Answer { digest, answer, minutes, message } = given;
    if message.as_ref().is_some_and(|message| message.len() > MAX_MESSAGE_BYTES) {
        return Err(ApiError::invalid("The message is longer than 8 KiB."));
    }
    let server = live.server_of_question(id).ok_or_else(|| {
        ApiError::not_found("This question is not known: its server may have ended.")
    })?;
    let (question, by) = (id.to_owned(), Answerer::Page);
    monitors.answer(&server, GivenAnswer { question, digest, answer, minutes, message, by })
}

/// The rules that an answer to a waiting question would add.
pub(crate) fn proposed_rules(live: &Live, id: &str, answer: &str) -> Result<String, ApiError> {
    let question =
        live.question(id).ok_or_else(|| ApiError::not_found("This question does not wait."))?;
    let proposal = match answer {
        "always" | "always_directory" | "never" => question[answer]["toml"].as_str(),
        _ => return Err(ApiError::invalid("Only a permanent answer adds rules.")),
    };
    let none = || ApiError::not_found("No rule is proposed for this answer.");
    proposal.map(str::to_owned).ok_or_else(none)
}
