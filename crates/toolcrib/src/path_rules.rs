//! Rules for files that commands and file tools may not change: files that make programs execute code, files
//! that rules deny, and files of the host. They are applied by path at the moment of the change, without a
//! search.

mod content_review;
mod git;
mod git_configured_paths;
mod known_content;
mod other_version_control;
mod version_control_programs;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use toolcrib_exec::{FileAccess, FileAction, NodeKind, Program, Unwritable};
use toolcrib_fs::{BulkReader, EntryKind, ResolvedPath, RootMode, Workspace};
use toolcrib_policy::{Effect, Policy, Protection};

pub(crate) use self::content_review::Danger;
use self::git_configured_paths::ConfiguredPaths;
use self::known_content::KnownContent;
use self::other_version_control::in_other_version_control;
use self::version_control_programs::{applies_patches, is_version_control_program};
use crate::active_rules::ActiveRules;
use crate::git::directory::{self, Part};
use crate::hidden_paths::Hidden;
use crate::message_names::SHELL_TOOL;

/// Patterns that protect whole version control directories from file tools. Commands may change them, except
/// for the parts that make programs execute code.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Limit of entries checked below a renamed directory, if rules deny files by path.
const MAX_RENAMED: usize = 50_000;

/// Rule for one access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Allowed,
    /// Allowed after these files were reviewed and replaced by copies.
    AllowedAfterReview(Vec<PathBuf>),
    Refused(Unwritable),
    /// Depends on the content.
    NeedsReview,
    /// Allowed if the file can be restored.
    AllowedIfRestorable,
}

#[derive(Debug)]
pub(crate) struct PathRules {
    workspace: Workspace,
    /// Caches that commands may write, for the rules about git directories.
    caches: Option<Workspace>,
    rules: Arc<ActiveRules>,
    protection: Protection,
    /// Files of the host and of other servers, and the user's secrets.
    hidden: Arc<Hidden>,
    /// Resolved targets of symlinks with protected names in the roots. Searched before the first write or command,
    /// because a process that only reads does not need them.
    symlink_targets: OnceLock<Vec<PathBuf>>,
    /// The user's own content of protected files.
    known: KnownContent,
    /// Paths in the configurations of repositories.
    configured: ConfiguredPaths,
    /// Programs that stopped rebases already contained, by git directory.
    programs: Mutex<HashMap<PathBuf, HashSet<String>>>,
}

impl PathRules {
    pub(crate) fn new(
        workspace: Workspace,
        caches: Option<Workspace>,
        rules: Arc<ActiveRules>,
        protection: Protection,
        hidden: Arc<Hidden>,
    ) -> PathRules {
        let configured = ConfiguredPaths::new(&workspace, rules.policy().home());
        PathRules {
            workspace,
            caches,
            rules,
            protection,
            hidden,
            symlink_targets: OnceLock::new(),
            known: KnownContent::default(),
            configured,
            programs: Mutex::default(),
        }
    }

    /// Called before a command starts in a directory. The commits that exist now are the user's, unless
    /// commands of this runtime made them.
    pub(crate) fn before_command(&self, directory: &Path) {
        // The command may change symlinks.
        self.symlink_targets();
        // The user may have changed configurations since the last command.
        self.configured.forget();
        let Some((tree, relative)) = self.workspace.tree_of(directory) else { return };
        self.known.record_around(&tree, &relative);
    }

    /// The rules for commands.
    fn policy(&self) -> Arc<Policy> {
        self.rules.of_tool(SHELL_TOOL)
    }

    fn symlink_targets(&self) -> &[PathBuf] {
        self.symlink_targets
            .get_or_init(|| protected_symlink_targets(&self.workspace, &self.protection))
    }

    /// Whether a path is inside a root.
    pub(crate) fn is_in_workspace(&self, path: &Path) -> bool {
        self.workspace.tree_of(path).is_some()
    }

    /// Whether rules deny reading files that commands could otherwise read.
    pub(crate) fn deny_reading(&self) -> bool {
        self.policy().denies_files(Effect::Read)
    }

    pub(crate) fn may_read(&self, path: &Path) -> bool {
        self.hidden.reason(path).is_none() && !self.policy().denies_file(Effect::Read, path)
    }

    /// Whether file tools must not write a path although its name matches no pattern: it is a part of a git
    /// directory, or another name of a protected file.
    pub(crate) fn refuses_writing(&self, place: &ResolvedPath) -> bool {
        let (tree, relative, path) = (BulkReader::around(place), place.relative(), place.path());
        if self.protection.allows(relative) {
            return false;
        }
        let is_linked = self.symlink_targets().iter().any(|linked| path.starts_with(linked));
        let part = directory::part_of(&tree, relative);
        // Missing parent directories would be created, too.
        let makes_structure = relative.ancestors().any(|made| {
            !made.as_os_str().is_empty()
                && !tree.may_have(made)
                && matches!(directory::part_of(&tree, made), Some((directory, Part::Structure))
                    if self.rule_for_new_git_directory(&tree, &directory, made) != Rule::Allowed)
        });
        is_linked
            || makes_structure
            || part.is_some_and(|(_, part)| part != Part::Structure)
            || self.configured.contains(&tree, relative, false)
            || self.has_protected_name(&tree, relative)
    }

