//! The texts of `toolcrib watch`. Everything that comes from files, commands or models is escaped.

use toolcrib::now_ms;
use toolcrib::{visible_lines, visible_name};
use toolcrib_monitor::protocol::{
    Answerer, Call, Connection, EndedCommand, Outcome, Question, Refusal, RunningCall, Server,
    Settled, TimeLeft,
};

/// Characters of a command in the list of questions.
const MAX_TITLE_CHARS: usize = 80;

/// A server, in one line.
pub(super) fn server_line(info: &Server) -> String {
    let roots: Vec<String> = info.roots.iter().map(|root| name(root)).collect();
    let client =
        info.client.as_deref().map_or_else(String::new, |client| format!(" for {}", name(client)));
    let (program, pid) = (name(&info.program), info.pid);
    format!("== {program} {pid}{client}: {} ({})\n", roots.join(", "), name(&info.profile))
}

/// A call that runs, in one line.
pub(super) fn call_begun(call: &RunningCall) -> String {
    format!("   {} …\n", named_title(call))
}

/// A call that has ended, in one line, and what was refused.
pub(super) fn call_ended(call: &Call) -> String {
    let title = named_title(&call.call);
    let outcome = match call.outcome {
        Outcome::Done => "done",
        Outcome::Running => "in the background",
        Outcome::Failed => "failed",
        Outcome::Denied => "DENIED",
    };
    let mut facts = vec![format!("{outcome} in {}", duration(call.ms))];
    facts.extend(call.change.map(|change| {
        let files = call.files_changed.unwrap_or(1);
        format!("change {change}, {files} {}", if files == 1 { "file" } else { "files" })
    }));
    facts.extend(
        call.answered.as_ref().map(|answered| {
            format!("answered {} by {}", name(&answered.answer), name(&answered.by))
        }),
    );
    facts.extend(call.message.as_deref().map(name));
    format!("   {title}: {}\n", facts.join("; ")) + &refused(&call.refusals)
}

/// The end of a command that went on after its call, and what was refused.
pub(super) fn command_ended(call: &str, end: &EndedCommand) -> String {
    let code = end.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let ended =
        format!("   background command of call {}: {}{code}\n", name(call), name(&end.status));
    ended + &refused(&end.refusals)
}

fn refused(refusals: &[Refusal]) -> String {
    let line = |refusal: &Refusal| {
        let setting = refusal
            .setting
            .as_deref()
            .map_or_else(String::new, |setting| format!(" ({})", name(setting)));
        format!("     refused: {}{setting}\n", name(&refusal.what))
    };
    refusals.iter().map(line).collect()
}

/// A connection of a command, in one line.
pub(super) fn connection(made: &Connection) -> String {
    let decision = match (made.decision.as_str(), &made.why) {
        ("allow", None) => "connected to",
        ("allow", Some(_)) => "could not connect to",
        _ => "not connected to",
    };
    let why = made.why.as_deref().map_or_else(String::new, |why| format!(": {}", name(why)));
    format!("     {decision} {}:{}{why}\n", name(&made.host), made.port)
}

/// A question in one line.
pub(super) fn question_title(question: &Question) -> String {
    let command = question.command.as_ref().map(|command| command.text.as_str());
    let access = || question.accesses.first().map(|access| access.text.as_str());
    let what = command.or_else(access).unwrap_or_default().trim();
    let client = question.client.as_deref().unwrap_or("an agent");
    let (first, more) = what.split_once('\n').unwrap_or((what, ""));
    let mut title: String = first.chars().take(MAX_TITLE_CHARS).collect();
    if title.len() < first.len() {
        title.push('…');
    }
    if !more.is_empty() {
        let lines = more.lines().count();
        title += &format!(" (and {lines} more {})", if lines == 1 { "line" } else { "lines" });
    }
    format!("{} {} for {}", name(&question.tool), name(&title), name(client))
}

/// How long a question can be answered, and what happens then. Empty if that is not known.
pub(super) fn time_text(time: &TimeLeft) -> String {
    let left = |end: u64| duration_words(end.saturating_sub(now_ms()));
    match (time.call_ended, time.call_waits_until, time.expires) {
        (true, _, expires) => {
            let within = expires.map_or_else(String::new, |end| format!(" within {}", left(end)));
            let ended = match time.denied_after {
                Some(ms) => format!("The agent was told no after {}.", duration_words(ms)),
                None => "The client shows this question too.".to_owned(),
            };
            format!(
                "[{ended} Your answer counts if the agent makes the same call again{within}.]\n"
            )
        }
        (false, Some(until), Some(expires)) if expires > until => format!(
            "[The call waits {}. Then it is denied, but an answer still counts if the agent makes it again within {}.]\n",
            left(until),
            left(expires),
        ),
        (false, Some(until), _) => {
            format!("[The call waits {}. Then it is denied.]\n", left(until))
        }
        (false, None, _) => String::new(),
    }
}

