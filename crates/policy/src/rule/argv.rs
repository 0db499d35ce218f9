//! Command patterns: a name and arguments, compared word by word.

use std::cell::OnceCell;

use crate::command::{Command, Word};
use crate::name_pattern::name_matches;

/// A command pattern such as `git push **`: words separated by whitespace, quoted if they contain some.
/// `*` in a word matches any characters; the word `**` matches any number of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgvPattern {
    words: Vec<String>,
    /// Whether the first word has no wildcards. Then most commands need no further comparison.
    has_plain_name: bool,
}

impl ArgvPattern {
    pub(super) fn parse(text: &str) -> Result<ArgvPattern, String> {
        let words = split(text).ok_or_else(|| format!("{text:?}: a quote is not closed"))?;
        let Some(name) = words.first() else {
            return Err(format!("{text:?} can match nothing: write the name of a command"));
        };
        if name.0.contains('=') {
            return Err(format!(
                "{text:?} can match nothing: variables before a command are not part of it; begin with the command's name"
            ));
        }
        if text.starts_with("Bash(") {
            return Err(format!(
                "{text:?} can match nothing: write only the command, without the name of the tool"
            ));
        }
        let is_operator = |(word, quoted): &&(String, bool)| {
            !quoted
                && (word.contains(['|', ';', '>', '<', '`'])
                    || word.contains("$(")
                    || word.contains('&'))
        };
        if let Some((word, _)) = words.iter().find(is_operator) {
            return Err(format!(
                "{text:?} can match nothing: each command of a script is matched separately, and `{word}` is not an argument; write a single command, or quote the word"
            ));
        }
        let has_plain_name = !name.0.contains(['*', '?']);
        let words = words.into_iter().map(|(word, _)| word).collect();
        Ok(ArgvPattern { words, has_plain_name })
    }

    /// Whether the pattern matches the whole command: every word is known and matches, and the program is
    /// named exactly as in the pattern.
    pub(super) fn matches_exactly(&self, command: &CommandWords<'_>) -> bool {
        if self.has_other_name(command.written_name) {
            return false;
        }
        match command.known() {
            (words, true) => words_match(&self.words, words, false),
            // Words matched by a final `**` may be unknown.
            (words, false) => {
                self.words.last().is_some_and(|last| last == "**") && {
                    let fixed = &self.words[..self.words.len() - 1];
                    !fixed.iter().any(|word| word == "**")
                        && words
                            .get(..fixed.len())
                            .is_some_and(|first| words_match(fixed, first, false))
                }
            }
        }
    }

    /// Whether the pattern matches the beginning of a command. Ignores the program's directory and global
    /// options before the subcommand.
    pub(super) fn matches_prefix(&self, command: &CommandWords<'_>) -> bool {
        if self.has_other_name(command.written_name) && self.has_other_name(command.program) {
            return false;
        }
        command.spellings().iter().any(|words| words_match(&self.words, words, true))
    }
}

impl ArgvPattern {
    /// Whether a command with this name cannot match because of the name.
    fn has_other_name(&self, name: Option<&str>) -> bool {
        self.has_plain_name && self.words.first().map(String::as_str) != name
    }
}

/// The words of a command, collected once for all rules that it is compared with.
pub(super) struct CommandWords<'a> {
    command: &'a Command,
    /// The name as written, and without directories, if it is known.
    written_name: Option<&'a str>,
    program: Option<&'a str>,
    known: OnceCell<(Vec<&'a str>, bool)>,
    spellings: OnceCell<Vec<Vec<&'a str>>>,
}

impl<'a> CommandWords<'a> {
    pub(super) fn new(command: &'a Command) -> CommandWords<'a> {
        CommandWords {
            command,
            written_name: command.name(),
            program: command.program(),
            known: OnceCell::new(),
            spellings: OnceCell::new(),
        }
    }

    /// The words before the first unknown one, and whether these are all.
    fn known(&self) -> (&[&'a str], bool) {
        let (words, all) = self.known.get_or_init(|| {
            let words: Vec<&str> = self.command.words.iter().map_while(Word::known).collect();
            let all = words.len() == self.command.words.len();
            (words, all)
        });
        (words, *all)
    }

    /// The words as they are written, without the program's directory, and without global options too. None if the
    /// program is not known.
    fn spellings(&self) -> &[Vec<&'a str>] {
        self.spellings.get_or_init(|| {
            let Some(program) = self.command.program() else { return Vec::new() };
            let written: Vec<&str> = self.command.shown();
            let mut spellings = Vec::with_capacity(3);
            if written.first() != Some(&program) {
                spellings.push(written.clone());
            }
            let mut named = written;
            if let Some(first) = named.first_mut() {
                *first = program;
            }
            let short = without_global_options(&named);
            let is_shorter = short != named;
            spellings.push(named);
            spellings.extend(is_shorter.then_some(short));
            spellings
        })
    }
}

/// Turns `git -C x --no-pager push` into `git push`.
fn without_global_options<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let Some((name, rest)) = words.split_first() else { return Vec::new() };
    let takes_value: &[&str] = match *name {
        "git" => &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"],
        "docker" => &["-H", "--host", "--context", "-c", "--config", "-l", "--log-level"],
        "kubectl" => &["-n", "--namespace", "--context", "--kubeconfig"],
        "npm" | "pnpm" | "yarn" => &["--prefix", "-C", "--dir", "--cwd", "-w"],
        _ => &[],
    };
    let mut kept = vec![*name];
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let is_toolchain = *name == "cargo" && word.starts_with('+');
        if !word.starts_with('-') && !is_toolchain {
            kept.push(word);
            break;
        }
        if takes_value.contains(word) {
            rest.next();
        }
    }
    kept.extend(rest);
    kept
}

