//! Resolves the paths of a command as the command itself would: from its own root, working directory or
//! descriptor, with its own `/proc/self`.
//!
//! The result is open descriptors. Whatever is renamed afterwards, the call is performed on the directory
//! that was found, and the kernel still tells the real path of that directory.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, fstat, fstatfs,
    openat, openat2, readlinkat, statx,
};
use rustix::io::Errno;

use super::caller::{Base, Caller, Credentials, is_beneath, path_of};

/// As many symbolic links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// The kind of a file system that shows processes.
const PROC_SUPER_MAGIC: i64 = 0x9fa0;

/// Links of that file system that are plain text. All others lead straight to an open file.
const TEXT_LINKS: [&str; 2] = ["mounts", "net"];

const OPEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A path as a call gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenPath {
    pub(super) base: Base,
    pub(super) path: PathBuf,
}

impl GivenPath {
    /// Whether it ends with a slash, so that it names a directory.
    pub(super) fn has_slash(&self) -> bool {
        self.path.as_os_str().as_bytes().ends_with(b"/")
    }
}

/// What becomes of a symbolic link that is the last name of a path, as the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// It is followed.
    Follow,
    /// It is what the call is about, unless a slash behind it says that a directory is meant.
    Keep,
    /// It is the name itself that is made, removed or renamed. No slash changes that.
    Name,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Found {
    /// The directory of its last name, and that name. Nothing, if a link of `/proc` leads straight to a file.
    place: Option<(OwnedFd, OsString)>,
    /// What is there, opened without any access to its content.
    pub(super) target: Option<OwnedFd>,
    /// The path ends with a slash, so that it names a directory.
    pub(super) slash: bool,
}

impl Found {
    /// The directory and the name in it, as the call that is performed takes them. A path that leads
    /// straight to an open file has neither, and nothing can be made, removed or renamed there.
    pub(super) fn place(&self) -> rustix::io::Result<(&OwnedFd, OsString)> {
        let (parent, name) = self.place.as_ref().ok_or(Errno::INVAL)?;
        let mut name = name.clone();
        if self.slash {
            name.push("/");
        }
        Ok((parent, name))
    }

    /// The real path: of what is there, or of where it would be.
    pub(super) fn path(&self) -> rustix::io::Result<PathBuf> {
        match (&self.place, &self.target) {
            (Some((parent, name)), _) if !self.is_dot() => Ok(path_of(parent)?.join(name)),
            (_, Some(target)) => path_of(target),
            _ => Err(Errno::NOENT),
        }
    }

    /// Whether the last name is `.` or `..`.
    pub(super) fn is_dot(&self) -> bool {
        self.place.as_ref().is_some_and(|(_, name)| name == "." || name == "..")
    }

    /// Fails if the path ends with a slash and leads to something other than a directory.
    pub(super) fn check_slash(&self) -> rustix::io::Result<()> {
        let is_directory = || self.kind().is_none_or(|kind| kind == FileType::Directory);
        if !self.slash || is_directory() { Ok(()) } else { Err(Errno::NOTDIR) }
    }

    /// Whether something is mounted on the name.
    pub(super) fn is_mounted(&self) -> bool {
        self.target.as_ref().is_some_and(|target| {
            let about = statx(target, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
            about.is_ok_and(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        })
    }

    /// What kind of file is there.
    pub(super) fn kind(&self) -> Option<FileType> {
        self.target.as_ref().and_then(kind)
    }
}

/// Resolves paths in the view of one command.
#[derive(Debug)]
pub(super) struct Resolver<'a> {
    pub(super) caller: Caller,
    pub(super) root: &'a OwnedFd,
    pub(super) credentials: Credentials,
    /// The process above all those of the command, if it sees others, too.
    pub(super) keeper: Option<i32>,
}

impl Resolver<'_> {
    /// Finds where a path leads.
    pub(super) fn resolve(&self, given: &GivenPath, last: LastLink) -> rustix::io::Result<Found> {
        let bytes = given.path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        let start = match bytes[0] {
            b'/' => self.root.try_clone().map_err(|_| Errno::MFILE)?,
            _ => self.caller.open_base(given.base)?,
        };
        let slash = given.has_slash();
        let (directory, name) = split(bytes);
        // Without a link on the way the kernel finds it in one step. Links are followed here, since their
        // text is meant for the command's own root and processes.
        let parent = if directory.is_empty() {
            start
        } else {
            let flags = OPEN | OFlags::DIRECTORY;
            let directory_path = OsStr::from_bytes(directory);
            let resolve = ResolveFlags::NO_SYMLINKS;
            let open = || openat2(&start, directory_path, flags, Mode::empty(), resolve);
            // A directory that the command may not search is closed here, too.
            match self.credentials.hold(open) {
                Err(Errno::LOOP) => return self.walk(start, bytes, last, slash),
                opened => opened?,
            }
        };
        self.walk(parent, name, last, slash)
    }

    /// What a descriptor of the caller refers to.
    pub(super) fn descriptor(&self, number: i32) -> rustix::io::Result<Found> {
        let target = self.caller.open_base(Base::Descriptor(number))?;
        Ok(Found { place: None, target: Some(target), slash: false })
    }

