//! What somebody was asked about, to the point: what an answer is remembered for, and no more.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::access::Effect;

/// Answers that hold for a session.
pub type Remembered = BTreeSet<Asked>;

/// One thing that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// Everything of an effect, as profiles ask: all reading, all editing.
    Effect(Effect),
    /// A path that a rule asks about.
    Path(Effect, PathBuf),
    /// What is outside the workspace.
    External(PathBuf),
    /// A command with its arguments, and the variables that are set for it.
    Command(Vec<String>),
    /// A file that a redirection writes.
    Redirection(PathBuf),
    /// A host.
    Host(String),
    /// A whole script, letter for letter: one that is not understood is only the same as itself.
    Script(String),
}

impl Asked {
    /// The rule that would allow it always, as it is written in the file of rules; nothing, if no rule
    /// can.
    pub fn as_rule(&self) -> Option<String> {
        let (kind, key, pattern) = match self {
            Asked::Path(Effect::Read, path) => ("read", "paths", path.to_str()?.to_owned()),
            Asked::Path(_, path) | Asked::Redirection(path) => {
                ("edit", "paths", path.to_str()?.to_owned())
            }
            Asked::External(path) => ("external_directory", "paths", path.to_str()?.to_owned()),
            Asked::Command(words) => ("command", "commands", as_pattern(words)?),
            Asked::Host(host) => ("network", "hosts", host.clone()),
            Asked::Effect(Effect::Read) => ("read", "paths", "**".to_owned()),
            Asked::Effect(Effect::Write) => ("edit", "paths", "**".to_owned()),
            Asked::Effect(Effect::Reach | Effect::Command) | Asked::Script(_) => return None,
        };
        let quoted = toml_string(&pattern);
        Some(format!("[[rule]]\ndecision = \"allow\"\nkind = \"{kind}\"\n{key} = [{quoted}]\n"))
    }
}

/// A text as TOML writes it.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04x}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// A command as a pattern that fits it alone.
fn as_pattern(words: &[String]) -> Option<String> {
    let quoted = |word: &String| {
        let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+".contains(letter);
        match word {
            // A star would stand for more, and both quotes cannot be written.
            word if word.contains(['*', '?', '\n']) => None,
            word if !word.is_empty() && word.chars().all(plain) => Some(word.clone()),
            word if !word.contains('\'') => Some(format!("'{word}'")),
            word if !word.contains('"') => Some(format!("\"{word}\"")),
            _ => None,
        }
    };
    let words: Option<Vec<String>> = words.iter().map(quoted).collect();
    words.map(|words| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rules;

    #[test]
    fn a_rule_that_is_offered_can_be_read() {
        for asked in [
            Asked::Command(vec![
                "git".into(),
                "push".into(),
                "a b".into(),
                "it's".into(),
                "\"\\\u{1b}".into(),
            ]),
            Asked::Redirection("/w/ws/a \"b\".txt".into()),
            Asked::External("/etc/x".into()),
            Asked::Host("example.com".into()),
            Asked::Effect(Effect::Read),
        ] {
            let text = asked.as_rule().unwrap();
            assert_eq!(Rules::parse(&text).map(|rules| rules.count()), Ok(1), "{text}");
        }
        assert_eq!(
            Asked::Script("$x".into()).as_rule(),
            None,
            "no rule allows what is not understood"
        );
        assert_eq!(
            Asked::Command(vec!["ls".into(), "*".into()]).as_rule(),
            None,
            "it would fit more"
        );
    }
}
