//! Which programs git runs when a rebase or a series of cherry-picks goes on that has stopped.
//!
//! Git keeps what it does next in files of the repository. A command that writes them decides what
//! `git rebase --continue` runs, whoever calls that.

use crate::git_config::parse;

/// A file in which git keeps what it does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceFile {
    /// `rebase-merge/git-rebase-todo`: a list of steps, of which `exec` runs a command.
    Todo,
    /// `rebase-merge/strategy`: the name of a merge strategy. Git runs `git-merge-NAME`, also by a path.
    Strategy,
    /// `sequencer/opts`: a configuration that may name a strategy.
    Options,
}

/// The strategies that git has itself.
const STRATEGIES: [&[u8]; 6] = [b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];

/// The programs that a file has git run, each as a line for people. Two programs never have the same line.
pub fn programs(file: SequenceFile, text: &[u8]) -> Vec<String> {
    match file {
        SequenceFile::Todo => {
            let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            lines.filter(|line| is_exec(line)).map(|line| line.escape_ascii().to_string()).collect()
        }
        SequenceFile::Strategy => strategy(text.trim_ascii()).into_iter().collect(),
        SequenceFile::Options => match parse(text) {
            Ok(variables) => {
                let strategies = variables.iter().filter(|variable| variable.name == "strategy");
                let values = strategies.map(|variable| variable.value.as_deref().unwrap_or(b""));
                values.filter_map(strategy).collect()
            }
            // Git parses options as any configuration, and so refuses them as well.
            Err(error) => vec![error.to_string()],
        },
    }
}

/// Whether a line runs a command: git knows the step by its name and by one letter.
fn is_exec(line: &[u8]) -> bool {
    let step = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    step == b"exec" || step == b"x"
}

/// A strategy that is not git's own.
fn strategy(name: &[u8]) -> Option<String> {
    let is_own = name.is_empty() || STRATEGIES.contains(&name);
    (!is_own).then(|| format!("strategy {}", name.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_run_a_command_are_found_in_every_spelling() {
        let text = b"pick 1234 x\nexec make\n \t x  ls\nx\ttab\nexec\r\n# exec not\nexecute\nfixup 1\n\nx a\xff";
        let found = programs(SequenceFile::Todo, text);
        assert_eq!(found, ["exec make", "x  ls", "x\\ttab", "exec", "x a\\xff"]);
        assert_eq!(programs(SequenceFile::Todo, b"pick 1 exec\nbreak\n"), Vec::<String>::new());
    }

    #[test]
    fn only_the_strategies_of_git_are_harmless() {
        let of_file = |text: &[u8]| programs(SequenceFile::Strategy, text);
        assert_eq!(of_file(b"ort\n"), Vec::<String>::new());
        assert_eq!(of_file(b""), Vec::<String>::new());
        assert_eq!(of_file(b"../../x\n"), ["strategy ../../x"]);
        let of_options = |text: &[u8]| programs(SequenceFile::Options, text);
        assert_eq!(of_options(b"[options]\n\tstrategy = ours\n\tedit = true\n"), [""; 0]);
        assert_eq!(of_options(b"[OPTIONS]Strategy=../x"), ["strategy ../x"]);
        assert_eq!(of_options(b"[options").len(), 1);
    }
}
