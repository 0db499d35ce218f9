//! `torture search`: Glob and Grep find what ripgrep and fd find, file by file, line by line, count by
//! count; over real trees with generated patterns, and over one that changes between two questions.
//!
//! Where they are meant to differ, and why, stands in docs/design/search-semantics.md; the flags that take
//! those differences away are in `oracle.rs`.

mod model;
mod oracle;
mod patterns;
mod queries;

use std::path::{Path, PathBuf};

use super::Effort;
use super::report::Report;
use crate::error::Result;
use crate::{peers, workspace};

/// Over the directories that are named, or over this repository; then the tree that changes.
pub(super) fn run(directories: &[String], effort: Effort) -> Result<()> {
    let peers = peers::install()?;
    let binary = effort.build()?;
    let mut report = Report::default();
    let own = [workspace::root().to_owned()];
    let given: Vec<PathBuf> = directories.iter().map(PathBuf::from).collect();
    let trees: &[PathBuf] = if given.is_empty() { &own } else { &given };
    for tree in trees {
        queries::run(&binary, &peers, tree, effort, &mut report)?;
    }
    model::run(&binary, &peers, effort, &mut report)?;
    report.finish("search")
}

/// What a product needs to answer without a bound, since it is compared as a whole; and with an index also of
/// the smallest tree.
fn settings(top: &Path) -> Result<PathBuf> {
    let config = top.join("config.toml");
    std::fs::write(&config, "reply_chars = 2000000000\nsearch_seconds = 600\nindex_files = 1\n")?;
    Ok(config)
}