    /// Which file has a real path: its device and its number there.
    pub(super) fn identity(&self, path: &Path) -> Option<(u64, u64)> {
        let path = path.strip_prefix("/").ok()?;
        let flags = OPEN | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS;
        let file = openat2(self.root, path, flags, Mode::empty(), resolve).ok()?;
        let status = fstat(file).ok()?;
        Some((status.st_dev, status.st_ino))
    }

    /// Goes from name to name.
    fn walk(
        &self,
        start: OwnedFd,
        path: &[u8],
        last: LastLink,
        mut slash: bool,
    ) -> rustix::io::Result<Found> {
        let (mut here, mut pending, mut links) = (start, names(path), 0);
        loop {
            let Some(name) = pending.pop() else {
                // The path is a root.
                let target = Some(here.try_clone().map_err(|_| Errno::MFILE)?);
                return Ok(Found { place: Some((here, ".".into())), target, slash });
            };
            let is_last = pending.is_empty();
            let open = || openat(&here, &name, OPEN | OFlags::NOFOLLOW, Mode::empty());
            let next = match self.credentials.hold(open) {
                Err(Errno::NOENT) if is_last => {
                    return Ok(Found { place: Some((here, name)), target: None, slash });
                }
                next => next?,
            };
            let is_link = kind(&next) == Some(FileType::Symlink);
            if !is_link && !is_last {
                here = next;
                continue;
            }
            let is_followed = match last {
                LastLink::Follow => true,
                LastLink::Keep => slash,
                LastLink::Name => false,
            };
            if !is_link || (is_last && !is_followed) {
                return Ok(Found { place: Some((here, name)), target: Some(next), slash });
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            let text = match self.text_of_link(&here, &name, &next)? {
                Some(text) => text,
                // A link of `/proc` to an open file.
                None => {
                    self.check_own_process(&here)?;
                    let target = openat(&here, &name, OPEN, Mode::empty())?;
                    if is_last {
                        return Ok(Found { place: None, target: Some(target), slash });
                    }
                    here = target;
                    continue;
                }
            };
            // Behind the text of the last link, a slash means the same as behind the path.
            slash |= is_last && text.ends_with(b"/");
            if text.starts_with(b"/") {
                here = self.root.try_clone().map_err(|_| Errno::MFILE)?;
            }
            pending.extend(names(&text));
        }
    }

    /// Fails for the links of a process that is not the command's: the supervisor may follow them, and the
    /// command may not.
    fn check_own_process(&self, directory: &OwnedFd) -> rustix::io::Result<()> {
        let Some(keeper) = self.keeper else { return Ok(()) };
        let path = path_of(directory)?;
        let process = path.iter().nth(2).and_then(|name| name.to_str()?.parse().ok());
        let is_own = process.is_some_and(|process| is_beneath(process, keeper));
        if is_own { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// The text of a link; nothing, if the kernel leads it somewhere by itself.
    fn text_of_link(
        &self,
        directory: &OwnedFd,
        name: &OsStr,
        link: &OwnedFd,
    ) -> rustix::io::Result<Option<Vec<u8>>> {
        if !is_on_proc(directory) || TEXT_LINKS.iter().any(|text| name == *text) {
            return Ok(Some(readlinkat(link, "", Vec::new())?.into_bytes()));
        }
        let own = match name.as_bytes() {
            b"self" => self.caller.own_process(),
            b"thread-self" => self.caller.own_thread(),
            _ => return Ok(None),
        };
        own.map(|own| Some(own.into_bytes())).ok_or(Errno::SRCH)
    }
}

/// The path up to the last name, and that name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (b"", &path[1..]),
        Some(slash) => {
            let directory = &path[..slash];
            let start = directory.iter().position(|&byte| byte != b'/').unwrap_or(slash);
            (&directory[start..], &path[slash + 1..])
        }
        None => (b"", path),
    }
}

/// The names of a path, the last one first.
fn names(path: &[u8]) -> Vec<OsString> {
    let names = path.rsplit(|&byte| byte == b'/').filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

fn kind(file: &OwnedFd) -> Option<FileType> {
    fstat(file).ok().map(|status| FileType::from_raw_mode(status.st_mode))
}

/// Whether a file is on a file system that shows processes and settings of the kernel.
pub(super) fn is_on_proc(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|status| status.f_type == PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_before_its_last_name() {
        for (path, directory, name) in [
            ("a", "", "a"),
            ("a/", "", "a"),
            ("/a", "", "a"),
            ("//a//b//", "a", "b"),
            ("../a/./b", "../a/.", "b"),
            ("/", "", ""),
            ("a/..", "a", ".."),
        ] {
            let (found_directory, found_name) = split(path.as_bytes());
            let found_directory =
                String::from_utf8_lossy(found_directory).trim_end_matches('/').to_owned();
            assert_eq!(
                (found_directory.as_str(), found_name),
                (directory, name.as_bytes()),
                "{path}"
            );
        }
        assert_eq!(names(b"/a//b/"), ["b", "a"]);
    }
}
