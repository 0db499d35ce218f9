//! From the names of a path to a [`Place`], link by link, never leaving the roots.
//!
//! The root directory of the system may be among the roots. Then no path leads outside; a walk that comes to
//! the path of another root goes on there, as at a mount point, and nothing that is closed is passed.
//!
//! Most paths have no link and no `..` in them: one call to the kernel proves that, and the path is
//! its own answer. Otherwise the names are walked one at a time from the root's handle. A link's
//! target is read and put before the names still to go; an absolute target, or one that climbs above
//! its root, is taken up again only if it lies in some root. What was walked is a list of real
//! names, so that `..` is the real parent and not a guess from the spelling.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{FsError, FsErrorKind};
use crate::file::FileKind;
use crate::open_beneath;
use crate::requested_path::Requested;
use crate::resolved_path::ResolvedPath;
use crate::root::{Root, RootKind, path_names};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Resolves `path`, which if relative starts at `directory`.
pub(crate) fn resolve(
    roots: &[Arc<Root>],
    directory: &ResolvedPath,
    path: &Path,
) -> Result<ResolvedPath, FsError> {
    let requested = Requested::parse(path)?;
    let names_directory = requested.names_directory;
    let mut pending: Vec<OsString> = requested.names.into_iter().rev().collect();
    let root = if requested.absolute {
        enter_root(roots, Vec::new(), &mut pending).ok_or_else(|| outside(path))?
    } else {
        pending.extend(path_names(&directory.relative).into_iter().rev());
        directory.root.clone()
    };
    let at_once = resolve_at_once(roots, &root, &pending);
    if let Some(place) = at_once.filter(|place| !names_directory || is_directory(place)) {
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
    };
    walk.run(pending).map_err(|error| match walk.root.kind() {
        RootKind::System => error.found_outside(),
        _ => error,
    })
}

fn is_directory(place: &ResolvedPath) -> bool {
    place.kind == Some(FileKind::Directory)
}

