//! Opens files for a command. The command gets a descriptor of exactly the file that was decided on.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fchmod, fcntl_getfl, fcntl_setfl, fstat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::caller::{apply_umask, proc_fd_path};
use super::perform::access;
use super::resolve::{FinalSymlink, GivenPath, Resolved, is_on_proc};
use super::{Call, Response};
use crate::guard::{FileAction, GuardVerdict, NodeKind};

/// Devices without content: null, zero, full, random, urandom, ptmx.
const SAFE_DEVICES: [(u32, u32); 6] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 2)];

/// `/dev/tty`, the controlling terminal, which differs between programs.
const TTY_DEVICE: (u32, u32) = (5, 0);

/// The major device numbers of pseudo-terminals.
const PTS_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;

/// Whether these flags allow to change or create a file.
pub(crate) fn opens_for_change(flags: u32) -> bool {
    has_bits(flags, libc::O_ACCMODE)
        || has_bits(flags, libc::O_CREAT)
        || has_bits(flags, libc::O_TRUNC)
}

/// Whether flags contain one of these bits.
fn has_bits(flags: u32, bits: libc::c_int) -> bool {
    flags & bits.unsigned_abs() != 0
}

impl Call<'_> {
    /// Opens or creates a file.
    pub(super) fn open(
        &self,
        file: &GivenPath,
        flags: u32,
        mode: u32,
    ) -> rustix::io::Result<Response> {
        // An `O_PATH` descriptor gives no access to content, and the kernel cannot pass one on. Opening the
        // file through it is another call.
        if has_bits(flags, libc::O_PATH) {
            return Ok(Response::Continue);
        }
        let temporary = libc::O_TMPFILE.unsigned_abs();
        let is_temporary = flags & temporary == temporary;
        let creates = has_bits(flags, libc::O_CREAT) && !is_temporary;
        let must_be_new = creates && has_bits(flags, libc::O_EXCL);
        let last = if creates && file.has_trailing_slash() {
            FinalSymlink::Name
        } else if must_be_new || has_bits(flags, libc::O_NOFOLLOW) {
            FinalSymlink::Keep
        } else {
            FinalSymlink::Follow
        };
        let found = self.resolver.resolve(file, last)?;
        // The kernel does not create a file at a path that ends with a slash.
        if creates && found.trailing_slash && !found.is_dot() {
            return Err(Errno::ISDIR);
        }
        let Some(target) = &found.target else {
            return if has_bits(flags, libc::O_CREAT) {
                self.create(&found, flags, mode)
            } else {
                Err(Errno::NOENT)
            };
        };
        let kind = found.kind().ok_or(Errno::IO)?;
        if must_be_new {
            return Err(Errno::EXIST);
        }
        found.check_slash()?;
        match kind {
            FileType::Directory if is_temporary => {
                self.open_at(target, OsStr::new("."), flags, mode, &found.path()?)
            }
            FileType::Directory if has_bits(flags, libc::O_CREAT) => Err(Errno::ISDIR),
            FileType::RegularFile => self.open_regular(&found, flags, mode),
            FileType::CharacterDevice => self.open_device(target, flags),
            FileType::Fifo => {
                // An anonymous pipe has no path.
                if let Some(path) = found.path().ok().filter(|path| path.is_absolute())
                    && opens_for_change(flags)
                {
                    self.check_writable(None, &path)?;
                }
                self.open_fifo(target, flags)
            }
            FileType::BlockDevice => Err(Errno::ACCESS),
            FileType::Symlink => Err(Errno::LOOP),
            _ => self.reopen(target, flags).map(|file| descriptor_response(file, flags)),
        }
    }

    fn create(&self, found: &Resolved, flags: u32, mode: u32) -> rustix::io::Result<Response> {
        let path = found.path()?;
        let (parent, name) = found.parent_and_name()?;
        let made = access(&path, found, FileAction::Create(NodeKind::File));
        let writes = flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32;
        if self.ask_guard(std::slice::from_ref(&made))? == GuardVerdict::Review && writes {
            let mode = mode & !self.caller.umask().as_raw_mode();
            return self.stage(found, flags, mode);
        }
        let flags = flags | libc::O_NOFOLLOW as u32;
        let answer = self.open_at(parent, &name, flags, mode, &path)?;
        self.recheck_after_parent_moved(parent, &path, &made, || {
            self.credentials.run_as(|| unlinkat(parent, &name, AtFlags::empty()))
        })?;
        Ok(answer)
    }

    fn open_at(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        flags: u32,
        mode: u32,
        path: &Path,
    ) -> rustix::io::Result<Response> {
        self.check_writable(None, path)?;
        let own = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let mode_to_set = apply_umask(mode, self.caller.umask());
        let opened = self.credentials.run_as(|| {
            let file = openat(parent, name, own, mode)?;
            mode_to_set.map_or(Ok(()), |mode| fchmod(&file, mode))?;
            Ok(file)
        });
        let opened = self.report_if_denied(None, Some(path.to_owned()), opened)?;
        Ok(descriptor_response(opened, flags))
    }

    fn open_regular(
        &self,
        found: &Resolved,
        flags: u32,
        mode: u32,
    ) -> rustix::io::Result<Response> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        if !opens_for_change(flags) {
            return self.open_to_read(found, target, flags);
        }
        // Files of `/proc` are on a read-only mount and have no content to keep.
        let path = self.path_of_target(found)?.filter(|_| !is_on_proc(target));
        if let Some(path) = &path {
            self.check_readable(path, flags)?;
            if self.ask_guard(&[access(path, found, FileAction::Write)])? == GuardVerdict::Review {
                return self.stage(found, flags, mode);
            }
        }
        if path.is_none() && !self.supervised.level.has_namespaces() && is_on_proc(target) {
            return Err(Errno::ACCESS);
        }
        self.report_if_denied(None, path, self.open_leased(target, flags))
    }

    /// Fails if a file that is also opened for reading must not be read.
    fn check_readable(&self, path: &Path, flags: u32) -> rustix::io::Result<()> {
        let only_writes = flags & libc::O_ACCMODE as u32 == libc::O_WRONLY as u32;
        let asks = self.supervised.sandbox.supervise_reads && !only_writes;
        if asks && !self.supervised.guard.may_read(path) { Err(Errno::ACCESS) } else { Ok(()) }
    }

    fn open_to_read(
        &self,
        found: &Resolved,
        target: &OwnedFd,
        flags: u32,
    ) -> rustix::io::Result<Response> {
        // This process may read the memory of others where the command may not.
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

    /// Opens a file that another program may have a lease on. The kernel asks that program to release it.
    fn open_leased(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<Response> {
        match self.reopen(target, flags) {
            Err(Errno::AGAIN) if !has_bits(flags, libc::O_NONBLOCK) => {
                let target = target.try_clone().map_err(|_| Errno::MFILE)?;
                self.retry_on_thread(target, move |target| {
                    match reopen_nonblocking(target, flags) {
                        Err(Errno::AGAIN) => Ok(None),
                        opened => opened.map(|file| Some(descriptor_response(file, flags))),
                    }
                })
            }
            opened => opened.map(|file| descriptor_response(file, flags)),
        }
    }

    fn open_device(&self, device: &OwnedFd, flags: u32) -> rustix::io::Result<Response> {
        let number = fstat(device)?.st_rdev;
        let number = (rustix::fs::major(number), rustix::fs::minor(number));
        if number == TTY_DEVICE {
            return self.open_terminal(flags);
        }
        // Without namespaces, a command would see the terminals of other programs.
        let own_terminals = self.supervised.level.has_namespaces();
        let is_terminal = own_terminals && PTS_MAJORS.contains(&number.0);
        if SAFE_DEVICES.contains(&number) || is_terminal {
            // A terminal must never become the controlling terminal of this process.
            let flags = flags | libc::O_NOCTTY.unsigned_abs();
            return self.reopen(device, flags).map(|file| descriptor_response(file, flags));
        }
        Err(Errno::ACCESS)
    }

    /// Opens the controlling terminal of the caller.
    fn open_terminal(&self, flags: u32) -> rustix::io::Result<Response> {
        let number = self.caller.controlling_terminal().ok_or(Errno::NXIO)?;
        let path = format!("dev/pts/{number}");
        let path_only = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let terminal = openat(self.resolver.root, path, path_only, Mode::empty())?;
        self.open_device(&terminal, flags)
    }

    /// Opens a file that was found. It never blocks, except on a file server that does not respond.
    pub(super) fn reopen(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
        self.credentials.run_as(|| reopen_nonblocking(target, flags))
    }

    /// Opens a FIFO. Each side waits for the other, unless `O_NONBLOCK` is set.
    fn open_fifo(&self, target: &OwnedFd, flags: u32) -> rustix::io::Result<Response> {
        let side = flags & libc::O_ACCMODE as u32;
        let waits = !has_bits(flags, libc::O_NONBLOCK);
        if waits && side == libc::O_WRONLY as u32 {
            return match self.reopen(target, flags) {
                // There is no reader yet.
                Err(Errno::NXIO) => {
                    let target = target.try_clone().map_err(|_| Errno::MFILE)?;
                    self.retry_on_thread(target, move |target| {
                        match reopen_nonblocking(target, flags) {
                            Err(Errno::NXIO) => Ok(None),
                            opened => opened.map(|file| Some(descriptor_response(file, flags))),
                        }
                    })
                }
                opened => opened.map(|file| descriptor_response(file, flags)),
            };
        }
        let file = self.reopen(target, flags)?;
        if !waits || side != libc::O_RDONLY as u32 || has_writer(&file)? {
            return Ok(descriptor_response(file, flags));
        }
        // It is already open, so that a writer finds a reader. The command gets it once there is a writer.
        self.retry_on_thread(file, move |file| {
            if !has_writer(file)? {
                return Ok(None);
            }
            let file = file.try_clone().map_err(|_| Errno::MFILE)?;
            Ok(Some(descriptor_response(file, flags)))
        })
    }
}

const NONBLOCK: u32 = libc::O_NONBLOCK as u32;

/// The flags that path resolution has already handled.
const RESOLUTION_FLAGS: u32 = (libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW) as u32;

fn reopen(target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::from_bits_retain(flags & !RESOLUTION_FLAGS) | OFlags::CLOEXEC;
    openat(CWD, proc_fd_path(target), flags, Mode::empty())
}

/// Opens a file again. Fails with `EAGAIN` or `ENXIO` instead of blocking.
fn reopen_nonblocking(target: &OwnedFd, flags: u32) -> rustix::io::Result<OwnedFd> {
    let file = reopen(target, flags | NONBLOCK)?;
    if !has_bits(flags, libc::O_NONBLOCK) {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(file)
}

/// Whether a FIFO that is open for reading has a writer or unread data.
fn has_writer(fifo: &OwnedFd) -> rustix::io::Result<bool> {
    let (_reader, copy) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // `tee` copies without consuming, and copies nothing only if there is no writer.
    match tee(fifo, &copy, 1, SpliceFlags::NONBLOCK) {
        Ok(copied) => Ok(copied > 0),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

pub(super) fn descriptor_response(file: OwnedFd, flags: u32) -> Response {
    Response::Descriptor { file, close_on_exec: has_bits(flags, libc::O_CLOEXEC) }
}
