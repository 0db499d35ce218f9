//! Denies commands with a bash syntax error, if bash rejects them too.

use toolcrib_policy::{Access, Decision, SessionApprovals, Verdict};

use crate::command_state::ShellHost;

/// Rule that denies a command which bash rejects.
pub(crate) const BROKEN: &str = "command:broken";

/// The verdict after bash has checked commands that look broken.
pub(crate) fn confirmed(
    host: Option<&ShellHost>,
    accesses: &[Access],
    verdict: Verdict,
) -> Verdict {
    if !verdict.looks_like_syntax_error || verdict.decision == Decision::Deny {
        return verdict;
    }
    let rejected = |access: &Access| match access {
        Access::Command(script) => host?.syntax_error(script),
        _ => None,
    };
    match accesses.iter().find_map(rejected) {
        None => verdict,
        Some(message) => Verdict {
            decision: Decision::Deny,
            rule: BROKEN.to_owned(),
            why: format!("bash rejects the command: {message}"),
            remedy: "fix the syntax".to_owned(),
            asks: SessionApprovals::new(),
            looks_like_syntax_error: true,
        },
    }
}
