//! Branches, tags, stash entries and reflog entries that a command removed, tags that it moved, and branches that it
//! renamed or that lost commits. Undo does not restore them, so the reply names their commits and the git commands that
//! restore them.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use toolcrib_fs::BulkReader;
use toolcrib_text::{truncate_line, visible_name};

use crate::git::directory;
use crate::git::refs::{self, LogEntry, ObjectId};
use crate::phrases::{counted, first_of, it_or_them};

/// Entries of a log that are remembered, the newest.
const MAX_LOGGED: usize = 200;

/// Lines about removed references of one kind.
const MAX_LINES: usize = 3;

/// Commits named in one line.
const NAMED: usize = 5;

/// Commits of lost reflog entries that are looked up.
const MAX_LOOKED_UP: usize = 20;

/// Characters of the message of a stash entry.
const MESSAGE_CHARS: usize = 60;

/// Names of logs in a git directory.
const HEAD_LOG: &str = "logs/HEAD";
const STASH_LOG: &str = "logs/refs/stash";

/// Beginning of the log entry of a renamed branch. The old name follows.
const RENAMED: &[u8] = b"Branch: renamed ";

/// Everything in a git directory whose removal is reported.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Commits of branches and tags, by full name.
    named: BTreeMap<Vec<u8>, ObjectId>,
    /// The oldest entry first, as in `head_log`.
    stash: Vec<LogEntry>,
    head_log: Vec<LogEntry>,
}

/// A renamed branch, by names without the prefix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenamedBranch {
    pub(super) old: String,
    pub(super) new: String,
    /// The commit of the branch that had the new name.
    replaced: Option<ObjectId>,
    /// It was the current branch and still is.
    is_current: bool,
}

/// A kind of reference.
struct Kind {
    prefix: &'static str,
    noun: &'static str,
    /// The command that creates one.
    create: &'static str,
}

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";

const KINDS: [Kind; 2] = [
    Kind { prefix: BRANCHES, noun: "branch", create: "git branch" },
    Kind { prefix: TAGS, noun: "tag", create: "git tag" },
];

impl References {
    pub(super) fn of(tree: &BulkReader, directory: &Path) -> References {
        let log = |name: &str| {
            let mut entries = refs::reflog(tree, &directory.join(name));
            entries.drain(..entries.len().saturating_sub(MAX_LOGGED));
            entries
        };
        References {
            named: refs::branches_and_tags(tree, directory),
            stash: log(STASH_LOG),
            head_log: log(HEAD_LOG),
        }
    }

    /// The branches that were renamed since `before`. Only reflogs tell them from deleted ones. `heads` are the current
    /// branches before and after.
    pub(super) fn renamed_since(
        &self,
        before: &References,
        (tree, directory): (&BulkReader, &Path),
        heads: (Option<&str>, Option<&str>),
    ) -> Vec<RenamedBranch> {
        let is_removed = |name: &Vec<u8>| self.is_removed(name, tree, directory);
        let removed: HashSet<&Vec<u8>> =
            before.named.keys().filter(|name| is_removed(name)).collect();
        if removed.is_empty() {
            return Vec::new();
        }
        let made =
            self.named.iter().filter(|(name, commit)| before.named.get(*name) != Some(commit));
        let renamed = made.take(MAX_LOGGED).filter_map(|(name, _)| {
            let log = refs::reflog_of(tree, directory, name);
            let old = log.iter().filter_map(|entry| old_name(entry.message()));
            let old = old.map(<[u8]>::to_owned).find(|old| removed.contains(old))?;
            let branch = |name: &[u8]| {
                let name = name.strip_prefix(BRANCHES.as_bytes())?;
                String::from_utf8(name.to_owned()).ok()
            };
            let (old, new) = (branch(&old)?, branch(name)?);
            let is_current = heads == (Some(&old), Some(&new));
            Some(RenamedBranch { old, new, replaced: before.named.get(name).copied(), is_current })
        });
        renamed.collect()
    }

    /// The number of stash entries made since `before`.
    pub(super) fn stashed_since(&self, before: &References) -> usize {
        self.stash.iter().filter(|entry| !before.stash.contains(entry)).count()
    }

    /// Whether the branches and tags are the same as `before`.
    pub(super) fn names_same(&self, before: &References) -> bool {
        self.named == before.named
    }

    /// Whether the stash is the same as `before`.
    pub(super) fn stash_same(&self, before: &References) -> bool {
        self.stash == before.stash
    }

