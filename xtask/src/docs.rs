//! `cargo xtask docs`: docs/tools.md, written by the product from its tools' own doc comments.

use std::fs;
use std::path::PathBuf;

use crate::error::{Result, no_arguments};
use crate::{process, workspace};

/// The task: writes the file.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("docs", arguments)?;
    fs::write(path(), generate()?)?;
    println!("wrote docs/tools.md");
    Ok(())
}

/// Fails, with the first line that differs, if the file is not what would be written now.
pub(crate) fn check() -> Result<()> {
    let written = fs::read_to_string(path())
        .map_err(|error| format!("docs/tools.md: {error}; `cargo xtask docs` writes it"))?;
    match first_difference(&written, &generate()?) {
        None => Ok(()),
        Some(difference) => {
            println!("{difference}");
            Err("docs/tools.md is stale: `cargo xtask docs` writes it anew".into())
        }
    }
}

fn path() -> PathBuf {
    workspace::root().join("docs").join("tools.md")
}

fn generate() -> Result<String> {
    let words = ["run", "--quiet", "--locked", "-p", "toolcrib-cli", "--"];
    process::capture(process::cargo(&words).args(["tools", "--format", "markdown"]))
}

/// Nothing when the two are equal to the last byte.
fn first_difference(written: &str, generated: &str) -> Option<String> {
    if written == generated {
        return None;
    }
    // With their ends: a missing newline at the end of the file is a difference, too.
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
    fn the_first_line_that_differs_is_shown() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(
            first_difference("a\nb\n", "a\nc\n").unwrap(),
            "line 2 is  \"b\\n\"\nshould be  \"c\\n\""
        );
    }

    #[test]
    fn an_end_that_comes_early_is_a_difference() {
        assert_eq!(
            first_difference("a\n", "a\nb\n").unwrap(),
            "line 2 is  (the end)\nshould be  \"b\\n\""
        );
        assert_eq!(first_difference("a\n", "a").unwrap(), "line 1 is  \"a\\n\"\nshould be  \"a\"");
    }
}
