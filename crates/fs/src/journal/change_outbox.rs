//! The changes of one directory as the outbox of a copy elsewhere: the log after a position, and the state of the copy.
//!
//! The log is the queue. Whoever copies the changes reads them here and never holds up a change. `backups/KEY.NAME` has the state
//! of the copy, and the lock on `backups/KEY.lock` makes one process the one that copies.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

use super::entry::{Entry, Version};
use super::{Caps, Journal, log};
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::random;

const BACKUPS: &str = "backups";

/// Hex digits of a key.
const KEY_DIGITS: usize = 32;

/// The changes beneath a directory, in the order of the log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutboxChanges {
    /// The changes, each with its paths beneath the directory only.
    pub changes: Vec<Entry>,
    /// The number of the last change that was looked at, of any directory.
    pub last: u64,
}

/// The changes beneath a directory, which are copied elsewhere.
#[derive(Debug)]
pub struct ChangeOutbox {
    journal: Journal,
    root: PathBuf,
    key: String,
    /// Where the change after a number begins: the number, the inode of the log and the offset.
    place: Option<(u64, u64, u64)>,
    /// The changes beneath the directory so far. An undo without effect names no path, only one of these.
    seen: HashSet<u64>,
    lock: Option<File>,
}

impl ChangeOutbox {
    /// The outbox of the changes beneath `root`, a real path, in a state directory. `copy` names where they go. Nothing is
    /// created.
    ///
    /// # Errors
    ///
    /// Fails if another user could access the directory.
    pub fn open(directory: &Path, root: &Path, copy: &str) -> Result<ChangeOutbox, FsError> {
        Ok(ChangeOutbox::of(Journal::open(directory, Caps::default())?, root, copy))
    }

    /// Like [`ChangeOutbox::open`], in an open journal.
    pub fn of(journal: Journal, root: &Path, copy: &str) -> ChangeOutbox {
        let named = [root.as_os_str().as_bytes(), b"\n", copy.as_bytes()].concat();
        let key = ContentHash::of(&named).to_string()[..KEY_DIGITS].to_owned();
        let (root, seen) = (root.to_owned(), HashSet::new());
        ChangeOutbox { journal, root, key, place: None, seen, lock: None }
    }

    /// The state files of this name, of all copies in a state directory. Unreadable ones are left out.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn all_states(directory: &Path, name: &str, max: u64) -> Result<Vec<Vec<u8>>, FsError> {
        let journal = Journal::open(directory, Caps::default())?;
        let suffix = format!(".{name}");
        let listed = journal.directory.list(BACKUPS);
        let path = || journal.directory().join(BACKUPS);
        let listed =
            listed.map_err(|error| FsError::from_io(path(), "cannot be listed", &error))?;
        let names = listed.into_iter().filter_map(|name| name.into_string().ok());
        let wanted = names.filter(|name| name.ends_with(&suffix));
        let read = |name: String| journal.directory.read(format!("{BACKUPS}/{name}"), max);
        Ok(wanted.filter_map(|name| read(name).ok().flatten()).collect())
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes this process the one that copies. Returns whether it is; another process may be.
    ///
    /// # Errors
    ///
    /// Fails if the lock file cannot be used.
    pub fn try_lock(&mut self) -> Result<bool, FsError> {
        if self.lock.is_some() {
            return Ok(true);
        }
        self.journal.prepare(&[BACKUPS])?;
        let name = self.name("lock");
        let cannot = |error: &io::Error| self.error(&name, error);
        let opened = self.journal.directory.open_file(&name, OFlags::RDWR | OFlags::CREATE);
        let file = opened.map_err(|error| cannot(&error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.lock = Some(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(cannot(&errno.into())),
        }
        Ok(self.lock.is_some())
    }

    /// The inode and the length of the log. They differ after each change. Only looks at one file.
    pub fn log_stamp(&self) -> Option<(u64, u64)> {
        let found = self.journal.directory.stat(log::LOG).ok()?;
        Some((found.st_ino, u64::try_from(found.st_size).unwrap_or(0)))
    }

    /// The changes beneath the directory after a number, oldest first. Damaged lines are left out.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn after(&mut self, id: u64) -> Result<OutboxChanges, FsError> {
        let mut found = OutboxChanges { changes: Vec::new(), last: id };
        let path = self.journal.directory().join(log::LOG);
        let cannot = |error: io::Error| FsError::from_io(&path, "cannot be read", &error);
        let mut file = match self.journal.directory.open_file(log::LOG, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            file => file.map_err(cannot)?,
        };
        let inode = file.metadata().map_err(cannot)?.ino();
        let known = self.place.take().filter(|place| (place.0, place.1) == (id, inode));
        let mut offset = known.map_or(0, |place| place.2);
        if known.is_none() {
            self.seen.clear();
        }
        file.seek(SeekFrom::Start(offset)).map_err(cannot)?;
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        while log::next_line(&mut lines, &mut line).map_err(cannot)? {
            offset += line.len() as u64;
            let Some(mut entry) = log::parse(&line) else { continue };
            let number = entry.id;
            if self.concerns(&mut entry) && number > id {
                found.changes.push(entry);
            }
            found.last = found.last.max(number);
        }
        self.place = Some((found.last, inode, offset));
        Ok(found)
    }

    /// Whether a change belongs to the directory. Removes its other paths.
    fn concerns(&mut self, entry: &mut Entry) -> bool {
        let had_paths = entry.paths().next().is_some();
        entry.retain_paths(|path| path.starts_with(&self.root));
        let is_here = if had_paths {
            entry.paths().next().is_some()
        } else {
            entry.about.undoes.iter().any(|undone| self.seen.contains(undone))
        };
        if is_here {
            self.seen.insert(entry.id);
        }
        is_here
    }

    /// The content of a version. `None` if it is no longer stored.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn content(&self, version: &Version) -> Result<Option<Vec<u8>>, FsError> {
        self.journal.content(version)
    }

