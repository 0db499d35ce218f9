//! Whether a call may go on: the policy says so, or whoever is asked.

use std::path::{Path, PathBuf};

use toolcrib_policy::{Access, ApprovalScope, Decision, Effect, Policy, SessionApprovals, Verdict};
use toolcrib_text::visible_name;

use crate::approve::{Answer, Answered, Question};
use crate::call::Options;
use crate::error::{Error, ErrorKind};
use crate::names::Name;
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::syntax_errors::{BROKEN, confirmed};

/// What was decided on a call, and by whom.
pub(crate) struct Permission {
    pub(crate) verdict: Verdict,
    /// What was answered, where somebody was to be asked.
    pub(crate) answered: Option<Answered>,
    /// Whether the call may go on.
    pub(crate) permitted: Result<(), Error>,
    /// What the answer opened to file tools outside the workspace.
    pub(crate) opened: Vec<PathBuf>,
}

/// Where a command of a call would begin: in the directory that the call says it reads, or where the last
/// one ended.
pub(crate) fn command_directory(session: &Session, accesses: &[Access]) -> PathBuf {
    let named = accesses.iter().find_map(|access| match access {
        Access::Read(path) => Some(path.clone()),
        _ => None,
    });
    let carried = || session.shell()?.carried().directory;
    named.or_else(carried).unwrap_or_else(|| session.directory().path())
}

/// Decides on a call by all that it touches, and asks where the policy wants somebody asked. `preview`
/// finds out what would change; it is run only if somebody is to be asked.
pub(crate) fn permit(
    runtime: &Runtime,
    session: &Session,
    tool: &str,
    (accesses, requested): (&[Access], &[Access]),
    options: Options<'_>,
    preview: impl FnOnce() -> Result<Option<Reply>, Error>,
) -> Permission {
    let all = [accesses, requested].concat();
    let directory = command_directory(session, accesses);
    let policy = runtime.policy_for(session, accesses);
    let asking =
        Asking { policy: &policy, directory: &directory, all: &all, session, tool, accesses };
    let by_itself = |verdict: Verdict| {
        let permitted = match verdict.decision {
            Decision::Allow => Ok(()),
            Decision::Ask | Decision::Deny => Err(denied(tool, &verdict, "", &next_step(&verdict))),
        };
        Permission { verdict, answered: None, permitted, opened: Vec::new() }
    };
    let verdict = confirmed(runtime, accesses, asking.decide());
    if verdict.decision != Decision::Ask {
        return by_itself(verdict);
    }
    let _turn = match session.asking(options.cancel) {
        Ok(turn) => turn,
        Err(cancelled) => {
            let (answered, permitted) = (None, Err(cancelled));
            return Permission { verdict, answered, permitted, opened: Vec::new() };
        }
    };
    // While this call waited for its turn, the answer to another one may have settled it.
    let verdict = asking.decide();
    if verdict.decision != Decision::Ask {
        return by_itself(verdict);
    }
    match preview() {
        Ok(preview) => asking.ask(verdict, preview.as_ref(), options),
        Err(error) => {
            let (answered, permitted) = (None, Err(error));
            Permission { verdict, answered, permitted, opened: Vec::new() }
        }
    }
}

/// A call about which somebody may have to be asked.
struct Asking<'a> {
    policy: &'a Policy,
    directory: &'a Path,
    all: &'a [Access],
    session: &'a Session,
    tool: &'a str,
    /// What is shown of it.
    accesses: &'a [Access],
}

