//! Resolves the paths of a command as the kernel would for the command: from its own root, working directory
//! or descriptor, with its own `/proc/self`.
//!
//! The result is open descriptors. Later renames do not matter: the call is performed on the directory that
//! was found, and the kernel still reports the real path of that directory.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, fstat, fstatfs,
    openat, openat2, readlinkat, statx,
};
use rustix::io::Errno;

use super::caller::{Base, Caller, Credentials, is_descendant, real_path};

/// The number of symlinks that the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// The type of the `proc` file system.
const PROC_SUPER_MAGIC: i64 = 0x9fa0;

/// Symlinks of `/proc` that are plain text. All others lead directly to an open file.
const TEXT_LINKS: [&str; 2] = ["mounts", "net"];

const OPEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A path argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenPath {
    pub(super) base: Base,
    pub(super) path: PathBuf,
}

impl GivenPath {
    /// Whether it ends with a slash, so that it names a directory.
    pub(super) fn has_trailing_slash(&self) -> bool {
        self.path.as_os_str().as_bytes().ends_with(b"/")
    }
}

/// How to treat a symlink that is the last component of a path. The kernel has the same three ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalSymlink {
    /// Follow it.
    Follow,
    /// Use the symlink itself, unless a trailing slash asks for a directory.
    Keep,
    /// Use the directory entry, which is created, removed or renamed. A trailing slash does not change that.
    Name,
}

/// The result of resolving a path.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The directory of the last component, and that component. `None` if a symlink of `/proc` leads directly
    /// to a file.
    entry: Option<(OwnedFd, OsString)>,
    /// The existing file, opened with `O_PATH`.
    pub(super) target: Option<OwnedFd>,
    /// The kind of that file, which never changes.
    kind: Option<FileType>,
    /// Whether the path ends with a slash, so that it names a directory.
    pub(super) trailing_slash: bool,
}

impl Resolved {
    fn new(
        entry: Option<(OwnedFd, OsString)>,
        target: Option<OwnedFd>,
        trailing_slash: bool,
    ) -> Resolved {
        let kind = target.as_ref().and_then(kind);
        Resolved { entry, target, kind, trailing_slash }
    }

    /// The directory and the name in it, for the call that is performed. Fails if the path leads directly to
    /// an open file: nothing can be created, removed or renamed there.
    pub(super) fn parent_and_name(&self) -> rustix::io::Result<(&OwnedFd, OsString)> {
        let (parent, name) = self.entry.as_ref().ok_or(Errno::INVAL)?;
        let mut name = name.clone();
        if self.trailing_slash {
            name.push("/");
        }
        Ok((parent, name))
    }

    /// The real path. The file need not exist.
    pub(super) fn path(&self) -> rustix::io::Result<PathBuf> {
        match (&self.entry, &self.target) {
            (Some((parent, name)), _) if !self.is_dot() => Ok(real_path(parent)?.join(name)),
            (_, Some(target)) => real_path(target),
            _ => Err(Errno::NOENT),
        }
    }

    /// Whether the last component is `.` or `..`.
    pub(super) fn is_dot(&self) -> bool {
        self.entry.as_ref().is_some_and(|(_, name)| name == "." || name == "..")
    }

    /// Fails if the path ends with a slash and leads to a file other than a directory.
    pub(super) fn check_slash(&self) -> rustix::io::Result<()> {
        let is_directory = || self.kind().is_none_or(|kind| kind == FileType::Directory);
        if !self.trailing_slash || is_directory() { Ok(()) } else { Err(Errno::NOTDIR) }
    }

