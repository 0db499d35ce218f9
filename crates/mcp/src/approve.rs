//! Asking through the client: in whichever way it can be asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    /// The question that was answered, and what was chosen.
    pub(crate) before: Option<(Asked, Chosen)>,
    /// What is to be asked: it has no answer yet.
    pub(crate) open: Mutex<Option<(Asked, Page)>>,
}

/// What a client was asked, as it is known again when the answer comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// A digest of the whole question, with all that would change.
    pub(crate) question: String,
    /// The part of it that was shown.
    pub(crate) part: usize,
}

/// What a client chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    Answer(Answer),
    /// To see the next part first.
    More,
}

/// One part of a question, as a client shows it.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    text: String,
    /// Whether it is the last.
    is_last: bool,
}

impl Approver for Way {
    fn ask(&self, question: &Question<'_>) -> Answer {
        match self {
            Way::Nobody => Answer::NobodyThere,
            Way::Request { .. } => self.request(question, None),
            Way::Answered(answered) => answered.answer(question),
        }
    }

    /// A client that makes the call again with the answer would run the command twice, so it is not asked.
    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        match self {
            Way::Nobody | Way::Answered(_) => Answer::NobodyThere,
            Way::Request { .. } => self.request(question, Some(limit)),
        }
    }

    fn name(&self) -> &'static str {
        "client"
    }
}

impl Way {
    /// Asks by requests of ours, one for each part of the question.
    fn request(&self, question: &Question<'_>, limit: Option<Duration>) -> Answer {
        let Way::Request { context, runtime } = self else { return Answer::NobodyThere };
        let until = limit.map(|limit| Instant::now() + limit);
        let parts = question.parts();
        for part in 0..parts.len() {
            let Some(form) = form(&Page::new(question, &parts, part)) else { break };
            let asked = async {
                let late = async {
                    match until {
                        Some(until) => tokio::time::sleep_until(until.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    asked = context.peer.create_elicitation(form) => Ok(asked.ok()),
                    () = context.ct.cancelled() => Ok(None),
                    () = late => Err(Answer::Unanswered("the time is over".to_owned())),
                }
            };
            match runtime.block_on(asked) {
                Err(late) => return late,
                Ok(None) => break,
                Ok(Some(result)) => match chosen(&result) {
                    Chosen::Answer(answer) => return answer,
                    Chosen::More => {}
                },
            }
        }
        Answer::NobodyThere
    }
}
impl Answered {
    /// The answer to this very question, if it came. Otherwise what is to be asked is kept, and what the call
    /// says meanwhile does not matter.
    fn answer(&self, question: &Question<'_>) -> Answer {
        let parts = question.parts();
        let digest = digest(question, &parts);
        let part = match &self.before {
            Some((asked, Chosen::Answer(answer))) if asked.question == digest => {
                return answer.clone();
            }
            Some((asked, Chosen::More)) if asked.question == digest => asked.part + 1,
            _ => 0,
        };
        let part = part.min(parts.len() - 1);
        let page = Page::new(question, &parts, part);
        let open = (Asked { question: digest, part }, page);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
        Answer::NobodyThere
    }

    /// What is to be asked, if there is something.
    pub(crate) fn open(&self) -> Option<(Asked, Page)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
                    format!("; {lines} more lines are not shown: answer `more` for the next]\n")
                }
            };
        }
        Page { text: text + &question.because() + &question.for_good(), is_last }
    }
}

/// A question in a few bytes, by which it is known again.
fn digest(question: &Question<'_>, parts: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_bytes());
    }
    hasher.update(question.because().as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The question as an input that a client is to fetch.
pub(crate) fn input_request(page: &Page) -> Option<InputRequest> {
    Some(InputRequest::Elicitation(ElicitRequest::new(form(page)?)))
}

/// What a client answered to it.
pub(crate) fn input_answer(response: &Value) -> Chosen {
    match serde_json::from_value(response.clone()) {
        Ok(result) => chosen(&result),
        Err(_) => Chosen::Answer(Answer::Deny("The answer was not understood.".to_owned())),
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

fn chosen(result: &ElicitResult) -> Chosen {
    let chosen = result.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    match (&result.action, chosen) {
        (ElicitationAction::Accept, Some("once")) => Chosen::Answer(Answer::Allow),
        (ElicitationAction::Accept, Some("session")) => Chosen::Answer(Answer::AllowForSession),
        (ElicitationAction::Accept, Some("more")) => Chosen::More,
        _ => Chosen::Answer(Answer::Deny(String::new())),
    }
}
