//! Commands that answer a question by their exit code: 1 means no, and is no failure.

/// Programs whose 1 says that nothing was found, or that two things differ.
const ANSWERS: [&str; 14] = [
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "pgrep", "diff", "cmp", "test", "[", "[[",
    "git grep", "git diff",
];

/// Whether an exit code of 1 is an answer of the script's last command. By a look at its words, which may
/// be wrong about odd scripts; what hangs on it is only whether the reply counts as a failure.
pub(super) fn answers_by_exit_code(script: &str) -> bool {
    let line =
        script.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = line else { return false };
    // A pipe's exit code is that of its last command, and so is a list's.
    let last = line.rsplit(['|', ';', '&', '(']).find(|part| !part.trim().is_empty());
    let mut words = last.unwrap_or_default().split_whitespace().skip_while(|word| {
        // Assignments, and words that only say how to run what follows.
        word.split_once('=').is_some_and(|(name, _)| is_name(name))
            || matches!(*word, "!" | "time" | "command" | "env")
    });
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let with_next = format!("{program} {}", words.next().unwrap_or_default());
    ANSWERS.iter().any(|known| *known == program || *known == with_next)
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
            assert!(answers_by_exit_code(script), "{script}");
        }
        for script in
            ["false", "grep x a | wc -l; false", "make test", "cat grep", "", "git commit"]
        {
            assert!(!answers_by_exit_code(script), "{script}");
        }
    }
}
