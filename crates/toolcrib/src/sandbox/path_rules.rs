//! Rules for files that commands and file tools may not change: files that make programs execute code, files
//! that rules deny, and files of the host. They are applied by path at the moment of the change, without a
//! search.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcrib_exec::{FileAccess, FileAction, NodeKind, Program, Unwritable};
use toolcrib_fs::{EntryKind, ResolvedPath, RootMode, TreeReader, Workspace};
use toolcrib_policy::git_sequence::{self, SequenceFile};
use toolcrib_policy::{Effect, Policy, Protection};

use super::git_directory::{self, Part};
use super::known_content::{KnownContent, RepositoryLocations};
use super::named_paths::named_paths;
use super::other_version_control::{MERCURIAL, in_other_version_control, mercurial_dangers};
use super::version_control_programs::{applies_patches, is_version_control_program};
use crate::hidden_paths::Hidden;

/// Patterns that protect whole version control directories from file tools. Commands may change them, except
/// for the parts that make programs execute code.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Mode of a restored file whose own mode is not known.
const USUAL_MODE: u32 = 0o644;

/// Limit of entries checked below a renamed directory, if rules deny files by path.
const MAX_RENAMED: usize = 50_000;

/// Rule for one access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Allowed,
    /// Allowed after these files were reviewed and replaced by copies.
    AllowedAfterReview(Vec<PathBuf>),
    Refused(Unwritable),
    /// Depends on the content.
    NeedsReview,
    /// Allowed if the file can be restored.
    AllowedIfRestorable,
}

/// Why a content is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Danger {
    /// These configuration variables can make programs execute code.
    Variables(Vec<String>),
    /// The file makes programs execute code, and the content is not the user's own.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct PathRules {
    workspace: Workspace,
    /// Caches that commands may write, for the rules about git directories.
    caches: Option<Workspace>,
    policy: Arc<Policy>,
    protection: Protection,
    /// Files of the host and of other servers, and the user's secrets.
    hidden: Arc<Hidden>,
    /// Resolved targets of symlinks with protected names in the roots.
    symlink_targets: Vec<PathBuf>,
    /// The user's own content of protected files.
    known: KnownContent,
    /// Paths in the configurations of repositories, by work tree.
    configured_paths: Mutex<HashMap<PathBuf, Arc<Vec<PathBuf>>>>,
    /// The roots and their parent directories, which may be work trees.
    around_roots: Vec<PathBuf>,
    /// Programs that stopped rebases already contained, by git directory.
    programs: Mutex<HashMap<PathBuf, HashSet<String>>>,
}

impl PathRules {
    pub(crate) fn new(
        workspace: Workspace,
        caches: Option<Workspace>,
        policy: Arc<Policy>,
        protection: Protection,
        hidden: Arc<Hidden>,
    ) -> PathRules {
        let linked = protected_symlink_targets(&workspace, &protection);
        let around: BTreeSet<PathBuf> = workspace
            .roots()
            .flat_map(|root| root.path().ancestors().map(Path::to_owned).collect::<Vec<_>>())
            .collect();
        PathRules {
            workspace,
            caches,
            policy,
            protection,
            hidden,
            symlink_targets: linked,
            known: KnownContent::default(),
            configured_paths: Mutex::default(),
            around_roots: around.into_iter().collect(),
            programs: Mutex::default(),
        }
    }

    /// Called before a command starts in a directory. The commits that exist now are the user's, unless
    /// commands of this runtime made them.
    pub(super) fn before_command(&self, directory: &Path) {
        // The user may have changed configurations since the last command.
        self.forget_configured_paths();
        let Some((tree, relative)) = self.workspace.tree_of(directory) else { return };
        self.known.record_around(&tree, &relative);
    }

    /// Whether a path is inside a root.
    pub(super) fn is_in_workspace(&self, path: &Path) -> bool {
        self.workspace.tree_of(path).is_some()
    }

    /// Whether rules deny reading files that commands could otherwise read.
    pub(crate) fn deny_reading(&self) -> bool {
        self.policy.denies_files(Effect::Read)
    }

    pub(super) fn may_read(&self, path: &Path) -> bool {
        self.hidden.reason(path).is_none() && !self.policy.denies_file(Effect::Read, path)
    }

