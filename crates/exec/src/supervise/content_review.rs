//! Files whose content decides whether they may be written, such as the configuration of a repository.
//!
//! A command never gets a descriptor of such a file. It writes to an unnamed file instead. When the last
//! descriptor of that is closed, its content is reviewed. If nothing can write it any more, it is linked into
//! place atomically; otherwise a copy is. A file that is renamed to such a path is copied as well. So the
//! reviewed content is the content that stays, whatever the command holds open.
//!
//! The file itself is preferred to a copy: git recorded its inode in the index before closing it, and would treat
//! a copy as a changed file.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::event::epoll;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fstat,
    linkat, memfd_create, openat, openat2, renameat_with, unlinkat,
};
use rustix::io::{Errno, pread, write};

use super::caller::{Credentials, proc_fd_path, real_path};
use super::open::descriptor_response;
use super::resolve::Resolved;
use super::{Call, Response};
use crate::guard::{Guard, RefusedContent};
use crate::job::Job;
use crate::random::random_hex;
use crate::refusal::{Refusal, Unwritable};
use crate::sandbox::has_no_writer;

/// More than a hand-written configuration has.
const MAX_REVIEWED_BYTES: u64 = 1 << 20;

/// The largest number of files that are being written at a time.
const MAX_STAGED: usize = 256;

/// The files of all commands that are being written and not reviewed yet.
#[derive(Debug)]
pub(crate) struct Staging {
    /// An epoll instance that reports the events of `closed`.
    ready: OwnedFd,
    /// The inotify instance that reports when the last descriptor of a file is closed. It is made for the first file: users
    /// have few instances, often 128, and most commands write no such file.
    closed: OnceLock<OwnedFd>,
    by_watch: Mutex<HashMap<i32, Staged>>,
}

#[derive(Debug)]
struct Staged {
    /// The file that the command writes, opened for reading.
    content: OwnedFd,
    /// Whether it can be linked to a path.
    is_nameable: bool,
    destination: Destination,
    guard: Arc<dyn Guard>,
    job: Arc<Job>,
}

#[derive(Debug)]
struct Destination {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
    credentials: Credentials,
}

impl Staging {
    pub(crate) fn new() -> io::Result<Staging> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Staging { ready, closed: OnceLock::new(), by_watch: Mutex::default() })
    }

    /// The inotify instance.
    fn closed(&self) -> rustix::io::Result<&OwnedFd> {
        if let Some(closed) = self.closed.get() {
            return Ok(closed);
        }
        let made = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let closed = self.closed.get_or_init(|| made);
        match epoll::add(&self.ready, closed, epoll::EventData::new_u64(0), epoll::EventFlags::IN) {
            // Another thread has added it.
            Ok(()) | Err(Errno::EXIST) => Ok(closed),
            Err(errno) => Err(errno),
        }
    }

    /// Whether a file is being written. Most commands write none, and each of their calls asks.
    pub(super) fn is_in_use(&self) -> bool {
        !self.by_watch.lock().is_empty()
    }

    /// Reviews the files that were closed since the last call, and puts them in place.
    pub(crate) fn publish(&self) {
        let Some(closed) = self.closed.get() else { return };
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(closed, &mut buffer);
        while let Ok(event) = reader.next() {
            if !event.events().contains(ReadFlags::CLOSE_WRITE) {
                continue;
            }
            let staged = self.by_watch.lock().remove(&event.wd());
            if let Some(staged) = staged {
                let _ = inotify::remove_watch(closed, event.wd());
                staged.publish();
            }
        }
    }
}