    /// Describes the references removed since `before`, in sentences. `head` is the current branch, `renamed` has the
    /// renamed branches, and `described` the previous commits of branches that other sentences name.
    pub(super) fn removed_since(
        &self,
        before: &References,
        (tree, directory): (&BulkReader, &Path),
        head: Option<&str>,
        renamed: &[RenamedBranch],
        described: &[ObjectId],
    ) -> Vec<String> {
        let is_stored = |commit: ObjectId| refs::has_object(tree, directory, commit);
        let mut sentences = at_most(renamed, "renamed branch", RenamedBranch::sentence);
        for Kind { prefix, noun, create } in &KINDS {
            let mut removed = self.removed_names(before, prefix, tree, directory);
            removed.retain(|(name, _)| {
                *prefix != BRANCHES || renamed.iter().all(|one| one.old.as_bytes() != *name)
            });
            sentences.extend(at_most(&removed, noun, |(name, commit)| {
                let shown = visible_name(name);
                let way_back = way_back(is_stored(*commit), is_plain(name), || {
                    format!("{create} {shown} {}", commit.short())
                });
                format!("{noun} {shown} was deleted; it was at {}{way_back}", commit.short())
            }));
        }
        sentences.extend(at_most(&self.moved_tags(before), "moved tag", |(name, commit)| {
            let shown = visible_name(name);
            let way_back = way_back(is_stored(*commit), is_plain(name), || {
                format!("git tag -f {shown} {}", commit.short())
            });
            format!("tag {shown} was moved; it was at {}{way_back}", commit.short())
        }));
        let mut rewritten = self.rewritten_branches(before, tree, directory, described);
        rewritten.retain(|(name, _)| renamed.iter().all(|one| one.new.as_bytes() != *name));
        sentences.extend(at_most(&rewritten, "moved branch", |(name, commit)| {
            let shown = visible_name(name);
            let way_back = way_back(is_stored(*commit), is_plain(name), || match head {
                // Another note may have switched to another branch, which `git reset` would move.
                Some(head) if head.as_bytes() == *name => {
                    format!("git update-ref refs/heads/{shown} {}", commit.short())
                }
                _ => format!("git branch -f {shown} {}", commit.short()),
            });
            format!("branch {shown} was moved; it was at {}{way_back}", commit.short())
        }));
        // New entries may have pushed old ones out of the remembered part, so the whole logs are read.
        let whole_log = |name: &str| refs::reflog(tree, &directory.join(name));
        if !missing(&before.stash, &self.stash).is_empty() {
            let log = whole_log(STASH_LOG);
            sentences.extend(at_most(&missing(&before.stash, &log), "stash entry", |entry| {
                let commit = entry.commit.short();
                let message = truncate_line(&visible_name(entry.message()), MESSAGE_CHARS);
                // Git stores the message with the entry, not with the commit.
                let option = if message.is_empty() || message.contains(['\'', '`', '…']) {
                    String::new()
                } else {
                    format!("-m '{message}' ")
                };
                let way_back = way_back(is_stored(entry.commit), true, || {
                    format!("git stash store {option}{commit}")
                });
                format!("stash entry \"{message}\" was removed; it was at {commit}{way_back}")
            }));
        }
        if !missing(&before.head_log, &self.head_log).is_empty() {
            let log = whole_log(HEAD_LOG);
            // A work tree has a head of its own.
            let is_main = directory::common(tree, directory) == directory;
            let name = directory.file_name().filter(|_| !is_main);
            let of = name.map_or(String::new(), |name| {
                format!(" of work tree {}", visible_name(name.as_encoded_bytes()))
            });
            let removed = missing(&before.head_log, &log);
            sentences.extend(reflog_sentence(&removed, &of, is_stored));
        }
        sentences
    }

    /// Tags that name another object than before. Unlike branches, they have no log.
    fn moved_tags<'a>(&self, before: &'a References) -> Vec<(&'a [u8], ObjectId)> {
        let is_moved = |name: &Vec<u8>, object: &ObjectId| {
            self.named.get(name).is_some_and(|now| now != object)
        };
        let tags = before.named.iter().filter(|(name, object)| is_moved(name, object));
        tags.filter_map(|(name, object)| Some((name.strip_prefix(TAGS.as_bytes())?, *object)))
            .collect()
    }

    /// Branches whose previous commit is not part of the current one, without the prefix.
    fn rewritten_branches<'a>(
        &self,
        before: &'a References,
        tree: &BulkReader,
        directory: &Path,
        described: &[ObjectId],
    ) -> Vec<(&'a [u8], ObjectId)> {
        let branches = before.named.iter().filter_map(|(name, old)| {
            Some((name.strip_prefix(BRANCHES.as_bytes())?, *old, *self.named.get(name)?))
        });
        let rewritten = branches.filter(|(_, old, new)| {
            old != new
                && !described.contains(old)
                && !refs::is_ancestor(tree, directory, *old, *new)
        });
        rewritten.take(MAX_LOGGED).map(|(name, old, _)| (name, old)).collect()
    }

    /// Removed references of a kind, without the prefix.
    fn removed_names<'a>(
        &self,
        before: &'a References,
        prefix: &str,
        tree: &BulkReader,
        directory: &Path,
    ) -> Vec<(&'a [u8], ObjectId)> {
        let of_kind = before.named.iter().filter_map(|(name, commit)| {
            Some((name, name.strip_prefix(prefix.as_bytes())?, *commit))
        });
        let removed = of_kind.filter(|(name, ..)| self.is_removed(name, tree, directory));
        removed.map(|(_, name, commit)| (name, commit)).collect()
    }

    /// Whether a reference that existed does not exist any more.
    fn is_removed(&self, name: &[u8], tree: &BulkReader, directory: &Path) -> bool {
        // The number of references is limited, so one that is not listed may exist.
        !self.named.contains_key(name) && refs::reference(tree, directory, name).is_none()
    }
}

