//! Asking whoever is there.

use toolcrib_policy::{Access, Asked, Remembered};
use toolcrib_text::visible_name;

use crate::reply::Reply;

/// Somebody who can be asked: a person at a terminal, a client, a library user's callback.
pub trait Approver: Sync {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &Question<'_>) -> Answer;
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
    /// What an answer for the session is remembered for: exactly what is asked about.
    pub asks: &'a Remembered,
    /// What would change, where that could be found out.
    pub preview: Option<&'a Reply>,
}

impl Question<'_> {
    /// The question in words: what the tool wants to touch, what would change, and why it is asked. Each
    /// name is on one line, whatever is in it: no name can write a question of its own.
    pub fn text(&self) -> String {
        let mut text = self.wants();
        if let Some(preview) = self.preview {
            text += preview.diff_text();
        }
        text + &self.because()
    }

    /// The tool, and what it would touch.
    pub fn wants(&self) -> String {
        let mut text = format!("{} wants to:\n", visible_name(self.tool.as_bytes()));
        for access in self.accesses {
            text += &format!("  {}\n", visible_name(access.to_string().as_bytes()));
        }
        text
    }

    /// The rules that would allow it always, as they are written in the file of rules; empty, if no rule
    /// can. Only the person can write them there.
    pub fn rules_to_add(&self) -> String {
        let rules: Vec<String> = self.asks.iter().filter_map(Asked::as_rule).collect();
        match rules.len() == self.asks.len() {
            true => rules.join("\n"),
            false => String::new(),
        }
    }

    /// Why somebody is asked.
    pub fn because(&self) -> String {
        format!("Asked because {} ({}).\n", self.why, self.rule)
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Allow,
    /// Yes, and for the rest of the session too, for exactly what was asked.
    AllowForSession,
    /// No, with a word to the agent that may be empty.
    Deny(String),
    /// There is nobody to ask.
    NobodyThere,
}

/// Nobody to ask: what needs an answer is refused at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask(&self, _: &Question<'_>) -> Answer {
        Answer::NobodyThere
    }
}

impl<F: Fn(&Question<'_>) -> Answer + Sync> Approver for F {
    fn ask(&self, question: &Question<'_>) -> Answer {
        self(question)
    }
}
