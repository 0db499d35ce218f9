//! Performs calls that change directory entries: each is decided on, then made relative to open directories.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, XattrFlags, chmodat, fstat, ftruncate,
    linkat, mkdirat, mknodat, openat, removexattr, renameat_with, setxattr, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getrlimit};

use super::caller::{apply_umask, proc_fd_path, real_path};
use super::content_review;
use super::operation::{AttributeTarget, Operation};
use super::resolve::{FinalSymlink, GivenPath, Resolved};
use super::{Call, Response};
use crate::guard::{FileAccess, FileAction, GuardVerdict, NodeKind};
use crate::refusal::DeniedAction;

/// The mode bits that `mkdir`, `mknod` and `chmod` accept.
const MODE_BITS: u32 = 0o7777;

/// `RENAME_WHITEOUT` is useless to a command, and `renameat2` knows no other flags.
const RENAME_FLAGS: RenameFlags = RenameFlags::NOREPLACE.union(RenameFlags::EXCHANGE);

impl Call<'_> {
    /// Performs a call and returns the response.
    pub(super) fn perform(&self, operation: Operation) -> rustix::io::Result<Response> {
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
                let last = if follow { FinalSymlink::Follow } else { FinalSymlink::Keep };
                let found = self.resolver.resolve(&file, last)?;
                self.change_mode(&found, mode)
            }
            Operation::ChangeModeOf { descriptor, mode } => {
                self.change_mode(&self.resolver.descriptor(descriptor)?, mode)
            }
            Operation::SetAttribute { of, name, value } => self.set_attribute(&of, &name, value),
            Operation::Connect { descriptor, address } => return self.connect(descriptor, address),
            Operation::Bind { descriptor, address } => return self.bind(descriptor, &address),
            Operation::Send { address, flags } => return Ok(self.send(&address, flags)),
            Operation::MakeSocket { family, kind, protocol } => {
                return Ok(self.make_socket(family, kind, protocol));
            }
        }?;
        Ok(Response::Value(0))
    }

    fn truncate(&self, file: &GivenPath, length: u64) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(file, FinalSymlink::Follow)?;
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        match found.kind() {
            Some(FileType::RegularFile) => {}
            Some(FileType::Directory) => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        found.check_slash()?;
        let path = self.path_of_target(&found)?;
        if let Some(path) = &path {
            // The content of a reviewed file only changes as a whole.
            self.ask_guard_without_review(&[access(path, &found, FileAction::Write)])?;
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || openat(CWD, proc_fd_path(target), flags, Mode::empty());
        let file =
            self.report_if_denied(Some(DeniedAction::Change), path, self.credentials.run_as(open))?;
        self.check_size(length, fstat(&file)?.st_size)?;
        self.credentials.run_as(|| ftruncate(&file, length))
    }

    /// Fails if a file would grow beyond the limit of the caller. The kernel checks the limit of the thread
    /// that makes the call, and kills a program that exceeds its own: so the limit of this process counts,
    /// too.
    fn check_size(&self, length: u64, now: i64) -> rustix::io::Result<()> {
        let own = getrlimit(Resource::Fsize).current;
        let of_caller = self.caller.file_size_limit();
        let grows = i64::try_from(length).is_ok_and(|length| length > now);
        if grows && of_caller.is_some_and(|limit| length > limit) {
            self.check_still_pending()?;
            self.caller.signal(Signal::XFSZ);
            return Err(Errno::FBIG);
        }
        if grows && own.is_some_and(|limit| length > limit) { Err(Errno::FBIG) } else { Ok(()) }
    }

    fn remove(&self, file: &GivenPath, directory: bool) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(file, FinalSymlink::Name)?;
        let path = found.path()?;
        let (parent, name) = found.parent_and_name()?;
        // A call that fails without a sandbox is not a denial. Git tries to remove each directory that may be
        // empty.
        match (found.kind(), directory) {
            (Some(FileType::Directory), true) if self.has_entries(&found) => {
                return Err(Errno::NOTEMPTY);
            }
            (Some(FileType::Directory), false) => return Err(Errno::ISDIR),
            _ => {}
        }
        // The kernel never removes `.`.
        if found.target.is_some() && !found.is_dot() {
            self.check_not_mounted(DeniedAction::Remove, &found, &path)?;
            self.ask_guard_without_review(&[access(&path, &found, FileAction::Remove)])?;
        }
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = self.credentials.run_as(|| unlinkat(parent, &name, flags));
        // A missing file is not a denial.
        let path = found.target.is_some().then_some(path);
        self.report_if_denied(Some(DeniedAction::Remove), path, removed)
    }

    /// Whether a directory has entries. One that cannot be listed counts as empty.
    fn has_entries(&self, found: &Resolved) -> bool {
        let Some(target) = found.target.as_ref().filter(|_| !found.is_dot()) else { return false };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = self.credentials.run_as(|| {
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
        let found = |path| self.resolver.resolve(path, FinalSymlink::Name);
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
            // As on file systems without exchange: all entries in both would have to be decided on.
            if source_is_directory || target == NodeKind::Directory {
                return Err(Errno::INVAL);
            }
            accesses.push(access(&to_path, &to, FileAction::RenameFrom));
            accesses.push(access(&from_path, &from, FileAction::RenameTo(target)));
        }
        let ((from_parent, from_name), (to_parent, to_name)) =
            (from.parent_and_name()?, to.parent_and_name()?);
        if self.ask_guard(&accesses)? == GuardVerdict::Review {
            if flags.contains(RenameFlags::EXCHANGE) {
                return Err(Errno::ACCESS);
            }
            let replaces = !flags.contains(RenameFlags::NOREPLACE);
            content_review::rename_reviewed(
                self,
                &from,
                (to_parent, &to_name, &to_path),
                replaces,
            )?;
            return self.credentials.run_as(|| unlinkat(from_parent, &from_name, AtFlags::empty()));
        }
        let rename = |from: (&OwnedFd, &_), to: (&OwnedFd, &_), flags| {
            self.credentials.run_as(|| renameat_with(from.0, from.1, to.0, to.1, flags))
        };
        let renamed = rename((from_parent, &from_name), (to_parent, &to_name), flags);
        self.report_if_denied(Some(DeniedAction::Rename), Some(to_path.clone()), renamed)?;
        self.recheck_after_parent_moved(to_parent, &to_path, &accesses[1], || {
            rename((to_parent, &to_name), (from_parent, &from_name), flags)
        })
    }

    fn link(&self, from: &GivenPath, to: &GivenPath, flags: u32) -> rustix::io::Result<()> {
        let has = |flag: libc::c_int| flags & flag.unsigned_abs() != 0;
        let source = match (from.path.as_os_str().is_empty(), from.base) {
            (true, super::caller::Base::Descriptor(number)) if has(libc::AT_EMPTY_PATH) => {
                self.resolver.descriptor(number)?
            }
            _ if has(libc::AT_SYMLINK_FOLLOW) => {
                self.resolver.resolve(from, FinalSymlink::Follow)?
            }
            _ => self.resolver.resolve(from, FinalSymlink::Keep)?,
        };
        let target = source.target.as_ref().ok_or(Errno::NOENT)?;
        source.check_slash()?;
        let kind = source.kind().map(node_kind).ok_or(Errno::NOENT)?;
        let new = self.resolver.resolve(to, FinalSymlink::Name)?;
        let (parent, name) = new.parent_and_name()?;
        // A call that fails without a sandbox is not a denial. libgit2 then renames the file.
        if new.target.is_some() {
            return Err(Errno::EXIST);
        }
        let new_path = new.path()?;
        let made = access(&new_path, &new, FileAction::Create(kind.clone()));
        let mut accesses = Vec::new();
        if let Some(path) = self.path_of_target(&source)? {
            accesses.push(access(&path, &source, FileAction::Link));
        }
        accesses.push(made.clone());
        self.ask_guard_without_review(&accesses)?;
        let linked = self.credentials.run_as(|| match (kind, source.parent_and_name()) {
            // A symlink itself can only be linked by its name.
            (NodeKind::Symlink, Ok((from, old))) => {
                linkat(from, &old, parent, &name, AtFlags::empty())
            }
            _ => linkat(CWD, proc_fd_path(target), parent, &name, AtFlags::SYMLINK_FOLLOW),
        });
        self.report_if_denied(Some(DeniedAction::Make), Some(new_path.clone()), linked)?;
        self.recheck_after_parent_moved(parent, &new_path, &made, || {
            self.credentials.run_as(|| unlinkat(parent, &name, AtFlags::empty()))
        })
    }

    fn symlink(&self, target: &PathBuf, at: &GivenPath) -> rustix::io::Result<()> {
        self.make(at, NodeKind::Symlink, |parent, name| symlinkat(target, parent, name))
    }

    fn make_directory(&self, at: &GivenPath, mode: u32) -> rustix::io::Result<()> {
        let mode = Mode::from_raw_mode(mode & MODE_BITS);
        let mode_to_set = apply_umask(mode, self.caller.umask());
        self.make(at, NodeKind::Directory, |parent, name| {
            mkdirat(parent, name, mode)?;
            mode_to_set.map_or(Ok(()), |mode| chmodat(parent, name, mode, AtFlags::empty()))
        })
    }

    fn make_node(&self, at: &GivenPath, mode: u32, device: u64) -> rustix::io::Result<()> {
        let kind = match mode & libc::S_IFMT {
            0 => FileType::RegularFile,
            kind => FileType::from_raw_mode(kind),
        };
        let mode = Mode::from_raw_mode(mode & MODE_BITS);
        let mode_to_set = apply_umask(mode, self.caller.umask());
        self.make(at, node_kind(kind), |parent, name| {
            mknodat(parent, name, kind, mode, device)?;
            mode_to_set.map_or(Ok(()), |mode| chmodat(parent, name, mode, AtFlags::empty()))
        })
    }

    /// Creates a directory entry.
    fn make(
        &self,
        at: &GivenPath,
        kind: NodeKind,
        make: impl FnOnce(&OwnedFd, &std::ffi::OsStr) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let found = self.resolver.resolve(at, FinalSymlink::Name)?;
        let (parent, name) = found.parent_and_name()?;
        if found.target.is_some() {
            return Err(Errno::EXIST);
        }
        let path = found.path()?;
        let is_directory = kind == NodeKind::Directory;
        let made = access(&path, &found, FileAction::Create(kind));
        // An empty file has no content to review. Later writes are reviewed.
        self.ask_guard(std::slice::from_ref(&made))?;
        let outcome = self.credentials.run_as(|| make(parent, &name));
        self.report_if_denied(Some(DeniedAction::Make), Some(path.clone()), outcome)?;
        self.recheck_after_parent_moved(parent, &path, &made, || {
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            self.credentials.run_as(|| unlinkat(parent, &name, flags))
        })
    }

    fn change_mode(&self, found: &Resolved, mode: u32) -> rustix::io::Result<()> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        found.check_slash()?;
        let path = self.path_of_target(found)?;
        if found.kind() == Some(FileType::Symlink) {
            return Err(Errno::OPNOTSUPP);
        }
        if let Some(path) = &path {
            self.ask_guard_without_review(&[access(path, found, FileAction::ChangeMode)])?;
        }
        let mode = Mode::from_raw_mode(mode & MODE_BITS);
        let change = || chmodat(CWD, proc_fd_path(target), mode, AtFlags::empty());
        self.report_if_denied(Some(DeniedAction::Change), path, self.credentials.run_as(change))
    }

    /// Sets or removes an extended attribute. An access control list is one, so the rules of the mode apply.
    fn set_attribute(
        &self,
        of: &AttributeTarget,
        name: &Path,
        value: Option<(Vec<u8>, u32)>,
    ) -> rustix::io::Result<()> {
        let found = match of {
            AttributeTarget::Descriptor(number) => self.resolver.descriptor(*number)?,
            AttributeTarget::Path { file, follow: true } => {
                self.resolver.resolve(file, FinalSymlink::Follow)?
            }
            AttributeTarget::Path { file, follow: false } => {
                self.resolver.resolve(file, FinalSymlink::Keep)?
            }
        };
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        found.check_slash()?;
        // A command cannot set attributes of other kinds of files.
        if !matches!(found.kind(), Some(FileType::RegularFile | FileType::Directory)) {
            return Err(Errno::PERM);
        }
        let path = self.path_of_target(&found)?;
        if let Some(path) = &path {
            self.ask_guard_without_review(&[access(path, &found, FileAction::ChangeMode)])?;
        }
        let file = proc_fd_path(target);
        let set = || match &value {
            Some((value, flags)) => {
                let flags = XattrFlags::from_bits(*flags).ok_or(Errno::INVAL)?;
                setxattr(file, name, value, flags)
            }
            None => removexattr(file, name),
        };
        self.report_if_denied(Some(DeniedAction::Change), path, self.credentials.run_as(set))
    }

    /// The real path of an existing file. `None` if it has no name any more, so that its content is lost with
    /// the command. Fails for an open file that was moved out of the command's view: without a path there can
    /// be no decision.
    pub(super) fn path_of_target(&self, found: &Resolved) -> rustix::io::Result<Option<PathBuf>> {
        let target = found.target.as_ref().ok_or(Errno::NOENT)?;
        let status = fstat(target)?;
        if status.st_nlink == 0 || found.kind() != Some(FileType::RegularFile) {
            return found.path().map(|path| (status.st_nlink != 0).then_some(path));
        }
        let path = found.path()?;
        if found.parent_and_name().is_ok() {
            return Ok(Some(path));
        }
        let same = self.resolver.identity(&path) == Some((status.st_dev, status.st_ino));
        if same { Ok(Some(path)) } else { Err(Errno::ACCESS) }
    }

    /// Asks again if the parent directory was renamed since the decision, which takes a program other than
    /// the command. Reverts the change if it is not allowed there.
    pub(super) fn recheck_after_parent_moved(
        &self,
        parent: &OwnedFd,
        path: &std::path::Path,
        decided: &FileAccess,
        revert: impl FnOnce() -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let now = real_path(parent)?.join(path.file_name().unwrap_or_default());
        if now == path {
            return Ok(());
        }
        let moved = FileAccess { path: now, ..decided.clone() };
        match self.ask_guard(std::slice::from_ref(&moved)) {
            Ok(GuardVerdict::Allow) => Ok(()),
            Ok(_) | Err(_) => {
                revert()?;
                Err(Errno::ACCESS)
            }
        }
    }
}

/// An access to a resolved path.
pub(super) fn access(path: &std::path::Path, found: &Resolved, action: FileAction) -> FileAccess {
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