/// The answer in one call to the kernel, for what exists and has neither links nor `..` in its path.
fn resolve_at_once(
    roots: &[Arc<Root>],
    root: &Arc<Root>,
    pending: &[OsString],
) -> Option<ResolvedPath> {
    // What may be closed is looked at name by name, and so is what may lead into the session's own root.
    let holds_session = |other: &Arc<Root>| {
        other.kind() == RootKind::Session && other.path().starts_with(root.path())
    };
    let by_steps = root.kind() != RootKind::Workspace || roots.iter().any(holds_session);
    if by_steps || pending.iter().any(|name| name == "..") {
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
    /// The real names from the root to where the walk stands.
    real: Vec<OsString>,
    /// The links that were followed, each with its root and the names that came after it.
    links: Vec<(Arc<Root>, PathBuf)>,
    last_link: PathBuf,
    /// Only a directory may be at the end.
    names_directory: bool,
}

impl Walk<'_> {
    /// Walks the names, the next one last in the list.
    fn run(&mut self, mut pending: Vec<OsString>) -> Result<ResolvedPath, FsError> {
        let mut here = self.open_here()?;
        while let Some(name) = pending.pop() {
            if name == ".." {
                if FileKind::of(&self.stat(&here)?) != FileKind::Directory {
                    return Err(self.not_a_directory());
                }
                self.climb(&mut pending)?;
                here = self.open_here()?;
                continue;
            }
            if let Some(root) = self.root_at(&name) {
                self.root = root;
                self.real.clear();
                here = self.open_here()?;
                continue;
            }
            let found = match open_beneath::peek(here.as_fd(), &name) {
                Err(Errno::NOENT) => return self.missing(name, pending),
                Err(Errno::NOTDIR) => return Err(self.not_a_directory()),
                answer => answer.map_err(|errno| self.error("cannot be looked at", errno))?,
            };
            if self.root.closed().is_some_and(|closed| !closed.admits(found.as_fd())) {
                let here = self.root.path().join(self.real.iter().collect::<PathBuf>());
                return Err(FsError::closed(here.join(name)));
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
        Ok(self.arrive(Some(stat)))
    }

    /// The other root whose path is that of this name here.
    fn root_at(&self, name: &OsStr) -> Option<Arc<Root>> {
        if self.roots.len() < 2 {
            return None;
        }
        let mut names = path_names(self.root.path());
        names.extend(self.real.iter().cloned());
        names.push(name.to_owned());
        self.roots.iter().find(|root| root.is_at(&names)).cloned()
    }

    /// One up. Above the root it goes on only if some root is there.
    fn climb(&mut self, pending: &mut Vec<OsString>) -> Result<(), FsError> {
        if self.real.pop().is_some() {
            return Ok(());
        }
        // The root's real path has no links, so its parent is the real one.
        let mut names = path_names(self.root.path());
        if names.pop().is_none() {
            return Ok(());
        }
        self.restart(names, pending)
    }

    /// Puts a link's target before what is still to go.
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
        let way = before.chain(pending.iter().rev().map(OsString::as_os_str)).collect();
        self.links.push((self.root.clone(), way));
        self.last_link = self.real.iter().map(OsString::as_os_str).chain([name]).collect();
        let target = rustix::fs::readlinkat(link, "", Vec::new())
            .map_err(|errno| self.error("leads through a link that cannot be read", errno))?;
        let target = Requested::parse(Path::new(OsStr::from_bytes(target.as_bytes())))?;
        self.names_directory |= target.names_directory;
        if target.absolute {
            return self.restart(target.names, pending);
        }
        pending.extend(target.names.into_iter().rev());
        Ok(())
    }

    /// Goes on from an absolute path, if it is in some root.
    fn restart(
        &mut self,
        names: Vec<OsString>,
        pending: &mut Vec<OsString>,
    ) -> Result<(), FsError> {
        self.root = enter_root(self.roots, names, pending).ok_or_else(|| self.outside())?;
        self.real.clear();
        Ok(())
    }

    /// Nothing has this name: the place can be created, if only plain names follow.
    fn missing(&mut self, name: OsString, pending: Vec<OsString>) -> Result<ResolvedPath, FsError> {
        self.real.push(name);
        if pending.iter().any(|name| name == "..") {
            return Err(FsError::new(FsErrorKind::NotFound, self.path, "does not exist"));
        }
        if self.names_directory {
            let detail = "does not exist; a path that ends with a slash names a directory";
            return Err(FsError::new(FsErrorKind::NotFound, self.path, detail));
        }
        self.real.extend(pending.into_iter().rev());
        Ok(self.arrive(None))
    }

    fn arrive(&mut self, stat: Option<Stat>) -> ResolvedPath {
        let relative = self.real.iter().collect();
        innermost(self.roots, &self.root, relative, stat, std::mem::take(&mut self.links))
    }

    fn open_here(&self) -> Result<OwnedFd, FsError> {
        let relative: PathBuf = self.real.iter().collect();
        self.root.open_beneath(&relative, OFlags::PATH, "cannot be looked at")
    }

    fn stat(&self, handle: &OwnedFd) -> Result<Stat, FsError> {
        rustix::fs::fstat(handle).map_err(|errno| self.error("cannot be looked at", errno))
    }

    fn error(&self, doing: &str, errno: Errno) -> FsError {
        FsError::from_errno(self.path, doing, errno)
    }

    fn not_a_directory(&self) -> FsError {
        let file: PathBuf = self.real.iter().collect();
        let detail = format!("does not exist: {} is not a directory", file.display());
        FsError::new(FsErrorKind::NotFound, self.path, detail)
    }

    fn ends_with_slash(&self) -> FsError {
        let file: PathBuf = self.real.iter().collect();
        let detail =
            format!("does not exist: {} is a file, and the path ends with a slash", file.display());
        FsError::new(FsErrorKind::NotFound, self.path, detail)
    }

    fn outside(&self) -> FsError {
        if self.links.is_empty() {
            return outside(self.path);
        }
        let link = self.last_link.display();
        let detail = format!("leads outside the workspace through the link {link}");
        FsError::new(FsErrorKind::Outside, self.path, detail)
    }
}

fn outside(path: &Path) -> FsError {
    FsError::new(FsErrorKind::Outside, path, "is outside the workspace")
}

/// Follows an absolute path, given by its first names and those pending, down to where it enters a
/// root; what is left to walk there is put back. Above the roots nothing on disk is looked at, so
/// nothing about it can be told. If the whole system is a root, every path is in one from its first name on:
/// the walk begins in the innermost root that the names before the first `..` lead into.
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

/// The innermost root that an absolute path is in, and the names beneath it.
fn find_root<'a>(
    roots: &'a [Arc<Root>],
    names: &'a [OsString],
) -> Option<(&'a Arc<Root>, &'a [OsString])> {
    roots
        .iter()
        .filter_map(|root| root.names_beneath(names).map(|rest| (root, rest)))
        .min_by_key(|(_, rest)| rest.len())
}

/// A root within a root has its own mode, so a place belongs to the innermost one.
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