/// Whether the words match; with `open_end`, more words may follow. Backtracks only to the last `**`.
pub(super) fn words_match(pattern: &[String], words: &[&str], open_end: bool) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    loop {
        match pattern.get(p) {
            None if open_end || n == words.len() => return true,
            Some(word) if word == "**" => {
                star = Some((p, n));
                p += 1;
            }
            Some(one) if words.get(n).is_some_and(|word| name_matches(one, word)) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) if from < words.len() => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Splits a text into words, each with whether it was quoted. `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<(String, bool)>> {
    let mut words = Vec::new();
    let mut word: Option<(String, bool)> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().0.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default().1 = true;
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().0.push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{ShellContext, analyze_command};

    fn command(text: &str) -> Command {
        analyze_command(text, &ShellContext::default()).commands.remove(0)
    }

    #[test]
    fn allowing_a_command_requires_every_word_to_match() {
        for (pattern, text, expected) in [
            ("npm test", "npm test", true),
            ("npm test", "npm 'te'st", true),
            ("npm test", "npm test --force", false),
            ("npm test", "npm", false),
            ("npm test", "./npm test", false),
            ("npm test", "npm $x", false),
            ("npm test **", "npm test", true),
            ("n*m test", "npm test", true),
            ("** test", "npm test", true),
            ("**", "$x test", true),
            ("npm **", "$x test", false),
            ("npm test **", "npm test -- a b", true),
            ("npm test **", "npm test \"$x\"", true),
            ("npm run *", "npm run lint", true),
            ("npm run *", "npm run lint fix", false),
            ("npm run lint:*", "npm run lint:css", true),
            ("git commit -m 'a b'", "git commit -m \"a b\"", true),
            ("git ** --dry-run", "git push origin --dry-run", true),
            ("git ** --dry-run", "git push \"$x\" --dry-run", false),
            ("./gradlew test", "./gradlew test", true),
        ] {
            let parsed = ArgvPattern::parse(pattern).unwrap();
            assert_eq!(
                parsed.matches_exactly(&CommandWords::new(&command(text))),
                expected,
                "{pattern} | {text}"
            );
        }
    }

    #[test]
    fn denying_a_command_requires_only_its_beginning_to_match() {
        for (pattern, text, expected) in [
            ("rm", "rm -rf x", true),
            ("rm", "/bin/rm x", true),
            ("rm", "/usr/bin/../bin/rm x", true),
            ("rm", "rmdir x", false),
            ("r*", "/bin/rm x", true),
            ("/bin/rm", "/bin/rm x", true),
            ("/bin/rm", "rm x", false),
            ("** x", "/bin/rm x", true),
            ("rm", "$x rm", false),
            ("git push", "git push --force", true),
            ("git push", "git -C x --no-pager -c a=b push", true),
            ("git push", "git stash push", false),
            ("git push ** --force", "git push origin --force", true),
            ("git push ** --force", "git push origin", false),
            ("cargo publish", "cargo +nightly publish", true),
        ] {
            let parsed = ArgvPattern::parse(pattern).unwrap();
            assert_eq!(
                parsed.matches_prefix(&CommandWords::new(&command(text))),
                expected,
                "{pattern} | {text}"
            );
        }
    }

    #[test]
    fn rejects_patterns_that_can_match_nothing() {
        for pattern in
            ["", "  ", "A=1 ls", "ls | cat", "ls > x", "ls; rm", "a && b", "echo $(ls)", "echo 'a"]
        {
            assert!(ArgvPattern::parse(pattern).is_err(), "{pattern}");
        }
        assert!(ArgvPattern::parse("echo 'a | b'").is_ok());
    }
}
