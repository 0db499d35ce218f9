//! Asking whoever is there.

use std::path::Path;

use toolcrib_policy::{Access, Proposal};
use toolcrib_text::{truncate_line, visible_lines, visible_name};

use crate::reply::Reply;

/// What a person is shown at once of what a call would do. A client may show it in a small window.
const PART_CHARS: usize = 3_000;

/// Why a question is asked, and what would allow it, are sentences; a long name in them is cut.
const MAX_SENTENCE_CHARS: usize = 500;

/// Somebody who can be asked: a person at a terminal, a client, a library user's callback.
pub trait Approver: Sync {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &Question<'_>) -> Answer;

    /// Who that is, for records.
    fn name(&self) -> &'static str {
        "host"
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The session of the call.
    pub session: u64,
    /// The tool that wants to run.
    pub tool: &'a str,
    /// What the call says it is for, in the agent's own words.
    pub description: Option<&'a str>,
    /// What it would touch, on real paths.
    pub accesses: &'a [Access],
    /// Where a command of the call would begin.
    pub directory: &'a Path,
    /// The rule that asks.
    pub rule: &'a str,
    /// Why that rule asks.
    pub why: &'a str,
    /// What allows it without a question, as an imperative.
    pub remedy: &'a str,
    /// The rules that would allow just this always; nothing, if no rule can. Only a person can write them
    /// where rules are.
    pub always: Option<&'a Proposal>,
    /// The rules that would allow it for the directories of the files always; nothing, if one is a root.
    pub always_directory: Option<&'a Proposal>,
    /// The rules that would refuse it always.
    pub never: Option<&'a Proposal>,
    /// What would change, where that could be found out.
    pub preview: Option<&'a Reply>,
}

impl Question<'_> {
    /// What the tool wants to touch and what would change, in parts that a person can be shown one after the
    /// other. Each name is on one line, whatever is in it: no name can write a question of its own.
    pub fn parts(&self) -> Vec<String> {
        parts(&self.wants())
    }

    /// The tool, what it would touch, and what would change.
    fn wants(&self) -> String {
        let mut text = format!("{} wants to:\n", visible_name(self.tool.as_bytes()));
        for access in self.accesses {
            text += &format!("  {}\n", visible_name(access.to_string().as_bytes()));
            // The same command is another one elsewhere.
            if let Access::Command(_) = access {
                let directory = visible_name(self.directory.as_os_str().as_encoded_bytes());
                text += &format!("  in {directory}\n");
            }
        }
        if let Some(description) = self.description {
            let description = truncate_line(description, MAX_SENTENCE_CHARS);
            let description = visible_name(description.as_bytes());
            text += &format!("The agent describes it as: {description}\n");
        }
        text + &self.preview.map_or_else(String::new, |preview| visible_lines(preview.diff_text()))
    }

    /// Why somebody is asked.
    pub fn because(&self) -> String {
        sentence(&format!("Asked because {} ({}).", self.why, self.rule))
    }

    /// What would allow it without a question.
    pub fn for_good(&self) -> String {
        let rules = self.always.map(Proposal::line).filter(|line| line.len() < MAX_SENTENCE_CHARS);
        let allows = match rules {
            Some(rules) => format!("add this to rules.toml: {rules}"),
            None => self.remedy.to_owned(),
        };
        sentence(&format!("To allow it always, {allows}"))
    }
}

fn sentence(text: &str) -> String {
    format!("{}\n", visible_name(truncate_line(text, MAX_SENTENCE_CHARS).as_bytes()))
}

/// A text in parts of at most [`PART_CHARS`] characters: whole lines, unless one alone is longer.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((limit, _)) = rest.char_indices().nth(PART_CHARS) {
        let cut = rest[..limit].rfind('\n').map_or(limit, |newline| newline + 1);
        let (part, behind) = rest.split_at(cut);
        parts.push(part.to_owned());
        rest = behind;
    }
    parts.push(rest.to_owned());
    parts
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Allow,
    /// Yes, and for the rest of the session too, for exactly what was asked.
    AllowForSession,
    /// Yes, and always: who was asked has kept that as a rule, which begins to hold in this session.
    AllowAlways,
    /// Yes, and always for the directories of the files: who was asked has kept that as a rule, which begins to hold in
    /// this session.
    AllowDirectoryAlways,
    /// No, with a word to the agent that may be empty.
    Deny(String),
    /// No, and never: who was asked has kept that as a rule, which begins to hold in this session.
    DenyAlways(String),
    /// There is nobody to ask.
    NobodyThere,
    /// No answer came, for this reason.
    Unanswered(String),
}

impl Answer {
    /// A word for records.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Allow => "once",
            Answer::AllowForSession => "session",
            Answer::AllowAlways => "always",
            Answer::AllowDirectoryAlways => "always for the directory",
            Answer::Deny(_) => "no",
            Answer::DenyAlways(_) => "never",
            Answer::NobodyThere => "nobody",
            Answer::Unanswered(_) => "none",
        }
    }
}

/// What was answered, and by whom, for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// `once`, `session`, `always`, `always for the directory`, `no`, `never`, `none` where no answer came, or `nobody`
    /// where there was nobody to ask.
    pub answer: &'static str,
    /// Who was asked.
    pub by: &'static str,
}

/// Nobody to ask: what needs an answer is refused at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask(&self, _: &Question<'_>) -> Answer {
        Answer::NobodyThere
    }

    fn name(&self) -> &'static str {
        "nobody"
    }
}

impl<F: Fn(&Question<'_>) -> Answer + Sync> Approver for F {
    fn ask(&self, question: &Question<'_>) -> Answer {
        self(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_and_nothing_is_missing() {
        let lines: String = (0..2_000).map(|number| format!("+line {number}\n")).collect();
        let long = format!("short\n{}\nend", "ä".repeat(10_000));
        for text in ["", "one\n", lines.as_str(), long.as_str()] {
            let parts = parts(text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.chars().count() <= PART_CHARS));
            assert!(parts.len() <= text.len() / PART_CHARS * 2 + 1);
        }
        assert!(parts(&lines).iter().all(|part| part.ends_with('\n')), "lines stay whole");
    }
}