impl AsFd for Staging {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Staged {
    /// Asks for a review, and puts the content in place.
    fn publish(self) {
        let Destination { parent, name, path, credentials } = self.destination;
        // Its directory may have been renamed, so that other rules apply.
        let is_in_place = real_path(&parent).is_ok_and(|above| above.join(&name) == path);
        // From here on the command cannot write it: this thread opens all its files.
        let is_final = self.is_nameable
            && has_no_writer(&self.content)
            && fstat(&self.content).is_ok_and(|status| status.st_nlink == 0);
        let content = if is_in_place { read_bounded(&self.content) } else { Err(Errno::STALE) };
        let reviewed = match content {
            Ok((content, mode)) => {
                let reviewed = self.guard.review(&path, &content, false);
                reviewed.map(|()| (content, mode))
            }
            Err(_) => Err(RefusedContent { why: Unwritable::Protected, fallback: None }),
        };
        match reviewed {
            Ok((content, mode)) => {
                let put = || {
                    if is_final {
                        link_atomically(&parent, &name, &self.content)
                    } else {
                        write_atomically(&parent, &name, &content, mode, RenameFlags::empty())
                    }
                };
                // A missing directory is not a denial.
                let _ = credentials.run_as(put);
            }
            Err(RefusedContent { why, fallback: instead }) => {
                self.job.add_refusal(Refusal::Write(path, why));
                if let Some((content, mode)) = instead {
                    let mode = Mode::from_raw_mode(mode & 0o777);
                    let put =
                        || write_atomically(&parent, &name, &content, mode, RenameFlags::NOREPLACE);
                    // An existing file is the user's.
                    let _ = credentials.run_as(put);
                }
            }
        }
    }
}

impl Call<'_> {
    /// Opens an unnamed file in place of one whose content is reviewed.
    pub(super) fn stage(
        &self,
        found: &Resolved,
        flags: u32,
        mode: u32,
    ) -> rustix::io::Result<Response> {
        // inotify reports only the closing of descriptors that can write.
        let access = flags & libc::O_ACCMODE as u32;
        let truncates = flags & libc::O_TRUNC as u32 != 0;
        if let (Some(target), true) = (&found.target, access == libc::O_RDONLY as u32) {
            let file = if truncates { Err(Errno::ACCESS) } else { self.reopen(target, flags) };
            return file.map(|file| descriptor_response(file, flags));
        }
        let staging = &self.supervised.staging;
        if staging.by_watch.lock().len() >= MAX_STAGED {
            return Err(Errno::MFILE);
        }
        let (parent, name) = found.parent_and_name()?;
        let (written, is_nameable) = self.credentials.run_as(|| unnamed_file(parent))?;
        let mut mode = Mode::from_raw_mode(mode & 0o777);
        if let Some(target) = &found.target {
            let existing = proc_fd_path(target);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let open = || openat(CWD, existing, flags, Mode::empty());
            let (old, old_mode) = read_bounded(&self.credentials.run_as(open)?)?;
            mode = old_mode;
            if !truncates {
                write_all(&written, &old)?;
            }
        }
        let for_command = self.reopen(&written, flags)?;
        let content = self.reopen(&written, libc::O_RDONLY as u32)?;
        fchmod(&written, mode)?;
        // Closed before the watch begins, which would report this descriptor, too.
        drop(written);
        let watched = WatchFlags::CLOSE_WRITE | WatchFlags::ONESHOT;
        let watch = inotify::add_watch(staging.closed()?, proc_fd_path(&content), watched)?;
        let destination = Destination {
            parent: parent.try_clone().map_err(|_| Errno::MFILE)?,
            name,
            path: found.path()?,
            credentials: self.credentials,
        };
        let (guard, job) = (self.supervised.guard.clone(), self.supervised.job.clone());
        staging
            .by_watch
            .lock()
            .insert(watch, Staged { content, is_nameable, destination, guard, job });
        Ok(descriptor_response(for_command, flags))
    }
}

/// Puts a reviewed copy of a file at the target of a rename.
pub(super) fn rename_reviewed(
    call: &Call<'_>,
    from: &Resolved,
    (parent, name, path): (&OwnedFd, &OsStr, &Path),
    replaces: bool,
) -> rustix::io::Result<()> {
    let source = from.target.as_ref().ok_or(Errno::NOENT)?;
    if from.kind() != Some(FileType::RegularFile) {
        return Err(Errno::ACCESS);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || openat(CWD, proc_fd_path(source), flags, Mode::empty());
    let (content, mode) = read_bounded(&call.credentials.run_as(open)?)?;
    if let Err(refused) = call.supervised.guard.review(path, &content, false) {
        call.supervised.report(Refusal::Write(path.to_owned(), refused.why));
        return Err(Errno::ACCESS);
    }
    let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    call.credentials.run_as(|| write_atomically(parent, name, &content, mode, flags))
}

/// Replaces a file by a reviewed copy: descriptors, mappings and hard links of the old file no longer lead to
/// this path.
pub(super) fn replace_with_copy(call: &Call<'_>, path: &Path) -> rustix::io::Result<()> {
    let (parent, name) = match parent_of(call, path) {
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || openat(&parent, name, flags, Mode::empty());
    let (content, mode) = match call.credentials.run_as(open) {
        Err(Errno::NOENT) => return Ok(()),
        file => read_bounded(&file?)?,
    };
    if let Err(refused) = call.supervised.guard.review(path, &content, true) {
        call.supervised.report(Refusal::Write(path.to_owned(), refused.why));
        return Err(Errno::ACCESS);
    }
    call.credentials
        .run_as(|| write_atomically(&parent, name, &content, mode, RenameFlags::empty()))
}

/// Restores a file that the command has removed. An existing file stays.
pub(super) fn restore(call: &Call<'_>, path: &Path, content: &[u8], mode: u32) {
    let Ok((parent, name)) = parent_of(call, path) else { return };
    let (mode, flags) = (Mode::from_raw_mode(mode & 0o777), RenameFlags::NOREPLACE);
    // If it fails, the file stays removed, and the reply says so.
    let _ = call.credentials.run_as(|| write_atomically(&parent, name, content, mode, flags));
}

/// The directory of a real path in the command's view, and the name in it.
fn parent_of<'p>(call: &Call<'_>, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::ACCESS)?;
    let parent = parent.strip_prefix("/").unwrap_or(parent);
    let resolve = ResolveFlags::NO_SYMLINKS;
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || openat2(call.resolver.root, parent, directory, Mode::empty(), resolve);
    Ok((call.credentials.run_as(open)?, name))
}

