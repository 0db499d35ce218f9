//! Resolves the components of a path to a [`ResolvedPath`], symlink by symlink, never leaving the roots.
//!
//! The root directory of the system may be among the roots. Then no path leads outside; when a walk reaches
//! the path of another root, it continues there, as at a mount point, and forbidden files are never passed.
//!
//! Most paths contain no symlink and no `..`: one system call proves that, and the path is its own result.
//! Otherwise the components are walked one at a time from the root's descriptor. The target of a symlink is
//! put before the remaining components; an absolute target, or one that climbs above its root, is followed
//! only if it is in some root. The walked components are real names, so that `..` is the real parent and not
//! derived from the spelling.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{FsError, FsErrorKind};
use crate::file_kind::FileKind;
use crate::open_beneath;
use crate::real_path::path_names;
use crate::requested_path::RequestedPath;
use crate::resolved_path::ResolvedPath;
use crate::root::{Root, RootKind, join};

/// The limit of the kernel.
const MAX_LINKS: usize = 40;

/// Resolves `path`. A relative path starts at `directory`.
pub(crate) fn resolve(
    roots: &[Arc<Root>],
    directory: &ResolvedPath,
    path: &Path,
) -> Result<ResolvedPath, FsError> {
    let requested = RequestedPath::parse(path)?;
    let names_directory = requested.names_directory;
    let mut pending: Vec<OsString> = requested.names.into_iter().rev().collect();
    let root = if requested.absolute {
        enter_root(roots, Vec::new(), &mut pending).ok_or_else(|| outside(path))?
    } else {
        pending.extend(path_names(&directory.relative).into_iter().rev());
        directory.root.clone()
    };
    let resolved = resolve_in_one_call(roots, &root, &pending);
    if let Some(place) = resolved.filter(|place| !names_directory || is_directory(place)) {
        return Ok(place);
    }
    let mut walk = Walk {
        roots,
        path,
        root,
        real: Vec::new(),
        links: Vec::new(),
        last_link: PathBuf::new(),
        names_directory,
        directory_link: PathBuf::new(),
    };
    walk.run(pending).map_err(|error| match walk.root.kind() {
        RootKind::System => error.found_outside(),
        _ => error,
    })
}

fn is_directory(place: &ResolvedPath) -> bool {
    place.kind == Some(FileKind::Directory)
}

/// Resolves a path that exists and contains neither symlinks nor `..`, in one system call. `None` for other
/// paths.
fn resolve_in_one_call(
    roots: &[Arc<Root>],
    root: &Arc<Root>,
    pending: &[OsString],
) -> Option<ResolvedPath> {
    // Paths that may be forbidden, or may lead into the session's own root, are resolved component by
    // component.
    let holds_session = |other: &Arc<Root>| {
        other.kind() == RootKind::Session && other.path().starts_with(root.path())
    };
    let stepwise = root.kind() != RootKind::Workspace || roots.iter().any(holds_session);
    if stepwise || pending.iter().any(|name| name == "..") {
        return None;
    }
    let relative: PathBuf = pending.iter().rev().collect();
    let handle = open_beneath::open(root.handle(), &relative, OFlags::PATH, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&handle).ok()?;
    Some(innermost(roots, root, relative, Some(stat), Vec::new()))
}

struct Walk<'a> {
    roots: &'a [Arc<Root>],
    path: &'a Path,
    root: Arc<Root>,
    /// The real names from the root to the current directory.
    real: Vec<OsString>,
    /// The symlinks that were followed, each as its root and its path with the remaining components.
    links: Vec<(Arc<Root>, PathBuf)>,
    last_link: PathBuf,
    /// The path must lead to a directory.
    names_directory: bool,
    /// The symlink whose target says so, unless the path itself does.
    directory_link: PathBuf,
}