    /// The rule for one access of a system call. `program` returns the calling program.
    pub(crate) fn rule(
        &self,
        access: &FileAccess,
        all: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> Rule {
        let path = &access.path;
        if self.hidden.reason(path).is_some() {
            return Rule::Refused(Unwritable::Hidden);
        }
        if self.moves_fixed_path(access) {
            return Rule::Refused(Unwritable::ParentOfProtected);
        }
        let Some((tree, relative)) = self.workspace.tree_of(path) else {
            let cache = self.caches.as_ref().and_then(|caches| caches.tree_of(path));
            return cache.map_or(Rule::Allowed, |(tree, relative)| {
                self.known.before_change(&tree, &relative);
                self.in_git_directory(&tree, &relative, access)
            });
        };
        self.known.before_change(&tree, &relative);
        if self.is_denied(&tree, access, all) {
            return Rule::Refused(Unwritable::Denied);
        }
        if self.protection.allows(&relative) {
            return Rule::Allowed;
        }
        self.rule_by_name(&tree, &relative, access, all, program)
            .unwrap_or_else(|| self.rule_by_repository(&tree, &relative, access, all, program))
    }

    /// Whether an access renames or removes a directory that contains a root, a cache, a hidden path or the target
    /// of a protected symlink.
    fn moves_fixed_path(&self, access: &FileAccess) -> bool {
        if !matches!(access.action, FileAction::RenameFrom | FileAction::Remove) {
            return false;
        }
        let holds = |held: &Path| held.starts_with(&access.path);
        let caches = self.caches.iter().flat_map(|caches| caches.roots());
        let mut roots = self.workspace.roots().chain(caches).map(|root| root.path());
        let is_directory = access.kind == Some(NodeKind::Directory);
        roots.any(holds)
            || self.symlink_targets().iter().any(|target| holds(target))
            || (is_directory && self.hidden.has_beneath(&access.path))
    }

    /// The rule for a protected name, or for a path that leads to one. `None` if there is no such name.
    fn rule_by_name(
        &self,
        tree: &BulkReader,
        relative: &Path,
        access: &FileAccess,
        all: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> Option<Rule> {
        if self.symlink_targets().iter().any(|target| access.path.starts_with(target)) {
            return Some(Rule::Refused(Unwritable::Protected));
        }
        let pattern = self.protection.find(relative);
        if pattern.is_some_and(|pattern| !VERSION_CONTROL.contains(&pattern)) {
            return Some(protected_file_rule(access, program));
        }
        if self.leads_to_protected(relative, access, all) {
            return Some(Rule::Refused(Unwritable::Protected));
        }
        if access.action == FileAction::RenameFrom && self.holds_protected(tree, relative) {
            return Some(Rule::Refused(Unwritable::ParentOfProtected));
        }
        pattern.and_then(|_| in_other_version_control(relative, access))
    }

    /// The rule for a path by the repositories around it.
    fn rule_by_repository(
        &self,
        tree: &BulkReader,
        relative: &Path,
        access: &FileAccess,
        all: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> Rule {
        if self.is_damaged_by_accident(tree, relative, access, all, program) {
            return Rule::Refused(Unwritable::Repository);
        }
        self.note_added(relative, access);
        if access.action == FileAction::Remove {
            if access.kind == Some(NodeKind::Directory)
                && !directory::is_complete(tree, relative, None)
            {
                self.known.forget(tree, relative);
            }
            return self.in_git_directory(tree, relative, access);
        }
        if self.has_protected_name(tree, relative) {
            return Rule::Refused(Unwritable::Protected);
        }
        let replaces = matches!(
            access.action,
            FileAction::RenameFrom
                | FileAction::RenameTo(_)
                | FileAction::Create(NodeKind::Symlink)
        );
        if self.configured.contains(tree, relative, replaces) {
            return protected_file_rule(access, program);
        }
        self.in_git_directory(tree, relative, access)
    }

    /// Whether a rule denies the change, or the change of a file below a renamed directory.
    fn is_denied(&self, tree: &BulkReader, access: &FileAccess, all: &[FileAccess]) -> bool {
        let policy = self.policy();
        let denies = |effect, path: &Path| policy.denies_file(effect, path);
        let (reading, editing) =
            (policy.denies_files(Effect::Read), policy.denies_files(Effect::Write));
        if !reading && !editing {
            return false;
        }
        let either = |path: &Path| denies(Effect::Write, path) || denies(Effect::Read, path);
        let denied = match access.action {
            FileAction::Write | FileAction::ChangeMode => denies(Effect::Write, &access.path),
            _ => either(&access.path),
        };
        if denied {
            return true;
        }
        let is_directory = access.kind == Some(NodeKind::Directory);
        if access.action != FileAction::RenameFrom || !is_directory {
            return false;
        }
        // Under the new path, rules may no longer match the files, or match others.
        let to = all.iter().find(|other| matches!(other.action, FileAction::RenameTo(_)));
        let to = to.map_or(Path::new(""), |to| to.path.as_path());
        match paths_below(tree, &access.path, MAX_RENAMED) {
            Some(paths) => paths.iter().any(|path| {
                let below = path.strip_prefix(&access.path).unwrap_or(path);
                either(path) || either(&to.join(below))
            }),
            None => true,
        }
    }

    /// Whether a symlink or directory gets a name below which paths are protected.
    fn leads_to_protected(&self, relative: &Path, access: &FileAccess, all: &[FileAccess]) -> bool {
        let kind = match &access.action {
            FileAction::Create(kind) | FileAction::RenameTo(kind) => kind,
            _ => return false,
        };
        let rests = || self.protection.protected_beneath(relative);
        match (kind, &access.action) {
            (NodeKind::Symlink, _) => !rests().is_empty(),
            (NodeKind::Directory, FileAction::RenameTo(_)) => {
                let from = all.iter().find(|other| other.action == FileAction::RenameFrom);
                let from = from.and_then(|from| self.workspace.tree_of(&from.path));
                let Some((tree, from)) = from else { return !rests().is_empty() };
                rests().iter().any(|rest| {
                    // A pattern for several names is not looked up.
                    rest.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?".contains(byte))
                        || tree.may_have(&from.join(rest))
                })
            }
            _ => false,
        }
    }

    /// Whether renaming a directory would move a protected file.
    fn holds_protected(&self, tree: &BulkReader, relative: &Path) -> bool {
        let rests = self.protection.protected_beneath(relative);
        rests.iter().any(|rest| tree.may_have(&relative.join(rest)))
    }

    /// Whether a file is a hard link to a file that makes git run programs.
    fn has_protected_name(&self, tree: &BulkReader, relative: &Path) -> bool {
        let Some(stamp) = tree.stamp(relative).filter(|stamp| stamp.is_shared) else {
            return false;
        };
        if tree.directory(relative).is_ok() {
            return false;
        }
        relative.ancestors().skip(1).any(|work_tree| {
            let directory = directory::of_work_tree(tree, work_tree);
            directory.is_some_and(|directory| {
                directory::identities(tree, &directory).contains(&stamp.identity)
            })
        })
    }
}

/// The rule for a file that makes programs execute code. Removing it, or a directory in its place, executes
/// nothing. Version control programs may write content of the user's commits; other programs are refused at
/// once.
fn protected_file_rule(access: &FileAccess, program: &dyn Fn() -> Option<Program>) -> Rule {
    let by_version_control =
        || program().is_some_and(|program| is_version_control_program(&program));
    let by_patch = || program().is_some_and(|program| applies_patches(&program));
    match (&access.action, &access.kind) {
        (FileAction::Remove, Some(NodeKind::Directory)) => Rule::Allowed,
        // Git then renames another file to this name, whose content is known at that time.
        (FileAction::Remove | FileAction::Create(NodeKind::File), _) if by_patch() => {
            Rule::Refused(Unwritable::Protected)
        }
        (FileAction::Remove, Some(NodeKind::File)) => Rule::AllowedIfRestorable,
        (FileAction::Create(NodeKind::Directory), _) if by_version_control() => Rule::Allowed,
        (
            FileAction::Write
            | FileAction::Create(NodeKind::File)
            | FileAction::RenameTo(NodeKind::File),
            _,
        ) if by_version_control() => Rule::NeedsReview,
        _ => Rule::Refused(Unwritable::Protected),
    }
}

/// Resolved targets of symlinks with protected names at the top of the roots.
fn protected_symlink_targets(workspace: &Workspace, protection: &Protection) -> Vec<PathBuf> {
    let top = workspace.top();
    let mut linked = Vec::new();
    for root in workspace.roots().filter(|root| root.mode() == RootMode::ReadWrite) {
        for name in protection.plain_paths() {
            let place = workspace.resolve(&top, &root.path().join(&name));
            if let Ok(place) = place
                && place.through_link()
                && place.kind().is_some()
            {
                linked.push(place.path());
            }
        }
    }
    linked
}

/// Paths below a directory. `None` if there are more than `most`.
fn paths_below(tree: &BulkReader, path: &Path, most: usize) -> Option<Vec<PathBuf>> {
    let mut pending = vec![path.strip_prefix(tree.path()).ok()?.to_owned()];
    let mut found = Vec::new();
    while let Some(relative) = pending.pop() {
        let directory = tree.directory(&relative).ok()?;
        let listed = directory.each(|name, kind| {
            let path = relative.join(name);
            found.push(tree.path().join(&path));
            if kind == EntryKind::Directory {
                pending.push(path);
            }
            found.len() <= most
        });
        listed.ok()?;
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}
