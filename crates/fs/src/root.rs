//! A directory that tools may reach: one that the operator opened, the session's own, or the whole system.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::error::{FsError, FsErrorKind};
use crate::forbidden_files::ForbiddenFiles;
use crate::open_beneath;

/// Whether a root may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootMode {
    /// Files may be read.
    ReadOnly,
    /// Files may be read and changed.
    ReadWrite,
}

/// Why tools may reach a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// The operator opened it.
    Workspace,
    /// It is the temporary directory of a session.
    Session,
    /// It is the root directory of the system: everything that lies outside the other roots.
    System,
}

/// A directory that tools may reach, held by its handle: whatever is renamed around it later, the root stays
/// the directory that was meant.
#[derive(Debug)]
pub struct Root {
    /// The path under which tools find it.
    path: PathBuf,
    /// Its real path, if that is another.
    location: Option<PathBuf>,
    /// The names of its path: the real ones and, where they differ, those that were given.
    spellings: Vec<Vec<OsString>>,
    handle: OwnedFd,
    mode: RootMode,
    kind: RootKind,
    /// The directories and files beneath it that are not opened, under whatever name.
    closed: Option<Arc<ForbiddenFiles>>,
}

impl Root {
    /// Opens a directory as a root. The path is the operator's word and is taken as it is.
    pub fn open(given: impl Into<PathBuf>, mode: RootMode) -> Result<Self, FsError> {
        let given = given.into();
        let (handle, path) = open_directory(&given)?;
        let mut spellings = vec![path_names(&path)];
        if given.is_absolute() && given != path {
            spellings.push(path_names(&given));
        }
        let (location, kind, closed) = (None, RootKind::Workspace, None);
        Ok(Root { path, location, spellings, handle, mode, kind, closed })
    }

    /// Opens the temporary directory of a session, which tools find under the path `seen_at`, wherever it
    /// lies. What really is at that path is not reached.
    pub fn of_session(directory: &Path, seen_at: &Path) -> Result<Self, FsError> {
        let (handle, real) = open_directory(directory)?;
        let mut spellings = vec![path_names(seen_at)];
        let canonical = real_path(seen_at);
        if canonical != seen_at {
            spellings.push(path_names(&canonical));
        }
        let location = (real != seen_at).then_some(real);
        let (mode, kind, closed) = (RootMode::ReadWrite, RootKind::Session, None);
        Ok(Root { path: seen_at.to_owned(), location, spellings, handle, mode, kind, closed })
    }

    /// Opens the root directory of the system for reading, but for what is closed.
    pub fn of_system(closed: ForbiddenFiles) -> Result<Self, FsError> {
        let (handle, path) = open_directory(Path::new("/"))?;
        let (mode, kind) = (RootMode::ReadOnly, RootKind::System);
        let (spellings, closed) = (vec![Vec::new()], Some(Arc::new(closed)));
        Ok(Root { path, location: None, spellings, handle, mode, kind, closed })
    }

    /// The same root, for writing.
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
            closed: self.closed.clone(),
        })
    }

    /// The path under which tools find it. It has no links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its real path: where the journal knows it.
    pub fn location(&self) -> &Path {
        self.location.as_deref().unwrap_or(&self.path)
    }

    /// The paths under which it is known: the real one, and the one that was given.
    pub fn spellings(&self) -> impl Iterator<Item = PathBuf> {
        let absolute =
            |names: &Vec<OsString>| Path::new("/").join(names.iter().collect::<PathBuf>());
        self.spellings.iter().map(absolute)
    }

    /// Whether it may be written.
    pub fn mode(&self) -> RootMode {
        self.mode
    }

    /// Why tools may reach it.
    pub fn kind(&self) -> RootKind {
        self.kind
    }

    /// Which directory it is: its device, and its number there.
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

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub(crate) fn closed(&self) -> Option<&Arc<ForbiddenFiles>> {
        self.closed.as_ref()
    }

    /// Opens what is beneath it, by real names. No link is followed, and nothing that is closed is opened
    /// or passed.
    pub(crate) fn open_beneath(
        &self,
        relative: &Path,
        flags: OFlags,
        cannot: &str,
    ) -> Result<OwnedFd, FsError> {
        let opened = match &self.closed {
            None => open_beneath::open(self.handle(), relative, flags, Mode::empty()).map(Some),
            Some(closed) => {
                let admits = |handle: BorrowedFd<'_>| closed.admits(handle);
                open_beneath::open_admitted(self.handle(), relative, flags, &admits)
            }
        };
        let path = || join(&self.path, relative);
        match opened {
            Ok(Some(handle)) => Ok(handle),
            Ok(None) => Err(FsError::closed(path())),
            Err(errno) => Err(FsError::from_errno(path(), cannot, errno)),
        }
    }

    /// Whether the names are those of its path, in one of its spellings.
    pub(crate) fn is_at(&self, names: &[OsString]) -> bool {
        self.spellings.iter().any(|own| own.as_slice() == names)
    }

    /// The names that lead from this root to an absolute path, if the path begins with the root's,
    /// name by name, as given or in its real spelling.
    pub(crate) fn names_beneath<'a>(&self, names: &'a [OsString]) -> Option<&'a [OsString]> {
        self.spellings.iter().find_map(|own| names.strip_prefix(own.as_slice()))
    }
}

/// A directory by its handle, and its real path. The path is the operator's word and is taken as it is.
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

/// A path beneath another. To join nothing would add a slash, which only directories can have.
pub(crate) fn join(above: &Path, relative: &Path) -> PathBuf {
    match relative.as_os_str().is_empty() {
        true => above.to_owned(),
        false => above.join(relative),
    }
}

/// The real path of something that may not be there yet: that of the nearest directory above that is,
/// and the names that follow. For the operator's words only, never for a caller's.
pub fn real_path(path: &Path) -> PathBuf {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found =
        path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    match found {
        Some((above, real)) => join(&real, path.strip_prefix(above).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}

/// The names of a path, without the slash it may begin with.
pub(crate) fn path_names(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_path_has_no_slash_at_its_end() {
        let top = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(top.path()).unwrap();
        std::fs::write(top.path().join("file"), "").unwrap();
        for (given, expected) in [("file", "file"), ("new/er", "new/er"), (".", "")] {
            let found = real_path(&top.path().join(given)).into_os_string();
            let expected = match expected {
                "" => real.clone(),
                name => real.join(name),
            };
            assert_eq!(found, expected.into_os_string(), "{given}");
        }
    }
}
