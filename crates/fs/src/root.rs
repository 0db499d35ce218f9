//! A directory that tools may access: one that the operator named, the session's own, or the whole system.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::error::{FsError, FsErrorKind};
use crate::forbidden_files::ForbiddenFiles;
use crate::open_beneath;
use crate::real_path::{path_names, real_path};

/// Whether a root may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootMode {
    /// Files may be read.
    ReadOnly,
    /// Files may be read and changed.
    ReadWrite,
}

/// Why tools may access a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// The operator named it.
    Workspace,
    /// It is the temporary directory of a session.
    Session,
    /// It is the root directory of the system, for everything outside the other roots.
    System,
}

/// A directory that tools may access. It is held by a descriptor, so later renames do not change which
/// directory it is.
#[derive(Debug)]
pub struct Root {
    /// The path at which tools see it.
    path: PathBuf,
    /// Its real path, if that is different.
    location: Option<PathBuf>,
    /// The components of its path: the real ones and, if different, those that were given.
    spellings: Vec<Vec<OsString>>,
    handle: OwnedFd,
    mode: RootMode,
    kind: RootKind,
    /// The directories and files beneath it that must not be opened, under any name.
    forbidden: Option<Arc<ForbiddenFiles>>,
}

impl Root {
    /// Opens a directory as a root. The path comes from the operator and is trusted. Fails if it is not a
    /// directory.
    pub fn open(given: impl Into<PathBuf>, mode: RootMode) -> Result<Self, FsError> {
        let given = given.into();
        let (handle, path) = open_directory(&given)?;
        let mut spellings = vec![path_names(&path)];
        if given.is_absolute() && given != path {
            spellings.push(path_names(&given));
        }
        let (location, kind, forbidden) = (None, RootKind::Workspace, None);
        Ok(Root { path, location, spellings, handle, mode, kind, forbidden })
    }

    /// Opens the temporary directory of a session. Tools see it at the path `seen_at`, and cannot access the
    /// files that really are at that path.
    pub fn of_session(directory: &Path, seen_at: &Path) -> Result<Self, FsError> {
        let (handle, real) = open_directory(directory)?;
        let mut spellings = vec![path_names(seen_at)];
        let canonical = real_path(seen_at);
        if canonical != seen_at {
            spellings.push(path_names(&canonical));
        }
        let location = (real != seen_at).then_some(real);
        let (mode, kind, forbidden) = (RootMode::ReadWrite, RootKind::Session, None);
        Ok(Root { path: seen_at.to_owned(), location, spellings, handle, mode, kind, forbidden })
    }

    /// Opens the root directory of the system for reading, except for forbidden files.
    pub fn of_system(forbidden: ForbiddenFiles) -> Result<Self, FsError> {
        let (handle, path) = open_directory(Path::new("/"))?;
        let (mode, kind) = (RootMode::ReadOnly, RootKind::System);
        let (spellings, forbidden) = (vec![Vec::new()], Some(Arc::new(forbidden)));
        Ok(Root { path, location: None, spellings, handle, mode, kind, forbidden })
    }

    /// The same root, writable.
    pub(crate) fn for_writing(&self) -> Result<Self, FsError> {
        let handle = rustix::io::fcntl_dupfd_cloexec(&self.handle, 0).map_err(|errno| {
            FsError::from_errno(&self.path, "cannot be opened as a root", errno)
        })?;
        Ok(Root {
            path: self.path.clone(),
            location: self.location.clone(),
            spellings: self.spellings.clone(),
            handle,
            mode: RootMode::ReadWrite,
            kind: self.kind,
            forbidden: self.forbidden.clone(),
        })
    }

    /// The path at which tools see it. It has no symlinks.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its real path, as used in the journal.
    pub fn location(&self) -> &Path {
        self.location.as_deref().unwrap_or(&self.path)
    }

    /// All its paths: the real one, and the one that was given.
    pub fn spellings(&self) -> impl Iterator<Item = PathBuf> {
        let absolute =
            |names: &Vec<OsString>| Path::new("/").join(names.iter().collect::<PathBuf>());
        self.spellings.iter().map(absolute)
    }

    /// Whether it may be written.
    pub fn mode(&self) -> RootMode {
        self.mode
    }

    /// Why tools may access it.
    pub fn kind(&self) -> RootKind {
        self.kind
    }

    /// Its device and inode.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let status = rustix::fs::fstat(&self.handle).ok()?;
        Some((status.st_dev, status.st_ino))
    }

    /// Whether its path still leads to it.
    pub fn is_in_place(&self) -> bool {
        let now = rustix::fs::stat(self.location());
        let now = now.ok().map(|status| (status.st_dev, status.st_ino));
        now.is_some() && now == self.identity()
    }

    /// Whether the directory no longer exists, at any path.
    pub fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.handle).is_ok_and(|status| status.st_nlink == 0)
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub(crate) fn forbidden(&self) -> Option<&Arc<ForbiddenFiles>> {
        self.forbidden.as_ref()
    }

    /// Opens a file beneath it by a real path. No symlink is followed, and forbidden files are neither opened
    /// nor passed.
    pub(crate) fn open_beneath(
        &self,
        relative: &Path,
        flags: OFlags,
        cannot: &str,
    ) -> Result<OwnedFd, FsError> {
        let opened = match &self.forbidden {
            None => open_beneath::open(self.handle(), relative, flags, Mode::empty()).map(Some),
            Some(forbidden) => {
                let admits = |handle: BorrowedFd<'_>| forbidden.admits(handle);
                open_beneath::open_admitted(self.handle(), relative, flags, &admits)
            }
        };
        let path = || join(&self.path, relative);
        match opened {
            Ok(Some(handle)) => Ok(handle),
            Ok(None) => Err(FsError::forbidden(path())),
            Err(errno) => Err(FsError::from_errno(path(), cannot, errno)),
        }
    }

    /// Whether these components are its path, in one of its spellings.
    pub(crate) fn is_at(&self, names: &[OsString]) -> bool {
        self.spellings.iter().any(|own| own.as_slice() == names)
    }

    /// The components from this root to an absolute path. `None` if the path is not beneath the root, as
    /// given or in its real spelling.
    pub(crate) fn names_beneath<'a>(&self, names: &'a [OsString]) -> Option<&'a [OsString]> {
        self.spellings.iter().find_map(|own| names.strip_prefix(own.as_slice()))
    }
}

/// Opens a directory, and finds its real path. The path comes from the operator and is trusted.
fn open_directory(given: &Path) -> Result<(OwnedFd, PathBuf), FsError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || rustix::fs::open(given, flags, Mode::empty());
    let handle = rustix::io::retry_on_intr(open)
        .map_err(|errno| FsError::from_errno(given, "cannot be opened as a root", errno))?;
    let canonical = std::fs::canonicalize(given).map_err(|error| {
        FsError::new(FsErrorKind::Io, given, format!("has no real path: {error}"))
    })?;
    Ok((handle, canonical))
}

/// Joins two paths. Joining an empty path would append a slash, which is valid only for directories.
pub(crate) fn join(above: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { above.to_owned() } else { above.join(relative) }
}
