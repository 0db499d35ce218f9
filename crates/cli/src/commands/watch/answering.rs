//! The questions of `toolcrib watch`, and the lines that answer them.

use std::collections::VecDeque;
use std::time::Duration;

use toolcrib::split_question;
use toolcrib_monitor::protocol::{AnswerWord, Answerer, Proposal, Question, Settled, TimeLeft};
use toolcrib_monitor::{GivenAnswer, described};

use super::shown_text::{late_text, question_text, question_title, time_text};
use crate::output;

const HELP: &str = "y yes, s for this session, t N for N minutes, a always, d always in this directory, n TEXT no, \
                    v never, m more of the question, l list of all questions, o the next question, o N question N, \
                    q quit\n";

/// An answer that comes sooner was typed for the question before.
const MIN_SHOWN: Duration = Duration::from_secs(1);

/// What the view does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    Print(String),
    Answer { server: String, answer: GivenAnswer },
    End,
}

impl Reaction {
    /// Both texts, one after the other.
    pub(super) fn and(self, next: Reaction) -> Reaction {
        match (self, next) {
            (Reaction::Nothing, next) => next,
            (first, Reaction::Nothing) => first,
            (Reaction::Print(first), Reaction::Print(next)) => Reaction::Print(first + &next),
            (_, next) => next,
        }
    }
}

/// The open questions. The first one is shown.
#[derive(Debug, Default)]
pub(super) struct Answering {
    waiting: VecDeque<Waiting>,
    /// The rest of the first question.
    unseen: VecDeque<String>,
    /// An answer with a rule that is to be confirmed.
    unconfirmed: Option<GivenAnswer>,
}

#[derive(Debug)]
struct Waiting {
    server: String,
    question: Question,
}

impl Answering {
    /// A question was opened.
    pub(super) fn opened(&mut self, server: &str, question: Question) -> Reaction {
        let title = question_title(&question);
        self.waiting.push_back(Waiting { server: server.to_owned(), question });
        match self.waiting.len() {
            1 => self.show_first(),
            more => Reaction::Print(format!("[{more} questions wait; o {more} shows: {title}]\n")),
        }
    }

    /// The time limits of a question have changed.
    pub(super) fn time_changed(&mut self, id: &str, time_left: TimeLeft) -> Reaction {
        let found = self.waiting.iter_mut().enumerate().find(|(_, one)| one.question.id == id);
        let Some((at, one)) = found else { return Reaction::Nothing };
        one.question.time_left = time_left;
        if at == 0 {
            Reaction::Print(time_text(&one.question.time_left))
        } else {
            Reaction::Nothing
        }
    }

    /// A question was settled, here or elsewhere.
    pub(super) fn settled(&mut self, id: &str, settled: &Settled) -> Reaction {
        let Some(at) = self.waiting.iter().position(|one| one.question.id == id) else {
            return Reaction::Nothing;
        };
        let late = self.waiting.remove(at).map(|one| late_text(&one.question.time_left, settled));
        let (who, late) = (described(settled), late.unwrap_or_default());
        let told = Reaction::Print(format!("The question was settled: {who}.{late}\n"));
        if at == 0 { told.and(self.show_first()) } else { told }
    }

    /// A server has ended, and its questions with it.
    pub(super) fn left(&mut self, server: &str) -> Reaction {
        let was_shown = self.waiting.front().is_some_and(|one| one.server == server);
        self.waiting.retain(|one| one.server != server);
        if was_shown { self.show_first() } else { Reaction::Nothing }
    }

