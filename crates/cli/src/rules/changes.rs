//! Reads the rules again when their files change.

use std::path::PathBuf;

use parking_lot::Mutex;
use toolcrib::{OperatorChange, OperatorFile, Rules, RulesSource, RulesState};

use super::{MAX_BYTES, RulesFile, merged, presets, sources};
use crate::args::Common;
use crate::config::Config;

/// The rules of a server. They change with their files; those of presets stay.
pub(crate) struct ChangingRules {
    presets: Rules,
    files: Mutex<Vec<ChangingFile>>,
}

/// A rules file of a server.
struct ChangingFile {
    about: RulesFile,
    file: OperatorFile,
    /// The rules in force.
    rules: Rules,
    /// Why another version is not in force.
    problem: Option<String>,
}

impl ChangingRules {
    /// The rules as they are now.
    pub(crate) fn new(common: &Common, config: &Config) -> Result<ChangingRules, String> {
        let open = |about: RulesFile| {
            let at = |error| format!("{}: {error}", about.path.display());
            // Before it is read: a change in between is read again.
            let file = OperatorFile::at(&about.path).map_err(at)?;
            let rules = about.read(common)?;
            let about = RulesFile { path: absolute(&about.path), ..about };
            Ok(ChangingFile { about, file, rules, problem: None })
        };
        let files = sources(common, config).into_iter().map(open);
        let files = Mutex::new(files.collect::<Result<_, String>>()?);
        Ok(ChangingRules { presets: presets(common, config)?, files })
    }

    /// The rules in force.
    pub(crate) fn rules(&self) -> Rules {
        self.of(&self.files.lock())
    }

    /// The files that have another hard link, through which a command may be able to change them.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        let files = self.files.lock();
        let exposed = files.iter().filter(|file| file.file.is_exposed());
        exposed.map(|file| file.about.path.clone()).collect()
    }

    fn of(&self, files: &[ChangingFile]) -> Rules {
        let rules = |file: &ChangingFile| (file.rules.clone(), file.about.owner);
        merged(files.iter().map(rules), self.presets.clone())
    }
}

impl RulesSource for ChangingRules {
    fn look(&self) -> RulesState {
        let mut files = self.files.lock();
        let mut state = RulesState::default();
        let mut is_changed = false;
        for file in files.iter_mut() {
            match file.file.look(MAX_BYTES) {
                OperatorChange::None => {}
                OperatorChange::Unfinished => state.is_unfinished = true,
                OperatorChange::Unusable(why) => {
                    state.problem = Some(format!("{}: {why}", file.about.path.display()));
                    continue;
                }
                OperatorChange::Changed { text, is_replaced } => {
                    is_changed |= file.apply(&text, is_replaced);
                }
            }
            state.problem = state.problem.or_else(|| file.problem.clone());
        }
        state.rules = is_changed.then(|| self.of(&files));
        state
    }
}

impl ChangingFile {
    /// Applies a new content. Returns whether it is used.
    fn apply(&mut self, text: &str, is_replaced: bool) -> bool {
        let problem = match self.about.parse(text) {
            // A program that truncates the file may have failed to write it.
            Ok(_) if text.trim().is_empty() && self.rules.count() > 0 && !is_replaced => {
                let path = self.about.path.display();
                format!("{path}: the file is empty; if no rule is wanted, write a comment into it")
            }
            Ok(new) => {
                (self.rules, self.problem) = (new, None);
                return true;
            }
            Err(problem) => problem,
        };
        self.problem = Some(problem);
        false
    }
}

/// The path in messages.
fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