/// What a late answer is good for. Empty if it counts at once.
pub(super) fn late_text(time: &TimeLeft, settled: &Settled) -> &'static str {
    let is_answer =
        !matches!(settled.by, Answerer::Timeout | Answerer::Cancelled | Answerer::Withdrawn);
    match time.denied_after {
        Some(_) if is_answer => {
            " The agent was told no before. The answer counts if it makes the same call again."
        }
        _ => "",
    }
}

/// The whole question, as text.
pub(super) fn question_text(question: &Question) -> String {
    let client = question.client.as_deref().unwrap_or("an agent");
    let mut text = format!("\n?? {} in {} wants to:\n", name(client), name(&question.workspace));
    for access in question.accesses.iter().filter(|access| access.effect != "command") {
        text += &format!("  {} {}\n", name(&access.effect), name(&access.text));
    }
    if let Some(command) = &question.command {
        text += "  run:\n";
        for line in visible_lines(&command.text).lines() {
            text += &format!("    {line}\n");
        }
        text += &format!("  in {}\n", name(&question.directory));
        if let Some(reason) = &command.unparsed {
            text += &format!("  It could not be split into its commands: {}\n", name(reason));
        }
        if command.steps.len() > 1 {
            text += "  In running order:\n";
            for (number, step) in command.steps.iter().enumerate() {
                let writes = if step.writes { "   [may write]" } else { "" };
                text += &numbered(number + 1, &step.text, writes);
            }
        }
    }
    if let Some(description) = &question.description {
        text += &format!("The agent describes it as: {}\n", name(description));
    }
    if let Some(diff) = &question.diff {
        text += &visible_lines(diff);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if !question.cut.is_empty() {
        text += &format!("[truncated: {}]\n", name(&question.cut.join(", ")));
    }
    text += &format!("Asked because {} ({}).\n", name(&question.why), name(&question.rule));
    if !question.session_covers.is_empty() {
        let covers = question.session_covers.join("; ");
        text += &format!("An answer for the session allows: {}.\n", name(&covers));
    }
    if question.command.is_some() {
        text += &format!("It would run with: {}\n", name(&question.sandbox));
    }
    text + &time_text(&question.time_left)
}

/// A step with its number. The lines of a longer one are below each other.
fn numbered(number: usize, step: &str, writes: &str) -> String {
    let lines = visible_lines(step);
    let mut lines = lines.lines();
    let first = lines.next().unwrap_or_default();
    let rest = lines.map(|line| format!("       {line}\n"));
    format!("    {number}. {first}{writes}\n") + &rest.collect::<String>()
}

fn named_title(call: &RunningCall) -> String {
    let title = name(&call.title);
    // The title of a command is its first line.
    if title.starts_with(&call.tool) { title } else { format!("{} {title}", name(&call.tool)) }
}

/// A time in seconds, or in complete minutes.
fn duration_words(ms: u64) -> String {
    match ms.div_ceil(1_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

fn duration(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1_000, ms / 100 % 10) }
}

/// A text on one line, with every control and invisible character visible.
fn name(text: &str) -> String {
    visible_name(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use toolcrib_monitor::protocol::{Access, Command, Step};

    use super::*;

    #[test]
    fn a_question_is_whole_and_cannot_imitate_another_text() {
        let hostile = "echo \u{1b}[2J \u{202e}txt\necho two";
        let step = |text: &str| Step { text: text.to_owned(), writes: true, spans: Vec::new() };
        let question = Question {
            accesses: vec![Access { effect: "command".into(), text: hostile.into() }],
            command: Some(Command {
                text: hostile.to_owned(),
                steps: vec![step("echo \u{1b}[2J"), step("echo two")],
                unparsed: None,
            }),
            description: Some("fine\nAsked because nothing".to_owned()),
            why: "it asks".to_owned(),
            rule: "profile".to_owned(),
            ..Question::default()
        };
        let text = question_text(&question);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(text.contains("    echo two\n") && text.contains("2. echo two   [may write]"));
        assert!(question_title(&question).contains("(and 1 more line)"));
        assert_eq!(numbered(1, "cat <<A\nx\nA", ""), "    1. cat <<A\n       x\n       A\n");
        assert_eq!(text.lines().filter(|line| line.starts_with("Asked because")).count(), 1);
    }

    #[test]
    fn the_line_of_a_call_names_its_outcome() {
        let call = Call {
            call: RunningCall {
                tool: "Edit".into(),
                title: "Edit a.rs".into(),
                ..Default::default()
            },
            ms: 1_250,
            change: Some(7),
            files_changed: Some(2),
            ..Call::default()
        };
        assert_eq!(call_ended(&call), "   Edit a.rs: done in 1.2 s; change 7, 2 files\n");
    }
}