    /// A line that the user typed. `shown_for` is the time since [`Answering::shown`] has changed.
    pub(super) fn line(&mut self, line: &str, shown_for: Duration) -> Reaction {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (word, rest) = (word.to_lowercase(), rest.trim());
        if let Some(answer) = self.unconfirmed.take() {
            return match word.as_str() {
                "y" | "yes" => self.give(answer),
                _ => Reaction::Print(format!("Nothing was added. {}", self.prompt())),
            };
        }
        match word.as_str() {
            "" => Reaction::Nothing,
            "q" | "quit" => Reaction::End,
            "?" | "help" => Reaction::Print(HELP.to_owned()),
            _ if self.waiting.is_empty() => Reaction::Print("No question is open.\n".to_owned()),
            "m" | "more" => self.show_more(),
            "l" | "list" => self.list(),
            "o" | "other" => self.show_other(rest),
            _ if shown_for < MIN_SHOWN => Reaction::Print(format!(
                "Ignored, since the question was shown only now. {}",
                self.prompt()
            )),
            "n" | "no" => self.answer(AnswerWord::No, None, Some(rest)),
            "v" | "never" => self.confirm(AnswerWord::Never, Some(rest)),
            _ if !self.unseen.is_empty() => {
                Reaction::Print("Show the rest of the question first: m\n".to_owned())
            }
            "y" | "yes" => self.answer(AnswerWord::Once, None, None),
            "s" | "session" => self.answer(AnswerWord::Session, None, None),
            "t" => match rest.parse() {
                Ok(minutes @ 1..=480) => self.answer(AnswerWord::Minutes, Some(minutes), None),
                _ => Reaction::Print("Give the minutes, from 1 to 480: t 30\n".to_owned()),
            },
            "a" | "always" => self.confirm(AnswerWord::Always, None),
            "d" | "directory" => self.confirm(AnswerWord::AlwaysDirectory, None),
            _ => Reaction::Print(HELP.to_owned()),
        }
    }

    /// Lists all questions.
    fn list(&self) -> Reaction {
        let lines = self.waiting.iter().enumerate().map(|(at, one)| {
            let shown = if at == 0 { " (shown)" } else { "" };
            format!("  {}. {}{shown}\n", at + 1, question_title(&one.question))
        });
        Reaction::Print(lines.collect::<String>() + &self.prompt())
    }

    /// Shows the question with this number in the list, or the next one.
    fn show_other(&mut self, number: &str) -> Reaction {
        let at = if number.is_empty() { Some(2) } else { number.parse::<usize>().ok() };
        match at.and_then(|at| at.checked_sub(1)).filter(|at| *at < self.waiting.len()) {
            Some(at) => {
                self.waiting.rotate_left(at);
                self.show_first()
            }
            None if number.is_empty() => self.show_first(),
            None => Reaction::Print(format!("There is no question {}.\n", output::plain(number))),
        }
    }

    /// Id of the question that is shown.
    pub(super) fn shown(&self) -> Option<&str> {
        self.waiting.front().map(|one| one.question.id.as_str())
    }

    fn given(&self, word: AnswerWord, minutes: Option<u32>, text: Option<&str>) -> GivenAnswer {
        let question = self.waiting.front().map(|one| &one.question);
        GivenAnswer {
            question: question.map(|question| question.id.clone()).unwrap_or_default(),
            digest: question.map(|question| question.digest.clone()).unwrap_or_default(),
            answer: word,
            minutes,
            message: text.filter(|text| !text.is_empty()).map(str::to_owned),
            by: Answerer::Watch,
        }
    }

    fn answer(&self, word: AnswerWord, minutes: Option<u32>, text: Option<&str>) -> Reaction {
        self.give(self.given(word, minutes, text))
    }

    fn give(&self, answer: GivenAnswer) -> Reaction {
        let asked = self.waiting.iter().find(|one| one.question.id == answer.question);
        match asked {
            Some(one) => Reaction::Answer { server: one.server.clone(), answer },
            None => Reaction::Print("The question is settled.\n".to_owned()),
        }
    }

    /// Shows the rules of an answer, which a second line confirms.
    fn confirm(&mut self, word: AnswerWord, text: Option<&str>) -> Reaction {
        let proposal = self.waiting.front().and_then(|one| proposal(&one.question, word));
        let Some(proposal) = proposal else {
            return Reaction::Print("No rule can be added for this question.\n".to_owned());
        };
        let mut shown = format!("This would be added:\n\n{}\n", output::plain(&proposal.toml));
        shown += "It applies to:\n";
        for covers in &proposal.covers {
            shown += &format!("  {}\n", output::plain(covers));
        }
        shown += "Add it? y, or anything else to choose another answer\n";
        self.unconfirmed = Some(self.given(word, None, text));
        Reaction::Print(shown)
    }

