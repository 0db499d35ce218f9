//! A user with an empty home directory, who tries the installed program.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, inspector, node, process};

use crate::release_info::Release;

/// The home directory and a project beside it. Both are gone when it is dropped.
pub(super) struct NewUser {
    directory: TempDir,
}

impl NewUser {
    pub(super) fn new() -> Result<NewUser> {
        // Not in /tmp, which commands have to themselves.
        let user = NewUser { directory: tempfile::tempdir_in(cache::directory()?)? };
        fs::create_dir(user.home())?;
        fs::create_dir(user.project())?;
        Ok(user)
    }

    /// A path in the home directory.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.home().join(path)
    }

    /// The directory that commands start in.
    pub(super) fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// A file in the home directory.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        Ok(fs::write(path, text)?)
    }

    /// A command with the environment of this user: settings of the person who runs the test do not count.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.home());
        command.current_dir(self.project());
        command
    }

    /// Tries the program that `start` starts: its version, its sandbox and a session over MCP.
    pub(super) fn try_out(&self, release: &Release, start: &[&str]) -> Result<()> {
        let (program, words) = start.split_first().ok_or("an empty command")?;
        let toolcrib = |more: &[&str]| {
            let mut command = self.command(program);
            command.args(words).args(more);
            command
        };
        let version = process::capture(&mut toolcrib(&["--version"]))?;
        if version.trim() != format!("toolcrib {}", release.version) {
            return Err(format!("`{}` printed {version}", start.join(" ")).into());
        }
        let report = process::capture(&mut toolcrib(&["doctor", "--json"]))?;
        serde_json::from_str::<serde_json::Value>(&report)?;
        let packages = node::install("judges.json")?;
        let mut server = toolcrib(&["serve", "--root"]);
        server.arg(self.project());
        inspector::inspect(&packages, &server, &self.project())?;
        println!("   {}: version, doctor and a session over MCP are fine", start.join(" "));
        Ok(())
    }
}
