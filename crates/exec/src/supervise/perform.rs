//! Performs the calls that change names: each is decided on first, and then made on open directories.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, XattrFlags, chmodat, fstat, ftruncate,
    linkat, mkdirat, mknodat, openat, removexattr, renameat_with, setxattr, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getrlimit};

use super::caller::{path_of, prepare_mode, reopening_path};
use super::operation::{AttributeOf, Operation};
use super::resolve::{Found, GivenPath, LastLink};
use super::review;
use super::{Answer, Call};
use crate::guard::{FileAccess, FileAction, GuardVerdict, NodeKind};
use crate::refusal::DeniedAction;

/// The bits of a mode that `mkdir`, `mknod` and `chmod` take.
const MODE: u32 = 0o7777;

/// `RENAME_WHITEOUT` is of no use to a command, and `renameat2` knows no other flags.
const RENAME_FLAGS: RenameFlags = RenameFlags::NOREPLACE.union(RenameFlags::EXCHANGE);

impl Call<'_> {
    /// Performs a call that changes files.
    pub(super) fn perform(&self, operation: Operation) -> rustix::io::Result<Answer> {
        match operation {
            Operation::Open { file, flags, mode } => return self.open(&file, flags, mode),
            Operation::Truncate { file, length } => self.truncate(&file, length),
            Operation::Remove { file, directory } => self.remove(&file, directory),
            Operation::Rename { from, to, flags } => self.rename(&from, &to, flags),
            Operation::Link { from, to, flags } => self.link(&from, &to, flags),
            Operation::Symlink { target, at } => self.symlink(&target, &at),
            Operation::MakeDirectory { at, mode } => self.make_directory(&at, mode),
            Operation::MakeNode { at, mode, device } => self.make_node(&at, mode, device),
            Operation::ChangeMode { file, mode, follow } => {
                let last = if follow { LastLink::Follow } else { LastLink::Keep };
                let found = self.resolver.resolve(&file, last)?;
                self.change_mode(&found, mode)
            }
            Operation::ChangeModeOf { descriptor, mode } => {
                self.change_mode(&self.resolver.descriptor(descriptor)?, mode)
            }
            Operation::SetAttribute { of, name, value } => self.set_attribute(&of, &name, value),
            Operation::Connect { descriptor, address } => return self.connect(descriptor, address),
            Operation::Bind { descriptor, address } => return self.bind(descriptor, &address),
            Operation::Send { address } => return Ok(self.send(&address)),
            Operation::MakeSocket { family } => return Ok(self.refuse_socket(family)),
        }?;
        Ok(Answer::Value(0))
    }

    fn truncate(&self, file: &GivenPath, length: u64) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(file, LastLink::Follow)?;
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        match found.kind() {
            Some(FileType::RegularFile) => {}
            Some(FileType::Directory) => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        found.check_slash()?;
        let path = self.path_of_target(&found)?;
        if let Some(path) = &path {
            // The content of a file that is reviewed changes as a whole only.
            self.ask_without_review(&[access(path, &found, FileAction::Write)])?;
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || openat(CWD, reopening_path(target), flags, Mode::empty());
        let file = self.told(Some(DeniedAction::Change), path, self.credentials.hold(open))?;
        self.check_size(length, fstat(&file)?.st_size)?;
        self.credentials.hold(|| ftruncate(&file, length))
    }

    /// Fails if a file would grow beyond the limit of the caller. The kernel compares with the limit of the thread
    /// that makes the call, and ends a program that passes its own: so that of this process counts as well.
    fn check_size(&self, length: u64, now: i64) -> rustix::io::Result<()> {
        let own = getrlimit(Resource::Fsize).current;
        let of_caller = self.caller.file_size_limit();
        let grows = i64::try_from(length).is_ok_and(|length| length > now);
        if grows && of_caller.is_some_and(|limit| length > limit) {
            self.check_waiting()?;
            self.caller.signal(Signal::XFSZ);
            return Err(Errno::FBIG);
        }
        if grows && own.is_some_and(|limit| length > limit) { Err(Errno::FBIG) } else { Ok(()) }
    }

    fn remove(&self, file: &GivenPath, directory: bool) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(file, LastLink::Name)?;
        let path = found.path()?;
        let (parent, name) = found.place()?;
        // What fails without a sandbox is no refusal. Git tries to remove each directory that may be empty.
        match (found.kind(), directory) {
            (Some(FileType::Directory), true) if self.has_entries(&found) => {
                return Err(Errno::NOTEMPTY);
            }
            (Some(FileType::Directory), false) => return Err(Errno::ISDIR),
            _ => {}
        }
        // The kernel never removes a dot.
        if found.target.is_some() && !found.is_dot() {
            self.check_not_mounted(DeniedAction::Remove, &found, &path)?;
            self.ask_without_review(&[access(&path, &found, FileAction::Remove)])?;
        }
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = self.credentials.hold(|| unlinkat(parent, &name, flags));
        // That a name is not there is no refusal.
        let path = found.target.is_some().then_some(path);
        self.told(Some(DeniedAction::Remove), path, removed)
    }

    /// Whether there is something in a directory. One that cannot be listed counts as empty.
    fn has_entries(&self, found: &Found) -> bool {
        let Some(target) = found.target.as_ref().filter(|_| !found.is_dot()) else { return false };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = self.credentials.hold(|| {
            let directory = openat(target, ".", flags, Mode::empty())?;
            Dir::read_from(directory)
        });
        let mut names = listed.into_iter().flatten().flatten();
        names.any(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
    }

    fn rename(&self, from: &GivenPath, to: &GivenPath, flags: u32) -> rustix::io::Result<()> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        if !RENAME_FLAGS.contains(flags) {
            return Err(Errno::INVAL);
        }
        let found = |path| self.resolver.resolve(path, LastLink::Name);
        let (from, to) = (found(from)?, found(to)?);
        if from.is_dot() || to.is_dot() {
            let taken = to.is_dot() && flags.contains(RenameFlags::NOREPLACE);
            return Err(if taken { Errno::EXIST } else { Errno::BUSY });
        }
        let (from_path, to_path) = (from.path()?, to.path()?);
        let source = from.kind().map(node_kind).ok_or(Errno::NOENT)?;
        self.check_not_mounted(DeniedAction::Rename, &from, &from_path)?;
        self.check_not_mounted(DeniedAction::Rename, &to, &to_path)?;
        let source_is_directory = source == NodeKind::Directory;
        let mut accesses = vec![
            access(&from_path, &from, FileAction::RenameFrom),
            access(&to_path, &to, FileAction::RenameTo(source)),
        ];
        if flags.contains(RenameFlags::EXCHANGE) {
            let target = to.kind().map(node_kind).ok_or(Errno::NOENT)?;
            // As on file systems that cannot: all that is in them would have to be decided on twice.
            if source_is_directory || target == NodeKind::Directory {
                return Err(Errno::INVAL);
            }
            accesses.push(access(&to_path, &to, FileAction::RenameFrom));
            accesses.push(access(&from_path, &from, FileAction::RenameTo(target)));
        }
        let ((from_parent, from_name), (to_parent, to_name)) = (from.place()?, to.place()?);
        if self.ask(&accesses)? == GuardVerdict::Review {
            if flags.contains(RenameFlags::EXCHANGE) {
                return Err(Errno::ACCESS);
            }
            let replaces = !flags.contains(RenameFlags::NOREPLACE);
            review::rename(self, &from, (to_parent, &to_name, &to_path), replaces)?;
            return self.credentials.hold(|| unlinkat(from_parent, &from_name, AtFlags::empty()));
        }
        let rename = |from: (&OwnedFd, &_), to: (&OwnedFd, &_), flags| {
            self.credentials.hold(|| renameat_with(from.0, from.1, to.0, to.1, flags))
        };
        let renamed = rename((from_parent, &from_name), (to_parent, &to_name), flags);
        self.told(Some(DeniedAction::Rename), Some(to_path.clone()), renamed)?;
        self.still_allowed(to_parent, &to_path, &accesses[1], || {
            rename((to_parent, &to_name), (from_parent, &from_name), flags)
        })
    }

    fn link(&self, from: &GivenPath, to: &GivenPath, flags: u32) -> rustix::io::Result<()> {
        let has = |flag: libc::c_int| flags & flag.unsigned_abs() != 0;
        let source = match (from.path.as_os_str().is_empty(), from.base) {
            (true, super::caller::Base::Descriptor(number)) if has(libc::AT_EMPTY_PATH) => {
                self.resolver.descriptor(number)?
            }
            _ if has(libc::AT_SYMLINK_FOLLOW) => self.resolver.resolve(from, LastLink::Follow)?,
            _ => self.resolver.resolve(from, LastLink::Keep)?,
        };
        let target = source.target.as_ref().ok_or(Errno::NOENT)?;
        source.check_slash()?;
        let kind = source.kind().map(node_kind).ok_or(Errno::NOENT)?;
        let new = self.resolver.resolve(to, LastLink::Name)?;
        let (parent, name) = new.place()?;
        let new_path = new.path()?;
        let made = access(&new_path, &new, FileAction::Create(kind.clone()));
        let mut accesses = Vec::new();
        if let Some(path) = self.path_of_target(&source)? {
            accesses.push(access(&path, &source, FileAction::Link));
        }
        accesses.push(made.clone());
        self.ask_without_review(&accesses)?;
        let linked = self.credentials.hold(|| match (kind, source.place()) {
            // A symbolic link itself can be named only.
            (NodeKind::Symlink, Ok((from, old))) => {
                linkat(from, &old, parent, &name, AtFlags::empty())
            }
            _ => linkat(CWD, reopening_path(target), parent, &name, AtFlags::SYMLINK_FOLLOW),
        });
        self.told(Some(DeniedAction::Make), Some(new_path.clone()), linked)?;
        self.still_allowed(parent, &new_path, &made, || {
            self.credentials.hold(|| unlinkat(parent, &name, AtFlags::empty()))
        })
    }

    fn symlink(&self, target: &PathBuf, at: &GivenPath) -> rustix::io::Result<()> {
        self.make(at, NodeKind::Symlink, |parent, name| symlinkat(target, parent, name))
    }

    fn make_directory(&self, at: &GivenPath, mode: u32) -> rustix::io::Result<()> {
        let mode = Mode::from_raw_mode(mode & MODE);
        let later = prepare_mode(mode, self.caller.umask());
        self.make(at, NodeKind::Directory, |parent, name| {
            mkdirat(parent, name, mode)?;
            later.map_or(Ok(()), |mode| chmodat(parent, name, mode, AtFlags::empty()))
        })
    }

    fn make_node(&self, at: &GivenPath, mode: u32, device: u64) -> rustix::io::Result<()> {
        let kind = match mode & libc::S_IFMT {
            0 => FileType::RegularFile,
            kind => FileType::from_raw_mode(kind),
        };
        let mode = Mode::from_raw_mode(mode & MODE);
        let later = prepare_mode(mode, self.caller.umask());
        self.make(at, node_kind(kind), |parent, name| {
            mknodat(parent, name, kind, mode, device)?;
            later.map_or(Ok(()), |mode| chmodat(parent, name, mode, AtFlags::empty()))
        })
    }

    /// Makes a new name.
    fn make(
        &self,
        at: &GivenPath,
        kind: NodeKind,
        make: impl FnOnce(&OwnedFd, &std::ffi::OsStr) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(at, LastLink::Name)?;
        let (parent, name) = found.place()?;
        if found.target.is_some() {
            return Err(Errno::EXIST);
        }
        let path = found.path()?;
        let is_directory = kind == NodeKind::Directory;
        let made = access(&path, &found, FileAction::Create(kind));
        // A file without content has nothing to review; what is written to it later is.
        self.ask(std::slice::from_ref(&made))?;
        let outcome = self.credentials.hold(|| make(parent, &name));
        self.told(Some(DeniedAction::Make), Some(path.clone()), outcome)?;
        self.still_allowed(parent, &path, &made, || {
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            self.credentials.hold(|| unlinkat(parent, &name, flags))
        })
    }

    fn change_mode(&self, found: &Found, mode: u32) -> rustix::io::Result<()> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        found.check_slash()?;
        let path = self.path_of_target(found)?;
        if found.kind() == Some(FileType::Symlink) {
            return Err(Errno::OPNOTSUPP);
        }
        if let Some(path) = &path {
            self.ask_without_review(&[access(path, found, FileAction::ChangeMode)])?;
        }
        let mode = Mode::from_raw_mode(mode & MODE);
        let change = || chmodat(CWD, reopening_path(target), mode, AtFlags::empty());
        self.told(Some(DeniedAction::Change), path, self.credentials.hold(change))
    }

    /// Sets or removes an extended attribute. An access control list is one, so the same holds as for the mode.
    fn set_attribute(
        &self,
        of: &AttributeOf,
        name: &Path,
        value: Option<(Vec<u8>, u32)>,
    ) -> rustix::io::Result<()> {
        let found = match of {
            AttributeOf::Descriptor(number) => self.resolver.descriptor(*number)?,
            AttributeOf::Path { file, follow: true } => {
                self.resolver.resolve(file, LastLink::Follow)?
            }
            AttributeOf::Path { file, follow: false } => {
                self.resolver.resolve(file, LastLink::Keep)?
            }
        };
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        found.check_slash()?;
        // No command could set one on any of these.
        if !matches!(found.kind(), Some(FileType::RegularFile | FileType::Directory)) {
            return Err(Errno::PERM);
        }
        let path = self.path_of_target(&found)?;
        if let Some(path) = &path {
            self.ask_without_review(&[access(path, &found, FileAction::ChangeMode)])?;
        }
        let file = reopening_path(target);
        let set = || match &value {
            Some((value, flags)) => {
                let flags = XattrFlags::from_bits(*flags).ok_or(Errno::INVAL)?;
                setxattr(file, name, value, flags)
            }
            None => removexattr(file, name),
        };
        self.told(Some(DeniedAction::Change), path, self.credentials.hold(set))
    }

    /// The real path of a file that is there. Nothing, if it has no name any more, so that its content is
    /// lost with the command. An open file that was renamed to where the command does not see it is refused:
    /// a path that cannot be known cannot be decided on.
    pub(super) fn path_of_target(&self, found: &Found) -> rustix::io::Result<Option<PathBuf>> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        let status = fstat(target)?;
        if status.st_nlink == 0 || found.kind() != Some(FileType::RegularFile) {
            return found.path().map(|path| (status.st_nlink != 0).then_some(path));
        }
        let path = found.path()?;
        if found.place().is_ok() {
            return Ok(Some(path));
        }
        let same = self.resolver.identity(&path) == Some((status.st_dev, status.st_ino));
        if same { Ok(Some(path)) } else { Err(Errno::ACCESS) }
    }

    /// Asks once more if the directory was renamed since it was decided on, which takes another program
    /// than the command; and takes the change back if it is not allowed there.
    pub(super) fn still_allowed(
        &self,
        parent: &OwnedFd,
        path: &std::path::Path,
        decided: &FileAccess,
        take_back: impl FnOnce() -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let now = path_of(parent)?.join(path.file_name().unwrap_or_default());
        if now == path {
            return Ok(());
        }
        let moved = FileAccess { path: now, ..decided.clone() };
        match self.ask(std::slice::from_ref(&moved)) {
            Ok(GuardVerdict::Allow) => Ok(()),
            Ok(_) | Err(_) => {
                take_back()?;
                Err(Errno::ACCESS)
            }
        }
    }
}

/// An access to what was found.
pub(super) fn access(path: &std::path::Path, found: &Found, action: FileAction) -> FileAccess {
    FileAccess { path: path.to_owned(), kind: found.kind().map(node_kind), action }
}

fn node_kind(kind: FileType) -> NodeKind {
    match kind {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Directory,
        FileType::Symlink => NodeKind::Symlink,
        _ => NodeKind::Special,
    }
}
