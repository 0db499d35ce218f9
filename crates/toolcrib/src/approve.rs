//! Asking whoever is there.

use toolcrib_policy::Access;

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
    /// What would change, where that could be found out.
    pub preview: Option<&'a Reply>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Allow,
    /// Yes, and for the rest of the session too, for calls with the same effects.
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
