//! Commands in hints, with the directories that the user's own command names: without them they are about other changes.

use toolcrib::{Error, shell_word};

use crate::args::Common;

/// The commands that are about the changes in a workspace.
const COMMANDS: [&str; 5] = ["undo", "redo", "log", "show", "diff"];

/// The error whose hint names `--state` and `--root` if they were given.
pub(super) fn in_hint(common: &Common, error: Error) -> Error {
    let hint = with_flags(error.hint_text(), &flags(common));
    error.hint(hint)
}

fn with_flags(hint: &str, flags: &str) -> String {
    COMMANDS.iter().fold(hint.to_owned(), |hint, command| {
        let command = format!("`toolcrib {command}");
        let mut parts = hint.split(&command);
        let mut all = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            all += &command;
            if part.starts_with(['`', ' ']) {
                all += flags;
            }
            all += part;
        }
        all
    })
}

/// The flags, each after a space, for a shell.
fn flags(common: &Common) -> String {
    let absolute = |path: &std::path::Path| {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
    };
    let roots = common.named_roots().iter().map(|root| {
        let read_only = if root.read_only { ":ro" } else { "" };
        ("--root", absolute(&root.directory) + read_only)
    });
    let state = common.state.iter().map(|state| ("--state", absolute(state)));
    state.chain(roots).map(|(flag, path)| format!(" {flag} {}", shell_word(&path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_a_hint_has_the_flags() {
        for (hint, expected) in [
            ("`toolcrib log` lists them.", "`toolcrib log --state /s` lists them."),
            (
                "`toolcrib undo 3` first, or `toolcrib undo --since 2`.",
                "`toolcrib undo --state /s 3` first, or `toolcrib undo --state /s --since 2`.",
            ),
            ("`toolcrib doctor`, toolcrib log", "`toolcrib doctor`, toolcrib log"),
        ] {
            assert_eq!(with_flags(hint, " --state /s"), expected);
            assert_eq!(with_flags(hint, ""), hint);
        }
    }
}
