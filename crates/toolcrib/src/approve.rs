//! Approval requests: the question, its answer, and the approver.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolcrib_policy::{Access, ApprovalScope, Effect, Proposal, SessionApprovals};
use toolcrib_text::{truncate_line, visible_lines, visible_name};

use crate::message_names::Name;
use crate::phrases::first_of;
use crate::question_turns::{QuestionTurns, Turn};
use crate::reply::Reply;

/// Characters of a question in one part. A client may show a part in a small window.
const PART_CHARS: usize = 3_000;

/// Limit of the reason and of the remedy. Both are sentences; only a long name in them can exceed it.
const MAX_SENTENCE_CHARS: usize = 500;

/// Paths that a reason names.
const NAMED_PATHS: usize = 3;

/// The person or program that approves calls: a user at a terminal, an MCP client, a callback.
///
/// A closure is an approver:
///
/// ```
/// use toolcrib::{Answer, Approver, Question};
///
/// let approver = |question: &Question<'_>| match question.tool {
///     "Write" => Answer::Allow,
///     _ => Answer::Deny("only Write is approved here".to_owned()),
/// };
/// fn takes(_: &dyn Approver) {}
/// takes(&approver);
/// ```
pub trait Approver: Sync {
    /// Asks the question and blocks until it is answered.
    fn ask(&self, question: &Question<'_>) -> Answer;

    /// Asks a question that comes while a command runs, such as about a host that it connects to. The command
    /// waits only for `limit`, so an approver that can should stop waiting then, with [`Answer::Unanswered`]. Returns
    /// [`Answer::NoApprover`] if such a question cannot be asked. Defaults to [`Approver::ask`].
    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        let _ = limit;
        self.ask(question)
    }

    /// Asks a question while other questions of the session may be open. Returns `None` once the question needs no
    /// answer. By default, waits for its turn, so that [`Approver::ask`] has one question of a session at a time.
    fn ask_pending(&self, pending: &PendingQuestion<'_>) -> Option<Answer> {
        let _turn = pending.wait_for_turn(|| true)?;
        // Another answer may have decided it in the meantime.
        pending.is_needed().then(|| match pending.limit() {
            None => self.ask(pending.question()),
            Some(limit) => self.ask_within(pending.question(), limit),
        })
    }

    /// Name of who answered last, for records. Defaults to `host`.
    fn name(&self) -> &'static str {
        "host"
    }
}

/// An approval request for one call.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Number of the call in its runtime.
    pub call: u64,
    /// Session of the call.
    pub session: u64,
    /// Name of the tool.
    pub tool: &'a str,
    /// Purpose of the call, in the agent's words.
    pub description: Option<&'a str>,
    /// Accesses of the call, with resolved paths.
    pub accesses: &'a [Access],
    /// Working directory of a command of the call.
    pub directory: &'a Path,
    /// Name of the rule that asks.
    pub rule: &'a str,
    /// Reason that the rule gives.
    pub why: &'a str,
    /// How to allow the call without asking, as an imperative.
    pub remedy: &'a str,
    /// What an answer for the session covers.
    pub asks: &'a SessionApprovals,
    /// Rules that would always allow exactly this call. `None` if no rule can. Only the user may add them to
    /// the rules file.
    pub always: Option<&'a Proposal>,
    /// Rules that would always allow it for the directories of the files. `None` if one of them is a root.
    pub always_directory: Option<&'a Proposal>,
    /// Rules that would always deny exactly this call. `None` if no rule can.
    pub never: Option<&'a Proposal>,
    /// Dry run of the call, with its diff. `None` if the call cannot be previewed.
    pub preview: Option<&'a Reply>,
}

