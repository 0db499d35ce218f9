//! Files whose content decides whether they may be written, such as the configuration of a repository.
//!
//! A command never gets a descriptor of such a file. It writes to a file in memory instead; when the last
//! descriptor of that is closed, its content is reviewed, and a copy takes the place of the old file at
//! once. The same happens to a file that is renamed to such a name. So the content that was reviewed is
//! the content that stays, whatever the command holds open.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, RenameFlags, fchmod, fstat, memfd_create,
    openat, renameat_with, unlinkat,
};
use rustix::io::{Errno, pread, write};

use super::caller::{Credentials, reopening_path};
use super::open::answer;
use super::resolve::Found;
use super::{Answer, Call};
use crate::random::random_word;
use crate::refusal::{Refusal, Unwritable};

/// More than a configuration that people write has.
const MAX_BYTES: u64 = 1 << 20;

/// As many files are written at a time by one command.
const MAX_STAGED: usize = 256;

/// The files of a command that are being written and not reviewed yet.
#[derive(Debug)]
pub(super) struct Staging {
    /// Tells when the last descriptor of one was closed.
    closed: OwnedFd,
    by_watch: HashMap<i32, Staged>,
}

#[derive(Debug)]
struct Staged {
    /// The file in memory that the command writes.
    content: OwnedFd,
    destination: Destination,
}

#[derive(Debug)]
struct Destination {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
    credentials: Credentials,
}

/// A file that was closed: its path, and its content or why there is none.
pub(super) struct Closed {
    destination: Destination,
    content: Result<(Vec<u8>, Mode), Errno>,
}

impl Staging {
    pub(super) fn new() -> rustix::io::Result<Staging> {
        let closed = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Staging { closed, by_watch: HashMap::new() })
    }

    /// The files that were closed since this was asked last.
    pub(super) fn take_closed(&mut self) -> Vec<Closed> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.closed, &mut buffer);
        let mut closed = Vec::new();
        while let Ok(event) = reader.next() {
            if !event.events().contains(ReadFlags::CLOSE_WRITE) {
                continue;
            }
            if let Some(staged) = self.by_watch.remove(&event.wd()) {
                let _ = inotify::remove_watch(&self.closed, event.wd());
                let content = read(&staged.content);
                closed.push(Closed { destination: staged.destination, content });
            }
        }
        closed
    }
}

impl AsFd for Staging {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.closed.as_fd()
    }
}

impl Closed {
    /// Asks for a review, and puts the content in its place.
    pub(super) fn publish(
        self,
        review: impl FnOnce(&Path, &[u8]) -> Result<(), Unwritable>,
    ) -> Result<(), Refusal> {
        let Closed { destination, content } = self;
        let refused = |why| Refusal::Write(destination.path.clone(), why);
        let (content, mode) = content.map_err(|_| refused(Unwritable::Protected))?;
        review(&destination.path, &content).map_err(refused)?;
        let Destination { parent, name, credentials, .. } = &destination;
        let put = || put(parent, name, &content, mode, RenameFlags::empty());
        // A directory that is gone by now is no refusal.
        let _ = credentials.hold(put);
        Ok(())
    }
}

impl Call<'_> {
    /// Opens a file in memory in the place of one whose content is reviewed.
    pub(super) fn stage(&self, found: &Found, flags: u32, mode: u32) -> rustix::io::Result<Answer> {
        let mut staging = self.supervised.staging();
        if staging.by_watch.len() >= MAX_STAGED {
            return Err(Errno::MFILE);
        }
        let (parent, name) = found.place()?;
        let make = || memfd_create("reviewed", MemfdFlags::CLOEXEC);
        let content = self.credentials.hold(make)?;
        let mut mode = Mode::from_raw_mode(mode & 0o777);
        if let Some(target) = &found.target {
            let existing = reopening_path(target);
            let open = || openat(CWD, existing, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            let (old, old_mode) = read(&self.credentials.hold(open)?)?;
            mode = old_mode;
            if flags & libc::O_TRUNC as u32 == 0 {
                write_all(&content, &old)?;
            }
        }
        fchmod(&content, mode)?;
        let given = self.reopen(&content, flags)?;
        let watched = WatchFlags::CLOSE_WRITE | WatchFlags::ONESHOT;
        let watch = inotify::add_watch(&staging.closed, reopening_path(&content), watched)?;
        let destination = Destination {
            parent: parent.try_clone().map_err(|_| Errno::MFILE)?,
            name,
            path: found.path()?,
            credentials: self.credentials,
        };
        staging.by_watch.insert(watch, Staged { content, destination });
        Ok(answer(given, flags))
    }
}

/// Puts a reviewed copy of a file in the place that it is renamed to.
pub(super) fn rename(
    call: &Call<'_>,
    from: &Found,
    (parent, name, path): (&OwnedFd, &OsStr, &Path),
    replaces: bool,
) -> rustix::io::Result<()> {
    let source = from.target.as_ref().ok_or(Errno::NOENT)?;
    if from.kind() != Some(FileType::RegularFile) {
        return Err(Errno::ACCESS);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || openat(CWD, reopening_path(source), flags, Mode::empty());
    let (content, mode) = read(&call.credentials.hold(open)?)?;
    if let Err(why) = call.supervised.guard.review(path, &content) {
        call.supervised.tell(Refusal::Write(path.to_owned(), why));
        return Err(Errno::ACCESS);
    }
    let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    call.credentials.hold(|| put(parent, name, &content, mode, flags))
}

/// Makes a file with a content at a name, at once.
fn put(
    parent: &OwnedFd,
    name: &OsStr,
    content: &[u8],
    mode: Mode,
    flags: RenameFlags,
) -> rustix::io::Result<()> {
    let word = random_word().map_err(|_| Errno::IO)?;
    let temporary = format!(".toolcrib-{word}");
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

/// A whole file of a bounded size, and its mode.
fn read(file: &OwnedFd) -> rustix::io::Result<(Vec<u8>, Mode)> {
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
        if content.len() as u64 > MAX_BYTES {
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
