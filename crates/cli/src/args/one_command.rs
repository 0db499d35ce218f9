//! Parses the command line with a parser that knows only the named command.
//!
//! The parser of all commands gives each of them a copy of the options of every command. Making these copies takes longer
//! than a small call.

use std::ffi::OsString;

use clap::{Args as _, FromArgMatches as _, Parser as _, Subcommand as _};

use super::{Args, Command, Common};

/// Parses the command line. If it is invalid or asks for help, the error is that of the parser of all commands.
pub(super) fn parse(words: &[OsString]) -> clap::error::Result<Args> {
    parse_as_one(words).map_or_else(|| Args::try_parse_from(words), Ok)
}

fn parse_as_one(words: &[OsString]) -> Option<Args> {
    let matches = parser_for(words)?.try_get_matches_from(words).ok()?;
    Args::from_arg_matches(&matches).ok()
}

/// The parser for the first word that is the name of a command. If that word is the value of an option, the parser refuses
/// the command after it.
fn parser_for(words: &[OsString]) -> Option<clap::Command> {
    let mut all = Command::augment_subcommands(clap::Command::new("all"));
    let mut named = words.iter().skip(1).filter_map(|word| word.to_str());
    let name = named.find(|word| all.find_subcommand(word).is_some())?;
    let command = all.find_subcommand_mut(name).map(std::mem::take)?;
    let program = clap::Command::new("toolcrib").subcommand_required(true);
    Some(Common::augment_args(program).subcommand(command))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("toolcrib").chain(line.split_whitespace()).map(Into::into).collect()
    }

    fn is_parsed_as_one(line: &str) -> bool {
        parse_as_one(&words(line)).is_some()
    }

    #[test]
    fn ordinary_command_lines_need_no_other_parser() {
        for line in [
            "call Read {} --json",
            "serve --root /tmp --state=/tmp/state --shared",
            "--profile open run",
            "log verify",
            "policy list",
            "undo 7 --yes",
        ] {
            assert!(is_parsed_as_one(line), "{line}");
        }
    }

    #[test]
    fn an_options_value_may_have_the_name_of_a_command() {
        assert!(!is_parsed_as_one("--root call serve"));
        assert!(matches!(parse(&words("--root call serve")).unwrap().command, Command::Serve(_)));
    }

    #[test]
    fn errors_know_all_commands() {
        let error = parse(&words("--root undo cal")).unwrap_err().to_string();
        assert!(error.contains("'call'"), "{error}");
        let help = parse(&words("--help call")).unwrap_err().to_string();
        assert!(help.contains("doctor"), "{help}");
    }

    const WORDS: [&str; 32] = [
        "call",
        "serve",
        "run",
        "undo",
        "log",
        "policy",
        "config",
        "help",
        "index",
        "jobs",
        "Read",
        "{}",
        "7",
        "allow",
        "host",
        "verify",
        "get",
        "--root",
        "--root=.",
        "--state",
        "--profile",
        "open",
        "--json",
        "--text",
        "--dry-run",
        "--yes",
        "-y",
        "--since",
        "--tools",
        "--",
        "--help",
        "-n",
    ];

    proptest! {
        #[test]
        fn both_parsers_agree(chosen in proptest::collection::vec(0..WORDS.len(), 0..7)) {
            let line: Vec<&str> = chosen.into_iter().map(|at| WORDS[at]).collect();
            let words = words(&line.join(" "));
            if let Some(args) = parse_as_one(&words) {
                let complete = Args::try_parse_from(&words).map(|args| format!("{args:?}"));
                prop_assert_eq!(Some(format!("{args:?}")), complete.ok());
            }
        }
    }
}
