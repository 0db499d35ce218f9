//! Asks for approval on the terminal.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use toolcrib::{Answer, Approver, Proposal, Question};

use crate::{output, rules};

/// Asks the user at the terminal. It needs a terminal on both stdin and stderr: one to type the answer, one to show
/// the question.
pub(crate) struct TerminalApprover {
    /// The file to which "always" and "never" add rules. `None` if no file is suitable.
    pub(crate) rules: Option<PathBuf>,
}

impl Approver for TerminalApprover {
    fn ask(&self, question: &Question<'_>) -> Answer {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Answer::NoApprover;
        }
        self.ask_on(question, &mut io::stdin().lock()).unwrap_or(Answer::NoApprover)
    }

    fn name(&self) -> &'static str {
        "terminal"
    }
}

impl TerminalApprover {
    fn ask_on(&self, question: &Question<'_>, input: &mut impl BufRead) -> io::Result<Answer> {
        let mut parts = Parts::new(question);
        print(&format!("{}{}", parts.next(), question.because()))?;
        let can_add_rules = self.rules.is_some();
        let always = question.always.filter(|_| can_add_rules);
        let directory = question.always_directory.filter(|_| can_add_rules);
        let never = question.never.filter(|_| can_add_rules);
        let (a, v) = (always.map_or("", |_| "[a]lways, "), never.map_or("", |_| "ne[v]er, "));
        let d = directory.map_or("", |_| "always in this [d]irectory, ");
        loop {
            let m = if parts.is_over() { "" } else { "[m]ore, " };
            let line = prompt(
                &format!(
                    "Allow? {m}[y]es, for this [s]ession, {a}{d}[n]o, {v}or no with a message to the agent (n …): "
                ),
                input,
            )?;
            let Some(line) = line else { return Ok(Answer::Deny("The input ended.".to_owned())) };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let rest = rest.trim().to_owned();
            let rules = match word.to_lowercase().as_str() {
                "a" | "always" => always,
                "d" | "directory" => directory,
                "v" | "never" => never,
                _ => None,
            };
            match (word.to_lowercase().as_str(), rules) {
                ("m" | "more", ..) if !parts.is_over() => print(&parts.next())?,
                ("y" | "yes", ..) => return Ok(Answer::Allow),
                ("s" | "session", ..) => return Ok(Answer::AllowForSession),
                ("n" | "no", ..) => return Ok(Answer::Deny(rest)),
                ("a" | "always", Some(rules)) if self.confirm_and_add(rules, input)? => {
                    return Ok(Answer::AllowAlways);
                }
                ("d" | "directory", Some(rules)) if self.confirm_and_add(rules, input)? => {
                    return Ok(Answer::AllowDirectoryAlways);
                }
                ("v" | "never", Some(rules)) if self.confirm_and_add(rules, input)? => {
                    return Ok(Answer::DenyAlways(rest));
                }
                _ => {}
            }
        }
    }

    /// Shows the rules and what they cover, and adds them after confirmation. Returns whether they were added.
    fn confirm_and_add(&self, proposal: &Proposal, input: &mut impl BufRead) -> io::Result<bool> {
        let Some(file) = &self.rules else { return Ok(false) };
        let shown = output::plain(&file.display().to_string());
        let mut text =
            format!("\nThis would be added to {shown}:\n\n{}\n", output::plain(&proposal.text()));
        text += "It applies to:\n";
        for covers in proposal.covers() {
            text += &format!("  {}\n", output::plain(covers));
        }
        print(&text)?;
        let confirmed =
            prompt("Add it? [y]es, or anything else to choose another answer: ", input)?;
        if !confirmed.is_some_and(|word| matches!(word.to_lowercase().as_str(), "y" | "yes")) {
            return Ok(false);
        }
        match rules::add(file, &proposal.text()) {
            Ok(()) => print(&format!("Added to {shown}.\n"))?,
            Err(problem) => {
                output::usage_error(&problem);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The description of a call, shown in parts.
struct Parts {
    left: VecDeque<String>,
    colours: output::DiffColours,
}

impl Parts {
    fn new(question: &Question<'_>) -> Self {
        Parts { left: question.parts().into(), colours: output::DiffColours::default() }
    }

    /// The next part, followed by the number of remaining lines.
    fn next(&mut self) -> String {
        let part = self.left.pop_front().unwrap_or_default();
        let mut text = self.colours.paint(&part);
        if !self.is_over() {
            let lines: usize = self.left.iter().map(|part| part.lines().count()).sum();
            text += &format!("[{lines} more lines are not shown; m shows the next part]\n");
        }
        text
    }

    fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

/// Asks a yes-or-no question. Any answer other than yes means no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let answer = prompt(&format!("{question} [y/N] "), &mut io::stdin().lock())?;
    Ok(answer.is_some_and(|word| matches!(word.to_lowercase().as_str(), "y" | "yes")))
}

/// Prints a question and reads a line. `None` at the end of the input.
fn prompt(question: &str, input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut stderr = io::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let mut line = String::new();
    let read = input.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

fn print(text: &str) -> io::Result<()> {
    anstream::stderr().write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use toolcrib::Access;

    use super::*;

    #[test]
    fn a_long_question_is_shown_part_by_part() {
        let accesses: Vec<Access> =
            (0..1_000).map(|number| Access::Write(format!("/w/{number}").into())).collect();
        let question = Question {
            call: 1,
            session: 1,
            tool: "ApplyPatch",
            description: None,
            accesses: &accesses,
            directory: "/w".as_ref(),
            rule: "profile:cautious:write",
            why: "it asks",
            remedy: "",
            always: None,
            always_directory: None,
            never: None,
            preview: None,
        };
        let mut parts = Parts::new(&question);
        let first = parts.next();
        assert!(first.len() < 5_000 && first.contains("more lines are not shown"), "{first}");
        let mut all = first;
        while !parts.is_over() {
            all += &parts.next();
        }
        for number in 0..1_000 {
            assert!(all.contains(&format!("  write /w/{number}\n")), "{number}");
        }
        let terminal = TerminalApprover { rules: None };
        let answered = |typed: &str| terminal.ask_on(&question, &mut typed.as_bytes()).unwrap();
        assert_eq!(answered("m\nm\ny\n"), Answer::Allow);
        assert_eq!(answered("m\nn no\n"), Answer::Deny("no".to_owned()));
    }
}
