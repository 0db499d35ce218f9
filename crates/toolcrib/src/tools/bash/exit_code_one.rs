//! Programs for which exit code 1 is a result, such as "no match" or "the files differ", not a failure.

const PROGRAMS: [&str; 14] = [
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "pgrep", "diff", "cmp", "test", "[", "[[",
    "git grep", "git diff",
];

/// Whether exit code 1 of a script is a result, guessed from its last line: for shells that did not report their
/// last command. Only the reply's status depends on it.
pub(super) fn script_exit_one_is_result(script: &str) -> bool {
    let line =
        script.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = line else { return false };
    // The exit code of a pipe or a list is that of its last command.
    let last = line.rsplit(['|', ';', '&', '(']).find(|part| !part.trim().is_empty());
    command_exit_one_is_result(last.unwrap_or_default())
}

/// Whether exit code 1 of a simple command is a result.
pub(super) fn command_exit_one_is_result(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| {
        // Skips assignments and prefix commands.
        word.split_once('=').is_some_and(|(name, _)| is_name(name))
            || matches!(*word, "!" | "time" | "command" | "env")
    });
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let with_next = format!("{program} {}", words.next().unwrap_or_default());
    PROGRAMS.iter().any(|known| *known == program || *known == with_next)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_decides() {
        for script in [
            "grep x a",
            "cat a | grep -c x",
            "cd d && diff a b",
            "LC_ALL=C /usr/bin/grep x a",
            "[ -f a ]",
            "test -d b",
            "true; cmp a b",
            "git diff --exit-code",
            "x=1\n\ngrep y z\n",
        ] {
            assert!(script_exit_one_is_result(script), "{script}");
        }
        for script in
            ["false", "grep x a | wc -l; false", "make test", "cat grep", "", "git commit"]
        {
            assert!(!script_exit_one_is_result(script), "{script}");
        }
        assert!(command_exit_one_is_result("diff <(sort a) <(sort b)"));
        assert!(!command_exit_one_is_result("make grep"));
    }
}