impl RenamedBranch {
    fn sentence(&self) -> String {
        let RenamedBranch { old, new, replaced, is_current } = self;
        let shown = |name: &str| visible_name(name.as_bytes());
        let note = format!("branch {} was renamed to {}", shown(old), shown(new));
        if !is_plain(old.as_bytes()) || !is_plain(new.as_bytes()) {
            return note;
        }
        let back = if *is_current {
            format!("git branch -m {old}")
        } else {
            format!("git branch -m {new} {old}")
        };
        match replaced {
            None => format!("{note}: `{back}` renames it back"),
            Some(commit) => {
                let commit = commit.short();
                format!(
                    "{note}, which was at {commit}: `{back}`, then `git branch {new} {commit}` restore both"
                )
            }
        }
    }
}

/// Entries of `log` that `other` does not have, the oldest first.
fn missing<'a>(log: &'a [LogEntry], other: &[LogEntry]) -> Vec<&'a LogEntry> {
    let known: HashSet<&LogEntry> = other.iter().collect();
    log.iter().filter(|entry| !known.contains(entry)).collect()
}

/// The previous full name of a renamed branch, from the message of its log.
fn old_name(message: &[u8]) -> Option<&[u8]> {
    message.strip_prefix(RENAMED)?.split(|byte| *byte == b' ').next()
}

/// The sentence about lost entries of the log of a head. `of` names its work tree.
fn reflog_sentence(
    removed: &[&LogEntry],
    of: &str,
    is_stored: impl Fn(ObjectId) -> bool,
) -> Option<String> {
    let mut known = HashSet::new();
    let commits = removed.iter().rev().map(|entry| entry.commit);
    let commits: Vec<ObjectId> = commits.filter(|commit| known.insert(*commit)).collect();
    if commits.is_empty() {
        return None;
    }
    let looked_up = commits.iter().take(MAX_LOOKED_UP);
    let stored: Vec<ObjectId> = looked_up.copied().filter(|commit| is_stored(*commit)).collect();
    let commits = match stored.as_slice() {
        [] => "the repository no longer has their commits".to_owned(),
        // More were lost than are looked up.
        stored if commits.len() > MAX_LOOKED_UP => {
            let named: Vec<String> = stored.iter().take(NAMED).map(ObjectId::short).collect();
            format!("the newest of their commits: {}", named.join(", "))
        }
        stored => format!("their commits: {}", first_of(stored, NAMED, ObjectId::short)),
    };
    let lost = removed.len() as u64;
    let (entries, them) = (counted(lost, "entry"), it_or_them(lost));
    Some(format!(
        "the reflog of HEAD{of} lost {entries}; an undo does not restore {them}; {commits}"
    ))
}

/// How to restore a reference to a commit.
fn way_back(is_stored: bool, is_plain: bool, command: impl FnOnce() -> String) -> String {
    match (is_stored, is_plain) {
        (true, true) => format!(": `{}` restores it", command()),
        (true, false) => String::new(),
        (false, _) => ", which the repository no longer has".to_owned(),
    }
}

/// Whether a name needs no quotes in a shell command.
pub(super) fn is_plain(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/@+=-".contains(byte);
    !name.starts_with(b"-") && name.iter().all(is_plain)
}

/// Sentences about the last items, newest first, and the number of the others.
fn at_most<T>(removed: &[T], noun: &str, sentence: impl Fn(&T) -> String) -> Vec<String> {
    let mut sentences: Vec<String> = removed.iter().rev().take(MAX_LINES).map(sentence).collect();
    if removed.len() > MAX_LINES {
        let more = (removed.len() - MAX_LINES) as u64;
        sentences.push(format!("and {}", counted(more, &format!("more {noun}"))));
    }
    sentences
}
