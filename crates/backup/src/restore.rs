//! Makes the files and the history of a backup again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toolcrib_fs::{
    Caps, ChangeOutbox, Content, ContentHash, ContentHasher, Entry, FsError, Journal, NewTree,
    in_parallel, now_ms,
};

use crate::blobs;
use crate::contents::{self, Contents, Summary};
use crate::error::{BackupError, BackupErrorKind};
use crate::objects::{Objects, Put, THREADS};
use crate::position::Position;
use crate::segment::{self, Header, Segment};
use crate::tree::Node;

/// How often a segment of the machine that still writes may come first.
const MAX_ATTEMPTS: usize = 20;

/// Where and how to restore.
#[derive(Debug)]
pub struct Restore<'a> {
    /// The directory for the files. It must be missing or empty.
    pub directory: &'a Path,
    /// The state directory for the history.
    pub state: &'a Path,
    /// The limits of the journal there.
    pub caps: Caps,
    /// The name of this machine in the backup.
    pub machine: &'a str,
    /// The segment whose files are restored, instead of the last.
    pub segment: Option<u64>,
    /// Continue the backup here, from its last segment. The machine that has written it cannot any more.
    pub takes_over: bool,
}

/// A restored workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub summary: Summary,
    /// The directory, without symlinks.
    pub directory: PathBuf,
    /// The changes in the history.
    pub changes: u64,
    /// Contents that the backup does not have: some changes cannot be undone.
    pub missing_for_undo: u64,
}

/// Restores a backup. All contents are checked before the directory gets its name; if one is missing, nothing stays.
///
/// # Errors
///
/// Fails if the directory is not empty, or if the backup cannot be read or is damaged.
pub fn restore(objects: &Objects, restore: &Restore<'_>) -> Result<Restored, BackupError> {
    let local = |error: FsError| BackupError::local(error);
    let tree = NewTree::begin(restore.directory).map_err(local)?;
    let journal = Journal::open(restore.state, restore.caps).map_err(local)?;
    let contents = if restore.takes_over {
        take_over(objects, restore.machine)?
    } else {
        contents::read(objects, restore.segment)?
    };
    make_files(objects, &contents, &tree)?;
    let summary = Summary::of(&contents.header);
    let (number, hash) = (contents.header.number, contents.hash.clone());
    let directory = tree.complete().map_err(local)?;
    let (changes, missing_for_undo) = add_history(objects, contents, &journal, &directory)
        .map_err(|error| error.about("the files are restored, but not the history"))?;
    if restore.takes_over {
        let outbox = ChangeOutbox::of(journal, &directory, &objects.address().to_string());
        Position { number, hash, ..Position::default() }.keep(&outbox)?;
    }
    Ok(Restored { summary, directory, changes, missing_for_undo })
}

/// Adds a segment without changes. From then on, no other machine can add one.
fn take_over(objects: &Objects, machine: &str) -> Result<Contents, BackupError> {
    for _ in 0..MAX_ATTEMPTS {
        let contents = contents::read(objects, None)?;
        let number = contents.header.number + 1;
        let header = Header {
            number,
            previous: contents.hash.clone(),
            machine: machine.to_owned(),
            // It says nothing about later files.
            time_ms: contents.header.time_ms.min(now_ms()),
            ..contents.header.clone()
        };
        let (put, gone, changes) = (Vec::new(), Vec::new(), Vec::new());
        let encoded = Segment { header: header.clone(), put, gone, changes }.encode()?;
        if segment::put(objects, number, &encoded)? == Put::Stored
            || segment::get(objects, number)?.as_ref() == Some(&encoded.bytes)
        {
            return Ok(Contents { header, hash: encoded.hash, ..contents });
        }
    }
    Err(BackupError::new(
        BackupErrorKind::Foreign,
        "another machine adds to the backup faster than it can be taken over: stop it first",
    ))
}

