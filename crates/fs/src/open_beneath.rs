//! Opens a file beneath a directory descriptor without following any symlink.
//!
//! The kernel does it in one call (`openat2`). If that call is missing — on an old kernel, or behind a
//! container's seccomp filter — each component is opened from the descriptor of the one before, which is
//! slower and just as strict.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RawMode, ResolveFlags, Stat};
use rustix::io::Errno;

/// The kernel fails with EAGAIN when a concurrent rename interferes, which is temporary.
const RETRIES: usize = 64;

/// Whether the kernel refused `openat2`.
static OPENAT2_MISSING: AtomicBool = AtomicBool::new(false);

/// Opens `relative` (a real path without `..`) beneath `root`. Fails with ELOOP if it contains a symlink.
pub(crate) fn open(
    root: BorrowedFd<'_>,
    relative: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    if OPENAT2_MISSING.load(Ordering::Relaxed) {
        return open_stepwise(root, relative, flags, mode, &|_| true).and_then(require_admitted);
    }
    match open_in_one_call(root, relative, flags, mode) {
        // A filter that does not know the call may also return EPERM. The steps decide: a kernel that means
        // it returns it again.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened =
                open_stepwise(root, relative, flags, mode, &|_| true).and_then(require_admitted);
            if opened.is_ok() {
                OPENAT2_MISSING.store(true, Ordering::Relaxed);
            }
            opened
        }
        answer => answer,
    }
}

/// Opens `relative` component by component. `admits` is asked about each directory on the way and about the
/// opened file. Returns `None` if it refuses one of them.
pub(crate) fn open_admitted(
    root: BorrowedFd<'_>,
    relative: &Path,
    flags: OFlags,
    admits: &dyn Fn(BorrowedFd<'_>) -> bool,
) -> Result<Option<OwnedFd>, Errno> {
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    open_stepwise(root, relative, flags, Mode::empty(), admits)
}

/// The opened file, where everything is admitted.
fn require_admitted(opened: Option<OwnedFd>) -> Result<OwnedFd, Errno> {
    opened.ok_or(Errno::ACCESS)
}

/// Opens one directory entry with `O_PATH`, whatever its kind. A symlink is not followed.
pub(crate) fn open_entry(
    directory: BorrowedFd<'_>,
    name: &std::ffi::OsStr,
) -> Result<OwnedFd, Errno> {
    rustix::io::retry_on_intr(|| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(directory, name, flags, Mode::empty())
    })
}

/// The status of a directory entry. A symlink is not followed.
pub(crate) fn stat(directory: BorrowedFd<'_>, name: &std::ffi::OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The status of `relative` (a real path without `..`) beneath `root`. No symlink is followed.
pub(crate) fn stat_beneath(root: BorrowedFd<'_>, relative: &Path) -> Result<Stat, Errno> {
    let (directory, name) = open_parent(root, relative)?;
    stat(directory.as_fd(), name)
}

/// The target of the symlink at `relative` beneath `root`.
pub(crate) fn link_target(root: BorrowedFd<'_>, relative: &Path) -> Result<Vec<u8>, Errno> {
    let (directory, name) = open_parent(root, relative)?;
    Ok(rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes())
}

fn open_parent<'a>(
    root: BorrowedFd<'_>,
    relative: &'a Path,
) -> Result<(OwnedFd, &'a std::ffi::OsStr), Errno> {
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
        return Err(Errno::INVAL);
    };
    Ok((open(root, parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?, name))
}

/// The permission bits of a mode.
pub(crate) fn permissions(stat: &Stat) -> Mode {
    Mode::from_raw_mode((stat.st_mode & 0o7777) as RawMode)
}

fn open_in_one_call(
    root: BorrowedFd<'_>,
    relative: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    let mut answer = Err(Errno::AGAIN);
    for _ in 0..RETRIES {
        answer = rustix::io::retry_on_intr(|| {
            rustix::fs::openat2(root, relative, flags | OFlags::CLOEXEC, mode, resolve)
        });
        if !matches!(answer, Err(Errno::AGAIN)) {
            break;
        }
    }
    answer
}

fn open_stepwise(
    root: BorrowedFd<'_>,
    relative: &Path,
    flags: OFlags,
    mode: Mode,
    admits: &dyn Fn(BorrowedFd<'_>) -> bool,
) -> Result<Option<OwnedFd>, Errno> {
    let names: Vec<_> = relative.components().map(|name| name.as_os_str()).collect();
    let Some((last, parents)) = names.split_last() else {
        return Err(Errno::NOENT);
    };
    let mut directory: Option<OwnedFd> = None;
    for name in parents {
        let from = directory.as_ref().map_or(root, |fd| fd.as_fd());
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let next =
            rustix::io::retry_on_intr(|| rustix::fs::openat(from, *name, flags, Mode::empty()));
        // With these flags the kernel returns ENOTDIR for a symlink.
        let next = match next {
            Err(Errno::NOTDIR) if is_link(from, name) => return Err(Errno::LOOP),
            answer => answer?,
        };
        if !admits(next.as_fd()) {
            return Ok(None);
        }
        directory = Some(next);
    }
    let from = directory.as_ref().map_or(root, |fd| fd.as_fd());
    if flags.contains(OFlags::PATH) && is_link(from, last) {
        return Err(Errno::LOOP);
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| rustix::fs::openat(from, *last, flags, mode))?;
    Ok(admits(opened.as_fd()).then_some(opened))
}

fn is_link(directory: BorrowedFd<'_>, name: &std::ffi::OsStr) -> bool {
    stat(directory, name).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to open must give the same results on the same tree.
    #[test]
    fn openat2_and_stepwise_open_give_the_same_results() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir_all(at("d/e")).unwrap();
        std::fs::write(at("d/e/f"), "x").unwrap();
        std::os::unix::fs::symlink("d", at("link_to_dir")).unwrap();
        std::os::unix::fs::symlink("d/e/f", at("link_to_file")).unwrap();
        std::os::unix::fs::symlink("/etc", at("link_out")).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(tree.path(), flags, Mode::empty()).unwrap();

        let cases = [
            ("d/e/f", Ok(())),
            ("d", Ok(())),
            (".", Ok(())),
            ("d/none", Err(Errno::NOENT)),
            ("d/e/f/g", Err(Errno::NOTDIR)),
            ("link_to_dir/e/f", Err(Errno::LOOP)),
            ("link_to_file", Err(Errno::LOOP)),
            ("link_out/passwd", Err(Errno::LOOP)),
        ];
        for flags in [OFlags::RDONLY, OFlags::PATH] {
            for (path, expected) in cases {
                let path = Path::new(path);
                let in_one_call =
                    open_in_one_call(root.as_fd(), path, flags, Mode::empty()).map(drop);
                let stepwise = open_stepwise(root.as_fd(), path, flags, Mode::empty(), &|_| true);
                let stepwise = stepwise.map(drop);
                assert_eq!((in_one_call, stepwise), (expected, expected), "{path:?} {flags:?}");
            }
        }
    }
}
