//! Decides whether a call may run, by policy and by approval.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toolcrib_fs::{Stamp, Workspace};
use toolcrib_policy::{
    Access, ApprovalScope, DANGER, Decision, Effect, Policy, Proposal, SessionApprovals, Verdict,
};
use toolcrib_text::{truncate_line, visible_name};

use crate::approve::{Answer, AnswerRecord, PendingQuestion, Question};
use crate::call_policy::CallPolicy;
use crate::deny_syntax_errors::{BROKEN, confirmed};
use crate::error::{Error, ErrorKind};
use crate::message_names::Name;
use crate::reply::Reply;
use crate::request::Options;
use crate::seen_files::Basis;
use crate::session::Session;

/// Characters of a note about a question.
const MAX_NOTE_CHARS: usize = 500;

/// Decision on a call.
pub(crate) struct Permission {
    pub(crate) verdict: Verdict,
    /// Answer of the approver, if one was asked.
    pub(crate) answered: Option<AnswerRecord>,
    /// Whether the call may run.
    pub(crate) permitted: Result<(), Error>,
    /// Paths outside the workspace that the answer opened to file tools.
    pub(crate) opened: Vec<PathBuf>,
    /// Hosts that the answer allows to the command of this call.
    pub(crate) hosts: SessionApprovals,
    /// The question that a dry run does not ask.
    pub(crate) unasked: Option<Unasked>,
    /// Hashes of the files that the approver has seen in the preview.
    pub(crate) agreed: Option<Basis>,
}

impl Permission {
    fn new(verdict: Verdict, permitted: Result<(), Error>) -> Self {
        let (opened, hosts) = (Vec::new(), SessionApprovals::default());
        let (answered, unasked, agreed) = (None, None, None);
        Permission { verdict, answered, permitted, opened, hosts, unasked, agreed }
    }
}

/// A dry run of a call, and the content that it is based on.
pub(crate) type Preview = (Reply, Basis);

/// A question that a dry run reports and does not ask.
pub(crate) struct Unasked {
    /// The tool and its accesses.
    wants: String,
    why: String,
    rule: String,
    always: Option<String>,
}

impl Unasked {
    /// The reply of a call whose result the caller may not see before the answer.
    pub(crate) fn reply(&self) -> Reply {
        self.add_to(Reply::new(format!("Dry run, nothing was done. {}", self.wants)))
    }

    /// The reply of a dry run, with the question.
    pub(crate) fn add_to(&self, reply: Reply) -> Reply {
        let Unasked { why, rule, always, .. } = self;
        let note = truncate_line(&format!("would ask: {why} ({rule})"), MAX_NOTE_CHARS);
        reply
            .note(format!("[{}]", visible_name(note.as_bytes())))
            .with("would_ask", json!({"rule": rule, "why": why, "always": always}))
    }
}

/// Working directory of a command of the call: the directory that the call reads, or the directory in which the
/// last command ended.
pub(crate) fn command_directory(session: &Session, accesses: &[Access]) -> PathBuf {
    let named = accesses.iter().find_map(|access| match access {
        Access::Read(path) => Some(path.clone()),
        _ => None,
    });
    let carried = || session.shell()?.carried().directory;
    named.or_else(carried).unwrap_or_else(|| session.directory().path())
}

/// Decides on a call by all of its accesses, and asks the approver if the policy requires it. `preview` is a
/// dry run of the call; it runs only before a question.
pub(crate) fn permit(
    (policy, workspace): (&CallPolicy, &Workspace),
    session: &Session,
    call: CallDescription<'_>,
    (accesses, requested): (&[Access], &[Access]),
    options: Options<'_>,
    preview: impl Fn() -> Result<Option<Preview>, Error>,
) -> Permission {
    let all = [accesses, requested].concat();
    let directory = command_directory(session, accesses);
    let request = || ApprovalRequest {
        policy: policy.for_call(session, call.tool, accesses),
        directory: &directory,
        all: &all,
        session,
        call,
        accesses,
    };
    loop {
        let known_changes = session.questions().changes();
        let asking = request();
        let verdict = confirmed(policy.commands(), accesses, asking.decide());
        if verdict.decision != Decision::Ask {
            return by_itself(call.tool, verdict);
        }
        if options.dry_run {
            let unasked = Some(asking.unasked(&verdict));
            return Permission { unasked, ..Permission::new(verdict, Ok(())) };
        }
        if let Err(cancelled) = options.cancel.check() {
            return Permission::new(verdict, Err(cancelled));
        }
        let preview = match preview() {
            Ok(preview) => preview,
            Err(error) => return Permission::new(verdict, Err(error)),
        };
        let basis = preview.as_ref().map(|(_, basis)| basis);
        let shown = ShownFiles::new(workspace, session, basis);
        let is_needed = || shown.are_unchanged() && request().decide().decision == Decision::Ask;
        let asked = asking.ask(verdict, preview, options, (known_changes, &is_needed));
        if let Some(permission) = asked {
            return permission;
        }
        // Another answer has decided it, or a file of the preview was changed.
    }
}

