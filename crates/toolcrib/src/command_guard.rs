//! The guard of one command: decides on each of its changes by path, and captures it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_exec::{
    FileAccess, FileAction, Guard, GuardVerdict, NodeKind, Program, RefusedContent, SESSION_TMP,
    Unwritable,
};
use toolcrib_fs::{BulkReader, Content, Root, RootMode, Workspace};

use crate::command_changes::CommandChanges;
use crate::path_rules::{Danger, PathRules, Rule};

/// Limit of rejected contents that are explained.
const MAX_EXPLAINED: usize = 200;

#[derive(Debug)]
pub(crate) struct CommandGuard {
    rules: Arc<PathRules>,
    changes: Arc<CommandChanges>,
    /// The session's private directory, which other programs see at another path.
    tmp: Option<Workspace>,
    /// Rejected contents: path and reason.
    refused: Mutex<Vec<(PathBuf, Danger)>>,
}

impl CommandGuard {
    /// For a command that has not started yet.
    pub(crate) fn new(
        rules: Arc<PathRules>,
        changes: Arc<CommandChanges>,
        tmp: &Path,
        directory: &Path,
    ) -> CommandGuard {
        rules.before_command(directory);
        let tmp = Root::open(tmp, RootMode::ReadWrite).ok();
        let tmp = tmp.and_then(|tmp| Workspace::new(vec![tmp]).ok());
        CommandGuard { rules, changes, tmp, refused: Mutex::default() }
    }

    /// A path inside the session's private directory, and the path at which the command sees that directory.
    fn in_tmp(&self, path: &Path) -> Option<(BulkReader, PathBuf, PathBuf)> {
        if self.rules.is_in_workspace(path) {
            return None;
        }
        let tree = self.tmp.as_ref()?.trees().next()?;
        let real = tree.path().to_owned();
        let tops = SESSION_TMP.map(PathBuf::from).into_iter().chain([real]);
        let top = tops.into_iter().find(|top| path.starts_with(top))?;
        let relative = path.strip_prefix(&top).ok()?.to_owned();
        Some((tree, relative, top))
    }

    /// The rule for one access. In the session's private directory only git directories are protected: a
    /// `gitdir:` file elsewhere can lead other programs to them.
    fn rule(
        &self,
        number: usize,
        accesses: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> Rule {
        let Some(access) = accesses.get(number) else { return Rule::Allowed };
        let Some((tree, relative, top)) = self.in_tmp(&access.path) else {
            return self.rules.rule(access, accesses, program);
        };
        match self.rules.in_git_directory(&tree, &relative, access) {
            Rule::AllowedAfterReview(paths) => Rule::AllowedAfterReview(
                paths
                    .iter()
                    .filter_map(|path| Some(top.join(path.strip_prefix(tree.path()).ok()?)))
                    .collect(),
            ),
            rule => rule,
        }
    }

    /// The content and mode of a protected file that this command has removed and now tries to write: programs such as
    /// tar and cp remove a file before they create it.
    fn removed_by_this_command(
        &self,
        access: &FileAccess,
        why: Unwritable,
    ) -> Option<(Vec<u8>, u32)> {
        let writes = matches!(
            access.action,
            FileAction::Create(NodeKind::File) | FileAction::RenameTo(NodeKind::File)
        );
        let is_removed = why == Unwritable::Protected && writes && access.kind.is_none();
        let captured = self.changes.captured(&access.path).filter(|_| is_removed)?;
        // An earlier command may have removed an older content.
        let (content, mode) = self.rules.removed(&access.path)?;
        let content = Content::from(content);
        (content.hash() == captured.hash).then(|| (content.to_vec(), mode))
    }

    /// Contents rejected since the last call of this method: path and reason.
    pub(crate) fn take_refused(&self) -> Vec<(PathBuf, Danger)> {
        std::mem::take(&mut *self.refused.lock())
    }
}

impl Guard for CommandGuard {
    fn decide(
        &self,
        accesses: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> GuardVerdict {
        let mut verdict = GuardVerdict::Allow;
        for number in 0..accesses.len() {
            match self.rule(number, accesses, program) {
                Rule::Allowed => {}
                Rule::Refused(why) => {
                    self.changes.note_refused(&accesses[number].path);
                    let restore = self.removed_by_this_command(&accesses[number], why);
                    return GuardVerdict::Refuse { access: number, why, restore };
                }
                Rule::NeedsReview => verdict = GuardVerdict::Review,
                Rule::AllowedAfterReview(paths) => verdict = GuardVerdict::ReviewAndCopy(paths),
                Rule::AllowedIfRestorable => {
                    self.changes.before_change(accesses);
                    let path = &accesses[number].path;
                    if !self.rules.may_be_removed(
                        path,
                        self.changes.captured(path).map(|version| version.mode),
                    ) {
                        let why = Unwritable::Protected;
                        return GuardVerdict::Refuse { access: number, why, restore: None };
                    }
                }
            }
        }
        self.changes.before_change(accesses);
        verdict
    }

    fn review(&self, path: &Path, content: &[u8], is_new: bool) -> Result<(), RefusedContent> {
        let danger = match self.in_tmp(path) {
            Some((tree, relative, _)) => self.rules.danger_in(&tree, &relative, content, is_new),
            None => self.rules.danger(path, content, is_new),
        };
        let Some(danger) = danger else { return Ok(()) };
        self.changes.note_refused(path);
        let instead = match danger {
            Danger::Unknown => self.rules.removed(path),
            Danger::Variables(_) => None,
        };
        let mut refused = self.refused.lock();
        if refused.len() < MAX_EXPLAINED {
            refused.push((path.to_owned(), danger));
        }
        Err(RefusedContent { why: Unwritable::Protected, fallback: instead })
    }

    fn may_read(&self, path: &Path) -> bool {
        self.rules.may_read(path)
    }

    fn supervision_failed(&self, why: &io::Error) {
        self.changes.add_unobserved(why);
    }

    fn finished(&self) {
        self.changes.command_ended();
    }
}