impl Question<'_> {
    /// Text of the question, in parts that can be shown one after the other: the tool, its accesses, and the
    /// diff. Every name is on one line with control characters escaped, so that no file name can imitate a
    /// question.
    pub fn parts(&self) -> Vec<String> {
        split_question(&self.wants())
    }

    /// A short name for what an answer for the session covers: `all edits`, `this command`.
    pub fn session_scope(&self) -> &'static str {
        let mut names: Vec<&'static str> =
            self.asks.iter().map(ApprovalScope::short_name).collect();
        names.sort_unstable();
        names.dedup();
        match (names.as_slice(), self.asks.len()) {
            ([one], 1) => one,
            (["this file"], _) => "these files",
            (["this path"], _) => "these paths",
            (["this command"], _) => "these commands",
            (["this host"], _) => "these hosts",
            ([one], _) => one,
            _ => "the same",
        }
    }

    fn wants(&self) -> String {
        let tool = Name::tool(self.tool).to_string();
        let mut text = format!("{} wants to:\n", visible_name(tool.as_bytes()));
        for access in self.accesses {
            text += &match access {
                Access::Command(script) if script.trim().contains('\n') => script_lines(script),
                access => format!("  {}\n", visible_name(access.to_string().as_bytes())),
            };
            // A command means something else in another directory.
            if let Access::Command(_) = access {
                let directory = visible_name(self.directory.as_os_str().as_encoded_bytes());
                text += &format!("  in {directory}\n");
            }
        }
        if let Some(description) = self.description {
            let description = truncate_line(description, MAX_SENTENCE_CHARS);
            let description = visible_name(description.as_bytes());
            text += &format!("The agent describes it as: {description}\n");
        }
        text + &self.preview.map_or_else(String::new, |preview| visible_lines(preview.diff_text()))
    }

    /// Reason of the question, as one line.
    pub fn because(&self) -> String {
        sentence(&format!("Asked because {} ({}).", self.reason(), self.rule))
    }

    /// The reason of the rule, and what an approval of a write outside the workspace opens.
    pub fn reason(&self) -> String {
        let opened = self.asks.iter().filter_map(|asked| match asked {
            ApprovalScope::Outside(Effect::Write, path) => Some(path.display().to_string()),
            _ => None,
        });
        let opened: Vec<String> = opened.collect();
        if opened.is_empty() {
            return self.why.to_owned();
        }
        let names = first_of(&opened, NAMED_PATHS, String::clone);
        format!("{}; an approval for the session opens {names} to file tools", self.why)
    }

    /// How to allow the call without asking, as one line.
    pub fn for_good(&self) -> String {
        let rules = self.always.map(Proposal::command);
        let rules = rules.filter(|command| command.len() < MAX_SENTENCE_CHARS);
        let allows = match rules {
            Some(rules) => format!("run `{rules}`"),
            None => self.remedy.to_owned(),
        };
        sentence(&format!("To allow it always, {allows}"))
    }
}

/// A script of several lines. Each is indented, so that none can imitate another line of the question.
fn script_lines(script: &str) -> String {
    let lines = visible_lines(script.trim_end_matches('\n'));
    let lines = lines.lines().map(|line| format!("    {line}\n"));
    format!("  run:\n{}", lines.collect::<String>())
}

fn sentence(text: &str) -> String {
    format!("{}\n", visible_name(truncate_line(text, MAX_SENTENCE_CHARS).as_bytes()))
}

/// Splits the text of a question into parts of at most 3,000 characters, to be shown one after the other. Lines stay
/// whole unless one line is longer than that.
pub fn split_question(text: &str) -> Vec<String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((limit, _)) = rest.char_indices().nth(PART_CHARS) {
        let cut = rest[..limit].rfind('\n').map_or(limit, |newline| newline + 1);
        let (part, behind) = rest.split_at(cut);
        parts.push(part.to_owned());
        rest = behind;
    }
    parts.push(rest.to_owned());
    parts
}

/// A question that is to be asked. Other questions of its session may be open at the same time.
pub struct PendingQuestion<'a> {
    question: &'a Question<'a>,
    limit: Option<Duration>,
    of_session: Option<OfSession<'a>>,
}

/// The session of a pending question.
struct OfSession<'a> {
    turns: &'a QuestionTurns,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Decides again whether the question is needed.
    decide_again: &'a (dyn Fn() -> bool + Sync),
    /// The changes of the session that the last decision knew.
    known_changes: AtomicU64,
}

impl fmt::Debug for PendingQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingQuestion").field("question", self.question).finish_non_exhaustive()
    }
}