/// Creates an unnamed file in a directory, and returns whether it can be linked to a path. If the file system
/// has no unnamed files, it is in memory.
fn unnamed_file(directory: &OwnedFd) -> rustix::io::Result<(OwnedFd, bool)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(directory, ".", flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((memfd_create("reviewed", MemfdFlags::CLOEXEC)?, false)),
    }
}

/// Links an unnamed file to a path, replacing an existing file atomically.
fn link_atomically(parent: &OwnedFd, name: &OsStr, file: &OwnedFd) -> rustix::io::Result<()> {
    let path = proc_fd_path(file);
    match linkat(CWD, &path, parent, name, AtFlags::SYMLINK_FOLLOW) {
        Err(Errno::EXIST) => {}
        linked => return linked,
    }
    let suffix = random_hex().map_err(|_| Errno::IO)?;
    let temporary = format!(".toolcrib-{suffix}");
    linkat(CWD, &path, parent, &temporary, AtFlags::SYMLINK_FOLLOW)?;
    renameat_with(parent, &temporary, parent, name, RenameFlags::empty()).inspect_err(|_| {
        let _ = unlinkat(parent, &temporary, AtFlags::empty());
    })
}

/// Creates a file with some content at a path, atomically.
fn write_atomically(
    parent: &OwnedFd,
    name: &OsStr,
    content: &[u8],
    mode: Mode,
    flags: RenameFlags,
) -> rustix::io::Result<()> {
    let suffix = random_hex().map_err(|_| Errno::IO)?;
    let temporary = format!(".toolcrib-{suffix}");
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(parent, &temporary, new, Mode::RUSR | Mode::WUSR)?;
    let fill = || {
        write_all(&file, content)?;
        fchmod(&file, mode)?;
        renameat_with(parent, &temporary, parent, name, flags)
    };
    fill().inspect_err(|_| {
        let _ = unlinkat(parent, &temporary, AtFlags::empty());
    })
}

/// Reads a whole file of bounded size, and its mode.
fn read_bounded(file: &OwnedFd) -> rustix::io::Result<(Vec<u8>, Mode)> {
    let status = fstat(file)?;
    let mode = Mode::from_raw_mode(status.st_mode & 0o777);
    let (mut content, mut chunk) = (Vec::new(), [0; 16 << 10]);
    loop {
        match pread(file, &mut chunk, content.len() as u64) {
            Ok(0) => return Ok((content, mode)),
            Ok(count) => content.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if content.len() as u64 > MAX_REVIEWED_BYTES {
            return Err(Errno::FBIG);
        }
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> rustix::io::Result<()> {
    while !content.is_empty() {
        match write(file, content) {
            Ok(written) => content = content.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inotify_instance_is_made_for_the_first_file() {
        let staging = Staging::new().unwrap();
        staging.publish();
        assert!(staging.closed.get().is_none());

        let (file, _) = unnamed_file(&OwnedFd::from(std::fs::File::open("/tmp").unwrap())).unwrap();
        let closed = staging.closed().unwrap();
        inotify::add_watch(closed, proc_fd_path(&file), WatchFlags::OPEN).unwrap();
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(epoll::wait(&staging, &mut events[..], Some(&now)), Ok(0));
        std::fs::File::open(proc_fd_path(&file)).unwrap();
        assert_eq!(epoll::wait(&staging, &mut events[..], Some(&now)), Ok(1));
        staging.publish();
        assert_eq!(epoll::wait(&staging, &mut events[..], Some(&now)), Ok(0));
    }
}