    /// Whether file tools must not write a path although its name matches no pattern: it is a part of a git
    /// directory, or another name of a protected file.
    pub(crate) fn refuses_writing(&self, place: &ResolvedPath) -> bool {
        let (tree, relative, path) = (TreeReader::around(place), place.relative(), place.path());
        if self.protection.allows(relative) {
            return false;
        }
        let is_linked = self.symlink_targets.iter().any(|linked| path.starts_with(linked));
        let part = git_directory::part_of(&tree, relative);
        // Missing parent directories would be created, too.
        let makes_structure = relative.ancestors().any(|made| {
            !made.as_os_str().is_empty()
                && !tree.may_have(made)
                && matches!(git_directory::part_of(&tree, made), Some((directory, Part::Structure))
                    if self.rule_for_new_git_directory(&tree, &directory, made) != Rule::Allowed)
        });
        is_linked
            || makes_structure
            || part.is_some_and(|(_, part)| part != Part::Structure)
            || self.is_configured_path(&tree, relative, false)
            || self.has_protected_name(&tree, relative)
    }

    /// The rule for one access of a system call. `program` returns the calling program.
    pub(super) fn rule(
        &self,
        access: &FileAccess,
        all: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> Rule {
        let path = &access.path;
        let moves = matches!(access.action, FileAction::RenameFrom | FileAction::Remove);
        if self.hidden.reason(path).is_some() {
            return Rule::Refused(Unwritable::Hidden);
        }
        let caches = self.caches.iter().flat_map(|caches| caches.roots());
        let roots = self.workspace.roots().chain(caches).map(|root| root.path());
        let holds = |held: &Path| moves && held.starts_with(path);
        let is_directory = access.kind == Some(NodeKind::Directory);
        let holds_hidden = || is_directory && self.hidden.all().iter().any(|hidden| holds(hidden));
        let held = self.symlink_targets.iter().map(PathBuf::as_path).chain(roots);
        if moves && (held.into_iter().any(holds) || holds_hidden()) {
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
            return Rule::Refused(Unwritable::Protected);
        }
        if self.protection.allows(&relative) {
            return Rule::Allowed;
        }
        let pattern = self.protection.find(&relative);
        let is_linked = self.symlink_targets.iter().any(|linked| path.starts_with(linked));
        if is_linked {
            return Rule::Refused(Unwritable::Protected);
        }
        if pattern.is_some_and(|pattern| !VERSION_CONTROL.contains(&pattern)) {
            return protected_file_rule(access, program);
        }
        if self.leads_to_protected(&relative, access, all) {
            return Rule::Refused(Unwritable::Protected);
        }
        if access.action == FileAction::RenameFrom && self.holds_protected(&tree, &relative) {
            return Rule::Refused(Unwritable::ParentOfProtected);
        }
        if pattern.is_some()
            && let Some(rule) = in_other_version_control(&relative, access)
        {
            return rule;
        }
        if self.is_removed_by_accident(&tree, &relative, access, program) {
            return Rule::Refused(Unwritable::Repository);
        }
        if access.action == FileAction::Remove
            && is_directory
            && !git_directory::is_complete(&tree, &relative, None)
        {
            self.known.forget(&tree, &relative);
        }
        let replaces = matches!(
            access.action,
            FileAction::RenameFrom
                | FileAction::RenameTo(_)
                | FileAction::Create(NodeKind::Symlink)
        );
        if access.action != FileAction::Remove {
            if self.has_protected_name(&tree, &relative) {
                return Rule::Refused(Unwritable::Protected);
            }
            if self.is_configured_path(&tree, &relative, replaces) {
                return protected_file_rule(access, program);
            }
        }
        self.in_git_directory(&tree, &relative, access)
    }

    /// Why the new content of a reviewed file is rejected. `None` if it is accepted.
    pub(super) fn danger(&self, path: &Path, new: &[u8], is_new: bool) -> Option<Danger> {
        let place = self.workspace.tree_of(path);
        let (tree, relative) = place.or_else(|| self.caches.as_ref()?.tree_of(path))?;
        // Other protected files are not git configurations, whatever is beside them.
        let pattern = self.protection.find(&relative);
        let is_other = pattern.is_some_and(|pattern| !VERSION_CONTROL.contains(&pattern));
        let part = git_directory::part_of(&tree, &relative);
        let is_configuration = matches!(part, Some((_, Part::Configuration | Part::Sequence(_))))
            || relative.file_name().is_some_and(|name| name == MERCURIAL);
        // The directory is about to become a git directory with this configuration.
        if is_new || (is_configuration && !is_other) {
            return self.danger_in(&tree, &relative, new, is_new);
        }
        if !self.known.allows(self.repository_locations(), &tree, &relative, new) {
            return Some(Danger::Unknown);
        }
        if let Some(old) = git_directory::read(&tree, &relative) {
            self.known.remember_removed(path, &old, USUAL_MODE);
        }
        self.known.accept(path, new);
        None
    }

    /// Whether a protected file may be removed. `mode` is its mode if the file is captured, so that Undo can
    /// restore it. Otherwise a commit of the user must contain it.
    pub(super) fn may_be_removed(&self, path: &Path, mode: Option<u32>) -> bool {
        let Some((tree, relative)) = self.workspace.tree_of(path) else { return false };
        let content = git_directory::read(&tree, &relative);
        let is_known = |content: &Vec<u8>| {
            self.known.accepts_anywhere(content)
                || self.known.allows(self.repository_locations(), &tree, &relative, content)
        };
        let may = mode.is_some() && self.protection.may_be_removed(&relative)
            || content.as_ref().is_some_and(is_known);
        if let Some(content) = content.filter(|_| may) {
            self.known.remember_removed(path, &content, mode.unwrap_or(USUAL_MODE));
        }
        may
    }

    /// Content and mode of a protected file that a command has removed.
    pub(super) fn removed(&self, path: &Path) -> Option<(Vec<u8>, u32)> {
        self.known.removed(path)
    }

    fn repository_locations(&self) -> RepositoryLocations<'_> {
        RepositoryLocations {
            workspace: &self.workspace,
            caches: self.caches.as_ref(),
            hidden: &self.hidden,
        }
    }

