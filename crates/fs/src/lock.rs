//! One at a time, also among processes that know nothing of each other's state.
//!
//! A change holds an advisory lock on the directory of each file it changes, from before it looks at
//! the file for the last time until the new one is in place. The lock is the directory itself, so it
//! needs no file of ours, is the same for every process whatever its user, roots or state directory,
//! and goes with the process that held it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{FsError, FsErrorKind};
use crate::file::ReadFile;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;

/// Longer than any change takes. Whoever holds a lock for longer is not changing files.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many directories are locked at once at most: each lock takes a handle, and a process may have few.
const MAX_HELD: usize = 64;

/// The locks on some directories, held until they are dropped.
#[derive(Debug)]
pub struct Locks(Held);

#[derive(Debug)]
enum Held {
    /// All of them. In this order: others of this process may go on when the kernel's locks are free.
    All { _directories: Vec<OwnedFd>, _turns: Vec<Turn> },
    /// There are too many. Each is locked while a file in it is compared and replaced, so that no other
    /// change is lost; what has changed until then is noticed.
    EachInTurn,
}

/// Device and inode number.
type Number = (u64, u64);

/// Threads of this process take turns before they ask the kernel, which lets whoever asks at the right
/// moment go first and others starve.
static TURNS: (Mutex<BTreeSet<Number>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// This thread's turn at a directory, until it is dropped.
#[derive(Debug)]
struct Turn(Number);

impl Turn {
    fn wait_for(number: Number) -> Turn {
        let (taken, changed) = &TURNS;
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = changed
            .wait_while(taken, |taken| taken.contains(&number))
            .unwrap_or_else(PoisonError::into_inner);
        taken.insert(number);
        Turn(number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        TURNS.1.notify_all();
    }
}

impl Locks {
    /// Waits for the locks on the directories that these places are in, and on files that have other names
    /// elsewhere, each once and all in one order, so that two who want the same ones do not wait for each
    /// other. If there are too many, each is waited for in its turn.
    pub fn acquire<'a>(places: impl Iterator<Item = &'a ResolvedPath>) -> Result<Self, FsError> {
        // Handles of what is there already are closed at once.
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
                return Ok(Locks(Held::EachInTurn));
            }
        }
        hold(wanted)
    }

    /// The lock for one of the places, if it is not held with the others.
    pub(crate) fn in_turn(&self, place: &ResolvedPath) -> Result<Option<Locks>, FsError> {
        match self.0 {
            Held::All { .. } => Ok(None),
            Held::EachInTurn => Locks::acquire([place].into_iter()).map(Some),
        }
    }
}

fn hold(wanted: BTreeMap<Number, (OwnedFd, &ResolvedPath)>) -> Result<Locks, FsError> {
    let mut turns = Vec::new();
    for (number, (directory, place)) in &wanted {
        turns.push(Turn::wait_for(*number));
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        lock_within(directory, exclusive, PATIENCE).map_err(|errno| match errno {
            Errno::WOULDBLOCK => {
                let detail = "is in a directory that another process has locked and keeps";
                FsError::new(FsErrorKind::Busy, place.path(), detail)
            }
            errno => FsError::from_errno(place.path(), "cannot be locked", errno),
        })?;
    }
    let directories = wanted.into_values().map(|(handle, _)| handle).collect();
    Ok(Locks(Held::All { _directories: directories, _turns: turns }))
}

/// The directory that a place is in, or the nearest one above that exists.
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

/// Tries for a lock for so long.
pub(crate) fn lock_within(
    file: &OwnedFd,
    operation: FlockOperation,
    patience: Duration,
) -> Result<(), Errno> {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(50);
    loop {
        match rustix::io::retry_on_intr(|| rustix::fs::flock(file, operation)) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(pause),
            answer => return answer,
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}