impl<'a> PendingQuestion<'a> {
    /// A question that no other answer can make unnecessary.
    pub fn alone(question: &'a Question<'a>, limit: Option<Duration>) -> PendingQuestion<'a> {
        PendingQuestion { question, limit, of_session: None }
    }

    /// Makes it a question of a session. `known_changes` are the session's changes before the decision to ask.
    pub(crate) fn of_session(
        self,
        (turns, known_changes): (&'a QuestionTurns, u64),
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
        decide_again: &'a (dyn Fn() -> bool + Sync),
    ) -> PendingQuestion<'a> {
        let known_changes = AtomicU64::new(known_changes);
        let of_session = OfSession { turns, is_cancelled, decide_again, known_changes };
        PendingQuestion { of_session: Some(of_session), ..self }
    }

    /// The question.
    pub fn question(&self) -> &'a Question<'a> {
        self.question
    }

    /// How long the asking command waits, if it does not wait as long as its call.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Whether the question needs an answer: its call was not cancelled, no other answer has decided it, and the
    /// files that it is about have not changed.
    pub fn is_needed(&self) -> bool {
        let Some(session) = &self.of_session else { return true };
        if (session.is_cancelled)() {
            return false;
        }
        let changes = session.turns.changes();
        if changes == session.known_changes.load(Ordering::Acquire) {
            return true;
        }
        let is_needed = (session.decide_again)();
        if is_needed {
            session.known_changes.store(changes, Ordering::Release);
        }
        is_needed
    }

    /// Waits until no other question of the session has the turn, for approvers that show one question at a time.
    /// `None` once the question needs no answer, or `goes_on` returns `false`.
    pub fn wait_for_turn(&self, goes_on: impl Fn() -> bool) -> Option<QuestionTurn<'a>> {
        let turn = match &self.of_session {
            None => None,
            Some(session) => Some(session.turns.wait(|| goes_on() && self.is_needed())?),
        };
        Some(QuestionTurn { _turn: turn })
    }
}

/// The turn of a question, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct QuestionTurn<'a> {
    _turn: Option<Turn<'a>>,
}

/// Answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Allow,
    /// Allow this call, and the same accesses for the rest of the session.
    AllowForSession,
    /// Allow this call, and the same accesses in this session for some time.
    AllowFor(Duration),
    /// Allow always. The approver has stored a rule; it applies in this session at once.
    AllowAlways,
    /// Allow this call, and always for the directories of the files. The approver has stored the rule, which takes
    /// effect in this session.
    AllowDirectoryAlways,
    /// Deny this call, with a message to the agent. The message may be empty.
    Deny(String),
    /// Deny always, with a message. The approver has stored a rule; it applies in this session at once.
    DenyAlways(String),
    /// No approver is available.
    NoApprover,
    /// No approver is available now, but the question is still open. The sentence says where it can be answered.
    LeftOpen(String),
    /// No answer came, for this reason.
    Unanswered(String),
}

impl Answer {
    /// Name of the answer in records.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Allow => "once",
            Answer::AllowForSession => "session",
            Answer::AllowFor(_) => "minutes",
            Answer::AllowAlways => "always",
            Answer::AllowDirectoryAlways => "always for the directory",
            Answer::Deny(_) => "no",
            Answer::DenyAlways(_) => "never",
            Answer::NoApprover | Answer::LeftOpen(_) => "nobody",
            Answer::Unanswered(_) => "none",
        }
    }
}

/// Answer to a question, for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRecord {
    /// `once`, `session`, `minutes`, `always`, `always for the directory`, `no`, `never`, `none` if no answer came, or `nobody` if
    /// no approver was available.
    pub answer: &'static str,
    /// Name of the approver.
    pub by: &'static str,
}

/// The default approver: none. Calls that need approval are denied at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask(&self, _: &Question<'_>) -> Answer {
        Answer::NoApprover
    }

    fn name(&self) -> &'static str {
        "nobody"
    }
}

impl<F: Fn(&Question<'_>) -> Answer + Sync> Approver for F {
    fn ask(&self, question: &Question<'_>) -> Answer {
        self(question)
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_policy::Effect;

    use super::*;

    #[test]
    fn a_script_is_shown_line_by_line_and_cannot_imitate_the_question() {
        let accesses = [Access::Command("cd x\n  in /safe\nThe agent\u{1b}\n".to_owned())];
        let question = Question {
            call: 1,
            session: 1,
            tool: "Bash",
            description: None,
            accesses: &accesses,
            directory: Path::new("/w"),
            rule: "",
            why: "",
            remedy: "",
            asks: &SessionApprovals::from([ApprovalScope::Effect(Effect::Write)]),
            always: None,
            always_directory: None,
            never: None,
            preview: None,
        };
        let shown =
            "Bash wants to:\n  run:\n    cd x\n      in /safe\n    The agent\\x1b\n  in /w\n";
        assert_eq!(question.parts(), [shown]);
        assert_eq!(question.session_scope(), "all edits");
    }

    #[test]
    fn parts_are_bounded_and_nothing_is_missing() {
        let lines: String = (0..2_000).map(|number| format!("+line {number}\n")).collect();
        let long = format!("short\n{}\nend", "ä".repeat(10_000));
        for text in ["", "one\n", lines.as_str(), long.as_str()] {
            let parts = split_question(text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.chars().count() <= PART_CHARS));
            assert!(parts.len() <= text.len() / PART_CHARS * 2 + 1);
        }
        assert!(split_question(&lines).iter().all(|part| part.ends_with('\n')), "lines stay whole");
    }
}
