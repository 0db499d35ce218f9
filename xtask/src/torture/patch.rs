//! `torture patch`: real commits of git repositories through ApplyPatch, beside git and GNU patch.
//!
//! Each commit's diff is applied to the files that it was made from, and must give those of the commit;
//! sent again, it must change nothing; Undo must give the old files back. Said as a `*** Begin Patch`,
//! it must give the same. Then it is applied to the files as they were some commits earlier, where nobody
//! knows what is right: there GNU patch and `git apply --3way` are asked too, and where these two agree
//! on a result, ours must be that or a refusal.

mod envelope;
mod finding;
mod generated;
mod judge;
mod oracles;
mod ours;
mod repository;
mod tree;
mod trial;

use std::path::{Path, PathBuf};

use self::repository::Repository;
use self::trial::Trial;
use super::Effort;
use super::report::Report;
use crate::error::Result;

/// Commits of each repository, the newest first.
const COMMITS: usize = 1_000;

/// Over the repositories that are named, or over one that is made for it.
pub(super) fn run(repositories: &[String], effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let mut report = Report::default();
    if repositories.is_empty() {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("generated");
        generated::make(&path)?;
        over(&binary, path, effort, &mut report)?;
    }
    for path in repositories.iter().map(PathBuf::from) {
        over(&binary, path, effort, &mut report)?;
    }
    report.finish("patch")
}

fn over(binary: &Path, path: PathBuf, effort: Effort, report: &mut Report) -> Result<()> {
    let mut repository = Repository::open(path)?;
    let commits = repository.commits(effort.rounds.unwrap_or(COMMITS))?;
    let mut trial = Trial::new(binary, &repository)?;
    for commit in &commits {
        trial.commit(&mut repository, commit)?;
    }
    trial.rows().into_iter().for_each(|row| report.add(row));
    Ok(())
}
