//! Approval questions as lines: `toolcrib run --approvals` lets the calling program decide.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value, json};
use toolcrib::{
    Access, Answer, Cancel, Error, ErrorKind, Proposal, Question, visible_lines, visible_name,
};
use toolcrib_monitor::protocol::Answerer;
use toolcrib_monitor::{Asked, Channel, SettleError, described};

use super::request::Approve;
use crate::rules;

/// The interval for checking whether a waiting call was cancelled or answered elsewhere.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum characters of the command and of the diff in a question. The question lists truncated fields.
const MAX_TEXT_CHARS: usize = 256 << 10;

/// Maximum characters of a sentence in a question.
const MAX_SENTENCE_CHARS: usize = 2_000;

/// Maximum number of paths in a question.
const MAX_PATHS: usize = 1_000;

/// The open questions.
pub(super) struct Approvals {
    open: Mutex<Open>,
    changed: Condvar,
    /// A question without an answer is denied after this time.
    deadline: Duration,
    /// The file to which rules are added.
    rules: Option<PathBuf>,
}

#[derive(Default)]
struct Open {
    asked: u64,
    /// Open questions by id, with their answers if any.
    questions: HashMap<String, OpenQuestion>,
    /// Whether the input has ended.
    closed: bool,
}

struct OpenQuestion {
    asked: Asked,
    always: Option<String>,
    always_directory: Option<String>,
    never: Option<String>,
}

impl Approvals {
    pub(super) fn new(deadline: Duration, rules: Option<PathBuf>) -> Self {
        Approvals { open: Mutex::default(), changed: Condvar::new(), deadline, rules }
    }

    /// Answers an open question. After an error the question stays open.
    pub(super) fn answer(&self, approve: &Approve) -> Result<(), Error> {
        let mut open = self.open.lock();
        let Some(question) = open.questions.get_mut(&approve.id) else {
            let id = visible_name(approve.id.as_bytes());
            return Err(Error::new(ErrorKind::NotFound, format!("there is no open question {id}"))
                .hint("It was answered, its call was cancelled, or it timed out."));
        };
        let message = approve.message.clone();
        let (answer, rule) = match approve.answer.as_str() {
            "yes" => (Answer::Allow, None),
            "session" => (Answer::AllowForSession, None),
            "always" => (Answer::AllowAlways, Some(&question.always)),
            "always_directory" => (Answer::AllowDirectoryAlways, Some(&question.always_directory)),
            "no" => (Answer::Deny(message), None),
            "never" => (Answer::DenyAlways(message), Some(&question.never)),
            other => {
                let other = visible_name(other.as_bytes());
                let hint = format!("Valid answers: {}.", question.answers().join(", "));
                return Err(Error::invalid(format!("unknown answer {other}")).hint(hint));
            }
        };
        let store = || rule.map_or(Ok(()), |rule| self.write(rule.as_deref()));
        let settled = question.asked.settle(&answer, Answerer::Program, store);
        settled.map_err(|error| match error {
            SettleError::Rule(error) => error,
            SettleError::Before(settled) => {
                Error::new(ErrorKind::NotFound, format!("the question was {}", described(&settled)))
            }
        })?;
        drop(open);
        self.changed.notify_all();
        Ok(())
    }

    /// Called at the end of the input: denies all open and future questions.
    pub(super) fn close(&self) {
        self.open.lock().closed = true;
        self.changed.notify_all();
    }

    fn write(&self, rule: Option<&str>) -> Result<(), Error> {
        let (Some(rule), Some(file)) = (rule, &self.rules) else {
            return Err(Error::invalid("no rule can be added for this question")
                .hint("Answer yes, session or no."));
        };
        rules::add(file, rule).map(drop).map_err(|problem| Error::new(ErrorKind::Io, problem))
    }

    /// Opens a question. Returns its id, and the fields that describe the valid answers.
    fn open(&self, question: &Question<'_>, asked: &Asked) -> (String, Map<String, Value>) {
        let rule = |proposal: Option<&Proposal>| {
            proposal.filter(|_| self.rules.is_some()).map(Proposal::text)
        };
        let entry = OpenQuestion {
            asked: asked.clone(),
            always: rule(question.always),
            always_directory: rule(question.always_directory),
            never: rule(question.never),
        };
        let mut facts = Map::new();
        for (key, rule) in [
            ("always", &entry.always),
            ("always_directory", &entry.always_directory),
            ("never", &entry.never),
        ] {
            facts.extend(rule.clone().map(|rule| (key.to_owned(), rule.into())));
        }
        facts.insert("answers".to_owned(), json!(entry.answers()));
        let mut open = self.open.lock();
        open.asked += 1;
        let id = format!("a{}", open.asked);
        open.questions.insert(id.clone(), entry);
        (id, facts)
    }

