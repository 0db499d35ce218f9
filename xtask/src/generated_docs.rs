//! `cargo xtask docs`: writes the generated pages of docs/, and checks that they are current.

mod tool_examples;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, workspace};

/// Each generated page, and the arguments that make `toolcrib` print it.
const PAGES: &[(&str, &[&str])] = &[
    ("tools.md", &["tools", "--format", "markdown"]),
    ("cli.md", &["reference", "cli"]),
    ("configuration.md", &["reference", "configuration"]),
    ("protected-and-hidden.md", &["reference", "protected-and-hidden"]),
    ("replies.md", &["reference", "replies"]),
];

/// Writes the pages.
pub(crate) fn run() -> Result<()> {
    for (page, words) in PAGES {
        fs::write(path(page), generate(page, words)?)?;
        println!("wrote docs/{page}");
    }
    Ok(())
}

/// Fails at a stale page, with the first line that differs.
pub(crate) fn check() -> Result<()> {
    for (page, words) in PAGES {
        let written = fs::read_to_string(path(page))
            .map_err(|error| format!("docs/{page}: {error}; `cargo xtask docs` writes it"))?;
        if let Some(difference) = first_difference(&written, &generate(page, words)?) {
            println!("{difference}");
            return Err(format!("docs/{page} is stale: `cargo xtask docs` writes it anew").into());
        }
    }
    Ok(())
}

fn path(page: &str) -> PathBuf {
    workspace::root().join("docs").join(page)
}

fn generate(page: &str, words: &[&str]) -> Result<String> {
    let binary = product::build_debug()?;
    let text = process::capture(Command::new(&binary).args(words))?;
    if page == "tools.md" { tool_examples::insert(&text, &binary) } else { Ok(text) }
}

/// Describes the first differing line; `None` if the texts are equal.
fn first_difference(written: &str, generated: &str) -> Option<String> {
    if written == generated {
        return None;
    }
    // With line ends: a missing newline at the end of the file is a difference too.
    let mut old = written.split_inclusive('\n');
    let mut new = generated.split_inclusive('\n');
    let show = |line: Option<&str>| line.map_or("(the end)".to_owned(), |line| format!("{line:?}"));
    (1..).find_map(|number| {
        let (old, new) = (old.next(), new.next());
        let changed = old != new;
        changed.then(|| format!("line {number} is  {}\nshould be  {}", show(old), show(new)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_first_differing_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(
            first_difference("a\nb\n", "a\nc\n").unwrap(),
            "line 2 is  \"b\\n\"\nshould be  \"c\\n\""
        );
    }

    #[test]
    fn a_missing_line_is_a_difference() {
        assert_eq!(
            first_difference("a\n", "a\nb\n").unwrap(),
            "line 2 is  (the end)\nshould be  \"b\\n\""
        );
        assert_eq!(first_difference("a\n", "a").unwrap(), "line 1 is  \"a\\n\"\nshould be  \"a\"");
    }
}
