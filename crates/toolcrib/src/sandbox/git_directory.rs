//! The directories in which git keeps a repository: what in them makes git run programs.
//!
//! A directory counts by what it has, as for git itself, and not by its name: a repository may be bare, a
//! submodule, or anywhere that a `gitdir:` line or a link leads to. No search is needed for that: whether a
//! path lies in such a directory is seen by looking at the directories above it.
//!
//! Two things hold at every moment for each such directory that commands can write. Its configuration and
//! its hooks change only after a review. And a directory becomes one only if its configuration and its hooks
//! would pass that review. So it does not matter where a command points git to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{EntryKind, TreeReader, WholeRead};
use toolcrib_policy::git_config;
use toolcrib_policy::git_sequence::{self, SequenceFile};

/// More than a configuration that people write has.
const MAX_BYTES: u64 = 1 << 20;

/// More examples of hooks than any template has.
const MAX_HOOKS: usize = 1_000;

/// Hooks that git has made as examples, and does not run.
const EXAMPLE: &str = "sample";

/// The name of nearly every git directory.
pub(super) const USUAL_NAME: &str = ".git";

const CONFIGURATIONS: [&str; 2] = ["config", "config.worktree"];
const HOOKS: &str = "hooks";
const OBJECTS: &str = "objects";
const REFS: &str = "refs";
/// The git directories of submodules are beneath it.
const SUBMODULES: &str = "modules";
/// Names the directory that a worktree shares objects, references and configuration with.
pub(crate) const COMMON: &str = "commondir";
/// Where a rebase that has stopped is kept, and a series of cherry-picks or reverts.
const REBASE: &str = "rebase-merge";
const SEQUENCER: &str = "sequencer";

/// The files in which git keeps what it does next, by directory and name.
const SEQUENCE_FILES: [(&str, &str, SequenceFile); 3] = [
    (REBASE, "git-rebase-todo", SequenceFile::Todo),
    (REBASE, "strategy", SequenceFile::Strategy),
    (SEQUENCER, "opts", SequenceFile::Options),
];

/// A part of a git directory that decides which programs git runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A configuration.
    Configuration,
    /// The directory of hooks itself.
    Hooks,
    /// An example of a hook.
    Example,
    /// Another file in the directory of hooks.
    Hook,
    /// A file that says how a rebase or a series of cherry-picks goes on.
    Sequence(SequenceFile),
    /// The directory of such files.
    SequenceDirectory,
    /// A name that makes a directory a git directory.
    Structure,
}

/// Names that git gives at the top of a git directory.
const TOP_NAMES: [&str; 20] = [
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
    "branches",
    "config",
    "config.worktree",
    "description",
    "hooks",
    "index",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
    "worktrees",
];

/// The outermost git directory that a path is a part of, given from the root.
pub(super) fn around(tree: &TreeReader, path: &Path) -> Option<PathBuf> {
    let mut directory = PathBuf::new();
    for name in path.iter() {
        let is_part = directory.file_name().is_some_and(|name| name == USUAL_NAME)
            || TOP_NAMES.iter().any(|top| name == *top);
        if is_part && is_complete(tree, &directory, None) {
            return Some(directory);
        }
        directory.push(name);
    }
    None
}

/// The part of a git directory that a path is, given from its root, and that directory.
///
/// Of several directories around it, the first in which it is more than structure counts.
pub(super) fn part_of(tree: &TreeReader, path: &Path) -> Option<(PathBuf, Part)> {
    let names: Vec<&OsStr> = path.iter().collect();
    let mut structure = None;
    let mut directory = PathBuf::new();
    for (at, name) in names.iter().enumerate() {
        if let Some(part) = part(name, &names[at + 1..]) {
            match part {
                Part::Structure => structure = Some((directory.clone(), Part::Structure)),
                part if is_git_directory(tree, &directory) => return Some((directory, part)),
                _ => {}
            }
        }
        directory.push(name);
    }
    structure
}

/// The part that a name in a git directory and the names behind it stand for.
fn part(name: &OsStr, rest: &[&OsStr]) -> Option<Part> {
    let name = name.to_str()?.to_ascii_lowercase();
    match (name.as_str(), rest) {
        (name, []) if CONFIGURATIONS.contains(&name) => Some(Part::Configuration),
        (HOOKS, []) => Some(Part::Hooks),
        (HOOKS, [hook]) if Path::new(hook).extension().is_some_and(|last| last == EXAMPLE) => {
            Some(Part::Example)
        }
        (HOOKS, _) => Some(Part::Hook),
        (REBASE | SEQUENCER, []) => Some(Part::SequenceDirectory),
        (REBASE | SEQUENCER, [file]) => {
            let is_one = |one: &&(&str, &str, SequenceFile)| {
                one.0 == name && file.eq_ignore_ascii_case(one.1)
            };
            SEQUENCE_FILES.iter().find(is_one).map(|(_, _, kind)| Part::Sequence(*kind))
        }
        (OBJECTS | REFS | COMMON, []) => Some(Part::Structure),
        _ => None,
    }
}

/// Whether git would use a directory, or is about to: new repositories begin with the usual name.
pub(super) fn is_git_directory(tree: &TreeReader, directory: &Path) -> bool {
    let is_usual = directory.file_name().is_some_and(|name| name.eq_ignore_ascii_case(USUAL_NAME));
    is_usual || is_complete(tree, directory, None)
}

/// Whether a directory has all that git asks of it, if one more name were there.
pub(crate) fn is_complete(tree: &TreeReader, directory: &Path, more: Option<&OsStr>) -> bool {
    let has = |name: &str| {
        more.is_some_and(|more| more.eq_ignore_ascii_case(name))
            || tree.may_have(&directory.join(name))
    };
    (has(OBJECTS) && has(REFS)) || has(COMMON)
}

