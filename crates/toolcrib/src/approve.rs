//! Asking whoever is there.

use toolcrib_policy::{Access, Proposal};
use toolcrib_text::{visible_lines, visible_name};

use crate::reply::Reply;

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
    /// The tool that wants to run.
    pub tool: &'a str,
    /// What it would touch, on real paths.
    pub accesses: &'a [Access],
    /// The rule that asks.
    pub rule: &'a str,
    /// Why that rule asks.
    pub why: &'a str,
    /// The setting that would allow it without a question.
    pub remedy: &'a str,
    /// The rules that would allow just this always; nothing, if no rule can. Only a person can write them
    /// where rules are.
    pub always: Option<&'a Proposal>,
    /// The rules that would refuse it always.
    pub never: Option<&'a Proposal>,
    /// What would change, where that could be found out.
    pub preview: Option<&'a Reply>,
}

impl Question<'_> {
    /// The question in words: what the tool wants to touch, what would change, why it is asked, and what
    /// would allow it for good. Each name is on one line, whatever is in it: no name can write a question
    /// of its own.
    pub fn text(&self) -> String {
        let mut text = self.wants();
        if let Some(preview) = self.preview {
            text += &visible_lines(preview.diff_text());
        }
        text + &self.because() + &self.for_good()
    }

    /// The tool, and what it would touch.
    pub fn wants(&self) -> String {
        let mut text = format!("{} wants to:\n", visible_name(self.tool.as_bytes()));
        for access in self.accesses {
            text += &format!("  {}\n", visible_name(access.to_string().as_bytes()));
        }
        text
    }

    /// Why somebody is asked.
    pub fn because(&self) -> String {
        let asked = format!("Asked because {} ({}).", self.why, self.rule);
        visible_name(asked.as_bytes()) + "\n"
    }

    /// What would allow it without a question.
    fn for_good(&self) -> String {
        let allows = match self.always {
            Some(rules) => format!("this in rules.toml: {}", rules.line()),
            None => self.remedy.to_owned(),
        };
        format!("What allows it always: {}\n", visible_name(allows.as_bytes()))
    }
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
    /// No, with a word to the agent that may be empty.
    Deny(String),
    /// No, and never: who was asked has kept that as a rule, which begins to hold in this session.
    DenyAlways(String),
    /// There is nobody to ask.
    NobodyThere,
}

impl Answer {
    /// A word for records.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Allow => "once",
            Answer::AllowForSession => "session",
            Answer::AllowAlways => "always",
            Answer::Deny(_) => "no",
            Answer::DenyAlways(_) => "never",
            Answer::NobodyThere => "nobody",
        }
    }
}

/// What was answered, and by whom, for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// `once`, `session`, `always`, `no`, `never`, or `nobody` where there was nobody to ask.
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
