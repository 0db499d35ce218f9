//! Asking through the client: in whichever way it can be asked.

use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use toolcrib::{Answer, Approver, Question};

/// How the client of a call can be asked.
pub(crate) enum Way {
    /// Not at all.
    Nobody,
    /// By a request of ours, while the call waits.
    Request { context: Box<RequestContext<RoleServer>>, runtime: Handle },
    /// By an answer that is a question: the client makes the call again, with what was answered.
    Answered(Box<Answered>),
}

/// What a client has answered already, and what is still to be asked.
pub(crate) struct Answered {
    /// The digest of the question that was answered, and the answer.
    pub(crate) before: Option<(String, Answer)>,
    /// The question that nobody has answered yet.
    pub(crate) open: Mutex<Option<String>>,
}

impl Approver for Way {
    fn ask(&self, question: &Question<'_>) -> Answer {
        match self {
            Way::Nobody => Answer::NobodyThere,
            Way::Request { context, runtime } => {
                let Some(form) = form(&question.text()) else { return Answer::NobodyThere };
                let asked = async {
                    tokio::select! {
                        asked = context.peer.create_elicitation(form) => asked.ok(),
                        () = context.ct.cancelled() => None,
                    }
                };
                runtime.block_on(asked).map_or(Answer::NobodyThere, |result| answer(&result))
            }
            Way::Answered(answered) => answered.answer(question),
        }
    }

    fn name(&self) -> &'static str {
        "client"
    }
}

impl Answered {
    /// The answer to this very question, if it came. Otherwise the question is kept, and what the call
    /// says meanwhile does not matter.
    fn answer(&self, question: &Question<'_>) -> Answer {
        let text = question.text();
        match &self.before {
            Some((asked, answer)) if *asked == digest(&text) => answer.clone(),
            _ => {
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
                Answer::NobodyThere
            }
        }
    }

    /// The question that nobody has answered, if there was one.
    pub(crate) fn open(&self) -> Option<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A question in a few bytes, by which it is known again.
pub(crate) fn digest(question: &str) -> String {
    blake3::hash(question.as_bytes()).to_hex().to_string()
}

/// The question as an input that a client is to fetch.
pub(crate) fn input_request(question: &str) -> Option<InputRequest> {
    Some(InputRequest::Elicitation(ElicitRequest::new(form(question)?)))
}

/// What a client answered to it.
pub(crate) fn input_answer(response: &Value) -> Answer {
    match serde_json::from_value(response.clone()) {
        Ok(result) => answer(&result),
        Err(_) => Answer::Deny("The answer was not understood.".to_owned()),
    }
}

/// The question as a form with one field.
fn form(question: &str) -> Option<ElicitRequestParams> {
    let form = json!({
        "mode": "form",
        "message": question,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": "Allow?",
                    "enum": ["once", "session", "no"],
                    "enumNames": ["Yes, this once", "Yes, for this session", "No"],
                },
            },
            "required": ["answer"],
        },
    });
    serde_json::from_value(form).ok()
}

fn answer(result: &ElicitResult) -> Answer {
    let chosen = result.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    match (&result.action, chosen) {
        (ElicitationAction::Accept, Some("once")) => Answer::Allow,
        (ElicitationAction::Accept, Some("session")) => Answer::AllowForSession,
        _ => Answer::Deny(String::new()),
    }
}