    /// Like [`PathRules::danger`] for a configuration, by its path relative to the root of a tree.
    pub(super) fn danger_in(
        &self,
        tree: &TreeReader,
        relative: &Path,
        new: &[u8],
        is_new: bool,
    ) -> Option<Danger> {
        self.forget_configured_paths();
        let found = if relative.file_name().is_some_and(|name| name == MERCURIAL) {
            mercurial_dangers(new)
        } else {
            let old = git_directory::read(tree, relative).filter(|_| !is_new);
            match git_directory::part_of(tree, relative) {
                Some((directory, Part::Sequence(kind))) => {
                    let known = self.known_programs(tree.path().join(directory), kind, old);
                    let programs = git_sequence::programs(kind, new);
                    programs.into_iter().filter(|program| !known.contains(program)).collect()
                }
                _ => git_directory::dangerous_variables(relative, old.as_deref(), new),
            }
        };
        (!found.is_empty()).then_some(Danger::Variables(found))
    }

    /// The programs that a stopped rebase has contained so far. Git removes a step from the list before it runs
    /// it, and restores the step if it fails.
    fn known_programs(
        &self,
        directory: PathBuf,
        kind: SequenceFile,
        old: Option<Vec<u8>>,
    ) -> HashSet<String> {
        let mut all = lock(&self.programs);
        let known = all.entry(directory).or_default();
        known.extend(git_sequence::programs(kind, &old.unwrap_or_default()));
        known.clone()
    }

