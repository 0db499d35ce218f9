//! Which parts of a pipe failed. The exit code of a pipe is that of its last part: `pytest | tail` succeeds.

use toolcrib_exec::ShellState;

use super::exit_code_one::command_exit_one_is_result;
use crate::phrases::one_line;
use crate::tools::job_status_text::exit_code_text;

/// Exit code of a part that a later part did not read to its end. Not a failure: `yes | head`.
const SIGPIPE: i32 = 141;

/// Limits for showing a part: words and characters.
const MAX_WORDS: usize = 3;
const MAX_CHARS: usize = 40;

/// The note about failed parts of the last pipe, except the last part: its exit code is that of the command.
pub(super) fn failed_parts(script: &str, left: &ShellState) -> Option<String> {
    let ShellState { pipe_codes, last_command, .. } = left;
    // After `exit`, the codes may be those of any earlier pipe.
    if pipe_codes.len() < 2 || first_word(last_command) == "exit" {
        return None;
    }
    let parts = named_parts(script, pipe_codes.len(), last_command);
    let count = pipe_codes.len();
    let failed = pipe_codes.iter().take(count - 1).enumerate().filter_map(|(index, &code)| {
        let part = parts.as_ref().and_then(|parts| parts.get(index));
        let answers = code == 1 && part.is_some_and(|part| command_exit_one_is_result(part));
        if code == 0 || code == SIGPIPE || answers {
            return None;
        }
        let name = match part {
            Some(part) => shown(part),
            None => format!("part {} of {count} (… | {})", index + 1, shown(last_command)),
        };
        Some(format!("{name} exited with {}", exit_code_text(code)))
    });
    let failed: Vec<String> = failed.collect();
    (!failed.is_empty()).then(|| format!("in the pipe, {}", failed.join(", ")))
}

/// The parts of the pipe that ran last, if exactly one pipe of the script has `count` parts and ends with this
/// command, with its arguments or at least with its name.
fn named_parts<'a>(script: &'a str, count: usize, last_command: &str) -> Option<Vec<&'a str>> {
    let pipes = pipes(script)?;
    let same_words = |part: &str| part.split_whitespace().eq(last_command.split_whitespace());
    let same_name = |part: &str| first_word(part) == first_word(last_command);
    let only = |is_last: &dyn Fn(&str) -> bool| {
        let fits = |parts: &&Vec<&str>| {
            parts.len() == count && parts.last().is_some_and(|part| is_last(part))
        };
        let mut fitting = pipes.iter().filter(fits);
        let only = fitting.next()?;
        fitting.next().is_none().then(|| only.clone())
    };
    only(&same_words).or_else(|| only(&same_name))
}

/// The pipes of a script outside parentheses, each as its parts. `None` if the script has syntax that this scanner
/// does not support.
fn pipes(script: &str) -> Option<Vec<Vec<&str>>> {
    let puzzling = |word: &str| matches!(word, "case" | "[[" | "coproc" | "eval" | "function");
    if ["<<", "((", "()"].iter().any(|odd| script.contains(odd))
        || script.split_whitespace().any(puzzling)
    {
        return None;
    }
    let bytes = script.as_bytes();
    let (mut pipes, mut parts, mut begin) = (Vec::new(), Vec::new(), 0);
    let (mut at, mut depth, mut quote) = (0, 0_usize, None);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') | (Some(b'`'), b'`') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => at += 1,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (None, b'#') if before.is_none_or(|b| b.is_ascii_whitespace() || b == b';') => {
                return None;
            }
            (None, b'(' | b'{') => depth += usize::from(byte == b'(' || before == Some(b'$')),
            (None, b')') => depth = depth.checked_sub(1)?,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, _) if depth > 0 => {}
            (None, b'|') if before == Some(b'>') => {}
            (None, b'|') if next != Some(b'|') => {
                parts.push(script.get(begin..at)?);
                at += usize::from(next == Some(b'&'));
                begin = at + 1;
            }
            (None, b'&') if before == Some(b'>') || before == Some(b'<') || next == Some(b'>') => {}
            (None, b'|' | b'&' | b';' | b'\n') => {
                at += usize::from(next == Some(byte) && byte != b'\n');
                let is_continued = script.get(begin..at)?.trim().is_empty() && !parts.is_empty();
                // A line may end after a `|`.
                if !is_continued {
                    parts.push(script.get(begin..at)?);
                    pipes.push(std::mem::take(&mut parts));
                }
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if quote.is_some() || depth > 0 {
        return None;
    }
    parts.push(script.get(begin..)?);
    pipes.push(parts);
    let trimmed = |part: &str| -> usize { part.len() - part.trim_start().len() };
    for parts in &mut pipes {
        for part in parts.iter_mut() {
            *part =
                part.get(trimmed(part)..).unwrap_or(part).trim_end_matches(['&', ';', '|']).trim();
        }
        if let Some(first) = parts.first_mut() {
            *first = without_keywords(first);
        }
    }
    Some(pipes)
}