    /// Waits for the answer to a question.
    fn wait(&self, id: &str, cancel: &Cancel, limit: Duration) -> Answer {
        let end = Instant::now().checked_add(limit);
        let mut open = self.open.lock();
        loop {
            let settled = open.questions.get(id).and_then(|question| question.asked.settled());
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let answer = match settled {
                // The approver that asked us knows the answer.
                Some(_) => Answer::NoApprover,
                None if open.closed => Answer::Unanswered("the input ended".to_owned()),
                None if cancel.is_cancelled() => {
                    Answer::Unanswered("the call was cancelled".to_owned())
                }
                None if left.is_some_and(|left| left.is_zero()) => {
                    let seconds = limit.as_secs();
                    Answer::Unanswered(format!("timeout after {seconds} s"))
                }
                None => {
                    let pause = left.map_or(CANCEL_INTERVAL, |left| left.min(CANCEL_INTERVAL));
                    self.changed.wait_for(&mut open, pause);
                    continue;
                }
            };
            open.questions.remove(id);
            return answer;
        }
    }
}

impl OpenQuestion {
    fn answers(&self) -> Vec<&'static str> {
        let mut answers = vec!["yes", "session"];
        answers.extend(self.always.as_ref().map(|_| "always"));
        answers.extend(self.always_directory.as_ref().map(|_| "always_directory"));
        answers.push("no");
        answers.extend(self.never.as_ref().map(|_| "never"));
        answers
    }
}

/// Asks the calling program about one call.
pub(super) struct LineApprover<'a> {
    pub(super) approvals: &'a Approvals,
    pub(super) call_id: &'a Value,
    pub(super) cancel: &'a Cancel,
    /// Writes a line. Returns whether that succeeded.
    pub(super) write: &'a (dyn Fn(&Value) -> bool + Sync),
}

impl Channel for LineApprover<'_> {
    fn answerer(&self) -> Answerer {
        Answerer::Program
    }

    fn ask(&self, question: &Question<'_>, asked: &Asked, limit: Option<Duration>) -> Answer {
        let (id, answers) = self.approvals.open(question, asked);
        let mut fields = Map::new();
        fields.insert("id".to_owned(), id.clone().into());
        fields.insert("call_id".to_owned(), self.call_id.clone());
        fields.extend(facts(question));
        fields.extend(answers);
        if !(self.write)(&json!({ "approval": fields })) {
            self.approvals.open.lock().questions.remove(&id);
            return Answer::NoApprover;
        }
        let deadline = self.approvals.deadline;
        let limit = limit.map_or(deadline, |limit| limit.min(deadline));
        let answer = self.approvals.wait(&id, self.cancel, limit);
        // The program sent this answer itself, or the reply to its call follows at once with the reason.
        let is_known =
            |by| matches!(by, Answerer::Program | Answerer::Cancelled | Answerer::Timeout);
        if let Some(settled) = asked.settled().filter(|settled| !is_known(settled.by)) {
            let fields = json!({
                "id": id,
                "call_id": self.call_id,
                "answer": settled.answer,
                "by": settled.by,
            });
            // The call goes on with this answer, whether or not the program reads it.
            (self.write)(&json!({ "settled": fields }));
        }
        answer
    }
}

/// The fields of a question, within their limits.
fn facts(question: &Question<'_>) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut cut = Vec::new();
    let mut put = |key: &str, value: Value| facts.insert(key.to_owned(), value);
    let mut text = |key: &'static str, text: &str, chars: usize| {
        let end = text.char_indices().nth(chars).map(|(end, _)| end);
        if end.is_some() {
            cut.push(key);
        }
        Value::from(&text[..end.unwrap_or(text.len())])
    };
    put("session", question.session.into());
    put("tool", question.tool.into());
    if let Some(description) = question.description {
        put("description", text("description", description, MAX_SENTENCE_CHARS));
    }
    let (mut paths, mut reaches) = (Vec::new(), Vec::new());
    for access in question.accesses {
        let kind = access.effect().name();
        match access {
            Access::Read(path) | Access::Write(path) => {
                let path = visible_name(path.as_os_str().as_encoded_bytes());
                paths.push(json!({"access": kind, "path": path}));
            }
            Access::WriteAny => paths.push(json!({"access": kind, "path": null})),
            Access::Connect(..) => {
                reaches.push(text("reaches", &access.to_string(), MAX_SENTENCE_CHARS));
            }
            Access::Reach(what) => reaches.push(text("reaches", what, MAX_SENTENCE_CHARS)),
            Access::Command(script) => {
                put("command", text("command", script, MAX_TEXT_CHARS));
                let directory = question.directory.as_os_str().as_encoded_bytes();
                put("cwd", visible_name(directory).into());
            }
        }
    }
    let too_many = paths.len() > MAX_PATHS;
    paths.truncate(MAX_PATHS);
    put("paths", paths.into());
    if !reaches.is_empty() {
        put("reaches", reaches.into());
    }
    if let Some(preview) = question.preview {
        put("diff", text("diff", &visible_lines(preview.diff_text()), MAX_TEXT_CHARS));
    }
    put("rule", text("rule", question.rule, MAX_SENTENCE_CHARS));
    put("why", text("why", question.why, MAX_SENTENCE_CHARS));
    cut.extend(too_many.then_some("paths"));
    if !cut.is_empty() {
        facts.insert("cut".to_owned(), json!(cut));
    }
    facts
}