/// Whether the configuration and the hooks of a directory make git run nothing.
pub(super) fn is_clean(tree: &TreeReader, directory: &Path) -> bool {
    let harmless = |name: &&str| {
        let path = directory.join(name);
        !tree.may_have(&path)
            || read(tree, &path).is_some_and(|new| dangers(&path, None, &new).is_empty())
    };
    let goes_on_harmlessly = |(path, kind): (PathBuf, SequenceFile)| {
        !tree.may_have(&path)
            || read(tree, &path).is_some_and(|new| git_sequence::programs(kind, &new).is_empty())
    };
    CONFIGURATIONS.iter().all(harmless)
        && sequence_files(directory).all(goes_on_harmlessly)
        && has_only_examples(tree, &directory.join(HOOKS))
}

fn sequence_files(directory: &Path) -> impl Iterator<Item = (PathBuf, SequenceFile)> {
    let path = |above: &str, name: &str| directory.join(above).join(name);
    SEQUENCE_FILES.into_iter().map(move |(above, name, kind)| (path(above, name), kind))
}

fn has_only_examples(tree: &TreeReader, hooks: &Path) -> bool {
    if !tree.may_have(hooks) {
        return true;
    }
    // A link in its place is no directory.
    let Ok(listed) = tree.directory(hooks) else { return false };
    let (mut only, mut count) = (true, 0);
    let complete = listed.each(|name, kind| {
        count += 1;
        let is_example = Path::new(name).extension().is_some_and(|last| last == EXAMPLE);
        only &= is_example && kind == EntryKind::File && count < MAX_HOOKS;
        only
    });
    only && complete.is_ok()
}

/// The variables of a new configuration that can make git run something and that the old one does not have.
pub(super) fn dangers(path: &Path, old: Option<&[u8]>, new: &[u8]) -> Vec<String> {
    let depth = path.iter().count().saturating_sub(1);
    let mut dangers = match git_config::review(old, new, depth) {
        Ok(verdict) => verdict.dangerous,
        Err(error) => return vec![error.to_string()],
    };
    // Only submodules have one. Elsewhere it could lead out of the workspace through a link.
    let is_submodule = path.iter().any(|name| name == SUBMODULES);
    let work_trees = |text: &[u8]| {
        let variables = git_config::parse(text).unwrap_or_default();
        let is_one = |one: &git_config::Variable| one.section == "core" && one.name == "worktree";
        variables.into_iter().filter(is_one).map(|one| one.value).collect::<Vec<_>>()
    };
    let old = old.map(work_trees).unwrap_or_default();
    if !is_submodule && work_trees(new).iter().any(|value| !old.contains(value)) {
        dangers.push("core.worktree".to_owned());
    }
    dangers
}

/// All files of a directory whose content is reviewed.
pub(super) fn reviewed_files(directory: &Path) -> Vec<PathBuf> {
    let sequence = sequence_files(directory).map(|(path, _)| path);
    configurations(directory).into_iter().chain(sequence).collect()
}

/// The configurations of a directory.
pub(super) fn configurations(directory: &Path) -> Vec<PathBuf> {
    CONFIGURATIONS.iter().map(|name| directory.join(name)).collect()
}

/// Whether a directory may be the work tree of a repository.
pub(super) fn may_be_work_tree(tree: &TreeReader, work_tree: &Path) -> bool {
    tree.may_have(&work_tree.join(USUAL_NAME))
}

/// The directory of the repository that a work tree belongs to, given from the root.
pub(super) fn of_work_tree(tree: &TreeReader, work_tree: &Path) -> Option<PathBuf> {
    let path = work_tree.join(USUAL_NAME);
    tree.stamp(&path)?;
    if tree.directory(&path).is_ok() {
        return Some(path);
    }
    let text = String::from_utf8(read(tree, &path)?).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let directory = beneath_root(tree, work_tree, Path::new(target))?;
    let common = read(tree, &directory.join(COMMON)).and_then(|text| String::from_utf8(text).ok());
    match common {
        Some(common) => beneath_root(tree, &directory, Path::new(common.trim())),
        None => Some(directory),
    }
}

/// A path that was given from a directory, as a path from the root; nothing, if it leads out.
pub(crate) fn beneath_root(tree: &TreeReader, from: &Path, path: &Path) -> Option<PathBuf> {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for component in tree.path().join(from).join(path).components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    plain.strip_prefix(tree.path()).ok().map(Path::to_owned)
}

/// A small file, by its path from the root. A link is none.
pub(crate) fn read(tree: &TreeReader, path: &Path) -> Option<Vec<u8>> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let mut bytes = Vec::new();
    let taken = tree.directory(parent).ok()?.take(name, MAX_BYTES, &mut bytes).ok()?;
    matches!(taken, WholeRead::Whole(_)).then_some(bytes)
}

/// The identities of the files of a repository that make git run something: another name of one of them is
/// as good as its own.
pub(super) fn identities(tree: &TreeReader, directory: &Path) -> Vec<(u64, u64)> {
    let mut paths = reviewed_files(directory);
    let hooks = directory.join(HOOKS);
    if let Ok(listed) = tree.directory(&hooks) {
        // What cannot be listed cannot be run.
        let _ = listed.each(|name, _| {
            paths.push(hooks.join(name));
            paths.len() < MAX_HOOKS
        });
    }
    paths.iter().filter_map(|path| Some(tree.stamp(path)?.identity)).collect()
}
