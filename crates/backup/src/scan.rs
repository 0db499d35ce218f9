//! Reads the files of a workspace and stores their contents, those that are new or have changed since the last time.
//!
//! The objects of a git repository are read after everything else: they are added before the refs that name them, so the refs that were
//! read have their objects.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use toolcrib::BackupSource;
use toolcrib_fs::{
    BulkReader, ContentHash, ContentHasher, Directory, EntryKind, FsErrorKind, Stamp, WholeRead,
    in_parallel,
};
use toolcrib_search::{IgnoreLookup, VERSION_CONTROL};

use crate::blobs::{self, Known};
use crate::error::BackupError;
use crate::objects::{Objects, THREADS};
use crate::segment::LeftOut;
use crate::tree::{MAX_ENTRIES, Node};

/// The size of the parts of larger files.
const PART_BYTES: usize = 16 << 20;

/// Larger files are left out.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// How often the objects of a repository are listed again, if some are removed meanwhile because they were packed.
const MAX_PASSES: usize = 4;

/// An entry of the workspace, and the stat fingerprint of a file, which tells whether it was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) node: Node,
    pub(crate) stamp: Option<Stamp>,
}

/// The files by their paths from the root.
pub(crate) type FoundTree = BTreeMap<PathBuf, Found>;

/// The result of reading a workspace.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) tree: FoundTree,
    pub(crate) left_out: LeftOut,
    /// A file was changed so recently that its fingerprint says nothing, or while it was read.
    pub(crate) is_unsettled: bool,
}

/// Reads the workspace. All contents that the result names are in the backup then.
pub(crate) fn scan(
    source: &BackupSource,
    before: &FoundTree,
    objects: &Objects,
    known: &Known,
) -> Result<Scan, BackupError> {
    let tree = source.tree();
    if !tree.is_in_place() {
        // Its files are gone, and the backup must not forget them.
        return Err(BackupError::local("the workspace was removed or replaced"));
    }
    let mut walk = Walk {
        hidden: source.hidden(),
        ignored: IgnoreLookup::new(tree.clone()),
        tree: &tree,
        before,
        scan: Scan::default(),
        changed: Vec::new(),
        later: Vec::new(),
    };
    walk.list(vec![PathBuf::new()])?;
    walk.read(objects, known)?;
    let repositories = std::mem::take(&mut walk.later);
    for _ in 0..MAX_PASSES {
        walk.forget_below(&repositories);
        walk.list(repositories.clone())?;
        if walk.read(objects, known)? == 0 {
            break;
        }
    }
    Ok(walk.scan)
}

struct Walk<'a> {
    tree: &'a BulkReader,
    hidden: Vec<PathBuf>,
    ignored: IgnoreLookup,
    before: &'a FoundTree,
    scan: Scan,
    /// Files to read: paths, with their modes.
    changed: Vec<(PathBuf, u32)>,
    /// Directories of git objects.
    later: Vec<PathBuf>,
}

/// The result of reading a file.
enum Reading {
    Read(Found),
    /// It was removed.
    Gone,
    Unreadable,
    TooLarge,
    Special,
}

impl Walk<'_> {
    /// Lists directories and everything beneath them, except directories of git objects, which come later.
    fn list(&mut self, mut pending: Vec<PathBuf>) -> Result<(), BackupError> {
        let is_first = pending == [Path::new("")];
        while let Some(directory) = pending.pop() {
            let opened = match self.tree.directory(&directory) {
                Ok(opened) => opened,
                Err(error) if directory.as_os_str().is_empty() => {
                    return Err(BackupError::local(error));
                }
                Err(error) => {
                    // It may be gone by now.
                    self.scan.left_out.unreadable +=
                        u64::from(error.kind() != FsErrorKind::NotFound);
                    continue;
                }
            };
            let mut names: Vec<OsString> = Vec::new();
            let room = MAX_ENTRIES.saturating_sub(self.scan.tree.len() + self.changed.len());
            let listed = opened.each(|name, _| {
                names.push(name.to_owned());
                names.len() <= room
            });
            if names.len() > room {
                return Err(BackupError::local(format!(
                    "the workspace has more than {MAX_ENTRIES} files, too many for a backup"
                )));
            }
            if listed.is_err() {
                self.scan.left_out.unreadable += 1;
            }
            names.sort();
            let paths = names.iter().map(|name| (name, directory.join(name)));
            let entered =
                paths.filter_map(|(name, path)| self.entry(&opened, name, path, is_first));
            let directories: Vec<PathBuf> = entered.collect();
            // The first one is listed next. Loose git objects have names before those of packs.
            pending.extend(directories.into_iter().rev());
        }
        Ok(())
    }

    /// Adds an entry. Returns a directory that is to be listed now.
    fn entry(
        &mut self,
        directory: &Directory,
        name: &OsStr,
        path: PathBuf,
        is_first: bool,
    ) -> Option<PathBuf> {
        let status = directory.status_of(name)?;
        if self.is_hidden(&path) {
            self.scan.left_out.hidden += 1;
            return None;
        }
        match status.kind {
            EntryKind::Special => self.scan.left_out.special += 1,
            EntryKind::File => self.file(path, status.stamp, status.mode),
            EntryKind::Link => {
                let node = Node::link(&directory.link_target(name)?);
                self.scan.tree.insert(path, Found { node, stamp: None });
            }
            EntryKind::Directory
                if !is_in_repository(&path) && self.ignored.has_directory(&path) =>
            {
                self.scan.left_out.ignored_directories += 1;
            }
            EntryKind::Directory => {
                let node = Node::Directory { mode: status.mode & 0o777 };
                self.scan.tree.insert(path.clone(), Found { node, stamp: None });
                if !(is_first && is_git_objects(&path)) {
                    return Some(path);
                }
                self.later.push(path);
            }
        }
        None
    }

    fn file(&mut self, path: PathBuf, stamp: Stamp, mode: u32) {
        let same = self.before.get(&path).filter(|found| found.stamp == Some(stamp));
        match same.map(|found| found.node.clone()) {
            Some(node @ Node::File { .. }) => {
                self.scan.tree.insert(path, Found { node, stamp: Some(stamp) });
            }
            _ => self.changed.push((path, mode & 0o777)),
        }
    }

    fn is_hidden(&self, path: &Path) -> bool {
        let absolute = self.tree.path().join(path);
        self.hidden.iter().any(|hidden| absolute.starts_with(hidden))
    }

    /// Removes the entries that an earlier pass found below directories.
    fn forget_below(&mut self, directories: &[PathBuf]) {
        for directory in directories {
            let below = |path: &PathBuf| path.starts_with(directory) && path != directory;
            self.scan.tree.retain(|path, _| !below(path));
        }
    }

    /// Reads the changed files and stores their contents. Returns how many were removed in the meantime.
    fn read(&mut self, objects: &Objects, known: &Known) -> Result<usize, BackupError> {
        let changed = std::mem::take(&mut self.changed);
        let done = Mutex::new(Vec::new());
        in_parallel(THREADS, &changed, |(path, mode)| {
            let reading = read_file(self.tree, path, *mode, objects, known)?;
            done.lock().push((path.clone(), reading));
            Ok::<(), BackupError>(())
        })?;
        let mut gone = 0;
        for (path, reading) in done.into_inner() {
            match reading {
                Reading::Read(found) => {
                    self.scan.is_unsettled |= found.stamp.is_none();
                    self.scan.tree.insert(path, found);
                }
                Reading::Gone => gone += 1,
                Reading::Unreadable => self.scan.left_out.unreadable += 1,
                Reading::TooLarge => self.scan.left_out.too_large += 1,
                Reading::Special => self.scan.left_out.special += 1,
            }
        }
        self.scan.is_unsettled |= gone > 0;
        Ok(gone)
    }
}