    /// The rule for a part of a git directory.
    pub(super) fn in_git_directory(
        &self,
        tree: &TreeReader,
        relative: &Path,
        access: &FileAccess,
    ) -> Rule {
        let Some((directory, part)) = git_directory::part_of(tree, relative) else {
            return Rule::Allowed;
        };
        if self.protection.allows(relative) {
            return Rule::Allowed;
        }
        let moves = matches!(access.action, FileAction::Remove | FileAction::RenameFrom);
        if part == Part::Structure && moves {
            // Git itself never does this to a repository in use.
            let in_use = relative.file_name().is_some_and(|name| name != "commondir")
                && git_directory::is_complete(tree, &directory, None)
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
    fn rule_for_new_git_directory(&self, tree: &TreeReader, directory: &Path, made: &Path) -> Rule {
        let before = git_directory::is_complete(tree, directory, None);
        if before || !git_directory::is_complete(tree, directory, made.file_name()) {
            return Rule::Allowed;
        }
        if !git_directory::is_clean(tree, directory) {
            return Rule::Refused(Unwritable::Protected);
        }
        self.known.mark_created(tree, directory);
        let reviewed = git_directory::reviewed_files(&tree.path().join(directory));
        // A command may still have the files open, or have hard links to them.
        Rule::AllowedAfterReview(reviewed)
    }

    /// Whether a program other than version control removes a repository that no command created, as `rm -rf *`
    /// does. This prevents accidents; it is not a security boundary, since a removed file runs nothing.
    fn is_removed_by_accident(
        &self,
        tree: &TreeReader,
        relative: &Path,
        access: &FileAccess,
        program: &dyn Fn() -> Option<Program>,
    ) -> bool {
        if !matches!(access.action, FileAction::Remove | FileAction::RenameFrom) {
            return false;
        }
        let is_version_control = |path: &&Path| {
            path.file_name().is_some_and(|name| VERSION_CONTROL.iter().any(|known| name == *known))
        };
        let named = relative.ancestors().find(is_version_control).map(Path::to_owned);
        let Some(repository) = named.or_else(|| git_directory::containing(tree, relative)) else {
            return false;
        };
        let is_part = access.action == FileAction::Remove || repository == relative;
        let is_temporary = relative.extension().is_some_and(|last| last == "lock");
        if !is_part || is_temporary || self.known.was_created_by_command(tree, &repository) {
            return false;
        }
        // A file that points to a repository, and a directory that never became one, are no loss.
        let is_git = repository.file_name().is_some_and(|name| name == ".git");
        if is_git && !git_directory::is_complete(tree, &repository, None) {
            return false;
        }
        // `git clean` removes nested repositories, which are untracked files to it, and nothing of its own.
        program().is_none_or(|program| {
            !is_version_control_program(&program)
                || program.arguments.iter().any(|one| one == "clean")
        })
    }

    /// Whether a rule denies the change, or the change of a file below a renamed directory.
    fn is_denied(&self, tree: &TreeReader, access: &FileAccess, all: &[FileAccess]) -> bool {
        let denies = |effect, path: &Path| self.policy.denies_file(effect, path);
        let (reading, editing) =
            (self.policy.denies_files(Effect::Read), self.policy.denies_files(Effect::Write));
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
    fn holds_protected(&self, tree: &TreeReader, relative: &Path) -> bool {
        let rests = self.protection.protected_beneath(relative);
        rests.iter().any(|rest| tree.may_have(&relative.join(rest)))
    }

    /// Whether a repository's configuration makes git run or read the path. If the access `replaces` the path,
    /// its ancestors count, too. An unreadable configuration counts as a match.
    fn is_configured_path(&self, tree: &TreeReader, relative: &Path, replaces: bool) -> bool {
        let path = tree.path().join(relative);
        let is_one =
            |named: &PathBuf| path.starts_with(named) || (replaces && named.starts_with(&path));
        let mut in_tree = relative.ancestors().skip(1).map(|work_tree| {
            let is_work_tree = || git_directory::may_be_work_tree(tree, work_tree);
            self.configured_paths_of(&tree.path().join(work_tree), is_work_tree)
        });
        // No command can make these unreadable.
        let mut around =
            self.around_roots.iter().filter_map(|path| self.configured_paths_of(path, || true));
        in_tree.any(|named| named.is_none_or(|named| named.iter().any(is_one)))
            || around.any(|named| named.iter().any(is_one))
    }

    fn configured_paths_of(
        &self,
        work_tree: &Path,
        is_work_tree: impl FnOnce() -> bool,
    ) -> Option<Arc<Vec<PathBuf>>> {
        if let Some(known) = lock(&self.configured_paths).get(work_tree) {
            return Some(known.clone());
        }
        let named =
            if is_work_tree() { named_paths(work_tree, self.policy.home())? } else { Vec::new() };
        let named = Arc::new(named);
        lock(&self.configured_paths).insert(work_tree.to_owned(), named.clone());
        Some(named)
    }

    /// Makes the configurations be read again: a command has started, or a configuration has changed.
    pub(super) fn forget_configured_paths(&self) {
        lock(&self.configured_paths).clear();
    }

    /// Whether a file is a hard link to a file that makes git run programs.
    fn has_protected_name(&self, tree: &TreeReader, relative: &Path) -> bool {
        let Some(stamp) = tree.stamp(relative).filter(|stamp| stamp.is_shared) else {
            return false;
        };
        if tree.directory(relative).is_ok() {
            return false;
        }
        relative.ancestors().skip(1).any(|work_tree| {
            let directory = git_directory::of_work_tree(tree, work_tree);
            directory.is_some_and(|directory| {
                git_directory::identities(tree, &directory).contains(&stamp.identity)
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
fn paths_below(tree: &TreeReader, path: &Path, most: usize) -> Option<Vec<PathBuf>> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
