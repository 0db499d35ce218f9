//! Asks for approval through the client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use toolcrib::{Answer, Question};
use toolcrib_monitor::protocol::Answerer;
use toolcrib_monitor::{Asked, Channel, question_digest};

use crate::client_session::Client;

/// No person reads a question and declines it in this time. Some clients do so without showing it.
pub(crate) const UNSEEN_DECLINE: Duration = Duration::from_millis(300);

/// How the client of a call can be asked.
pub(crate) enum ApprovalChannel {
    /// The client cannot be asked.
    Unavailable,
    /// By an elicitation request, while the call waits.
    Elicitation { context: Box<RequestContext<RoleServer>>, runtime: Handle, client: Arc<Client> },
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
    /// What an answer for the session covers.
    session_scope: &'static str,
}

impl Channel for ApprovalChannel {
    fn answerer(&self) -> Answerer {
        Answerer::Client
    }

    fn ask(&self, question: &Question<'_>, asked: &Asked, limit: Option<Duration>) -> Answer {
        match self {
            ApprovalChannel::Unavailable => Answer::NoApprover,
            ApprovalChannel::Elicitation { .. } => self.request(question, asked, limit),
            // A client that makes the call again with the answer would run the command twice, so it is not asked.
            ApprovalChannel::InputRequired(_) if limit.is_some() => Answer::NoApprover,
            ApprovalChannel::InputRequired(answered) => answered.answer(question),
        }
    }

    fn asks_one_at_a_time(&self) -> bool {
        matches!(self, ApprovalChannel::Elicitation { .. })
    }

    fn asks_by_result(&self) -> bool {
        matches!(self, ApprovalChannel::InputRequired(_))
    }

    fn has_answer(&self, question: &Question<'_>) -> bool {
        match self {
            ApprovalChannel::InputRequired(answered) => answered.is_about(question),
            _ => false,
        }
    }
}

/// What came of an elicitation request.
enum Elicited {
    Result(ElicitResult),
    Failed,
    Timeout,
    /// The call was cancelled.
    Cancelled,
    /// It was answered elsewhere, or it needs no answer any more.
    Settled,
}

impl ApprovalChannel {
    /// Asks with elicitation requests, one for each part of the question.
    fn request(&self, question: &Question<'_>, asked: &Asked, limit: Option<Duration>) -> Answer {
        let ApprovalChannel::Elicitation { context, runtime, client } = self else {
            return Answer::NoApprover;
        };
        if client.cannot_ask() && asked.has_active_viewer() {
            return Answer::NoApprover;
        }
        let (tell, mut settled) = oneshot::channel();
        asked.on_settled(move || {
            let _ = tell.send(());
        });
        let until = limit.map(|limit| Instant::now() + limit);
        let parts = question.parts();
        for part in 0..parts.len() {
            let Some(form) = form(&Page::new(question, &parts, part)) else { break };
            let began = Instant::now();
            match runtime.block_on(elicit(context, form, until, &mut settled)) {
                Elicited::Timeout => return Answer::Unanswered("timeout".to_owned()),
                Elicited::Cancelled => {
                    return Answer::Unanswered("the call was cancelled".to_owned());
                }
                Elicited::Failed | Elicited::Settled => break,
                Elicited::Result(result) => {
                    let is_declined = result.action != ElicitationAction::Accept;
                    let is_unseen = is_declined && began.elapsed() < UNSEEN_DECLINE;
                    if is_unseen && asked.has_active_viewer() {
                        client.set_cannot_ask();
                        break;
                    }
                    if let Choice::Answer(answer) = choice(&result) {
                        return answer;
                    }
                }
            }
        }
        Answer::NoApprover
    }
}

/// Makes an elicitation request. Cancels it if it is not needed any more.
async fn elicit(
    context: &RequestContext<RoleServer>,
    form: ElicitRequestParams,
    until: Option<Instant>,
    settled: &mut oneshot::Receiver<()>,
) -> Elicited {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::no_options();
    let Ok(mut request) = context.peer.send_cancellable_request(request, options).await else {
        return Elicited::Failed;
    };
    let timeout = async {
        match until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    let (elicited, reason) = tokio::select! {
        response = &mut request.rx => {
            return match response {
                Ok(Ok(ClientResult::ElicitResult(result))) => Elicited::Result(result),
                _ => Elicited::Failed,
            };
        }
        () = context.ct.cancelled() => (Elicited::Cancelled, "the call was cancelled"),
        () = timeout => (Elicited::Timeout, "no answer came in time"),
        _ = settled => (Elicited::Settled, "the question was answered elsewhere"),
    };
    // The client may be gone.
    let _ = request.cancel(Some(reason.to_owned())).await;
    elicited
}

impl InputRequiredApproval {
    /// The answer to this question, if the client gave it. Otherwise stores the question; the call's reply is then
    /// not used.
    fn answer(&self, question: &Question<'_>) -> Answer {
        let parts = question.parts();
        let digest = question_digest(question);
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

    /// Whether the client has answered a part of this question.
    fn is_about(&self, question: &Question<'_>) -> bool {
        let asked = self.answered_part.as_ref();
        asked.is_some_and(|(asked, _)| asked.question == question_digest(question))
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
        let text = text + &question.because() + &question.for_good();
        Page { text, is_last, session_scope: question.session_scope() }
    }
}

/// The question as an input request.
pub(crate) fn input_request(page: &Page) -> Option<InputRequest> {
    Some(InputRequest::Elicitation(ElicitRequest::new(form(page)?)))
}

/// Whether a client's response declines.
pub(crate) fn is_declined(response: &Value) -> bool {
    let result: Result<ElicitResult, _> = serde_json::from_value(response.clone());
    result.is_ok_and(|result| result.action != ElicitationAction::Accept)
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
    let for_session = format!("Yes, {} for this session", page.session_scope);
    let mut names = vec!["Yes, this once", &for_session, "No"];
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
        (ElicitationAction::Accept, Some("no")) | (ElicitationAction::Decline, _) => {
            Choice::Answer(Answer::Deny(String::new()))
        }
        (ElicitationAction::Accept, _) => {
            unanswered("the answer of the client is none of those that were offered")
        }
        _ => unanswered("the question was closed"),
    }
}

fn unanswered(why: &str) -> Choice {
    Choice::Answer(Answer::Unanswered(why.to_owned()))
}
