//! Explains effects of the sandbox that the supervisor does not report: a hidden path looks empty or missing, and a
//! disabled system call fails. Both are inferred from the command and its output.

use std::path::{Component, Path, PathBuf};

use toolcrib_text::visible_name;

use crate::phrases::first_of;

/// Words of the command, and of the output, that are checked.
const MAX_WORDS: usize = 200;

/// Bytes of the command, and of the output, that are checked.
const MAX_BYTES: usize = 64 << 10;

/// Hidden paths that are named.
const NAMED: usize = 3;

/// Error messages about a path that is missing or not readable.
const UNREADABLE: [&str; 2] = ["No such file or directory", "ermission denied"];

/// Disabled system calls, as error messages name them.
const DISABLED_CALLS: [&str; 3] = ["ptrace", "perf_event_open", "PTRACE_"];

/// Absolute paths that a script names, and those that its output calls missing or not readable.
pub(super) fn named_paths(
    script: &str,
    output: &str,
    directory: &Path,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let is_unreadable = |line: &&str| UNREADABLE.iter().any(|message| line.contains(message));
    let messages = beginning(output).lines().filter(is_unreadable);
    let in_script = path_words(beginning(script)).take(MAX_WORDS);
    let in_output = messages.flat_map(path_words).take(MAX_WORDS);
    in_script.chain(in_output).filter_map(|word| absolute(word, directory, home)).collect()
}

/// The note about hidden paths that a command named.
pub(super) fn hidden_note(hidden: &[PathBuf], home: Option<&Path>) -> Option<String> {
    let shown = |path: &PathBuf| {
        let in_home = home.and_then(|home| path.strip_prefix(home).ok());
        let path = in_home.map_or_else(|| path.clone(), |path| Path::new("~").join(path));
        visible_name(path.as_os_str().as_encoded_bytes())
    };
    let verb = if hidden.len() == 1 { "is" } else { "are" };
    (!hidden.is_empty()).then(|| {
        format!(
            "{} {verb} hidden from commands, as if nothing were there (allow_hidden in config.toml)",
            first_of(hidden, NAMED, shown)
        )
    })
}

/// The note about a path in another workspace.
pub(super) const OTHER_WORKSPACES: &str =
    "other workspaces are hidden from commands, and no setting allows it";

/// The note about tracing or profiling that failed.
pub(super) fn tracing_note(output: &str) -> Option<&'static str> {
    let is_refusal = |line: &str| {
        line.contains("not permitted") && DISABLED_CALLS.iter().any(|call| line.contains(call))
    };
    beginning(output).lines().any(is_refusal).then_some(
        "the sandbox disables ptrace and perf: tracers, debuggers and profilers do not work in commands",
    )
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

/// Words of a script or a message that may be paths.
fn path_words(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |c: char| c.is_whitespace() || "'\"`;|&()<>=:,".contains(c);
    text.split(is_separator).filter(|word| word.contains(['/', '~', '.']))
}

/// The absolute path of a word, without `.` and `..`.
fn absolute(word: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let in_home = ["~", "$HOME", "${HOME}"].iter().find_map(|name| word.strip_prefix(name));
    let in_home = in_home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = match in_home {
        Some(rest) => home?.join(rest.trim_start_matches('/')),
        None => directory.join(word),
    };
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normalized.pop();
            }
            component => normalized.push(component),
        }
    }
    Some(normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(script: &str, output: &str) -> Vec<PathBuf> {
        named_paths(script, output, Path::new("/home/me/w"), Some(Path::new("/home/me")))
    }

    #[test]
    fn paths_are_found_in_every_spelling() {
        for script in [
            "cat ~/.ssh/id",
            "cat \"$HOME/.ssh/id\"",
            "x=${HOME}/.ssh/id; cat $x",
            "cat </home/me/.ssh/id",
            "cat ../.ssh/./id|wc",
        ] {
            assert!(named(script, "").contains(&"/home/me/.ssh/id".into()), "{script}");
        }
    }

    #[test]
    fn paths_in_the_output_count_if_they_are_missing() {
        let output = "cat: /home/me/.ssh/id: No such file or directory\n";
        assert_eq!(named("x", output), [PathBuf::from("/home/me/.ssh/id")]);
        assert_eq!(named("x", "docs name /home/me/.ssh/id\n"), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_number_of_paths_is_bounded() {
        let output = "~/a: No such file or directory\n".repeat(9_999);
        assert_eq!(named(&"~ ".repeat(9_999), &output).len(), 2 * MAX_WORDS);
    }

    #[test]
    fn failed_tracing_is_recognized() {
        let output = "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\n";
        assert!(tracing_note(output).is_some());
        let output = "chown: Operation not permitted\nptrace is a system call\n";
        assert!(tracing_note(output).is_none());
    }
}