impl Asking<'_> {
    /// What the policy says, with what was answered before in this session.
    fn decide(&self) -> Verdict {
        let policy = self.session.policy(self.policy);
        let verdict = policy.decide_from(self.directory, self.all, &self.session.remembered());
        match verdict.decision == Decision::Ask && self.session.has_refused(&verdict.asks) {
            false => verdict,
            true => Verdict {
                decision: Decision::Deny,
                rule: "session".to_owned(),
                why: "it was refused for good by an earlier answer".to_owned(),
                ..verdict
            },
        }
    }

    fn ask(&self, verdict: Verdict, preview: Option<&Reply>, options: Options<'_>) -> Permission {
        let propose = |decision| self.policy.proposal(self.directory, self.all, &verdict, decision);
        let (always, never) = (propose(Decision::Allow), propose(Decision::Deny));
        let Verdict { rule, why, remedy, .. } = &verdict;
        let question = Question {
            tool: self.tool,
            accesses: self.accesses,
            directory: self.directory,
            rule,
            why,
            remedy,
            always: always.as_ref(),
            never: never.as_ref(),
            preview,
        };
        let answer = options.approver.ask(&question);
        let answered = Some(Answered { answer: answer.name(), by: options.approver.name() });
        let no = |word: &str| {
            let answer = format!("the answer was no. {word}");
            Err(denied(self.tool, &verdict, &answer, "Ask the user what to do instead."))
        };
        let is_writing =
            |asked: &&ApprovalScope| matches!(asked, ApprovalScope::Outside(Effect::Write, _));
        let opened: SessionApprovals = verdict.asks.iter().filter(is_writing).cloned().collect();
        let permitted = match &answer {
            // Who does not want the answer any more is not told that somebody said no.
            _ if options.cancel.is_cancelled() => options.cancel.check(),
            Answer::Allow => {
                // To write a file outside is to open its directory: the question has said so.
                self.session.remember(opened.clone());
                Ok(())
            }
            Answer::AllowForSession => {
                self.session.remember(verdict.asks.clone());
                Ok(())
            }
            Answer::AllowAlways => {
                // Only for what the person was shown as the rule.
                match always {
                    Some(rules) => self.session.agree(rules),
                    None => self.session.remember(verdict.asks.clone()),
                }
                Ok(())
            }
            Answer::Deny(word) => no(word),
            Answer::DenyAlways(word) => {
                match never {
                    Some(rules) => self.session.agree(rules),
                    None => self.session.refuse(verdict.asks.clone()),
                }
                no(word)
            }
            Answer::NobodyThere if !opened.is_empty() => Err(self.outside()),
            Answer::NobodyThere => {
                let next = match always {
                    Some(rules) => {
                        format!("Ask the operator to add this to rules.toml: {}.", rules.line())
                    }
                    None => next_step(&verdict),
                };
                Err(denied(self.tool, &verdict, "there is nobody here to ask.", &next))
            }
        };
        let opened = match &permitted {
            Ok(()) => opened.into_iter().filter_map(opened_path).collect(),
            Err(_) => Vec::new(),
        };
        Permission { verdict, answered, permitted, opened }
    }

    /// The refusal of a call that writes outside.
    fn outside(&self) -> Error {
        let is_outside = |access: &&Access| {
            let path = access.path().filter(|_| access.effect() == Effect::Write);
            path.is_some_and(|path| !self.policy.is_inside(path))
        };
        let path =
            self.all.iter().find(is_outside).and_then(Access::path).unwrap_or(self.directory);
        Error::outside(&visible_name(path.as_os_str().as_encoded_bytes())).nothing_written()
    }
}

fn opened_path(asked: ApprovalScope) -> Option<PathBuf> {
    match asked {
        ApprovalScope::Outside(_, path) => Some(path),
        _ => None,
    }
}

/// What to do about a refusal.
fn next_step(verdict: &Verdict) -> String {
    match verdict.rule.as_str() {
        BROKEN => "Fix the syntax and send the command again.".to_owned(),
        _ => format!("Ask the operator to {}.", verdict.remedy),
    }
}

fn denied(tool: &str, verdict: &Verdict, because: &str, next: &str) -> Error {
    let because = because.trim();
    let end = if because.is_empty() { ".".to_owned() } else { format!(", and {because}") };
    let message = format!("{} was not allowed: {}{end}", Name::tool(tool), verdict.why);
    let hint = format!("Rule: {}. Nothing was done. {next}", verdict.rule);
    Error::new(ErrorKind::Denied, message).hint(hint).with("rule", verdict.rule.clone())
}