    fn show_first(&mut self) -> Reaction {
        self.unconfirmed = None;
        self.unseen.clear();
        let Some(first) = self.waiting.front() else { return Reaction::Nothing };
        self.unseen = split_question(&question_text(&first.question)).into();
        self.show_more()
    }

    fn show_more(&mut self) -> Reaction {
        let mut text = self.unseen.pop_front().unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Reaction::Print(text + &self.prompt())
    }

    fn prompt(&self) -> String {
        let Some(first) = self.waiting.front() else { return String::new() };
        if !self.unseen.is_empty() {
            let lines: usize = self.unseen.iter().map(|part| part.lines().count()).sum();
            return format!(
                "[{lines} more lines are not shown; m shows the next part, n denies]\n"
            );
        }
        let mut answers = vec!["y yes", "s session", "t N minutes"];
        answers.extend(first.question.always.as_ref().map(|_| "a always"));
        answers.extend(first.question.always_directory.as_ref().map(|_| "d always here"));
        answers.push("n no");
        answers.extend(first.question.never.as_ref().map(|_| "v never"));
        if self.waiting.len() > 1 {
            answers.push("l list of all questions");
            answers.push("o next question");
        }
        format!("Allow? {}\n", answers.join(", "))
    }
}

fn proposal(question: &Question, word: AnswerWord) -> Option<&Proposal> {
    match word {
        AnswerWord::Always => question.always.as_ref(),
        AnswerWord::AlwaysDirectory => question.always_directory.as_ref(),
        AnswerWord::Never => question.never.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_monitor::protocol::Command;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn question(id: &str) -> Question {
        Question { id: id.to_owned(), digest: format!("digest {id}"), ..Question::default() }
    }

    fn print(reaction: Reaction) -> String {
        match reaction {
            Reaction::Print(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn answer(reaction: Reaction) -> (String, AnswerWord, Option<u32>, Option<String>) {
        match reaction {
            Reaction::Answer { server, answer } => {
                assert_eq!(answer.digest, format!("digest {}", answer.question));
                (server, answer.answer, answer.minutes, answer.message)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_answer_the_question_that_is_shown() {
        let mut answering = Answering::default();
        assert!(print(answering.line("y", LONG)).contains("No question"));
        assert!(print(answering.opened("s1", question("1"))).contains("Allow? y yes"));
        let second = Question { tool: "Bash".to_owned(), ..question("2") };
        let told = print(answering.opened("s2", second));
        assert_eq!(told, "[2 questions wait; o 2 shows: Bash  for an agent]\n");
        assert_eq!(answer(answering.line("y", LONG)), ("s1".into(), AnswerWord::Once, None, None));
        assert_eq!(
            answer(answering.line("t 30", LONG)),
            ("s1".into(), AnswerWord::Minutes, Some(30), None)
        );
        assert!(print(answering.line("t 9999", LONG)).contains("from 1 to 480"));
        assert!(print(answering.line("a", LONG)).contains("No rule"));
        print(answering.line("o", LONG));
        assert_eq!(
            answer(answering.line("n use make", LONG)),
            ("s2".into(), AnswerWord::No, None, Some("use make".into()))
        );
        let by_page = Settled {
            answer: AnswerWord::Once,
            minutes: None,
            by: Answerer::Page,
            at: 0,
            message: None,
        };
        let told = print(answering.settled("2", &by_page));
        assert!(told.contains("answered on the page: yes") && told.contains("Allow?"), "{told}");
        assert_eq!(answering.left("s1"), Reaction::Nothing);
        assert!(print(answering.line("y", LONG)).contains("No question"));
    }

    #[test]
    fn all_questions_are_listed_and_each_can_be_chosen() {
        let mut answering = Answering::default();
        for (id, command) in
            [("1", "make\nmake install"), ("2", "npm publish"), ("3", "rm \u{202e}x")]
        {
            let command = Some(Command { text: command.to_owned(), ..Command::default() });
            answering.opened("s", Question { command, tool: "Bash".to_owned(), ..question(id) });
        }
        let listed = print(answering.line("l", LONG));
        assert!(
            listed.contains("1. Bash make (and 1 more line) for an agent (shown)\n"),
            "{listed}"
        );
        assert!(listed.contains("3. Bash rm \\u{202e}x for an agent\n"), "{listed}");
        let shown = print(answering.line("o 3", LONG));
        assert!(shown.contains("rm \\u{202e}x"), "{shown}");
        assert!(
            matches!(answering.line("y", LONG), Reaction::Answer { answer, .. } if answer.question == "3")
        );
        print(answering.line("o", LONG));
        assert_eq!(answering.shown(), Some("1"), "the next one");
        for wrong in ["o 4", "o 0", "o x", "o 99999999999999999999"] {
            assert!(print(answering.line(wrong, LONG)).contains("There is no question"), "{wrong}");
        }
    }

    #[test]
    fn the_time_limit_of_the_shown_question_is_told() {
        let mut answering = Answering::default();
        answering.opened("s", question("1"));
        answering.opened("s", question("2"));
        let now = toolcrib::now_ms();
        let waits = |call_ended: bool| TimeLeft {
            call_waits_until: (!call_ended).then_some(now + 50_000),
            call_ended,
            denied_after: call_ended.then_some(50_000),
            expires: Some(now + 650_000),
        };
        let told = print(answering.time_changed("1", waits(false)));
        assert!(told.contains("The call waits") && told.contains("10 minutes"), "{told}");
        assert!(print(answering.time_changed("1", waits(true))).contains("was told no after 50 s"));
        assert_eq!(answering.time_changed("2", waits(true)), Reaction::Nothing);
        let shown = print(answering.line("o 2", LONG));
        assert!(shown.contains("Your answer counts if the agent makes the same call again"));
        let (answer, by) = (AnswerWord::Once, Answerer::Watch);
        let settled = Settled { answer, minutes: None, by, at: now, message: None };
        let told = print(answering.settled("2", &settled));
        assert!(told.contains("yes. The agent was told no before."), "{told}");
    }

    #[test]
    fn a_rule_is_shown_and_confirmed() {
        let mut answering = Answering::default();
        let toml = "[[rule]]\ndecision = \"allow\"\n".to_owned();
        let always = Some(Proposal { toml, covers: vec!["make".to_owned()] });
        answering.opened("s", Question { always, ..question("1") });
        assert!(print(answering.line("a", LONG)).contains("decision = \"allow\""));
        assert!(print(answering.line("no", LONG)).starts_with("Nothing was added. Allow?"));
        print(answering.line("a", LONG));
        assert_eq!(answer(answering.line("y", LONG)).1, AnswerWord::Always);
    }

    #[test]
    fn a_long_question_is_allowed_only_after_its_end_was_shown() {
        let mut answering = Answering::default();
        let diff = Some((0..1_000).map(|line| format!("+line {line}\n")).collect());
        let mut shown = print(answering.opened("s", Question { diff, ..question("1") }));
        assert!(shown.contains("more lines are not shown"));
        for early in ["y", "yes", "s", "t 5", "a", "always"] {
            assert!(print(answering.line(early, LONG)).contains("first: m"), "{early}");
        }
        assert_eq!(answer(answering.line("n", LONG)).1, AnswerWord::No);
        while !shown.contains("Allow?") {
            shown += &print(answering.line("m", LONG));
        }
        (0..1_000).for_each(|line| assert!(shown.contains(&format!("+line {line}\n"))));
        assert_eq!(answer(answering.line("y", LONG)).1, AnswerWord::Once);
    }

    #[test]
    fn an_answer_typed_for_the_question_before_is_ignored() {
        let mut answering = Answering::default();
        answering.opened("s", question("1"));
        answering.opened("s", question("2"));
        assert_eq!(answering.shown(), Some("1"));
        let no = Settled {
            answer: AnswerWord::No,
            minutes: None,
            by: Answerer::Page,
            at: 0,
            message: None,
        };
        answering.settled("1", &no);
        assert_eq!(answering.shown(), Some("2"));
        for early in ["y", "s", "t 5", "a", "n"] {
            let told = print(answering.line(early, Duration::from_millis(999)));
            assert!(told.starts_with("Ignored") && told.contains("Allow?"), "{told}");
        }
        assert_eq!(answer(answering.line("y", Duration::from_secs(1))).1, AnswerWord::Once);
    }
}
