//! Asks for approval on the terminal.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib::{Answer, Proposal, Question};
use toolcrib_monitor::protocol::Answerer;
use toolcrib_monitor::{Asked, Channel, SettleError, SettledSignal, described};

use crate::{output, rules};

/// Asks the user of `toolcrib call` at the terminal. It needs a terminal on both stdin and stderr: one to type the
/// answer, one to show the question. The session ends with the call, so no answer is for the session.
pub(crate) struct TerminalApprover {
    /// The file to which "always" and "never" add rules. `None` if no file is suitable.
    pub(crate) rules: Option<PathBuf>,
}

impl Channel for TerminalApprover {
    fn answerer(&self) -> Answerer {
        Answerer::Terminal
    }

    fn ask(&self, question: &Question<'_>, asked: &Asked, _: Option<Duration>) -> Answer {
        if !TerminalApprover::is_available() {
            return Answer::NoApprover;
        }
        let answer = TerminalInput::new(asked)
            .and_then(|input| self.ask_on(question, asked, &mut BufReader::new(input)));
        if let Some(settled) = asked.settled().filter(|settled| settled.by != Answerer::Terminal) {
            // Nobody reads it if this fails.
            let _ = print(&format!("\n{}\n", described(&settled)));
        }
        answer.unwrap_or(Answer::NoApprover)
    }
}

/// The terminal, until the question is settled elsewhere. The terminal returns one line at a time, so no typed line is
/// lost with the buffer around this.
struct TerminalInput {
    input: File,
    settled: SettledSignal,
}

impl TerminalInput {
    fn new(asked: &Asked) -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(TerminalInput { input: input.into(), settled: asked.settled_signal()? })
    }
}

impl Read for TerminalInput {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.settled.wait_for_input(self.input.as_fd())? {
            self.input.read(bytes)
        } else {
            Err(io::Error::other("the question is settled"))
        }
    }
}

impl TerminalApprover {
    /// Whether there is a terminal for questions and answers.
    pub(crate) fn is_available() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn ask_on(
        &self,
        question: &Question<'_>,
        asked: &Asked,
        input: &mut impl BufRead,
    ) -> io::Result<Answer> {
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
                    "Allow? {m}[y]es, {a}{d}[n]o, {v}or no with a message to the agent (n …): "
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
            let answer = match (word.to_lowercase().as_str(), rules) {
                ("m" | "more", ..) if !parts.is_over() => {
                    print(&parts.next())?;
                    continue;
                }
                ("y" | "yes", ..) => return Ok(Answer::Allow),
                ("n" | "no", ..) => return Ok(Answer::Deny(rest)),
                ("a" | "always", Some(_)) => Answer::AllowAlways,
                ("d" | "directory", Some(_)) => Answer::AllowDirectoryAlways,
                ("v" | "never", Some(_)) => Answer::DenyAlways(rest),
                _ => continue,
            };
            if let Some((rules, file)) = rules.zip(self.rules.as_deref())
                && confirm_rule(rules, file, input)?
                && settle_with_rule(&answer, rules, file, asked)?
            {
                return Ok(answer);
            }
        }
    }
}

/// Shows the rules and their scope. Returns whether the user confirms them.
fn confirm_rule(proposal: &Proposal, file: &Path, input: &mut impl BufRead) -> io::Result<bool> {
    let shown = output::plain(&file.display().to_string());
    let mut text =
        format!("\nThis would be added to {shown}:\n\n{}\n", output::plain(&proposal.text()));
    text += "It applies to:\n";
    for covers in proposal.covers() {
        text += &format!("  {}\n", output::plain(covers));
    }
    print(&text)?;
    let confirmed = prompt("Add it? [y]es, or anything else to choose another answer: ", input)?;
    Ok(confirmed.is_some_and(|word| matches!(word.to_lowercase().as_str(), "y" | "yes")))
}

/// Settles the question, and adds the rules unless another answer came first. Returns whether it is settled.
fn settle_with_rule(
    answer: &Answer,
    proposal: &Proposal,
    file: &Path,
    asked: &Asked,
) -> io::Result<bool> {
    let add = || rules::add(file, &proposal.text()).map(drop);
    match asked.settle(answer, Answerer::Terminal, add) {
        Ok(()) => {
            print(&format!("Added to {}.\n", output::plain(&file.display().to_string())))?;
            Ok(true)
        }
        Err(SettleError::Before(_)) => Ok(true),
        Err(SettleError::Rule(problem)) => {
            output::usage_error(&problem);
            Ok(false)
        }
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
    use toolcrib::{Access, SessionApprovals};
    use toolcrib_monitor::Monitor;
    use toolcrib_monitor::protocol::Server;

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
            asks: &SessionApprovals::new(),
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
        let monitor = Monitor::new(Server::default(), None);
        let asked = Asked::open(&monitor, &question);
        let answered =
            |typed: &str| terminal.ask_on(&question, &asked, &mut typed.as_bytes()).unwrap();
        assert_eq!(answered("m\nm\ny\n"), Answer::Allow);
        assert_eq!(answered("m\nn no\n"), Answer::Deny("no".to_owned()));
        assert_eq!(
            answered("s\nn\n"),
            Answer::Deny(String::new()),
            "the session ends with the call"
        );
    }
}
