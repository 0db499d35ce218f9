//! Being told what happens in directories.
//!
//! The kernel puts a notice into the watcher's queue within the very call that makes a change: whoever has
//! returned from writing is in the queue. So to read it to its end is to know of every change made before,
//! without waiting for anything. Two kinds of change are not told: stores through a mapping that is still
//! there, and writes through another name of a file that lies in a directory which nobody watches.

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

/// Is told what happens in the directories that it was given.
#[derive(Debug)]
pub struct Watcher {
    queue: OwnedFd,
    mounts: OwnedFd,
    /// The directories that something is mounted in, a file perhaps.
    mounted_in: Vec<PathBuf>,
}

/// One watched directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Watch(pub i32);

/// Why a directory is not watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatched {
    /// The system gives no more watches.
    NoRoom,
    /// Not this directory.
    Refused,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent<'a> {
    /// Something in a directory came or went, or was renamed.
    Names(Watch, &'a OsStr, IsDirectory),
    /// What a file in a directory says, or something about it, was changed.
    Content(Watch, &'a OsStr),
    /// Who may enter or list a directory was changed, or something else about it.
    Directory(Watch),
    /// The directory was moved.
    Moved(Watch),
    /// The directory is not watched any more: it is gone.
    Ended(Watch),
    /// More happened than the queue could take, or something that reaches far: nothing is known.
    Lost,
    /// Something was mounted or unmounted: paths may lead elsewhere.
    Mounts,
}

/// Whether it is a directory that came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsDirectory(pub bool);

/// So many bytes of notices are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Who writes without end would keep us reading; more than the queue can have is as good as lost.
const MOST_NOTICES: usize = 100_000;

const WANTED: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

impl Watcher {
    /// Nothing, if the system gives none, or does not tell of mounts.
    pub fn new() -> Option<Watcher> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty()).ok()?;
        // In this order: what is mounted from here on is news.
        let told = std::fs::read("/proc/self/mountinfo").ok()?;
        Some(Watcher { queue, mounts, mounted_in: mounted_in(&told) })
    }

    /// Half of the watches that the system gives to the user: the others are for other programs.
    pub fn room() -> usize {
        let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        most.ok().and_then(|most| most.trim().parse::<usize>().ok()).unwrap_or(0) / 2
    }

    /// Watches a directory. One that is watched already keeps its watch, whatever its name is now.
    pub fn add(&self, directory: &Directory) -> Result<Watch, Unwatched> {
        // What is mounted over a file is told to those who watch where it came from.
        if self.mounted_in.iter().any(|above| above == directory.path()) {
            return Err(Unwatched::Refused);
        }
        // By its handle: a path might lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", directory.handle().as_raw_fd());
        match inotify::add_watch(&self.queue, path, WANTED) {
            Ok(watch) => Ok(Watch(watch)),
            Err(Errno::NOSPC | Errno::NOMEM) => Err(Unwatched::NoRoom),
            Err(_) => Err(Unwatched::Refused),
        }
    }

    /// Watches it no more.
    pub fn remove(&self, watch: Watch) {
        // It may have ended by itself.
        let _ = inotify::remove_watch(&self.queue, watch.0);
    }

    /// Gives everything that has happened since the last time to `take`.
    pub fn drain(&self, mut take: impl FnMut(WatchEvent<'_>)) {
        if self.mounts_changed() {
            take(WatchEvent::Mounts);
        }
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        for _ in 0..MOST_NOTICES {
            match reader.next() {
                Ok(event) => notice(&event, &mut take),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => break,
            }
        }
        take(WatchEvent::Lost);
    }

    /// Whether anything was mounted or unmounted since the last time.
    fn mounts_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.mounts, PollFlags::PRI)];
        match poll(&mut asked, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) => false,
            Ok(_) => asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}

/// The directories above the points where something is mounted.
fn mounted_in(told: &[u8]) -> Vec<PathBuf> {
    let point = |line: &[u8]| {
        let point = line.split(|byte| *byte == b' ').nth(4)?;
        Path::new(OsStr::from_bytes(&unescaped(point))).parent().map(Path::to_owned)
    };
    told.split(|byte| *byte == b'\n').filter_map(point).collect()
}

/// Blanks and the like stand there as a backslash and three digits.
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

fn notice(event: &inotify::Event<'_>, take: &mut impl FnMut(WatchEvent<'_>)) {
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
    fn where_something_is_mounted_is_understood() {
        let told = b"21 28 0:19 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n\
            40 28 8:1 /hosts /srv/my\\040tree/hosts rw - ext4 /dev/sda1 rw\n";
        let above = mounted_in(told);
        assert_eq!(above, [Path::new("/"), Path::new("/srv/my tree")]);
    }
}
