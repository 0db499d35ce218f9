//! Watches directories with inotify.
//!
//! The kernel queues an event within the system call that makes a change: when a write has returned, its
//! event is in the queue. So reading the queue to its end reports every earlier change, without waiting. Two
//! kinds of changes are not reported: stores through an existing memory mapping, and writes through another
//! hard link in a directory that is not watched.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::listing::Directory;

/// Reports changes in the directories that were added.
#[derive(Debug)]
pub struct Watcher {
    queue: OwnedFd,
    mounts: OwnedFd,
    /// Directories that contain a mount point, perhaps a file.
    mount_parents: Vec<PathBuf>,
}

/// One watched directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Watch(pub i32);

/// Why a directory is not watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatched {
    /// The limit on watches is reached.
    LimitReached,
    /// This directory cannot be watched.
    Refused,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent<'a> {
    /// An entry of a directory was created, removed or renamed.
    Names(Watch, &'a OsStr, IsDirectory),
    /// The content or metadata of a file in a directory was changed.
    Content(Watch, &'a OsStr),
    /// The permissions or other metadata of a directory were changed.
    Directory(Watch),
    /// The directory was moved.
    Moved(Watch),
    /// The directory was removed and is no longer watched.
    Ended(Watch),
    /// The queue overflowed, or an event affects too much: the state is unknown.
    Lost,
    /// Something was mounted or unmounted: paths may lead elsewhere.
    Mounts,
}

/// Whether the entry is a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsDirectory(pub bool);

/// Bytes of events per read.
const BUFFER_BYTES: usize = 64 << 10;

/// The limit of one drain, so that endless writes cannot keep it busy. It is more than the queue holds, so
/// more counts as lost.
const MAX_EVENTS: usize = 100_000;

const WATCH_MASK: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

impl Watcher {
    /// Creates a watcher. `None` if the system has no inotify, or does not report mounts.
    pub fn new() -> Option<Watcher> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty()).ok()?;
        // In this order: mounts from here on are reported.
        let mountinfo = std::fs::read("/proc/self/mountinfo").ok()?;
        Some(Watcher { queue, mounts, mount_parents: mount_parents(&mountinfo) })
    }

    /// The number of watches to use: half of the user's limit, since other programs need some.
    pub fn recommended_watches() -> usize {
        let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        most.ok().and_then(|most| most.trim().parse::<usize>().ok()).unwrap_or(0) / 2
    }

    /// Watches a directory. A directory that is already watched keeps its watch, whatever its path is now.
    pub fn add(&self, directory: &Directory) -> Result<Watch, Unwatched> {
        // Changes of a file that is mounted over another are reported to watchers of its original directory
        // only.
        if self.mount_parents.iter().any(|above| above == directory.path()) {
            return Err(Unwatched::Refused);
        }
        // By its descriptor: the path might lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", directory.handle().as_raw_fd());
        match inotify::add_watch(&self.queue, path, WATCH_MASK) {
            Ok(watch) => Ok(Watch(watch)),
            Err(Errno::NOSPC | Errno::NOMEM) => Err(Unwatched::LimitReached),
            Err(_) => Err(Unwatched::Refused),
        }
    }

    /// Stops watching.
    pub fn remove(&self, watch: Watch) {
        // It may have ended by itself.
        let _ = inotify::remove_watch(&self.queue, watch.0);
    }

    /// Calls `take` for every event since the last call.
    pub fn drain(&self, mut take: impl FnMut(WatchEvent<'_>)) {
        if self.mounts_changed() {
            take(WatchEvent::Mounts);
        }
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        for _ in 0..MAX_EVENTS {
            match reader.next() {
                Ok(event) => report_event(&event, &mut take),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => break,
            }
        }
        take(WatchEvent::Lost);
    }

    /// Whether anything was mounted or unmounted since the last call.
    fn mounts_changed(&self) -> bool {
        let mut fds = [PollFd::new(&self.mounts, PollFlags::PRI)];
        match poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) => false,
            Ok(_) => fds[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}

/// The parent directories of all mount points.
fn mount_parents(mountinfo: &[u8]) -> Vec<PathBuf> {
    let point = |line: &[u8]| {
        let point = line.split(|byte| *byte == b' ').nth(4)?;
        Path::new(OsStr::from_bytes(&unescaped(point))).parent().map(Path::to_owned)
    };
    mountinfo.split(|byte| *byte == b'\n').filter_map(point).collect()
}

/// Whitespace is encoded as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[3..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    bytes
}

fn report_event(event: &inotify::Event<'_>, take: &mut impl FnMut(WatchEvent<'_>)) {
    let (watch, flags) = (Watch(event.wd()), event.events());
    let is_directory = flags.contains(ReadFlags::ISDIR);
    let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
    if flags.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
        take(WatchEvent::Lost);
    } else if flags.contains(ReadFlags::IGNORED) {
        take(WatchEvent::Ended(watch));
    } else if flags.contains(ReadFlags::MOVE_SELF) {
        take(WatchEvent::Moved(watch));
    } else {
        match name {
            Some(name) if flags.intersects(names) => {
                take(WatchEvent::Names(watch, name, IsDirectory(is_directory)));
            }
            Some(name) if !is_directory => take(WatchEvent::Content(watch, name)),
            _ => take(WatchEvent::Directory(watch)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_parsed() {
        let mountinfo = b"21 28 0:19 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n\
            40 28 8:1 /hosts /srv/my\\040tree/hosts rw - ext4 /dev/sda1 rw\n";
        let above = mount_parents(mountinfo);
        assert_eq!(above, [Path::new("/"), Path::new("/srv/my tree")]);
    }
}