/// The result of a call that no approver decides on.
fn by_itself(tool: &str, verdict: Verdict) -> Permission {
    let permitted = match verdict.decision {
        Decision::Allow => Ok(()),
        Decision::Ask | Decision::Deny => Err(denied(tool, &verdict, "", &next_step(&verdict))),
    };
    Permission::new(verdict, permitted)
}

/// The files of a preview, by their place on the disk, as they were when it was made.
struct ShownFiles(HashMap<PathBuf, Option<Stamp>>);

impl ShownFiles {
    fn new(workspace: &Workspace, session: &Session, basis: Option<&Basis>) -> ShownFiles {
        let workspace = workspace.with(session.opened_roots().iter().cloned());
        let stamped = |path: &PathBuf| {
            let location = workspace.location(path);
            let stamp = Stamp::at(&location);
            (location, stamp)
        };
        ShownFiles(basis.into_iter().flat_map(Basis::keys).map(stamped).collect())
    }

    fn are_unchanged(&self) -> bool {
        self.0.iter().all(|(location, stamp)| Stamp::at(location) == *stamp)
    }
}

/// The part of a question about the call itself.
#[derive(Clone, Copy)]
pub(crate) struct CallDescription<'a> {
    /// Number of the call in its runtime.
    pub(crate) call: u64,
    pub(crate) tool: &'a str,
    /// Purpose of the call, in the agent's words.
    pub(crate) description: Option<&'a str>,
}

/// A call on which the approver may have to decide.
struct ApprovalRequest<'a> {
    policy: Arc<Policy>,
    directory: &'a Path,
    all: &'a [Access],
    session: &'a Session,
    call: CallDescription<'a>,
    /// The accesses that the question shows.
    accesses: &'a [Access],
}

/// Rules that would answer a question permanently.
struct Proposals {
    always: Option<Proposal>,
    always_directory: Option<Proposal>,
    never: Option<Proposal>,
}

