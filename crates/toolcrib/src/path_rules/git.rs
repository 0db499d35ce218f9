//! Rules for the parts of git directories.

use std::path::Path;

use toolcrib_exec::{FileAccess, FileAction, NodeKind, Program, Unwritable};
use toolcrib_fs::BulkReader;

use super::{PathRules, Rule, VERSION_CONTROL};
use crate::git::directory::{self, Part};
use crate::path_rules::version_control_programs::{is_git_clean, is_version_control_program};

impl PathRules {
    /// The rule for a part of a git directory.
    pub(crate) fn in_git_directory(
        &self,
        tree: &BulkReader,
        relative: &Path,
        access: &FileAccess,
    ) -> Rule {
        let Some((directory, part)) = directory::part_of(tree, relative) else {
            return Rule::Allowed;
        };
        if self.protection.allows(relative) {
            return Rule::Allowed;
        }
        let moves = matches!(access.action, FileAction::Remove | FileAction::RenameFrom);
        if part == Part::Structure && moves {
            // Git itself never does this to a repository in use.
            let in_use = relative.file_name().is_some_and(|name| name != "commondir")
                && directory::is_complete(tree, &directory, None)
                && !self.known.was_created_by_command(tree, &directory);
            return if in_use { Rule::Refused(Unwritable::Repository) } else { Rule::Allowed };
        }
        let new = match &access.action {
            FileAction::Remove => return Rule::Allowed,
            // Git tests whether modes can be changed.
            FileAction::ChangeMode if part == Part::Configuration => return Rule::Allowed,
            FileAction::Write => Some(NodeKind::File),
            FileAction::Create(kind) | FileAction::RenameTo(kind) => Some(kind.clone()),
            FileAction::RenameFrom | FileAction::Link | FileAction::ChangeMode => None,
        };
        let refused = Rule::Refused(Unwritable::Protected);
        match (part, new) {
            (Part::Structure, Some(_)) => {
                self.rule_for_new_git_directory(tree, &directory, relative)
            }
            (Part::Structure, None) => Rule::Allowed,
            (Part::Configuration, Some(NodeKind::File)) => Rule::NeedsReview,
            (Part::Hooks, Some(NodeKind::Directory)) => match access.action {
                FileAction::Create(_) => Rule::Allowed,
                _ => refused,
            },
            (Part::SampleHook, Some(NodeKind::File) | None) => Rule::Allowed,
            (Part::Sequence(_), Some(NodeKind::File)) => Rule::NeedsReview,
            // A hard link could be written without a review.
            (Part::Sequence(_), None) if access.action != FileAction::Link => Rule::Allowed,
            (Part::SequenceDirectory, Some(NodeKind::Directory)) => match access.action {
                FileAction::Create(_) => Rule::Allowed,
                _ => refused,
            },
            (Part::SequenceDirectory, None) => Rule::Allowed,
            _ => refused,
        }
    }

    /// A directory may become a git directory if it is clean.
    pub(super) fn rule_for_new_git_directory(
        &self,
        tree: &BulkReader,
        directory: &Path,
        made: &Path,
    ) -> Rule {
        let before = directory::is_complete(tree, directory, None);
        if before || !directory::is_complete(tree, directory, made.file_name()) {
            return Rule::Allowed;
        }
        if !directory::is_clean(tree, directory) {
            return Rule::Refused(Unwritable::Protected);
        }
        self.known.mark_created(tree, directory);
        let reviewed = directory::reviewed_files(&tree.path().join(directory));
        // A command may still have the files open, or have hard links to them.
        Rule::AllowedAfterReview(reviewed)
    }

    /// Whether a program other than version control removes a repository that no command created, as `rm -rf *`
    /// does, or overwrites its commits, as `sed -i` on all files does. This prevents accidents; it is not a security
    /// boundary, since such a file runs nothing.
    pub(super) fn is_damaged_by_accident(
        &self,
        tree: &BulkReader,
        relative: &Path,
        access: &FileAccess,
        all: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> bool {
        let removes = matches!(access.action, FileAction::Remove | FileAction::RenameFrom);
        if !removes && !overwrites(access, all) {
            return false;
        }
        let is_version_control = |path: &&Path| {
            path.file_name().is_some_and(|name| VERSION_CONTROL.iter().any(|known| name == *known))
        };
        let named = relative.ancestors().find(is_version_control).map(Path::to_owned);
        let Some(repository) = named.or_else(|| directory::containing(tree, relative)) else {
            return false;
        };
        let inside = relative.strip_prefix(&repository).unwrap_or(relative);
        let is_part = access.action == FileAction::Remove
            || (removes && repository == relative)
            || directory::has_commits(inside);
        let is_temporary = relative.extension().is_some_and(|last| last == "lock")
            || self.known.was_added_by_command(&access.path);
        // A submodule has its git directory inside that of the repository.
        let mut inside = relative.ancestors().take_while(|path| *path != repository);
        let is_of_command = self.known.was_created_by_command(tree, &repository)
            || inside.any(|path| self.known.was_created_by_command(tree, path));
        if !is_part || is_temporary || is_of_command {
            return false;
        }
        // A file that points to a repository, and a directory that never became one, may be removed.
        let is_git = repository.file_name().is_some_and(|name| name == ".git");
        if is_git && !directory::is_complete(tree, &repository, None) {
            return false;
        }
        // `git clean` removes nested repositories, which are untracked files to it, and nothing of its own.
        program()
            .is_none_or(|program| !is_version_control_program(&program) || is_git_clean(&program))
    }

    /// Called before a command adds a file or directory. In a repository, it may remove it again, like a temporary file
    /// of an editor.
    pub(super) fn note_added(&self, relative: &Path, access: &FileAccess) {
        let is_new = access.kind.is_none()
            && matches!(access.action, FileAction::Create(_) | FileAction::RenameTo(_));
        let is_in_repository =
            || relative.iter().any(|name| VERSION_CONTROL.iter().any(|known| name == *known));
        let has_state = || directory::has_commits(relative) || directory::is_reflog(relative);
        if is_new && is_in_repository() && !has_state() {
            self.known.mark_added(&access.path);
        }
    }
}

/// Whether an access replaces the content of a file. Programs that use a git library write a file with the ending `.lock`
/// first, as git does, and rename it.
fn overwrites(access: &FileAccess, all: &[FileAccess]) -> bool {
    if access.kind != Some(NodeKind::File) {
        return false;
    }
    let is_lock = |from: &FileAccess| {
        from.action == FileAction::RenameFrom
            && from.path == access.path.with_added_extension("lock")
    };
    match access.action {
        FileAction::Write => true,
        FileAction::RenameTo(_) => !all.iter().any(is_lock),
        _ => false,
    }
}
