//! Asks for approval through the client.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use toolcrib::{Answer, Approver, Question};

/// How the client of a call can be asked.
pub(crate) enum ApprovalChannel {
    /// The client cannot be asked.
    Unavailable,
    /// By an elicitation request, while the call waits.
    Elicitation { context: Box<RequestContext<RoleServer>>, runtime: Handle },
    /// By an `InputRequired` result: the client repeats the call with the answer.
    InputRequired(Box<InputRequiredApproval>),
}

/// The earlier answer of a client, and the next question for it.
pub(crate) struct InputRequiredApproval {
    /// The part that was answered, and the choice.
    pub(crate) answered_part: Option<(QuestionPart, Choice)>,
    /// The question without an answer, to be sent to the client.
    pub(crate) open: Mutex<Option<(QuestionPart, Page)>>,
}

/// Identifies a part of a question, to match an answer with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QuestionPart {
    /// A digest of the whole question, including all changes.
    pub(crate) question: String,
    /// The number of the part that was shown.
    pub(crate) part: usize,
}

/// The choice of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Answer(Answer),
    /// Show the next part first.
    More,
}

/// One part of a question, for display.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    text: String,
    /// Whether it is the last part.
    is_last: bool,
}

impl Approver for ApprovalChannel {
    fn ask(&self, question: &Question<'_>) -> Answer {
        match self {
            ApprovalChannel::Unavailable => Answer::NoApprover,
            ApprovalChannel::Elicitation { .. } => self.request(question, None),
            ApprovalChannel::InputRequired(answered) => answered.answer(question),
        }
    }

    /// A client that makes the call again with the answer would run the command twice, so it is not asked.
    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        match self {
            ApprovalChannel::Unavailable | ApprovalChannel::InputRequired(_) => Answer::NoApprover,
            ApprovalChannel::Elicitation { .. } => self.request(question, Some(limit)),
        }
    }

    fn name(&self) -> &'static str {
        "client"
    }
}

impl ApprovalChannel {
    /// Asks with elicitation requests, one for each part of the question.
    fn request(&self, question: &Question<'_>, limit: Option<Duration>) -> Answer {
        let ApprovalChannel::Elicitation { context, runtime } = self else {
            return Answer::NoApprover;
        };
        let until = limit.map(|limit| Instant::now() + limit);
        let parts = question.parts();
        for part in 0..parts.len() {
            let Some(form) = form(&Page::new(question, &parts, part)) else { break };
            let asked = async {
                let timeout = async {
                    match until {
                        Some(until) => tokio::time::sleep_until(until.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    asked = context.peer.create_elicitation(form) => Ok(asked.ok()),
                    () = context.ct.cancelled() => Ok(None),
                    () = timeout => Err(Answer::Unanswered("timeout".to_owned())),
                }
            };
            match runtime.block_on(asked) {
                Err(timeout) => return timeout,
                Ok(None) => break,
                Ok(Some(result)) => match choice(&result) {
                    Choice::Answer(answer) => return answer,
                    Choice::More => {}
                },
            }
        }
        Answer::NoApprover
    }
}

impl InputRequiredApproval {
    /// The answer to this question, if the client gave it. Otherwise stores the question; the call's reply is then
    /// not used.
    fn answer(&self, question: &Question<'_>) -> Answer {
        let parts = question.parts();
        let digest = digest(question, &parts);
        let part = match &self.answered_part {
            Some((asked, Choice::Answer(answer))) if asked.question == digest => {
                return answer.clone();
            }
            Some((asked, Choice::More)) if asked.question == digest => asked.part + 1,
            _ => 0,
        };
        let part = part.min(parts.len() - 1);
        let page = Page::new(question, &parts, part);
        let open = (QuestionPart { question: digest, part }, page);
        *self.open.lock() = Some(open);
        Answer::NoApprover
    }

    /// The question to send, if there is one.
    pub(crate) fn open(&self) -> Option<(QuestionPart, Page)> {
        self.open.lock().clone()
    }
}

impl Page {
    fn new(question: &Question<'_>, parts: &[String], part: usize) -> Self {
        let is_last = part + 1 >= parts.len();
        let mut text = parts.get(part).cloned().unwrap_or_default();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if parts.len() > 1 {
            text += &format!("[part {} of {}", part + 1, parts.len());
            text += &match parts[part + 1..].iter().map(|part| part.lines().count()).sum() {
                0_usize => "]\n".to_owned(),
                lines => {
                    format!(
                        "; {lines} more lines are not shown: answer `more` for the next part]\n"
                    )
                }
            };
        }
        Page { text: text + &question.because() + &question.for_good(), is_last }
    }
}

/// A digest that identifies a question.
fn digest(question: &Question<'_>, parts: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_bytes());
    }
    hasher.update(question.because().as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The question as an input request.
pub(crate) fn input_request(page: &Page) -> Option<InputRequest> {
    Some(InputRequest::Elicitation(ElicitRequest::new(form(page)?)))
}

/// The choice in a client's response.
pub(crate) fn input_answer(response: &Value) -> Choice {
    match serde_json::from_value(response.clone()) {
        Ok(result) => choice(&result),
        Err(_) => Choice::Answer(Answer::Deny("The answer could not be parsed.".to_owned())),
    }
}

/// The question as a form with one field.
fn form(page: &Page) -> Option<ElicitRequestParams> {
    let mut answers = vec!["once", "session", "no"];
    let mut names = vec!["Yes, this once", "Yes, for this session", "No"];
    if !page.is_last {
        answers.push("more");
        names.push("Show more first");
    }
    let form = json!({
        "mode": "form",
        "message": page.text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": "Allow?",
                    "enum": answers,
                    "enumNames": names,
                },
            },
            "required": ["answer"],
        },
    });
    serde_json::from_value(form).ok()
}

fn choice(result: &ElicitResult) -> Choice {
    let choice = result.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    match (&result.action, choice) {
        (ElicitationAction::Accept, Some("once")) => Choice::Answer(Answer::Allow),
        (ElicitationAction::Accept, Some("session")) => Choice::Answer(Answer::AllowForSession),
        (ElicitationAction::Accept, Some("more")) => Choice::More,
        _ => Choice::Answer(Answer::Deny(String::new())),
    }
}
