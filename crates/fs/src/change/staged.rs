//! New content on disk that has no name in the workspace yet.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::random;

/// A new file in the directory where it will be needed. Dropped before it is put in place, it leaves
/// nothing behind.
#[derive(Debug)]
pub(super) struct Staged {
    directory: Arc<OwnedFd>,
    file: OwnedFd,
    /// The name it has in the directory, on file systems that have no files without one, and for the
    /// moment between linking and renaming.
    name: Option<String>,
}

impl Staged {
    /// Writes new content. `mode` is what it begins with, less the umask.
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

    /// Takes a name that is not taken.
    pub(super) fn create(self, name: &OsStr) -> Result<(), Errno> {
        match &self.name {
            None => self.link(name),
            // A second name, which must be new, and then away with the first: works where a rename that
            // must not replace does not.
            Some(own) => {
                rustix::fs::linkat(&self.directory, own, &self.directory, name, AtFlags::empty())
            }
        }
    }

    /// Takes the name of an existing file.
    pub(super) fn replace(mut self, name: &OsStr) -> Result<(), Errno> {
        let own = match self.name.take() {
            Some(own) => own,
            None => {
                let own = random_name()?;
                self.link(OsStr::new(&own))?;
                own
            }
        };
        let moved = rustix::fs::renameat(&self.directory, &own, &self.directory, name);
        if moved.is_err() {
            self.name = Some(own);
        }
        moved
    }

    fn new(directory: &Arc<OwnedFd>, mode: Mode) -> Result<Self, Errno> {
        let directory = directory.clone();
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::openat(&directory, ".", flags, mode)) {
            Ok(file) if can_be_linked(&file) => Ok(Staged { directory, file, name: None }),
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let own = random_name()?;
                let flags = OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::WRONLY
                    | OFlags::CLOEXEC;
                let file = retry_on_intr(|| rustix::fs::openat(&directory, &own, flags, mode))?;
                Ok(Staged { directory, file, name: Some(own) })
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
        rustix::fs::linkat(CWD, by_handle(&self.file), &self.directory, name, flags)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// Where a file without a name can be found by its handle.
fn by_handle(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Without /proc, a file that has no name can get none.
fn can_be_linked(file: &OwnedFd) -> bool {
    rustix::fs::access(by_handle(file), Access::EXISTS).is_ok()
}

const PREFIX: &str = ".toolcrib-";
const SUFFIX: &str = ".tmp";
const DIGITS: usize = 16;

/// A name that nobody can guess and that says whose it is, should a crash leave it behind.
pub(super) fn random_name() -> Result<String, Errno> {
    Ok(format!("{PREFIX}{}{SUFFIX}", random::hex::<{ DIGITS / 2 }>()?))
}

/// Whether this is such a name.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let digits =
        name.strip_prefix(PREFIX.as_bytes()).and_then(|n| n.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|d| d.len() == DIGITS && d.iter().all(u8::is_ascii_hexdigit))
}
