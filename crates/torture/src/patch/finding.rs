//! Saves findings as files for review: the patch, its input and the results of each program.

use std::fs;
use std::path::PathBuf;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, scratch};

use super::ours::Outcome;
use super::tree::Tree;

/// The maximum number of findings. A bug tends to show in every commit.
const MAX_FINDINGS: usize = 200;

/// The findings of a repository.
pub(super) struct Findings {
    directory: PathBuf,
    saved: usize,
}

impl Findings {
    /// Removes the findings of earlier runs.
    pub(super) fn about(repository: &str) -> Result<Findings> {
        let directory = cache::directory()?.join("torture-patch").join(repository);
        scratch::remove_directory(&directory)?;
        Ok(Findings { directory, saved: 0 })
    }

    /// Saves a finding. Returns its path.
    pub(super) fn save(
        &mut self,
        name: &str,
        base: &Tree,
        patch: &str,
        outcomes: &[(&str, &Outcome)],
    ) -> Result<String> {
        let directory = self.directory.join(name);
        if self.saved < MAX_FINDINGS {
            self.saved += 1;
            base.write(&directory.join("base"))?;
            fs::write(directory.join("the.patch"), patch)?;
            for (program, outcome) in outcomes {
                match outcome {
                    Outcome::Applied(tree) => tree.write(&directory.join(program))?,
                    Outcome::Refused(refusal) => {
                        fs::write(directory.join(format!("{program}.refused")), &refusal.message)?;
                    }
                }
            }
        }
        Ok(directory.display().to_string())
    }
}