    /// Whether it is a mount point.
    pub(super) fn is_mounted(&self) -> bool {
        self.target.as_ref().is_some_and(|target| {
            let about = statx(target, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
            about.is_ok_and(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        })
    }

    /// The kind of the existing file.
    pub(super) fn kind(&self) -> Option<FileType> {
        self.kind
    }
}

/// Resolves paths in the view of one command.
#[derive(Debug)]
pub(super) struct Resolver<'a> {
    pub(super) caller: Caller,
    pub(super) root: &'a OwnedFd,
    pub(super) credentials: Credentials,
    /// The ancestor of all processes of the command, if the command also sees other processes.
    pub(super) shim: Option<i32>,
}

impl Resolver<'_> {
    /// Resolves a path.
    pub(super) fn resolve(
        &self,
        given: &GivenPath,
        last: FinalSymlink,
    ) -> rustix::io::Result<Resolved> {
        let bytes = given.path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        let start = match bytes[0] {
            b'/' => self.root.try_clone().map_err(|_| Errno::MFILE)?,
            _ => self.caller.open_base(given.base)?,
        };
        let trailing_slash = given.has_trailing_slash();
        let (directory, name) = split_last_component(bytes);
        if directory.is_empty() || name.is_empty() {
            return self.walk(start, None, bytes, last, trailing_slash);
        }
        // Without symlinks on the way, the kernel resolves it in one step. Symlinks are followed here, since
        // their text refers to the command's own root and processes. A directory that the command may not
        // search must not be searched here either.
        let opened = self.credentials.run_as(|| {
            let flags = OPEN | OFlags::DIRECTORY;
            let (path, resolve) = (OsStr::from_bytes(directory), ResolveFlags::NO_SYMLINKS);
            let parent = openat2(&start, path, flags, Mode::empty(), resolve)?;
            let file = open_entry(&parent, OsStr::from_bytes(name));
            Ok((parent, file))
        });
        match opened {
            Err(Errno::LOOP) => self.walk(start, None, bytes, last, trailing_slash),
            Err(errno) => Err(errno),
            Ok((parent, file)) => self.walk(parent, Some(file), name, last, trailing_slash),
        }
    }

    /// The file of one of the caller's descriptors.
    pub(super) fn descriptor(&self, number: i32) -> rustix::io::Result<Resolved> {
        let target = self.caller.open_base(Base::Descriptor(number))?;
        Ok(Resolved::new(None, Some(target), false))
    }

    /// The device and inode of the file at a real path.
    pub(super) fn identity(&self, path: &Path) -> Option<(u64, u64)> {
        let path = path.strip_prefix("/").ok()?;
        let flags = OPEN | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS;
        let file = openat2(self.root, path, flags, Mode::empty(), resolve).ok()?;
        let status = fstat(file).ok()?;
        Some((status.st_dev, status.st_ino))
    }