impl ApprovalRequest<'_> {
    /// Decision of the policy, with the earlier answers of this session.
    fn decide(&self) -> Verdict {
        let verdict = self.policy.decide_from(self.directory, self.all, &self.session.remembered());
        if verdict.decision == Decision::Ask && self.session.has_refused(&verdict.asks) {
            Verdict {
                decision: Decision::Deny,
                rule: "session".to_owned(),
                why: "an earlier answer denied it for this session".to_owned(),
                ..verdict
            }
        } else {
            verdict
        }
    }

    /// The rules that the question proposes.
    fn proposals(&self, verdict: &Verdict) -> Proposals {
        let always = self.proposal(verdict, Decision::Allow);
        let always_directory = always.as_ref().and_then(|always| {
            self.policy.directory_proposal(self.directory, self.all, always, Decision::Allow)
        });
        Proposals { always, always_directory, never: self.proposal(verdict, Decision::Deny) }
    }

    fn proposal(&self, verdict: &Verdict, decision: Decision) -> Option<Proposal> {
        self.policy.proposal(self.directory, self.all, verdict, decision)
    }

    fn question<'q>(&'q self, verdict: &'q Verdict) -> Question<'q> {
        let Verdict { rule, why, remedy, .. } = verdict;
        Question {
            call: self.call.call,
            session: self.session.id(),
            tool: self.call.tool,
            description: self.call.description,
            accesses: self.accesses,
            directory: self.directory,
            rule,
            why,
            remedy,
            asks: &verdict.asks,
            always: None,
            always_directory: None,
            never: None,
            preview: None,
        }
    }

    fn unasked(&self, verdict: &Verdict) -> Unasked {
        Unasked {
            wants: self.question(verdict).parts().concat(),
            why: verdict.why.clone(),
            rule: verdict.rule.clone(),
            always: self.proposal(verdict, Decision::Allow).map(|rules| rules.text()),
        }
    }

    /// Asks the approver. `None` if the question needs no answer any more; `is_needed` decides that again after the
    /// known changes of the session.
    fn ask(
        &self,
        verdict: Verdict,
        preview: Option<Preview>,
        options: Options<'_>,
        (known_changes, is_needed): (u64, &(dyn Fn() -> bool + Sync)),
    ) -> Option<Permission> {
        let proposals = self.proposals(&verdict);
        let question = Question {
            always: proposals.always.as_ref(),
            always_directory: proposals.always_directory.as_ref(),
            never: proposals.never.as_ref(),
            preview: preview.as_ref().map(|(reply, _)| reply),
            ..self.question(&verdict)
        };
        let is_cancelled = || options.cancel.is_cancelled();
        let turns = (self.session.questions(), known_changes);
        let pending = PendingQuestion::alone(&question, None);
        let pending = pending.of_session(turns, &is_cancelled, is_needed);
        let answer = options.approver.ask_pending(&pending)?;
        let answered = Some(AnswerRecord { answer: answer.name(), by: options.approver.name() });
        let is_writing =
            |asked: &&ApprovalScope| matches!(asked, ApprovalScope::Outside(Effect::Write, _));
        let opened: SessionApprovals = verdict.asks.iter().filter(is_writing).cloned().collect();
        let permitted = if options.cancel.is_cancelled() {
            // A cancelled call reports the cancellation, not a denial.
            options.cancel.check()
        } else {
            self.apply(&answer, &verdict, proposals, &opened)
        };
        let opened = match &permitted {
            // After the call or some minutes they are closed again.
            Ok(()) if matches!(answer, Answer::Allow | Answer::AllowFor(_)) => Vec::new(),
            Ok(()) => opened.into_iter().filter_map(opened_path).collect(),
            Err(_) => Vec::new(),
        };
        let mut hosts = SessionApprovals::default();
        if permitted.is_ok() && answer == Answer::Allow {
            let asked = verdict.asks.iter().filter(|asked| matches!(asked, ApprovalScope::Host(_)));
            hosts.extend(asked.cloned());
        }
        let agreed = preview.map(|(_, basis)| basis);
        Some(Permission { answered, opened, hosts, agreed, ..Permission::new(verdict, permitted) })
    }

    /// Remembers an answer for the session. Fails if the answer denies the call. `opened` are the paths outside the
    /// workspace that the call writes.
    fn apply(
        &self,
        answer: &Answer,
        verdict: &Verdict,
        proposals: Proposals,
        opened: &SessionApprovals,
    ) -> Result<(), Error> {
        let denied =
            |because: &str, next: &str| Err(denied(self.call.tool, verdict, because, next));
        let denied_with = |message: &str| {
            denied(&format!("the answer was no. {message}"), "Ask the user what to do instead.")
        };
        // Only rules that the approver was shown.
        let always_allow = |rules: Option<Proposal>| match rules {
            Some(rules) => self.session.agree(rules),
            None => self.session.remember(verdict.asks.clone()),
        };
        match answer {
            Answer::Allow => {}
            Answer::AllowForSession => self.session.remember(verdict.asks.clone()),
            Answer::AllowFor(time) => self.session.remember_for(verdict.asks.clone(), *time),
            Answer::AllowAlways => always_allow(proposals.always),
            Answer::AllowDirectoryAlways => always_allow(proposals.always_directory),
            Answer::Deny(message) => return denied_with(message),
            Answer::DenyAlways(message) => {
                match proposals.never {
                    Some(rules) => self.session.agree(rules),
                    None => self.session.refuse(verdict.asks.clone()),
                }
                return denied_with(message);
            }
            Answer::Unanswered(why) => {
                let because = format!("no answer came: {why}.");
                return denied(&because, "Ask the user what to do instead.");
            }
            Answer::NoApprover if !opened.is_empty() => return Err(self.outside()),
            Answer::NoApprover => {
                return denied("no approver is available.", &operator_step(verdict, &proposals));
            }
            Answer::LeftOpen(sentence) => {
                let next = format!("{sentence} {}", operator_step(verdict, &proposals));
                return denied("nobody has answered yet.", next.trim());
            }
        }
        Ok(())
    }

    /// The denial of a call that writes outside the workspace.
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

/// Hint of a denial that the operator can prevent the next time.
fn operator_step(verdict: &Verdict, proposals: &Proposals) -> String {
    match &proposals.always {
        Some(rules) => format!("Ask the operator to run `{}`.", rules.command()),
        None => next_step(verdict),
    }
}

/// Hint of a denial.
fn next_step(verdict: &Verdict) -> String {
    match (verdict.rule.as_str(), verdict.remedy.as_str()) {
        (DANGER, "") => String::new(),
        (DANGER, instead) => format!("Instead, {instead}."),
        (_, remedy) => format!("Ask the operator to {remedy}."),
    }
}

fn denied(tool: &str, verdict: &Verdict, because: &str, next: &str) -> Error {
    // No permission would make it run. A syntax error that bash finds while it runs is of the same kind.
    if verdict.rule == BROKEN {
        return Error::new(ErrorKind::Failed, verdict.why.clone())
            .hint("Nothing was run. Fix the syntax and send the command again.");
    }
    let because = because.trim();
    let end = if because.is_empty() { ".".to_owned() } else { format!(", and {because}") };
    let message = format!("{} was not allowed: {}{end}", Name::tool(tool), verdict.why);
    let hint = format!("Rule: {}. Nothing was done. {next}", verdict.rule);
    Error::new(ErrorKind::Denied, message).hint(hint.trim_end()).with("rule", verdict.rule.clone())
}
