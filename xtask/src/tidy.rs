//! `cargo xtask tidy`: the house rules that neither rustfmt nor clippy know.
//!
//! What is certainly wrong fails. What may have a good reason (a long function, a long file) is only
//! reported: a number is no substitute for looking.

mod length;
mod links;
mod rules;

use std::fs;

use crate::error::{Result, no_arguments};
use crate::{process, workspace};

/// A file of the repository.
struct File {
    /// From the root, with `/`.
    path: String,
    /// Empty for what is not UTF-8: no rule has anything to say about it but its name.
    text: String,
}

impl File {
    /// The folders and the name.
    fn parts(&self) -> Vec<&str> {
        self.path.split('/').collect()
    }

    /// `rs`, `toml`, …; empty if there is none.
    fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("tidy", arguments)?;
    check()
}

/// Fails if a rule is broken; prints what is worth a look.
pub(crate) fn check() -> Result<()> {
    let files = files()?;
    for report in files.iter().flat_map(length::worth_a_look) {
        println!("worth a look: {report}");
    }
    let mut problems = rules::problems(&files);
    problems.extend(links::broken(&files));
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("{} files, all tidy", files.len());
            Ok(())
        }
        1 => Err("a house rule is broken: see above".into()),
        count => Err(format!("house rules are broken in {count} places: see above").into()),
    }
}

/// What is in git or would be with the next `git add .`.
fn files() -> Result<Vec<File>> {
    let mut command = std::process::Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = process::capture(command.current_dir(workspace::root()))?;
    let mut files = Vec::new();
    for path in listing.split_terminator('\0') {
        // Listed but not readable: deleted and not yet staged, or the folder of a submodule.
        let Ok(bytes) = fs::read(workspace::root().join(path)) else {
            continue;
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(File { path: path.to_owned(), text });
    }
    Ok(files)
}