fn read_file(
    tree: &BulkReader,
    path: &Path,
    mode: u32,
    objects: &Objects,
    known: &Known,
) -> Result<Reading, BackupError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Reading::Gone);
    };
    let Ok(directory) = tree.directory(parent) else { return Ok(Reading::Gone) };
    let mut buffer = Vec::new();
    let (stamp, size, hash, parts) = match directory.take(name, PART_BYTES as u64, &mut buffer) {
        Ok(WholeRead::Whole(stamp)) => {
            let hash = blobs::put(objects, known, &buffer)?;
            (stamp, buffer.len() as u64, hash, Vec::new())
        }
        Ok(WholeRead::TooLarge(stamp)) if stamp.size > MAX_FILE_BYTES => {
            return Ok(Reading::TooLarge);
        }
        Ok(WholeRead::TooLarge(stamp)) => {
            match read_parts(&directory, name, &mut buffer, objects, known)? {
                Some((size, hash, parts)) => (stamp, size, hash, parts),
                None => return Ok(Reading::Gone),
            }
        }
        Ok(WholeRead::NotRegular) => return Ok(Reading::Special),
        Err(FsErrorKind::NotFound) => return Ok(Reading::Gone),
        Err(_) => return Ok(Reading::Unreadable),
    };
    let after = directory.status_of(name);
    let is_same = after.is_some_and(|after| after.stamp == stamp && after.mode & 0o777 == mode);
    let stamp_to_keep = Some(stamp).filter(|stamp| is_same && stamp.is_settled());
    let parts = parts.iter().map(ContentHash::to_string).collect();
    let node = Node::File { mode, size, modified: stamp.modified, hash, parts };
    Ok(Reading::Read(Found { node, stamp: stamp_to_keep }))
}

/// Stores the parts of a large file. Returns its size, its hash and those of the parts. `None` if it was removed.
fn read_parts(
    directory: &Directory,
    name: &OsStr,
    buffer: &mut Vec<u8>,
    objects: &Objects,
    known: &Known,
) -> Result<Option<(u64, ContentHash, Vec<ContentHash>)>, BackupError> {
    let Ok(file) = directory.parts(name) else { return Ok(None) };
    let (mut hasher, mut parts, mut at) = (ContentHasher::default(), Vec::new(), 0_u64);
    while at < MAX_FILE_BYTES {
        buffer.resize(PART_BYTES, 0);
        let mut filled = 0;
        while filled < PART_BYTES {
            match file.read_at(at + filled as u64, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(_) => return Ok(None),
            }
        }
        if filled == 0 {
            break;
        }
        hasher.feed(&buffer[..filled]);
        parts.push(blobs::put(objects, known, &buffer[..filled])?);
        at += filled as u64;
    }
    Ok(Some((at, hasher.finish(), parts)))
}

fn is_version_control(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|control| name == *control)
}

/// Ignore rules do not apply to the files of a repository itself.
fn is_in_repository(path: &Path) -> bool {
    path.components().any(|name| is_version_control(name.as_os_str()))
}

fn is_git_objects(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("objects")) && is_in_repository(path)
}