fn make_files(objects: &Objects, contents: &Contents, tree: &NewTree) -> Result<(), BackupError> {
    let local = |error: FsError| BackupError::local(error);
    // Directories come before their entries.
    let mut files = Vec::new();
    for (path, node) in &contents.tree {
        match node {
            Node::Directory { .. } => tree.directory(path).map_err(local)?,
            Node::Link { target } => {
                let target = target.path();
                tree.symlink(path, target.as_os_str().as_encoded_bytes()).map_err(local)?;
            }
            Node::File { .. } => files.push((path, node)),
        }
    }
    in_parallel(THREADS, &files, |(path, node)| make_file(objects, tree, path, node))?;
    // The innermost first: a directory may not let its owner in.
    for (path, node) in contents.tree.iter().rev() {
        if let Node::Directory { mode } = node {
            tree.set_directory_mode(path, *mode).map_err(local)?;
        }
    }
    Ok(())
}

fn make_file(
    objects: &Objects,
    tree: &NewTree,
    path: &Path,
    node: &Node,
) -> Result<(), BackupError> {
    let Node::File { mode, size, modified, hash, .. } = node else { return Ok(()) };
    let local = |error: FsError| BackupError::local(error);
    let differs = || {
        let path = path.display();
        BackupError::damaged(format!("{path} has another content than the backup says"))
    };
    let mut file = tree.file(path).map_err(local)?;
    let (mut hasher, mut written) = (ContentHasher::default(), 0);
    // A content cannot be larger than its file.
    let max = usize::try_from(*size).unwrap_or(usize::MAX).min(blobs::MAX_BYTES);
    for blob in node.blobs()? {
        let content = blobs::get(objects, &blob, max)?;
        hasher.feed(&content);
        written += content.len() as u64;
        // A damaged or false backup must not fill the disk.
        if written > *size {
            return Err(differs());
        }
        file.write(&content).map_err(local)?;
    }
    if written != *size || hasher.finish() != *hash {
        return Err(differs());
    }
    file.finish(*mode, *modified).map_err(local)
}

/// Adds the changes to the journal, with the paths of the new directory. Returns their number, and that of missing contents.
fn add_history(
    objects: &Objects,
    contents: Contents,
    journal: &Journal,
    directory: &Path,
) -> Result<(u64, u64), BackupError> {
    let root = contents.header.root.path();
    let local = |error: FsError| BackupError::local(error);
    let inside = |path: &Path| path.strip_prefix(&root).is_ok_and(is_inside);
    let mut changes: Vec<Entry> = contents.changes;
    for change in &mut changes {
        change.retain_paths(inside);
        // Paths of other workspaces of the machine mean nothing here.
        change.about.within.retain(|path| path.path().starts_with(&root));
        change.about.only = change.about.only.take().filter(|path| path.path().starts_with(&root));
    }
    let moved = |path: &Path| match path.strip_prefix(&root) {
        Ok(rest) if rest.as_os_str().is_empty() => directory.to_owned(),
        Ok(rest) => directory.join(rest),
        Err(_) => path.to_owned(),
    };
    let changes: Vec<Entry> = changes.into_iter().map(|change| change.at_paths(moved)).collect();
    if changes.is_empty() {
        return Ok((0, 0));
    }
    let import = journal.import().map_err(local)?;
    let (mut seen, mut missing): (HashSet<ContentHash>, u64) = (HashSet::new(), 0);
    for version in changes.iter().flat_map(Entry::versions) {
        if !seen.insert(version.hash) {
            continue;
        }
        let max = usize::try_from(version.size).unwrap_or(usize::MAX).min(blobs::MAX_BYTES);
        match blobs::get(objects, &version.hash, max) {
            Ok(bytes) => import.content(&Content::from(bytes)).map_err(local)?,
            Err(error) if error.kind() == BackupErrorKind::Damaged => missing += 1,
            Err(error) => return Err(error),
        }
    }
    let count = changes.len() as u64;
    import.finish(changes).map_err(local)?;
    Ok((count, missing))
}

/// Whether a path has no `..`.
fn is_inside(path: &Path) -> bool {
    path.components().all(|name| matches!(name, std::path::Component::Normal(_)))
}
