//! `torture search`: Glob and Grep find the same files, lines and counts as ripgrep and fd, on real trees with
//! generated patterns, and on a tree that changes between searches.
//!
//! docs/design/search-semantics.md lists the intended differences; the flags in `search_pair.rs` remove them.

mod changing_tree;
mod patterns;
mod queries;
mod search_pair;

use std::path::{Path, PathBuf};

use toolcrib_devtools::error::Result;
use toolcrib_devtools::workspace;

use super::Effort;
use super::report::Report;

/// Runs on the named directories, or on this repository, and then on the changing tree.
pub(super) fn run(directories: &[PathBuf], effort: Effort) -> Result<()> {
    let peers = effort.peers()?;
    let binary = effort.build()?;
    let mut report = Report::default();
    let own = [workspace::root().to_owned()];
    let trees = if directories.is_empty() { &own } else { directories };
    for tree in trees {
        queries::run(&binary, &peers, tree, effort, &mut report)?;
    }
    changing_tree::run(&binary, &peers, effort, &mut report)?;
    report.finish("search")
}

/// Writes a configuration with unbounded replies, which are compared as a whole, and an index for the smallest
/// tree.
fn settings(top: &Path) -> Result<PathBuf> {
    let config = top.join("config.toml");
    std::fs::write(&config, "reply_chars = 2000000000\nsearch_seconds = 600\nindex_files = 1\n")?;
    Ok(config)
}
