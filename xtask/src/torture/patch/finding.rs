//! What somebody ought to look at, kept as files: the patch, what it was applied to, and who made what
//! of it.

use std::fs;
use std::path::PathBuf;

use super::ours::Outcome;
use super::tree::Tree;
use crate::error::Result;
use crate::{sandbox, workspace};

/// A broken thing tends to break in every commit.
const MOST: usize = 200;

/// Where findings about a repository go.
pub(super) struct Findings {
    directory: PathBuf,
    kept: usize,
}

impl Findings {
    /// Those of earlier runs are gone then.
    pub(super) fn about(repository: &str) -> Result<Findings> {
        let directory = workspace::cache_directory()?.join("torture-patch").join(repository);
        sandbox::remove_directory(&directory)?;
        Ok(Findings { directory, kept: 0 })
    }

    /// Keeps one; answers where.
    pub(super) fn keep(
        &mut self,
        name: &str,
        base: &Tree,
        patch: &str,
        outcomes: &[(&str, &Outcome)],
    ) -> Result<String> {
        let directory = self.directory.join(name);
        if self.kept < MOST {
            self.kept += 1;
            base.write(&directory.join("base"))?;
            fs::write(directory.join("the.patch"), patch)?;
            for (who, outcome) in outcomes {
                match outcome {
                    Outcome::Applied(tree) => tree.write(&directory.join(who))?,
                    Outcome::Refused(refusal) => {
                        fs::write(directory.join(format!("{who}.refused")), &refusal.says)?;
                    }
                }
            }
        }
        Ok(directory.display().to_string())
    }
}
