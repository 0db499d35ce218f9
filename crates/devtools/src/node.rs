//! Installs third-party Node programs that check ours, with a suitable Node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::{cache, process, python};

/// Installed packages.
pub struct Packages {
    directory: PathBuf,
}

/// Installs the packages of a list in crates/devtools/oracles.
pub fn install(list: &str) -> Result<Packages> {
    install_manifest(list, &python::oracles().join(list))
}

/// Installs the dependencies of a package.json, unless they are installed and it is unchanged. `name` is the name of
/// the directory for them.
pub fn install_manifest(name: &str, list: &Path) -> Result<Packages> {
    let directory = cache::directory()?.join("node").join(name);
    let stamp = directory.join("made-from.json");
    let wanted = fs::read_to_string(list)?;
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("installing {} into {}", list.display(), directory.display());
        fs::create_dir_all(&directory)?;
        fs::copy(list, directory.join("package.json"))?;
        let words = ["install", "--silent", "--no-audit", "--no-fund"];
        let mut install = Command::new("npm");
        // One of them would download a browser.
        install.args(words).env("PUPPETEER_SKIP_DOWNLOAD", "1").current_dir(&directory);
        process::run(&mut install)?;
        fs::write(&stamp, wanted)?;
    }
    Ok(Packages { directory })
}

impl Packages {
    /// A command that runs a script with the installed Node.
    pub fn run(&self, script: &Path) -> Command {
        let mut command = Command::new(self.modules().join(".bin/node"));
        command.arg(script);
        command
    }

    /// The directory of the packages.
    pub fn modules(&self) -> PathBuf {
        self.directory.join("node_modules")
    }

    /// A file of a package.
    pub fn file(&self, path: &str) -> PathBuf {
        self.modules().join(path)
    }
}