    /// Resolves a path component by component. `first` is its first component, if that was opened already.
    fn walk(
        &self,
        start: OwnedFd,
        mut first: Option<rustix::io::Result<OwnedFd>>,
        path: &[u8],
        last: FinalSymlink,
        mut trailing_slash: bool,
    ) -> rustix::io::Result<Resolved> {
        let (mut here, mut pending, mut links) = (start, reversed_components(path), 0);
        loop {
            let Some(name) = pending.pop() else {
                // The path is a root.
                let target = Some(here.try_clone().map_err(|_| Errno::MFILE)?);
                return Ok(Resolved::new(Some((here, ".".into())), target, trailing_slash));
            };
            let is_last = pending.is_empty();
            let opened = match first.take() {
                Some(opened) => opened,
                None => self.credentials.run_as(|| open_entry(&here, &name)),
            };
            let next = match opened {
                Err(Errno::NOENT) if is_last => {
                    return Ok(Resolved::new(Some((here, name)), None, trailing_slash));
                }
                next => next?,
            };
            let next_kind = kind(&next);
            let is_link = next_kind == Some(FileType::Symlink);
            if !is_link && !is_last {
                here = next;
                continue;
            }
            let is_followed = match last {
                FinalSymlink::Follow => true,
                FinalSymlink::Keep => trailing_slash,
                FinalSymlink::Name => false,
            };
            if !is_link || (is_last && !is_followed) {
                return Ok(Resolved {
                    entry: Some((here, name)),
                    target: Some(next),
                    kind: next_kind,
                    trailing_slash,
                });
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            let text = match self.symlink_text(&here, &name, &next)? {
                Some(text) => text,
                // A symlink of `/proc` to an open file.
                None => {
                    self.check_own_process(&here)?;
                    let target = openat(&here, &name, OPEN, Mode::empty())?;
                    if is_last {
                        return Ok(Resolved::new(None, Some(target), trailing_slash));
                    }
                    here = target;
                    continue;
                }
            };
            // A slash at the end of the last symlink's text means the same as one at the end of the path.
            trailing_slash |= is_last && text.ends_with(b"/");
            if text.starts_with(b"/") {
                here = self.root.try_clone().map_err(|_| Errno::MFILE)?;
            }
            pending.extend(reversed_components(&text));
        }
    }

    /// Fails for the symlinks of a process outside the command: the supervisor may follow them, but the
    /// command may not.
    fn check_own_process(&self, directory: &OwnedFd) -> rustix::io::Result<()> {
        let Some(shim) = self.shim else { return Ok(()) };
        let path = real_path(directory)?;
        let process = path.iter().nth(2).and_then(|name| name.to_str()?.parse().ok());
        let is_own = process.is_some_and(|process| is_descendant(process, shim));
        if is_own { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// The text of a symlink. `None` if the kernel resolves it by itself.
    fn symlink_text(
        &self,
        directory: &OwnedFd,
        name: &OsStr,
        link: &OwnedFd,
    ) -> rustix::io::Result<Option<Vec<u8>>> {
        if !is_on_proc(directory) || TEXT_LINKS.iter().any(|text| name == *text) {
            return Ok(Some(readlinkat(link, "", Vec::new())?.into_bytes()));
        }
        let own = match name.as_bytes() {
            b"self" => self.caller.proc_self(),
            b"thread-self" => self.caller.proc_thread_self(),
            _ => return Ok(None),
        };
        own.map(|own| Some(own.into_bytes())).ok_or(Errno::SRCH)
    }
}

/// Opens an entry of a directory with `O_PATH`. A symlink is not followed.
fn open_entry(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(directory, name, OPEN | OFlags::NOFOLLOW, Mode::empty())
}

/// Splits off the last component of a path.
fn split_last_component(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (b"", &path[1..]),
        Some(trailing_slash) => {
            let directory = &path[..trailing_slash];
            let start = directory.iter().position(|&byte| byte != b'/').unwrap_or(trailing_slash);
            (&directory[start..], &path[trailing_slash + 1..])
        }
        None => (b"", path),
    }
}

/// The components of a path, the last one first.
fn reversed_components(path: &[u8]) -> Vec<OsString> {
    let names = path.rsplit(|&byte| byte == b'/').filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

fn kind(file: &OwnedFd) -> Option<FileType> {
    fstat(file).ok().map(|status| FileType::from_raw_mode(status.st_mode))
}

/// Whether a file is on a `proc` file system.
pub(super) fn is_on_proc(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|status| status.f_type == PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_before_its_last_component() {
        for (path, directory, name) in [
            ("a", "", "a"),
            ("a/", "", "a"),
            ("/a", "", "a"),
            ("//a//b//", "a", "b"),
            ("../a/./b", "../a/.", "b"),
            ("/", "", ""),
            ("a/..", "a", ".."),
        ] {
            let (found_directory, found_name) = split_last_component(path.as_bytes());
            let found_directory =
                String::from_utf8_lossy(found_directory).trim_end_matches('/').to_owned();
            assert_eq!(
                (found_directory.as_str(), found_name),
                (directory, name.as_bytes()),
                "{path}"
            );
        }
        assert_eq!(reversed_components(b"/a//b/"), ["b", "a"]);
    }
}