    /// A state file of the copy. `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or is larger than `max`.
    pub fn state(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, FsError> {
        let name = self.name(name);
        self.journal.directory.read(&name, max).map_err(|error| self.error(&name, &error))
    }

    /// Keeps a state file, in one step. It is on the disk then.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn keep_state(&self, name: &str, content: &[u8]) -> Result<(), FsError> {
        self.journal.prepare(&[BACKUPS])?;
        let name = self.name(name);
        let written = || {
            let directory = &self.journal.directory;
            let draft = format!("{name}-{}", random::hex::<8>()?);
            let made = directory.create_file(&draft, OFlags::empty());
            let kept = made.and_then(|mut file| {
                file.write_all(content)?;
                file.sync_data()?;
                directory.rename(&draft, &name)?;
                directory.sync_names(BACKUPS)
            });
            if kept.is_err() {
                // The draft is useless.
                let _ = directory.remove(&draft);
            }
            kept
        };
        written().map_err(|error: io::Error| self.error(&name, &error))
    }

    fn name(&self, name: &str) -> String {
        format!("{BACKUPS}/{}.{name}", self.key)
    }

    fn error(&self, name: &str, error: &io::Error) -> FsError {
        FsError::from_io(self.journal.directory().join(name), "cannot be used", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{About, Effects, FileChange};

    fn journal(top: &Path) -> Journal {
        Journal::open(top.join("state"), Caps::default()).unwrap()
    }

    fn add(journal: &Journal, paths: &[&str], undoes: &[u64]) -> u64 {
        let change = |path: &&str| FileChange::new(Path::new(path), None, None);
        let effects = Effects::on_files(paths.iter().map(change).collect());
        let about = About { undoes: undoes.to_vec(), ..About::default() };
        journal.prepare(&[]).unwrap();
        journal.append(Entry::new("t".to_owned(), about, effects)).unwrap()
    }

    #[test]
    fn changes_beneath_the_directory_are_found_once() {
        let top = tempfile::tempdir().unwrap();
        let journal = journal(top.path());
        let mut outbox = ChangeOutbox::of(journal.clone(), Path::new("/w/a"), "there");
        assert_eq!(outbox.after(0).unwrap(), OutboxChanges::default());
        assert_eq!(outbox.log_stamp(), None);
        add(&journal, &["/w/a/x"], &[]);
        add(&journal, &["/w/ab", "/elsewhere"], &[]);
        add(&journal, &["/w/a/y", "/elsewhere"], &[]);
        add(&journal, &[], &[2]);
        add(&journal, &[], &[3]);
        let found = outbox.after(0).unwrap();
        let ids =
            |found: &OutboxChanges| found.changes.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!((ids(&found), found.last), (vec![1, 3, 5], 5));
        let paths: Vec<PathBuf> = found.changes[1].paths().collect();
        assert_eq!(paths, [Path::new("/w/a/y")]);
        assert_eq!(outbox.after(5).unwrap(), OutboxChanges { changes: Vec::new(), last: 5 });
        let stamp = outbox.log_stamp();
        add(&journal, &[], &[1]);
        assert_ne!(outbox.log_stamp(), stamp);
        assert_eq!(ids(&outbox.after(5).unwrap()), [6]);
        // After a restart, and after a collection has rewritten the log.
        journal.collect().unwrap();
        let mut later = ChangeOutbox::of(journal, Path::new("/w/a"), "there");
        assert_eq!(ids(&later.after(3).unwrap()), [5, 6]);
    }

    #[test]
    fn the_state_is_kept_and_one_process_copies() {
        let top = tempfile::tempdir().unwrap();
        let journal = journal(top.path());
        let mut outbox = ChangeOutbox::of(journal.clone(), Path::new("/w"), "there");
        assert_eq!(outbox.state("position", 10).unwrap(), None);
        outbox.keep_state("position", b"one").unwrap();
        outbox.keep_state("position", b"two").unwrap();
        assert_eq!(outbox.state("position", 10).unwrap().as_deref(), Some(&b"two"[..]));
        assert!(outbox.state("position", 2).is_err());
        let other = ChangeOutbox::of(journal.clone(), Path::new("/w"), "elsewhere");
        assert_eq!(other.state("position", 10).unwrap(), None);
        let all = ChangeOutbox::all_states(&top.path().join("state"), "position", 10).unwrap();
        assert_eq!(all, [b"two"]);
        assert!(outbox.try_lock().unwrap() && outbox.try_lock().unwrap());
        let mut second = ChangeOutbox::of(journal, Path::new("/w"), "there");
        assert!(!second.try_lock().unwrap());
        drop(outbox);
        assert!(second.try_lock().unwrap());
    }
}
