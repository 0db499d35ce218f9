//! New content on disk that has no name in the workspace yet.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// A new file in the directory where it will be needed. Dropped before it is put in place, it leaves
/// nothing behind.
pub(super) struct Staged<'a> {
    directory: &'a OwnedFd,
    file: OwnedFd,
    /// The name it has in the directory, on file systems that have no files without one, and for the
    /// moment between linking and renaming.
    name: Option<String>,
}

impl<'a> Staged<'a> {
    pub(super) fn write(directory: &'a OwnedFd, content: &[u8]) -> Result<Self, Errno> {
        let mut staged = Staged::new(directory)?;
        staged.write_all(content)?;
        Ok(staged)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn sync(&self) -> Result<(), Errno> {
        rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&self.file))
    }

    /// Takes a name that is not taken.
    pub(super) fn create(mut self, name: &OsStr) -> Result<(), Errno> {
        match self.name.take() {
            None => self.link(name),
            Some(own) => {
                let moved = rustix::fs::renameat_with(
                    self.directory,
                    &own,
                    self.directory,
                    name,
                    RenameFlags::NOREPLACE,
                );
                if moved.is_err() {
                    self.name = Some(own);
                }
                moved
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
        let moved = rustix::fs::renameat(self.directory, &own, self.directory, name);
        if moved.is_err() {
            self.name = Some(own);
        }
        moved
    }

    fn new(directory: &'a OwnedFd) -> Result<Self, Errno> {
        // The umask takes its part of the mode, as for any new file.
        let mode = Mode::from_raw_mode(0o666);
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(directory, ".", flags, mode) {
            Ok(file) => Ok(Staged { directory, file, name: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let own = random_name()?;
                let flags = OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::WRONLY
                    | OFlags::CLOEXEC;
                let file = rustix::fs::openat(directory, &own, flags, mode)?;
                Ok(Staged { directory, file, name: Some(own) })
            }
            Err(errno) => Err(errno),
        }
    }

    fn write_all(&mut self, mut content: &[u8]) -> Result<(), Errno> {
        while !content.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.file, content))?;
            content = &content[written..];
        }
        Ok(())
    }

    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let nameless = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, nameless, self.directory, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

/// A name that nobody can guess and that says whose it is, should a crash leave it behind.
fn random_name() -> Result<String, Errno> {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled < bytes.len() {
        return Err(Errno::AGAIN);
    }
    Ok(format!(".toolcrib-{:016x}.tmp", u64::from_ne_bytes(bytes)))
}