impl Walk<'_> {
    /// Walks the components. The next one is last in the list.
    fn run(&mut self, mut pending: Vec<OsString>) -> Result<ResolvedPath, FsError> {
        let mut here = self.open_here()?;
        while let Some(name) = pending.pop() {
            if name == ".." {
                if FileKind::of(&self.stat(&here)?) != FileKind::Directory {
                    return Err(self.not_a_directory());
                }
                self.go_to_parent(&mut pending)?;
                here = self.open_here()?;
                continue;
            }
            if let Some(root) = self.root_at(&name) {
                self.root = root;
                self.real.clear();
                here = self.open_here()?;
                continue;
            }
            let found = match open_beneath::open_entry(here.as_fd(), &name) {
                Err(Errno::NOENT) => return self.missing(name, pending),
                Err(Errno::NOTDIR) => return Err(self.not_a_directory()),
                answer => answer.map_err(|errno| self.error("cannot be inspected", errno))?,
            };
            if self.root.forbidden().is_some_and(|forbidden| !forbidden.admits(found.as_fd())) {
                let here = self.root.path().join(self.real.iter().collect::<PathBuf>());
                return Err(FsError::forbidden(here.join(name)));
            }
            if FileType::from_raw_mode(self.stat(&found)?.st_mode) == FileType::Symlink {
                self.follow(&found, &name, &mut pending)?;
                here = self.open_here()?;
                continue;
            }
            self.real.push(name);
            here = found;
        }
        let stat = self.stat(&here)?;
        if self.names_directory && FileKind::of(&stat) != FileKind::Directory {
            return Err(self.ends_with_slash());
        }
        Ok(self.finish(Some(stat)))
    }

    /// The other root at this name in the current directory.
    fn root_at(&self, name: &OsStr) -> Option<Arc<Root>> {
        if self.roots.len() < 2 {
            return None;
        }
        let mut names = path_names(self.root.path());
        names.extend(self.real.iter().cloned());
        names.push(name.to_owned());
        self.roots.iter().find(|root| root.is_at(&names)).cloned()
    }

    /// Goes to the parent directory. Above the root this fails unless another root is there.
    fn go_to_parent(&mut self, pending: &mut Vec<OsString>) -> Result<(), FsError> {
        if self.real.pop().is_some() {
            return Ok(());
        }
        // The root's real path has no symlinks, so its parent is the real one.
        let mut names = path_names(self.root.path());
        if names.pop().is_none() {
            return Ok(());
        }
        self.restart(names, pending)
    }

    /// Puts the target of a symlink before the remaining components.
    fn follow(
        &mut self,
        link: &OwnedFd,
        name: &OsStr,
        pending: &mut Vec<OsString>,
    ) -> Result<(), FsError> {
        if self.links.len() >= MAX_LINKS {
            let target = rustix::fs::readlinkat(link, "", Vec::new()).unwrap_or_default();
            let detail = format!(
                "leads through more than {MAX_LINKS} symlinks (ELOOP), the last {} → {}",
                self.real
                    .iter()
                    .map(OsString::as_os_str)
                    .chain([name])
                    .collect::<PathBuf>()
                    .display(),
                target.to_string_lossy(),
            );
            return Err(FsError::new(FsErrorKind::Io, self.path, detail));
        }
        let before = self.real.iter().map(OsString::as_os_str).chain([name]);
        let path = before.chain(pending.iter().rev().map(OsString::as_os_str)).collect();
        self.links.push((self.root.clone(), path));
        self.last_link = self.real.iter().map(OsString::as_os_str).chain([name]).collect();
        let target = rustix::fs::readlinkat(link, "", Vec::new())
            .map_err(|errno| self.error("leads through a symlink that cannot be read", errno))?;
        let target = RequestedPath::parse(Path::new(OsStr::from_bytes(target.as_bytes())))?;
        // Elsewhere in the path, a symlink leads to a directory anyway.
        if target.names_directory && pending.is_empty() && !self.names_directory {
            self.names_directory = true;
            self.directory_link = self.shown(&self.last_link);
        }
        if target.absolute {
            return self.restart(target.names, pending);
        }
        pending.extend(target.names.into_iter().rev());
        Ok(())
    }

    /// Continues at an absolute path. Fails if it is in no root.
    fn restart(
        &mut self,
        names: Vec<OsString>,
        pending: &mut Vec<OsString>,
    ) -> Result<(), FsError> {
        self.root = enter_root(self.roots, names, pending).ok_or_else(|| self.outside())?;
        self.real.clear();
        Ok(())
    }

    /// The name does not exist: the path can be created if no `..` follows.
    fn missing(&mut self, name: OsString, pending: Vec<OsString>) -> Result<ResolvedPath, FsError> {
        self.real.push(name);
        if pending.iter().any(|name| name == "..") {
            return Err(FsError::new(FsErrorKind::NotFound, self.path, "does not exist"));
        }
        if self.names_directory {
            let slash = self.with_slash();
            let detail =
                format!("does not exist; {slash} ends with a slash, so it names a directory");
            return Err(FsError::new(FsErrorKind::NotFound, self.path, detail));
        }
        self.real.extend(pending.into_iter().rev());
        Ok(self.finish(None))
    }

    fn finish(&mut self, stat: Option<Stat>) -> ResolvedPath {
        let relative = self.real.iter().collect();
        innermost(self.roots, &self.root, relative, stat, std::mem::take(&mut self.links))
    }

    fn open_here(&self) -> Result<OwnedFd, FsError> {
        let relative: PathBuf = self.real.iter().collect();
        self.root.open_beneath(&relative, OFlags::PATH, "cannot be inspected")
    }

    fn stat(&self, handle: &OwnedFd) -> Result<Stat, FsError> {
        rustix::fs::fstat(handle).map_err(|errno| self.error("cannot be inspected", errno))
    }

    fn error(&self, doing: &str, errno: Errno) -> FsError {
        FsError::from_errno(self.path, doing, errno)
    }

    fn not_a_directory(&self) -> FsError {
        let detail = format!("does not exist: {} is not a directory", self.here().display());
        FsError::new(FsErrorKind::NotFound, self.path, detail)
    }

    fn ends_with_slash(&self) -> FsError {
        let (file, slash) = (self.here(), self.with_slash());
        let detail =
            format!("does not exist: {} is a file, and {slash} ends with a slash", file.display());
        FsError::new(FsErrorKind::NotFound, self.path, detail)
    }

    /// The path that ends with a slash and so must lead to a directory.
    fn with_slash(&self) -> String {
        if self.directory_link.as_os_str().is_empty() {
            return "the path".to_owned();
        }
        format!("the target of the symlink {}", self.directory_link.display())
    }

    /// The current file, as messages show it.
    fn here(&self) -> PathBuf {
        self.shown(&self.real.iter().collect::<PathBuf>())
    }

    /// A path in the current root, as messages show it: absolute if it is outside the workspace.
    fn shown(&self, relative: &Path) -> PathBuf {
        match self.root.kind() {
            RootKind::Workspace => relative.to_owned(),
            RootKind::Session | RootKind::System => join(self.root.path(), relative),
        }
    }

    fn outside(&self) -> FsError {
        if self.links.is_empty() {
            return outside(self.path);
        }
        let link = self.last_link.display();
        let detail = format!("leads outside the workspace through the symlink {link}");
        FsError::new(FsErrorKind::Outside, self.path, detail)
    }
}

