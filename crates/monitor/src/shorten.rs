//! Questions and calls shortened, so that the state of a server fits into a line of its socket.

use serde::Serialize;

use crate::protocol::{Access, Proposal, Question, RunningCall};

/// Bytes of a value as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// The values that fit into this number of bytes of JSON, from the first on.
pub(crate) fn first_within<T: Serialize>(values: impl Iterator<Item = T>, bytes: usize) -> Vec<T> {
    let mut used = 0_usize;
    let fits = |value: &T| {
        used = used.saturating_add(json_bytes(value)).saturating_add(1);
        used <= bytes
    };
    values.take_while(fits).collect()
}

/// A question in about this number of bytes of JSON.
pub(crate) fn shorten_question(mut question: Question, bytes: usize) -> Question {
    if json_bytes(&question) <= bytes {
        return question;
    }
    // Steps, accesses, proposals and sentences have one share each, the command and the diff two. The last one is for
    // short fields.
    let share = bytes / 9;
    let cut = &mut question.cut;
    if let Some(command) = &mut question.command {
        if json_bytes(&command.steps) > share {
            command.steps = Vec::new();
            command.unparsed = Some("it is too long for a list of its commands".to_owned());
        }
        shorten_text("command", &mut command.text, 2 * share, cut);
    }
    if let Some(diff) = &mut question.diff {
        shorten_text("diff", diff, 2 * share, cut);
    }
    shorten_accesses(&mut question.accesses, share, cut);
    for proposal in [&mut question.always, &mut question.always_directory, &mut question.never] {
        // A rule that is not shown whole cannot be added.
        *proposal = proposal.take().filter(|rules: &Proposal| json_bytes(rules) <= share / 3);
    }
    if let Some(description) = &mut question.description {
        shorten_text("description", description, share / 4, cut);
    }
    shorten_text("rule", &mut question.rule, share / 4, cut);
    shorten_text("why", &mut question.why, share / 4, cut);
    shorten_text("remedy", &mut question.remedy, share / 4, cut);
    question
}

/// A call in about this number of bytes of JSON.
pub(crate) fn shorten_call(mut call: RunningCall, bytes: usize) -> RunningCall {
    if json_bytes(&call) <= bytes {
        return call;
    }
    let share = bytes / 3;
    if let Some(description) = &mut call.description {
        shorten_text("description", description, share, &mut call.cut);
    }
    shorten_accesses(&mut call.accesses, share, &mut call.cut);
    call
}

fn shorten_accesses(accesses: &mut Vec<Access>, bytes: usize, cut: &mut Vec<String>) {
    let all = std::mem::take(accesses);
    let count = all.len();
    *accesses = first_within(all.into_iter(), bytes);
    if accesses.len() < count {
        add_cut("accesses", cut);
    }
}

fn shorten_text(field: &str, text: &mut String, bytes: usize, cut: &mut Vec<String>) {
    let mut used = 0;
    let is_beyond = |character: char| {
        used += match character {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            character if character.is_ascii_control() => 6,
            character => character.len_utf8(),
        };
        used > bytes
    };
    if let Some(end) = text.find(is_beyond) {
        text.truncate(end);
        add_cut(field, cut);
    }
}

fn add_cut(field: &str, cut: &mut Vec<String>) {
    if !cut.iter().any(|known| known == field) {
        cut.push(field.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Command;

    #[test]
    fn a_question_of_escaped_characters_fits() {
        for text in ["\u{1}", "\n", "ä", "😀", "x", "\"", "\u{7f}"] {
            let long = text.repeat(200_000);
            let access = Access { effect: "write".to_owned(), text: text.repeat(4_000) };
            let rules = Some(Proposal { toml: long.clone(), covers: vec![long.clone()] });
            let question = Question {
                command: Some(Command { text: long.clone(), ..Command::default() }),
                diff: Some(long.clone()),
                accesses: vec![access.clone(); 200],
                always: rules.clone(),
                never: rules,
                description: Some(text.repeat(2_000)),
                why: text.repeat(2_000),
                rule: "profile".to_owned(),
                ..Question::default()
            };
            let short = shorten_question(question.clone(), 100_000);
            assert!(json_bytes(&short) <= 100_000, "{text:?} {}", json_bytes(&short));
            assert!(short.diff.as_ref().is_some_and(|diff| diff.len() > 3_000), "{short:?}");
            assert_eq!((short.rule.as_str(), short.always), ("profile", None));
            for field in ["command", "diff", "accesses"] {
                assert!(short.cut.iter().any(|cut| cut == field), "{field} {:?}", short.cut);
            }
            let bytes = json_bytes(&question);
            assert_eq!(shorten_question(question.clone(), bytes), question);
            let call = RunningCall { accesses: vec![access; 200], ..RunningCall::default() };
            let call = shorten_call(call, 50_000);
            assert!(json_bytes(&call) <= 50_000 && call.cut == ["accesses"]);
        }
    }
}
