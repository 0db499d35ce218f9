//! The programs that git runs when a stopped rebase or cherry-pick continues.
//!
//! Git stores the remaining steps in files of the repository. A command that writes these files decides
//! what `git rebase --continue` runs, also when the user calls it.

use crate::git_config::parse;

/// A file that stores the remaining steps of a git operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequencerFile {
    /// `rebase-merge/git-rebase-todo`: the list of steps. An `exec` step runs a command.
    Todo,
    /// `rebase-merge/strategy`: the name of a merge strategy. Git runs `git-merge-NAME`; NAME may be a path.
    Strategy,
    /// `sequencer/opts`: a configuration that can name a strategy.
    Options,
}

/// Git's built-in strategies.
const STRATEGIES: [&[u8]; 6] = [b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];

/// The programs that git runs because of a file, one line for display each. Different programs have
/// different lines.
pub fn programs(file: SequencerFile, text: &[u8]) -> Vec<String> {
    match file {
        SequencerFile::Todo => {
            let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            lines.filter(|line| is_exec(line)).map(|line| line.escape_ascii().to_string()).collect()
        }
        SequencerFile::Strategy => strategy(text.trim_ascii()).into_iter().collect(),
        SequencerFile::Options => match parse(text) {
            Ok(variables) => {
                let strategies = variables.iter().filter(|variable| variable.name == "strategy");
                let values = strategies.map(|variable| variable.value.as_deref().unwrap_or(b""));
                values.filter_map(strategy).collect()
            }
            // Git parses this file as a configuration and rejects it too.
            Err(error) => vec![error.to_string()],
        },
    }
}

/// Whether a line runs a command. Git accepts the full name of the step and its one-letter form.
fn is_exec(line: &[u8]) -> bool {
    let step = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    step == b"exec" || step == b"x"
}

/// A description of a strategy that is not built in; `None` for a built-in one.
fn strategy(name: &[u8]) -> Option<String> {
    let is_own = name.is_empty() || STRATEGIES.contains(&name);
    (!is_own).then(|| format!("strategy {}", name.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_exec_steps_in_every_spelling() {
        let text = b"pick 1234 x\nexec make\n \t x  ls\nx\ttab\nexec\r\n# exec not\nexecute\nfixup 1\n\nx a\xff";
        let found = programs(SequencerFile::Todo, text);
        assert_eq!(found, ["exec make", "x  ls", "x\\ttab", "exec", "x a\\xff"]);
        assert_eq!(programs(SequencerFile::Todo, b"pick 1 exec\nbreak\n"), Vec::<String>::new());
    }

    #[test]
    fn only_builtin_strategies_run_no_program() {
        let of_file = |text: &[u8]| programs(SequencerFile::Strategy, text);
        assert_eq!(of_file(b"ort\n"), Vec::<String>::new());
        assert_eq!(of_file(b""), Vec::<String>::new());
        assert_eq!(of_file(b"../../x\n"), ["strategy ../../x"]);
        let of_options = |text: &[u8]| programs(SequencerFile::Options, text);
        assert_eq!(of_options(b"[options]\n\tstrategy = ours\n\tedit = true\n"), [""; 0]);
        assert_eq!(of_options(b"[OPTIONS]Strategy=../x"), ["strategy ../x"]);
        assert_eq!(of_options(b"[options").len(), 1);
    }
}
