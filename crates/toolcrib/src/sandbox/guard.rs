//! The guard of one command: decides about each change that it makes by the path, and records it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_exec::{FileAccess, Guard, Unwritable, Verdict};

use super::path_rules::{PathRules, Rule};
use crate::trail::Trail;

/// As many refused configurations are explained.
const MAX_EXPLAINED: usize = 5;

/// The guard of one command.
#[derive(Debug)]
pub(crate) struct CommandGuard {
    rules: Arc<PathRules>,
    trail: Arc<Trail>,
    /// The contents that were refused: the path, and what was wrong.
    refused: Mutex<Vec<(PathBuf, Vec<String>)>>,
}

impl CommandGuard {
    /// Of a command that is about to begin.
    pub(crate) fn new(rules: Arc<PathRules>, trail: Arc<Trail>) -> CommandGuard {
        // The user may have changed configurations since.
        rules.forget_named();
        CommandGuard { rules, trail, refused: Mutex::default() }
    }

    /// The contents that were refused since this was asked last: the path, and what was wrong.
    pub(crate) fn take_refused(&self) -> Vec<(PathBuf, Vec<String>)> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Guard for CommandGuard {
    fn decide(&self, accesses: &[FileAccess], program: &dyn Fn() -> Option<PathBuf>) -> Verdict {
        let mut verdict = Verdict::Allow;
        for (number, access) in accesses.iter().enumerate() {
            match self.rules.rule(access, accesses, program) {
                Rule::Allowed => {}
                Rule::Refused(why) => return Verdict::Refuse { access: number, why },
                Rule::Reviewed => verdict = Verdict::Review,
            }
        }
        self.trail.touched(accesses);
        verdict
    }

    fn review(&self, path: &Path, content: &[u8]) -> Result<(), Unwritable> {
        let dangers = self.rules.dangers(path, content);
        if dangers.is_empty() {
            return Ok(());
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MAX_EXPLAINED {
            refused.push((path.to_owned(), dangers));
        }
        Err(Unwritable::Protected)
    }

    fn may_read(&self, path: &Path) -> bool {
        self.rules.may_read(path)
    }

    fn unseen(&self, why: &io::Error) {
        self.trail.unseen(why);
    }

    fn over(&self) {
        self.trail.over();
    }
}
