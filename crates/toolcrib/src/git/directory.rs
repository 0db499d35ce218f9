//! Git directories, and the files in them that make git run programs.
//!
//! A directory is recognized by its entries, as git does, not by its name: a repository may be bare, a
//! submodule, or the target of a `gitdir:` line or a symlink. This needs no search: checking the directories
//! above a path shows whether it is inside a git directory.
//!
//! Two invariants hold at all times for each git directory that commands can write. Its configuration and hooks
//! change only after a review. A directory becomes a git directory only if its configuration and hooks would
//! pass that review. So it does not matter to which directory a command points git.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, EntryKind, WholeRead};
use toolcrib_policy::git_config;
use toolcrib_policy::git_sequencer::{self, SequencerFile};

/// More than a hand-written configuration has.
const MAX_BYTES: u64 = 1 << 20;

/// More sample hooks than any template has.
const MAX_HOOKS: usize = 1_000;

/// Extension of sample hooks, which git creates and does not run.
const SAMPLE_EXTENSION: &str = "sample";

/// Name of nearly every git directory.
pub(crate) const DOT_GIT: &str = ".git";

const CONFIGURATIONS: [&str; 2] = ["config", "config.worktree"];
const HOOKS: &str = "hooks";
const OBJECTS: &str = "objects";
const REFS: &str = "refs";
const LOGS: &str = "logs";
/// Contains the git directories of submodules.
const SUBMODULES: &str = "modules";
/// Names the directory with which a worktree shares objects, references and configuration.
pub(crate) const COMMON: &str = "commondir";
/// State of a stopped rebase, and of a series of cherry-picks or reverts.
const REBASE: &str = "rebase-merge";
const SEQUENCER: &str = "sequencer";

/// The files in which git stores its next steps, by directory and name.
const SEQUENCE_FILES: [(&str, &str, SequencerFile); 3] = [
    (REBASE, "git-rebase-todo", SequencerFile::Todo),
    (REBASE, "strategy", SequencerFile::Strategy),
    (SEQUENCER, "opts", SequencerFile::Options),
];

/// A part of a git directory that determines which programs git runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A configuration file.
    Configuration,
    /// The `hooks` directory.
    Hooks,
    /// A sample hook.
    SampleHook,
    /// Another file in the `hooks` directory.
    Hook,
    /// A file with the next steps of a rebase or of a series of cherry-picks.
    Sequence(SequencerFile),
    /// The directory of such files.
    SequenceDirectory,
    /// An entry that makes a directory a git directory.
    Structure,
}

/// Entries at the top of a git directory.
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

/// Whether a path in a git directory has commits, or names them. Git replaces such a file as a whole, or never.
pub(crate) fn has_commits(path: &Path) -> bool {
    let has = |names: &[&str]| path.iter().any(|part| names.iter().any(|name| part == *name));
    // Reflogs have the names of refs. Every program that uses a git library appends to them.
    let is_named = path
        .file_name()
        .is_some_and(|last| ["HEAD", "index", "packed-refs"].iter().any(|name| last == *name));
    !has(&[LOGS]) && (is_named || has(&["objects", "refs", "reftable"]))
}

/// Whether a path in a `.git` is in the directory of reflogs: those of the stash are its only names.
pub(crate) fn is_reflog(path: &Path) -> bool {
    path.iter().skip_while(|part| *part != DOT_GIT).any(|part| part == LOGS)
}

/// The outermost git directory that contains a path. Paths are relative to the root.
pub(crate) fn containing(tree: &BulkReader, path: &Path) -> Option<PathBuf> {
    let mut directory = PathBuf::new();
    for name in path.iter() {
        let is_part = directory.file_name().is_some_and(|name| name == DOT_GIT)
            || TOP_NAMES.iter().any(|top| name == *top);
        if is_part && is_complete(tree, &directory, None) {
            return Some(directory);
        }
        directory.push(name);
    }
    None
}

