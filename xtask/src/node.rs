//! Programs of others for Node, to be judged by, and the Node that they need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::{process, python, workspace};

/// What a list in xtask/oracles names, installed.
pub(crate) struct Packages {
    directory: PathBuf,
}

/// Installs what a list names; once, until the list changes.
pub(crate) fn install(list: &str) -> Result<Packages> {
    let directory = workspace::cache_directory()?.join("node").join(list);
    let (list, stamp) = (python::oracles().join(list), directory.join("made-from.json"));
    let wanted = fs::read_to_string(&list)?;
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("installing {} into {}", list.display(), directory.display());
        fs::create_dir_all(&directory)?;
        fs::copy(&list, directory.join("package.json"))?;
        let words = ["install", "--silent", "--no-audit", "--no-fund"];
        let mut install = Command::new("npm");
        // What one of them would fetch besides is a browser.
        install.args(words).env("PUPPETEER_SKIP_DOWNLOAD", "1").current_dir(&directory);
        process::run(&mut install)?;
        fs::write(&stamp, wanted)?;
    }
    Ok(Packages { directory })
}

impl Packages {
    /// Runs a script with the Node that is among them.
    pub(crate) fn run(&self, script: &Path) -> Command {
        let mut command = Command::new(self.modules().join(".bin/node"));
        command.arg(script);
        command
    }

    /// Where all of them are.
    pub(crate) fn modules(&self) -> PathBuf {
        self.directory.join("node_modules")
    }

    /// A file of a package.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.modules().join(path)
    }
}
