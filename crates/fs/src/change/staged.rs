//! New content on disk that has no name in the workspace yet.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::random;

/// A new file in its future directory. If it is dropped before it is put in place, nothing is left behind.
#[derive(Debug)]
pub(super) struct Staged {
    directory: Arc<OwnedFd>,
    file: OwnedFd,
    /// Its temporary name, on file systems without unnamed files, and between linking and renaming.
    name: Option<String>,
}

impl Staged {
    /// Writes new content. `mode` is the initial mode, reduced by the umask.
    pub(super) fn write(
        directory: &Arc<OwnedFd>,
        content: &[u8],
        mode: Mode,
    ) -> Result<Self, Errno> {
        let mut staged = Staged::new(directory, mode)?;
        staged.write_all(content)?;
        Ok(staged)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The directory that it is in.
    pub(super) fn directory(&self) -> &Arc<OwnedFd> {
        &self.directory
    }

    /// Waits until it is on disk.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.file))
    }

    /// Links it to a new name. Fails if the name exists.
    pub(super) fn create(self, name: &OsStr) -> Result<(), Errno> {
        match &self.name {
            None => self.link(name),
            // A second hard link, which must be new; then the first is removed. This works on file systems
            // without `RENAME_NOREPLACE`.
            Some(temporary) => rustix::fs::linkat(
                &self.directory,
                temporary,
                &self.directory,
                name,
                AtFlags::empty(),
            ),
        }
    }

    /// Replaces an existing file.
    pub(super) fn replace(mut self, name: &OsStr) -> Result<(), Errno> {
        let temporary = match self.name.take() {
            Some(temporary) => temporary,
            None => {
                let temporary = random_name()?;
                self.link(OsStr::new(&temporary))?;
                temporary
            }
        };
        let moved = rustix::fs::renameat(&self.directory, &temporary, &self.directory, name);
        if moved.is_err() {
            self.name = Some(temporary);
        }
        moved
    }

    fn new(directory: &Arc<OwnedFd>, mode: Mode) -> Result<Self, Errno> {
        let directory = directory.clone();
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::openat(&directory, ".", flags, mode)) {
            Ok(file) if can_be_linked(&file) => Ok(Staged { directory, file, name: None }),
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let temporary = random_name()?;
                let flags = OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::WRONLY
                    | OFlags::CLOEXEC;
                let file =
                    retry_on_intr(|| rustix::fs::openat(&directory, &temporary, flags, mode))?;
                Ok(Staged { directory, file, name: Some(temporary) })
            }
            Err(errno) => Err(errno),
        }
    }

    fn write_all(&mut self, mut content: &[u8]) -> Result<(), Errno> {
        while !content.is_empty() {
            let written = retry_on_intr(|| rustix::io::write(&self.file, content))?;
            content = &content[written..];
        }
        Ok(())
    }

    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, proc_fd_path(&self.file), &self.directory, name, flags)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// A path by which an unnamed file can be opened.
fn proc_fd_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether an unnamed file can be linked. This takes `/proc`.
fn can_be_linked(file: &OwnedFd) -> bool {
    rustix::fs::access(proc_fd_path(file), Access::EXISTS).is_ok()
}

const PREFIX: &str = ".toolcrib-";
const SUFFIX: &str = ".tmp";
const DIGITS: usize = 16;

/// A name that cannot be guessed, and that identifies our files if a crash leaves one behind.
pub(super) fn random_name() -> Result<String, Errno> {
    Ok(format!("{PREFIX}{}{SUFFIX}", random::hex::<{ DIGITS / 2 }>()?))
}

/// Whether a name is one of [`random_name`].
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let digits =
        name.strip_prefix(PREFIX.as_bytes()).and_then(|n| n.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|d| d.len() == DIGITS && d.iter().all(u8::is_ascii_hexdigit))
}
