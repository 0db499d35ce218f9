//! `torture patch`: applies real commits of git repositories with ApplyPatch, compared with git and GNU patch.
//!
//! Each commit's diff is applied to its base and must give the commit's files. Applied again, it must change
//! nothing; Undo must restore the old files. As a `*** Begin Patch` it must give the same result. Then it is
//! applied to the files of earlier commits, where the right result is not known: GNU patch and
//! `git apply --3way` run too, and if these two agree on a result, ours must be that result or a refusal.

mod apply_commits;
mod envelope;
mod finding;
mod generated_repository;
mod judge;
mod oracles;
mod ours;
mod repository;
mod tree;

use std::path::{Path, PathBuf};

use toolcrib_devtools::error::Result;

use self::apply_commits::Trial;
use self::repository::Repository;
use super::Effort;
use super::report::Report;

/// The number of commits of each repository, the newest first.
const COMMITS: usize = 1_000;

/// Runs on the named repositories, or on a generated one.
pub(super) fn run(repositories: &[PathBuf], effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let mut report = Report::default();
    if repositories.is_empty() {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("generated");
        generated_repository::make(&path)?;
        run_repository(&binary, path, effort, &mut report)?;
    }
    for path in repositories {
        run_repository(&binary, path.clone(), effort, &mut report)?;
    }
    report.finish("patch")
}

fn run_repository(binary: &Path, path: PathBuf, effort: Effort, report: &mut Report) -> Result<()> {
    let mut repository = Repository::open(path)?;
    let commits = repository.commits(effort.rounds.unwrap_or(COMMITS))?;
    let mut trial = Trial::new(binary, &repository)?;
    for commit in &commits {
        trial.commit(&mut repository, commit)?;
    }
    trial.rows().into_iter().for_each(|row| report.add(row));
    Ok(())
}