/// Removes leading keywords and prefixes.
fn without_keywords(mut part: &str) -> &str {
    while let Some(rest) =
        ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"].iter().find_map(
            |word| part.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace)),
        )
    {
        part = rest.trim_start();
    }
    part
}

fn first_word(part: &str) -> &str {
    part.split_whitespace().find(|word| !is_assignment(word)).unwrap_or_default()
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The first words of a part.
fn shown(part: &str) -> String {
    if part.starts_with(['(', '{']) {
        return one_line(part, MAX_CHARS);
    }
    let mut words = part.split_whitespace().skip_while(|word| is_assignment(word));
    let mut first: Vec<&str> = words.by_ref().take(MAX_WORDS).collect();
    // Redirections follow the words of the command.
    if words.any(|word| !word.contains(['<', '>'])) {
        first.push("…");
    }
    one_line(&first.join(" "), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(script: &str, codes: &[i32], last: &str) -> Option<String> {
        failed_parts(
            script,
            &ShellState {
                pipe_codes: codes.to_vec(),
                last_command: last.to_owned(),
                directory: None,
                environment: Vec::new(),
            },
        )
    }

    #[test]
    fn failed_parts_are_named() {
        for (script, codes, last, expected) in [
            ("pytest | tail", [1, 0], "tail", "in the pipe, pytest exited with 1"),
            (
                "cd a && CI=1 pytest -q x 2>&1 | tail -3",
                [2, 0],
                "tail -3",
                "in the pipe, pytest -q x exited with 2",
            ),
            (
                "(make; true) |& tee 'a|b'",
                [1, 0],
                "tee 'a|b'",
                "in the pipe, (make; true) exited with 1",
            ),
            (
                "pytest -q tests/a.py tests/b.py | tail",
                [1, 0],
                "tail",
                "in the pipe, pytest -q tests/a.py … exited with 1",
            ),
            ("a |\n b", [137, 0], "b", "in the pipe, a exited with 137 (128 + SIGKILL)"),
            ("if x; then a | b; fi", [1, 0], "b", "in the pipe, a exited with 1"),
            ("x | tail -2; y; z | tail -1", [1, 0], "tail -1", "in the pipe, z exited with 1"),
            ("echo \"x|y\" >| f; a | b", [1, 0], "b", "in the pipe, a exited with 1"),
        ] {
            assert_eq!(note(script, &codes, last).as_deref(), Some(expected), "{script}");
        }
        let three = note("a | b | c", &[1, 3, 0], "c");
        assert_eq!(three.as_deref(), Some("in the pipe, a exited with 1, b exited with 3"));
    }

    #[test]
    fn parts_of_an_unknown_pipe_are_numbered() {
        for script in [
            "if x; then a | tail; else b | tail; fi",
            "cat <<E | tail\n|\nE",
            "for f in *; do case $f in a|b) c | tail;; esac; done",
            "f() { a | tail; }; . ./other.sh",
            "x # | tail",
        ] {
            let said = note(script, &[1, 0], "tail -1 other");
            let expected = "in the pipe, part 1 of 2 (… | tail -1 other) exited with 1";
            assert_eq!(said.as_deref(), Some(expected), "{script}");
        }
        assert_eq!(
            note("if x; then a | tail; else b | tail; fi", &[1, 0], "tail").as_deref(),
            Some("in the pipe, part 1 of 2 (… | tail) exited with 1")
        );
    }

    #[test]
    fn successful_parts_are_not_named() {
        assert_eq!(note("yes | head -1", &[141, 0], "head -1"), None);
        assert_eq!(note("cat a | grep x | wc -l", &[0, 1, 0], "wc -l"), None);
        assert_eq!(note("a | b", &[0, 1], "b"), None, "the command's own exit code tells");
        assert_eq!(note("a | b; exit 0", &[1, 0], "exit 0"), None);
        assert_eq!(note("a", &[1], "a"), None);
    }
}
