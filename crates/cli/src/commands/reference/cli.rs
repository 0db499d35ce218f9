//! The page of all commands, from the parser's definitions.

use clap::{Arg, Command};

pub(super) fn page(command: &mut Command) -> String {
    command.build();
    let mut page = super::generated("Command line");
    page += "\nExit codes: 0 on success, 1 if the call failed (the reply says why), 2 if the command line was invalid.\n";
    page += "\n`toolcrib call` prints text on a terminal and a JSON object otherwise. Every other command prints text, \
             or JSON with `--json`; `tools`, `diff`, `install` and `uninstall` print text only.\n";
    page += "\n## Global options\n";
    page += &table(command.get_arguments().filter(|argument| argument.is_global_set()));
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        page += &section(subcommand, "toolcrib", 2);
    }
    page
}

fn section(command: &Command, parent: &str, depth: usize) -> String {
    let name = format!("{parent} {}", command.get_name());
    let mut section = format!("\n{} {name}\n", "#".repeat(depth));
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        section += &format!("\n{}\n", prose(&about.to_string()));
    }
    let own = || command.get_arguments().filter(|argument| !argument.is_global_set());
    let own = || own().filter(|argument| !argument.is_hide_set() && argument.get_id() != "help");
    if own().next().is_some() {
        section += &table(own());
    }
    for subcommand in command.get_subcommands() {
        section += &self::section(subcommand, &name, depth + 1);
    }
    section
}

/// Formats paragraphs unchanged, and indented or column-aligned lines as a code block.
fn prose(text: &str) -> String {
    let is_sample = |paragraph: &str| paragraph.contains("   ");
    let paragraphs = text.trim().split("\n\n").map(|paragraph| {
        if is_sample(paragraph) {
            format!("```text\n{paragraph}\n```")
        } else {
            paragraph.to_owned()
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = "\n| argument | |\n| --- | --- |\n".to_owned();
    for argument in arguments.filter(|argument| argument.get_id() != "help") {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace('|', "\\|").replace('<', "\\<");
        let spelled = spelled(argument).replace('|', "\\|");
        table += &format!("| `{spelled}` | {help}{} |\n", values(argument));
    }
    table
}

fn spelled(argument: &Arg) -> String {
    let value = argument.get_value_names().and_then(|names| names.first());
    let value = value.filter(|_| argument.get_action().takes_values());
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    match (flags.is_empty(), value) {
        (true, Some(value)) => value.to_string(),
        (true, None) => argument.get_id().to_string(),
        (false, Some(value)) => format!("{} {value}", flags.join(", ")),
        (false, None) => flags.join(", "),
    }
}

fn values(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    let names: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if names.is_empty() || !argument.get_action().takes_values() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}
