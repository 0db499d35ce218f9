//! Asking the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use toolcrib::{Answer, Approver, Question};

use crate::print;

/// The person at the terminal, if there is one: somebody must be able to read the question and to
/// type an answer.
pub(crate) struct Terminal;

impl Approver for Terminal {
    fn ask(&self, question: &Question<'_>) -> Answer {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Answer::NobodyThere;
        }
        ask(question, &mut io::stdin().lock()).unwrap_or(Answer::NobodyThere)
    }
}

fn ask(question: &Question<'_>, input: &mut impl BufRead) -> io::Result<Answer> {
    let mut text = question.wants();
    if let Some(preview) = question.preview {
        text += &print::diff(preview.diff_text());
    }
    text += &question.because();
    anstream::stderr().write_all(text.as_bytes())?;
    let rules = question.rules_to_add();
    let always = if rules.is_empty() { "" } else { "[a]lways, " };
    loop {
        let mut stderr = io::stderr();
        write!(
            stderr,
            "Allow? [y]es, for this [s]ession, {always}[n]o, or no with a word to the agent (n …): "
        )?;
        stderr.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(Answer::Deny("The input ended.".to_owned()));
        }
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word.to_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Allow),
            "s" | "session" => return Ok(Answer::AllowForSession),
            "a" | "always" if !rules.is_empty() => {
                // By the person's own hand: what is always allowed is read once more before it is.
                let text = format!(
                    "Allowed for this session. To have it always, add this to rules.toml:\n\n{}\n",
                    print::plain(&rules)
                );
                anstream::stderr().write_all(text.as_bytes())?;
                return Ok(Answer::AllowForSession);
            }
            "n" | "no" => return Ok(Answer::Deny(rest.trim().to_owned())),
            _ => {}
        }
    }
}

/// Asks yes or no; anything but yes is no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
