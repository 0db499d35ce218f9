//! Advisory locks on directories, so that changes of all processes are serialized.
//!
//! A change holds an advisory lock on the directory of each of its files, from before it reads the file for
//! the last time until the new one is in place. The lock is on the directory itself, so it needs no file of
//! ours, is the same for every process whatever its user, roots or state directory, and is released when the
//! process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{FsError, FsErrorKind};
use crate::file::ReadFile;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;

/// Longer than any change takes. A process that holds a lock for longer is not changing files.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of directories that are locked at once: each lock takes a descriptor, and the limit of
/// a process may be low.
const MAX_HELD: usize = 64;

/// The locks on some directories, held until this is dropped.
#[derive(Debug)]
pub struct Locks(LockState);

#[derive(Debug)]
enum LockState {
    /// All of them. In this order: other threads may continue only after the kernel's locks are released.
    All { _directories: Vec<OwnedFd>, _turns: Vec<Turn> },
    /// There are too many. Each is locked while a file in it is compared and replaced, so that no other
    /// change is lost; earlier changes are detected by the comparison.
    OneAtATime,
}

/// Device and inode number.
type FileId = (u64, u64);

/// Threads of this process take turns before they ask the kernel, whose locks are unfair, so that threads
/// could starve.
static TURNS: (Mutex<BTreeSet<FileId>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// This thread's turn at a directory, until it is dropped.
#[derive(Debug)]
struct Turn(FileId);

impl Turn {
    fn wait_for(number: FileId) -> Turn {
        let (taken, changed) = &TURNS;
        let mut taken = taken.lock();
        changed.wait_while(&mut taken, |taken| taken.contains(&number));
        taken.insert(number);
        Turn(number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.0.lock().remove(&self.0);
        TURNS.1.notify_all();
    }
}

impl Locks {
    /// Waits for the locks on the directories of these paths, and on files with other hard links. Each is
    /// locked once, in a global order that prevents deadlocks. If there are too many, each is locked later,
    /// in its turn. Fails if another process holds a lock for too long.
    pub fn acquire<'a>(places: impl Iterator<Item = &'a ResolvedPath>) -> Result<Self, FsError> {
        // Descriptors of duplicates are closed at once.
        let mut wanted = BTreeMap::new();
        for place in places {
            let directory = nearest_directory(place)?;
            let stat = rustix::fs::fstat(&directory)
                .map_err(|errno| FsError::from_errno(place.path(), "cannot be locked", errno))?;
            wanted.entry((stat.st_dev, stat.st_ino)).or_insert((directory, place));
            if let Ok(file) = ReadFile::open(place)
                && file.links() > 1
            {
                let number = (file.stat.st_dev, file.stat.st_ino);
                wanted.entry(number).or_insert((file.into_handle(), place));
            }
            if wanted.len() > MAX_HELD {
                return Ok(Locks(LockState::OneAtATime));
            }
        }
        hold(wanted)
    }

    /// Acquires the lock for one path, if it is not held with the others.
    pub(crate) fn lock_one(&self, place: &ResolvedPath) -> Result<Option<Locks>, FsError> {
        match self.0 {
            LockState::All { .. } => Ok(None),
            LockState::OneAtATime => Locks::acquire([place].into_iter()).map(Some),
        }
    }
}

fn hold(wanted: BTreeMap<FileId, (OwnedFd, &ResolvedPath)>) -> Result<Locks, FsError> {
    let mut turns = Vec::new();
    for (number, (directory, place)) in &wanted {
        turns.push(Turn::wait_for(*number));
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        lock_with_timeout(directory, exclusive, LOCK_TIMEOUT).map_err(|errno| match errno {
            Errno::WOULDBLOCK => {
                let detail = "is in a directory that another process has locked";
                FsError::new(FsErrorKind::Busy, place.path(), detail)
            }
            errno => FsError::from_errno(place.path(), "cannot be locked", errno),
        })?;
    }
    let directories = wanted.into_values().map(|(handle, _)| handle).collect();
    Ok(Locks(LockState::All { _directories: directories, _turns: turns }))
}

/// The directory of a path, or the nearest existing one above.
fn nearest_directory(place: &ResolvedPath) -> Result<OwnedFd, FsError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut relative = place.split().map_or(Path::new(""), |(parent, _)| parent);
    loop {
        match open_beneath::open(place.root.handle(), relative, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if relative.parent().is_some() => {
                relative = relative.parent().unwrap_or(relative);
            }
            answer => {
                return answer.map_err(|errno| {
                    FsError::from_errno(
                        place.path(),
                        "is in a directory that cannot be opened",
                        errno,
                    )
                });
            }
        }
    }
}

/// Tries to lock until the timeout passes.
pub(crate) fn lock_with_timeout(
    file: &OwnedFd,
    operation: FlockOperation,
    timeout: Duration,
) -> Result<(), Errno> {
    let until = Instant::now() + timeout;
    let mut pause = Duration::from_micros(50);
    loop {
        match rustix::io::retry_on_intr(|| rustix::fs::flock(file, operation)) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(pause),
            answer => return answer,
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}