fn outside(path: &Path) -> FsError {
    FsError::new(FsErrorKind::Outside, path, "is outside the workspace")
}

/// Follows an absolute path, given by its first and its pending components, to where it enters a root; puts
/// the remaining components back. Above the roots, the disk is not read, so that nothing about it is
/// revealed. If the whole system is a root, every path is in a root from the start: the walk begins in the
/// innermost root that contains the components before the first `..`.
fn enter_root(
    roots: &[Arc<Root>],
    first: Vec<OsString>,
    pending: &mut Vec<OsString>,
) -> Option<Arc<Root>> {
    pending.extend(first.into_iter().rev());
    let mut names = Vec::new();
    if roots.iter().any(|root| root.kind() == RootKind::System) {
        while let Some(name) = pending.pop_if(|name| name != "..") {
            names.push(name);
        }
    }
    loop {
        if let Some((root, rest)) = find_root(roots, &names) {
            pending.extend(rest.iter().rev().cloned());
            return Some(root.clone());
        }
        match pending.pop()? {
            up if up == ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
}

/// The innermost root of an absolute path, and the components beneath it.
fn find_root<'a>(
    roots: &'a [Arc<Root>],
    names: &'a [OsString],
) -> Option<(&'a Arc<Root>, &'a [OsString])> {
    roots
        .iter()
        .filter_map(|root| root.names_beneath(names).map(|rest| (root, rest)))
        .min_by_key(|(_, rest)| rest.len())
}

/// Assigns a path to its innermost root: a root within a root has its own mode.
fn innermost(
    roots: &[Arc<Root>],
    root: &Arc<Root>,
    relative: PathBuf,
    stat: Option<Stat>,
    links: Vec<(Arc<Root>, PathBuf)>,
) -> ResolvedPath {
    let names = path_names(&root.path().join(&relative));
    let (root, relative) = match find_root(roots, &names) {
        Some((root, rest)) if roots.len() > 1 => (root, rest.iter().collect()),
        _ => (root, relative),
    };
    let kind = stat.as_ref().map(FileKind::of);
    let mode = stat.as_ref().map(|stat| open_beneath::permissions(stat).as_raw_mode());
    ResolvedPath { root: root.clone(), relative, kind, mode, links }
}
