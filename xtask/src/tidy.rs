//! `cargo xtask tidy`: house rules that neither rustfmt nor clippy check.
//!
//! Certain errors fail. Findings that may have a good reason (a long function, a long file) are only
//! reported: a number does not replace a review.

mod length;
mod links;
mod rules;

use std::fs;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, workspace};

/// A file of the repository.
struct File {
    /// The path from the root of the repository.
    path: String,
    /// The content; empty if it is not UTF-8.
    text: String,
}

impl File {
    /// The path components.
    fn parts(&self) -> Vec<&str> {
        self.path.split('/').collect()
    }

    /// The extension without the dot; empty if there is none.
    fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// Prints long functions and files. Fails if a rule is broken.
pub(crate) fn check() -> Result<()> {
    let files = files()?;
    for report in files.iter().flat_map(length::long_items) {
        println!("long: {report}");
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
        count => Err(format!("style rules are broken in {count} places: see above").into()),
    }
}

/// The files that are in git or would be added by `git add .`.
fn files() -> Result<Vec<File>> {
    let mut command = std::process::Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = process::capture(command.current_dir(workspace::root()))?;
    let mut files = Vec::new();
    for path in listing.split_terminator('\0') {
        // Unreadable: deleted and not yet staged, or the directory of a submodule.
        let Ok(bytes) = fs::read(workspace::root().join(path)) else {
            continue;
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(File { path: path.to_owned(), text });
    }
    Ok(files)
}