/// The git directory that contains a path, and the part of it that the path is.
///
/// If there are several, the first in which the path is more than structure.
pub(crate) fn part_of(tree: &BulkReader, path: &Path) -> Option<(PathBuf, Part)> {
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

/// The part for an entry of a git directory and the components after it.
fn part(name: &OsStr, rest: &[&OsStr]) -> Option<Part> {
    let name = name.to_str()?.to_ascii_lowercase();
    match (name.as_str(), rest) {
        (name, []) if CONFIGURATIONS.contains(&name) => Some(Part::Configuration),
        (HOOKS, []) => Some(Part::Hooks),
        (HOOKS, [hook])
            if Path::new(hook).extension().is_some_and(|last| last == SAMPLE_EXTENSION) =>
        {
            Some(Part::SampleHook)
        }
        (HOOKS, _) => Some(Part::Hook),
        (REBASE | SEQUENCER, []) => Some(Part::SequenceDirectory),
        (REBASE | SEQUENCER, [file]) => {
            let is_one = |one: &&(&str, &str, SequencerFile)| {
                one.0 == name && file.eq_ignore_ascii_case(one.1)
            };
            SEQUENCE_FILES.iter().find(is_one).map(|(_, _, kind)| Part::Sequence(*kind))
        }
        (OBJECTS | REFS | COMMON, []) => Some(Part::Structure),
        _ => None,
    }
}

/// Whether git would use a directory, or is about to: a new repository first gets the usual name.
pub(crate) fn is_git_directory(tree: &BulkReader, directory: &Path) -> bool {
    let is_usual = directory.file_name().is_some_and(|name| name.eq_ignore_ascii_case(DOT_GIT));
    is_usual || is_complete(tree, directory, None)
}

/// Whether a directory has all entries that git requires, assuming that the entry `more` exists.
pub(crate) fn is_complete(tree: &BulkReader, directory: &Path, more: Option<&OsStr>) -> bool {
    let has = |name: &str| {
        more.is_some_and(|more| more.eq_ignore_ascii_case(name))
            || tree.may_have(&directory.join(name))
    };
    (has(OBJECTS) && has(REFS)) || has(COMMON)
}

/// Whether the configuration and hooks of a directory make git run no program.
pub(crate) fn is_clean(tree: &BulkReader, directory: &Path) -> bool {
    let harmless = |name: &&str| {
        let path = directory.join(name);
        !tree.may_have(&path)
            || read(tree, &path)
                .is_some_and(|new| dangerous_variables(&path, None, &new).is_empty())
    };
    let goes_on_harmlessly = |(path, kind): (PathBuf, SequencerFile)| {
        !tree.may_have(&path)
            || read(tree, &path).is_some_and(|new| git_sequencer::programs(kind, &new).is_empty())
    };
    CONFIGURATIONS.iter().all(harmless)
        && sequence_files(directory).all(goes_on_harmlessly)
        && has_only_samples(tree, &directory.join(HOOKS))
}

fn sequence_files(directory: &Path) -> impl Iterator<Item = (PathBuf, SequencerFile)> {
    let path = |above: &str, name: &str| directory.join(above).join(name);
    SEQUENCE_FILES.into_iter().map(move |(above, name, kind)| (path(above, name), kind))
}

fn has_only_samples(tree: &BulkReader, hooks: &Path) -> bool {
    if !tree.may_have(hooks) {
        return true;
    }
    // A symlink is not a directory.
    let Ok(listed) = tree.directory(hooks) else { return false };
    let (mut only, mut count) = (true, 0);
    let complete = listed.each(|name, kind| {
        count += 1;
        let is_example = Path::new(name).extension().is_some_and(|last| last == SAMPLE_EXTENSION);
        only &= is_example && kind == EntryKind::File && count < MAX_HOOKS;
        only
    });
    only && complete.is_ok()
}

/// The variables of a new configuration that can make git run programs and that the old one does not have.
pub(crate) fn dangerous_variables(path: &Path, old: Option<&[u8]>, new: &[u8]) -> Vec<String> {
    let depth = path.iter().count().saturating_sub(1);
    let mut dangers = match git_config::review(old, new, depth) {
        Ok(verdict) => verdict.dangerous,
        Err(error) => return vec![error.to_string()],
    };
    // Only submodules have it. Elsewhere it could lead out of the workspace through a symlink.
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

/// Files of a git directory whose content is reviewed.
pub(crate) fn reviewed_files(directory: &Path) -> Vec<PathBuf> {
    let sequence = sequence_files(directory).map(|(path, _)| path);
    configurations(directory).into_iter().chain(sequence).collect()
}

/// Configuration files of a git directory.
pub(crate) fn configurations(directory: &Path) -> Vec<PathBuf> {
    CONFIGURATIONS.iter().map(|name| directory.join(name)).collect()
}

/// Whether a directory may be a work tree.
pub(crate) fn may_be_work_tree(tree: &BulkReader, work_tree: &Path) -> bool {
    tree.may_have(&work_tree.join(DOT_GIT))
}

/// The git directory of a work tree, relative to the root.
pub(crate) fn of_work_tree(tree: &BulkReader, work_tree: &Path) -> Option<PathBuf> {
    let path = work_tree.join(DOT_GIT);
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

/// The git directory with the shared objects and references. It is the directory itself unless that belongs to a linked
/// work tree.
pub(crate) fn common(tree: &BulkReader, directory: &Path) -> PathBuf {
    let text = read(tree, &directory.join(COMMON)).and_then(|text| String::from_utf8(text).ok());
    let shared = text.and_then(|text| beneath_root(tree, directory, Path::new(text.trim())));
    shared.unwrap_or_else(|| directory.to_owned())
}

/// A path relative to a directory, converted to a path relative to the root. `None` if it leads out.
pub(crate) fn beneath_root(tree: &BulkReader, from: &Path, path: &Path) -> Option<PathBuf> {
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

/// Reads a small file. Symlinks are not followed.
pub(crate) fn read(tree: &BulkReader, path: &Path) -> Option<Vec<u8>> {
    read_at_most(tree, path, MAX_BYTES)
}

/// Reads a file. Symlinks are not followed. `None` if it does not exist or is larger.
pub(crate) fn read_at_most(tree: &BulkReader, path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let mut bytes = Vec::new();
    let taken = tree.directory(parent).ok()?.take(name, max_bytes, &mut bytes).ok()?;
    matches!(taken, WholeRead::Whole(_)).then_some(bytes)
}

/// Inode identities of the files that make git run programs. A hard link to one of them is equally dangerous.
pub(crate) fn identities(tree: &BulkReader, directory: &Path) -> Vec<(u64, u64)> {
    let mut paths = reviewed_files(directory);
    let hooks = directory.join(HOOKS);
    if let Ok(listed) = tree.directory(&hooks) {
        // Git cannot run hooks that cannot be listed.
        let _ = listed.each(|name, _| {
            paths.push(hooks.join(name));
            paths.len() < MAX_HOOKS
        });
    }
    paths.iter().filter_map(|path| Some(tree.stamp(path)?.identity)).collect()
}
