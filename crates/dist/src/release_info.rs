//! Version and time of a release.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process, workspace};

/// Short description, the same in every registry.
pub(super) const SUMMARY: &str =
    "Tools for AI coding agents: files, search, sandboxed commands, undo. MCP server and CLI.";

/// What the artefacts of one release have in common.
pub(super) struct Release {
    /// `workspace.package.version` of the Cargo.toml, the only place that has it.
    pub(super) version: String,
    /// Seconds since 1970, for every file in every archive.
    pub(super) time: u64,
}

impl Release {
    /// The release that the working tree is.
    pub(super) fn current() -> Result<Release> {
        let members = metadata::of_members()?;
        let product = metadata::member(&members, "toolcrib-cli")?;
        Ok(Release { version: metadata::text(product, "version")?.to_owned(), time: time()? })
    }
}

/// `SOURCE_DATE_EPOCH`, or else the time of the last commit: the same for everyone who builds it.
fn time() -> Result<u64> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root());
            process::capture(&mut git)?
        }
    };
    seconds.trim().parse().map_err(|_| format!("`{}` is no time", seconds.trim()).into())
}
