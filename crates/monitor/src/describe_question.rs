//! A question of the runtime in the form of the protocol.

use std::ops::Range;

use toolcrib::{Access as RuntimeAccess, StepPart, command_steps};

use crate::bounded_text::Cut;
use crate::observed_call::shown_accesses;
use crate::protocol::{Command, Proposal, Question, Span, SpanKind, Step};
use crate::shorten::shorten_question;

/// Limits of a question in characters: the command and the diff, and a sentence.
const MAX_COMMAND_CHARS: usize = 256 << 10;
const MAX_DIFF_CHARS: usize = 768 << 10;
const MAX_SENTENCE_CHARS: usize = 2_000;

/// Limits of what an answer for the session covers: parts, and characters of each.
const MAX_COVERS: usize = 20;
const MAX_COVER_CHARS: usize = 300;

/// Limit of a question as JSON. A line of the socket is longer.
pub(crate) const MAX_QUESTION_BYTES: usize = 6 << 20;

/// Limit of the rules that an answer adds. Longer ones cannot be reviewed, so they are not offered.
const MAX_RULE_BYTES: usize = 64 << 10;

/// Digest of everything that an answer covers.
pub fn question_digest(question: &toolcrib::Question<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in question.parts() {
        hasher.update(part.as_bytes());
    }
    if let Some(preview) = question.preview {
        hasher.update(preview.full_diff_text().as_bytes());
    }
    hasher.update(question.directory.as_os_str().as_encoded_bytes());
    hasher.update(question.because().as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The question, without what only its server knows: ids, times, sandbox, client.
pub(crate) fn describe_question(question: &toolcrib::Question<'_>) -> Question {
    let mut cut = Cut::default();
    let mut sentence = |field: &'static str, text: &str| cut.text(field, text, MAX_SENTENCE_CHARS);
    let described = Question {
        digest: question_digest(question),
        session: question.session.to_string(),
        tool: question.tool.to_owned(),
        description: question.description.map(|text| sentence("description", text)),
        directory: question.directory.to_string_lossy().into_owned(),
        rule: sentence("rule", question.rule),
        why: sentence("why", &question.reason()),
        remedy: sentence("remedy", question.remedy),
        session_scope: question.session_scope().to_owned(),
        session_covers: session_covers(question),
        always: question.always.and_then(proposal),
        always_directory: question.always_directory.and_then(proposal),
        never: question.never.and_then(proposal),
        ..Question::default()
    };
    let script = question.accesses.iter().find_map(|access| match access {
        RuntimeAccess::Command(text) => Some(text.as_str()),
        _ => None,
    });
    let command = script.map(|text| describe_command(text, &mut cut));
    let diff = question.preview.map(|preview| preview.full_diff_text());
    let diff = diff.filter(|diff| !diff.is_empty());
    let diff = diff.map(|diff| cut.text("diff", diff, MAX_DIFF_CHARS));
    let accesses = shown_accesses(question.accesses, &mut cut);
    let whole = Question { accesses, command, diff, cut: cut.fields(), ..described };
    shorten_question(whole, MAX_QUESTION_BYTES)
}

fn session_covers(question: &toolcrib::Question<'_>) -> Vec<String> {
    let covers = question.asks.iter().take(MAX_COVERS);
    covers.map(|scope| scope.to_string().chars().take(MAX_COVER_CHARS).collect()).collect()
}

fn describe_command(text: &str, cut: &mut Cut) -> Command {
    let shown = cut.text("command", text, MAX_COMMAND_CHARS);
    match command_steps(text) {
        Err(reason) => Command { text: shown, steps: Vec::new(), unparsed: Some(reason) },
        Ok(steps) => {
            let steps = steps.into_iter().map(|step| Step {
                spans: step.spans.iter().map(|span| describe_span(&step.text, span)).collect(),
                writes: step.writes,
                text: step.text,
            });
            Command { text: shown, steps: steps.collect(), unparsed: None }
        }
    }
}

fn describe_span(text: &str, (range, part): &(Range<usize>, StepPart)) -> Span {
    let units = |end: usize| text.get(..end).unwrap_or(text).encode_utf16().count();
    let kind = match part {
        StepPart::Program => SpanKind::Program,
        StepPart::Path => SpanKind::Path,
        StepPart::Write => SpanKind::Write,
        StepPart::Redirect => SpanKind::Redirect,
        StepPart::Operator => SpanKind::Operator,
    };
    Span { start: units(range.start), end: units(range.end), kind }
}

fn proposal(proposal: &toolcrib::Proposal) -> Option<Proposal> {
    let toml = proposal.text();
    let covers = proposal.covers().map(str::to_owned).collect();
    (toml.len() <= MAX_RULE_BYTES).then_some(Proposal { toml, covers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_utf16_code_units() {
        let command = describe_command("echo 😀 > ä.txt", &mut Cut::default());
        let [step] = command.steps.as_slice() else { panic!("{command:?}") };
        let written = step.spans.iter().find(|span| span.kind == SpanKind::Write).unwrap();
        let units: Vec<u16> = step.text.encode_utf16().collect();
        let text = String::from_utf16(&units[written.start..written.end]).unwrap();
        assert_eq!((text.as_str(), step.writes), ("ä.txt", true));
        let unparsed = describe_command("echo 'open", &mut Cut::default());
        assert!(unparsed.steps.is_empty() && unparsed.unparsed.is_some());
    }
}
