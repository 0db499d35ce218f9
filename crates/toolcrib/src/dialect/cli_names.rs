//! Tools named by commands that a person types, for messages on the command line.

use std::borrow::Cow;

/// The command that does what a tool does.
pub(super) fn command(tool: &str) -> Cow<'static, str> {
    match tool {
        "History" => "`toolcrib log`".into(),
        "Undo" => "`toolcrib undo`".into(),
        "KillShell" => "`toolcrib kill`".into(),
        "ListShells" => "`toolcrib jobs`".into(),
        "LS" => "`ls`".into(),
        "Read" => "`cat`".into(),
        "Glob" => "`find`".into(),
        "Grep" => "`grep`".into(),
        "Bash" => "a shell".into(),
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => "an editor".into(),
        tool => format!("`toolcrib call {tool}`").into(),
    }
}

/// Phrases of messages about the arguments of a tool, and the beginnings of the commands that have them.
const WITH_ARGUMENT: [(&str, &str); 4] = [
    ("`toolcrib undo` with id", "`toolcrib undo"),
    ("`toolcrib undo` with since", "`toolcrib undo --since"),
    ("`toolcrib log` with id", "`toolcrib show"),
    ("`toolcrib log` with its id", "`toolcrib show"),
];

/// A message with complete commands: "`toolcrib undo` with id 7" is "`toolcrib undo 7`".
pub(crate) fn with_arguments(message: String) -> String {
    WITH_ARGUMENT.iter().fold(message, |message, (phrase, command)| {
        let mut parts = message.split(phrase);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.strip_prefix(' ').unwrap_or_default();
            let digits =
                number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (argument, rest) = match digits {
                0 => ("ID", part),
                digits => number.split_at(digits),
            };
            shown.extend([command, " ", argument, "`", rest]);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_part_of_the_command() {
        for (message, expected) in [
            ("`toolcrib undo` with id 12 redoes it.", "`toolcrib undo 12` redoes it."),
            ("`toolcrib undo` with id reverts one: 3.", "`toolcrib undo ID` reverts one: 3."),
            ("`toolcrib undo` with since 1 reverts", "`toolcrib undo --since 1` reverts"),
            ("`toolcrib log` with id 7 shows its diff", "`toolcrib show 7` shows its diff"),
            ("`toolcrib log` with its id shows it", "`toolcrib show ID` shows it"),
            ("`toolcrib log` lists the changes.", "`toolcrib log` lists the changes."),
            ("Undo with id 7 reverts it.", "Undo with id 7 reverts it."),
        ] {
            assert_eq!(with_arguments(message.to_owned()), expected);
        }
    }
}
