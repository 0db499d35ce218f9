//! Opens files for a command. The descriptor that it gets refers to just the file that was decided on.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fchmod, fcntl_getfl, fcntl_setfl, fstat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::caller::{prepare_mode, reopening_path};
use super::perform::access;
use super::resolve::{Found, GivenPath, LastLink, is_on_proc};
use super::{Answer, Call};
use crate::guard::{FileAction, GuardVerdict, NodeKind};

/// Devices that hold nothing and lead nowhere, by their numbers: null, zero, full, random, urandom, and the
/// makers of terminals.
const DEVICES: [(u32, u32); 6] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 2)];

/// The terminal that controls a program, which is another one for each program.
const TERMINAL: (u32, u32) = (5, 0);

/// The numbers of the terminals that programs make.
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// Whether a file that is opened with these flags may be changed, or made.
pub(crate) fn changes(flags: u32) -> bool {
    has(flags, libc::O_ACCMODE) || has(flags, libc::O_CREAT) || has(flags, libc::O_TRUNC)
}

/// Whether flags have one of these bits.
fn has(flags: u32, bits: libc::c_int) -> bool {
    flags & bits.unsigned_abs() != 0
}

impl Call<'_> {
    /// Opens a file, or makes it.
    pub(super) fn open(
        &self,
        file: &GivenPath,
        flags: u32,
        mode: u32,
    ) -> rustix::io::Result<Answer> {
        // Such a descriptor gives no access to a content, and the kernel hands none over. To open the file by it
        // is a call of its own.
        if has(flags, libc::O_PATH) {
            return Ok(Answer::Continue);
        }
        let temporary = libc::O_TMPFILE.unsigned_abs();
        let is_temporary = flags & temporary == temporary;
        let creates = has(flags, libc::O_CREAT) && !is_temporary;
        let must_be_new = creates && has(flags, libc::O_EXCL);
        let last = if creates && file.has_slash() {
            LastLink::Name
        } else if must_be_new || has(flags, libc::O_NOFOLLOW) {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        let found = self.resolver.resolve(file, last)?;
        // The kernel does not look for a directory that it would have to make as a file.
        if creates && found.slash && !found.is_dot() {
            return Err(Errno::ISDIR);
        }
        let Some(target) = &found.target else {
            return match has(flags, libc::O_CREAT) {
                true => self.create(&found, flags, mode),
                false => Err(Errno::NOENT),
            };
        };
        let kind = found.kind().ok_or(Errno::IO)?;
        if must_be_new {
            return Err(Errno::EXIST);
        }
        found.check_slash()?;
        match kind {
            FileType::Directory if is_temporary => {
                self.open_at(target, OsStr::new("."), flags, mode, &found)
            }
            FileType::Directory if has(flags, libc::O_CREAT) => Err(Errno::ISDIR),
            FileType::RegularFile => self.open_regular(&found, flags, mode),
            FileType::CharacterDevice => self.open_device(target, flags),
            FileType::Fifo => {
                // A pipe has no path.
                if let Some(path) = found.path().ok().filter(|path| path.is_absolute())
                    && changes(flags)
                {
                    self.check_writable(None, &path)?;
                }
                self.open_fifo(target, flags)
            }
            FileType::BlockDevice => Err(Errno::ACCESS),
            FileType::Symlink => Err(Errno::LOOP),
            _ => self.reopen(target, flags).map(|file| answer(file, flags)),
        }
    }

    fn create(&self, found: &Found, flags: u32, mode: u32) -> rustix::io::Result<Answer> {
        let path = found.path()?;
        let (parent, name) = found.place()?;
        let made = access(&path, found, FileAction::Create(NodeKind::File));
        let writes = flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32;
        if self.ask(std::slice::from_ref(&made))? == GuardVerdict::Review && writes {
            let mode = mode & !self.caller.umask().as_raw_mode();
            return self.stage(found, flags, mode);
        }
        let answer = self.open_at(parent, &name, flags | libc::O_NOFOLLOW as u32, mode, found)?;
        self.still_allowed(parent, &path, &made, || {
            self.credentials.hold(|| unlinkat(parent, &name, AtFlags::empty()))
        })?;
        Ok(answer)
    }

    fn open_at(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        flags: u32,
        mode: u32,
        found: &Found,
    ) -> rustix::io::Result<Answer> {
        let path = found.path()?;
        self.check_writable(None, &path)?;
        let own = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let later = prepare_mode(mode, self.caller.umask());
        let opened = self.credentials.hold(|| {
            let file = openat(parent, name, own, mode)?;
            later.map_or(Ok(()), |mode| fchmod(&file, mode))?;
            Ok(file)
        });
        Ok(answer(self.told(None, Some(path), opened)?, flags))
    }

    fn open_regular(&self, found: &Found, flags: u32, mode: u32) -> rustix::io::Result<Answer> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        if !changes(flags) {
            return self.open_to_read(found, target, flags);
        }
        // A file that the kernel makes up is on a mount that is read-only, and has no content to keep.
        let path = self.path_of_target(found)?.filter(|_| !is_on_proc(target));
        if let Some(path) = &path {
            self.check_readable(path, flags)?;
            if self.ask(&[access(path, found, FileAction::Write)])? == GuardVerdict::Review {
                return self.stage(found, flags, mode);
            }
        }
        if path.is_none() && !self.supervised.level.has_view() && is_on_proc(target) {
            return Err(Errno::ACCESS);
        }
        self.told(None, path, self.open_leased(target, flags))
    }

    /// A file that is opened to be written may be opened to be read as well.
    fn check_readable(&self, path: &std::path::Path, flags: u32) -> rustix::io::Result<()> {
        let only_writes = flags & libc::O_ACCMODE as u32 == libc::O_WRONLY as u32;
        let asks = self.supervised.sandbox.supervise_reads && !only_writes;
        if asks && !self.supervised.guard.may_read(path) { Err(Errno::ACCESS) } else { Ok(()) }
    }

    fn open_to_read(
        &self,
        found: &Found,
        target: &OwnedFd,
        flags: u32,
    ) -> rustix::io::Result<Answer> {
        // This process may look into others where the command may not.
        let is_memory = is_on_proc(target) && found.path()?.file_name() == Some(OsStr::new("mem"));
        let may_read = match self.path_of_target(found)? {
            Some(path) if !is_memory => self.supervised.guard.may_read(&path),
            Some(_) => false,
            None => true,
        };
        if !may_read {
            return Err(Errno::ACCESS);
        }
        self.open_leased(target, flags)
    }

    /// Opens a file that another program may have a lease on. That program is asked to give it up.
    fn open_leased(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<Answer> {
        match self.reopen(target, flags) {
            Err(Errno::AGAIN) if !has(flags, libc::O_NONBLOCK) => {
                let target = target.try_clone().map_err(|_| Errno::MFILE)?;
                self.later(target, move |target| match reopen_without_waiting(target, flags) {
                    Err(Errno::AGAIN) => Ok(None),
                    opened => opened.map(|file| Some(answer(file, flags))),
                })
            }
            opened => opened.map(|file| answer(file, flags)),
        }
    }

    fn open_device(&self, device: &OwnedFd, flags: u32) -> rustix::io::Result<Answer> {
        let number = fstat(device)?.st_rdev;
        let number = (rustix::fs::major(number), rustix::fs::minor(number));
        if number == TERMINAL {
            return self.open_terminal(flags);
        }
        // Without a view of its own, a command would find the terminals of other programs.
        let own_terminals = self.supervised.level.has_view();
        let is_terminal = own_terminals && TERMINALS.contains(&number.0);
        if DEVICES.contains(&number) || is_terminal {
            // A terminal never becomes the one that controls this process.
            let flags = flags | libc::O_NOCTTY.unsigned_abs();
            return self.reopen(device, flags).map(|file| answer(file, flags));
        }
        Err(Errno::ACCESS)
    }

    /// Opens the terminal that controls the caller.
    fn open_terminal(&self, flags: u32) -> rustix::io::Result<Answer> {
        let number = self.caller.terminal().ok_or(Errno::NXIO)?;
        let path = format!("dev/pts/{number}");
        let path_only = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let terminal = openat(self.resolver.root, path, path_only, Mode::empty())?;
        self.open_device(&terminal, flags)
    }

    /// Opens a file that was found. It never waits, except in a directory of a server that does not answer.
    pub(super) fn reopen(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
        self.credentials.hold(|| reopen_without_waiting(target, flags))
    }

    /// Opens a FIFO. One side waits for the other, unless it says otherwise.
    fn open_fifo(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<Answer> {
        let side = flags & libc::O_ACCMODE as u32;
        let waits = !has(flags, libc::O_NONBLOCK);
        if waits && side == libc::O_WRONLY as u32 {
            return match self.reopen(target, flags) {
                // There is no reader yet.
                Err(Errno::NXIO) => {
                    let target = target.try_clone().map_err(|_| Errno::MFILE)?;
                    self.later(target, move |target| match reopen_without_waiting(target, flags) {
                        Err(Errno::NXIO) => Ok(None),
                        opened => opened.map(|file| Some(answer(file, flags))),
                    })
                }
                opened => opened.map(|file| answer(file, flags)),
            };
        }
        let file = self.reopen(target, flags)?;
        if !waits || side != libc::O_RDONLY as u32 || has_writer(&file)? {
            return Ok(answer(file, flags));
        }
        // It is open, so that a writer finds it, and is handed over once there is one.
        self.later(file, move |file| match has_writer(file)? {
            false => Ok(None),
            true => {
                let file = file.try_clone().map_err(|_| Errno::MFILE)?;
                Ok(Some(answer(file, flags)))
            }
        })
    }
}

const NONBLOCK: u32 = libc::O_NONBLOCK as u32;

/// The flags that were taken into account when the path was resolved.
const RESOLVED: u32 = (libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW) as u32;

fn reopen(target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::from_bits_retain(flags & !RESOLVED) | OFlags::CLOEXEC;
    openat(CWD, reopening_path(target), flags, Mode::empty())
}

/// The same, where it fails instead of waiting.
fn reopen_without_waiting(target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
    let file = reopen(target, flags | NONBLOCK)?;
    if !has(flags, libc::O_NONBLOCK) {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(file)
}

/// Whether a FIFO that is open to be read has a writer, or something that one has written.
fn has_writer(fifo: &OwnedFd) -> rustix::io::Result<bool> {
    let (_reader, copy) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // It copies without taking anything out, and copies nothing only if no writer is there.
    match tee(fifo, &copy, 1, SpliceFlags::NONBLOCK) {
        Ok(copied) => Ok(copied > 0),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

pub(super) fn answer(file: OwnedFd, flags: u32) -> Answer {
    Answer::Descriptor { file, close_on_exec: has(flags, libc::O_CLOEXEC) }
}
