//! Detached mounts, and attaching them to paths.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::write;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::layout::{RESOLVER_CONTENT, Source};
use crate::sandbox::raw_syscalls::{MountAttr, mount_setattr};
use crate::setup_error::{SetupError, context, path_context};

/// Set-user-ID bits and device files have no effect.
const SAFE_ATTRIBUTES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Makes every mount of this namespace read-only, and stops propagation of mounts from outside.
pub(super) fn make_all_read_only() -> io::Result<()> {
    let set = SAFE_ATTRIBUTES | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let change =
        MountAttr { set: bits(set), propagation: libc::MS_PRIVATE, ..MountAttr::default() };
    mount_setattr(CWD, c"/", change)
}

/// A mount that is not attached to any path yet.
pub(super) struct DetachedMount {
    root: OwnedFd,
}

impl DetachedMount {
    /// Clones the tree at a path, with all mounts below it.
    pub(super) fn from_source(source: &Source) -> Result<DetachedMount, SetupError> {
        DetachedMount::from_fd(&source.open()?, &source.path)?.make_safe(&source.path)
    }

    fn make_safe(self, path: &Path) -> Result<DetachedMount, SetupError> {
        let tree = self;
        let change = MountAttr {
            set: bits(SAFE_ATTRIBUTES),
            propagation: libc::MS_PRIVATE,
            ..MountAttr::default()
        };
        path_context("set safe mount attributes on", path, mount_setattr(&tree.root, c"", change))?;
        Ok(tree)
    }

    /// Clones a device file, which stays usable as a device.
    pub(super) fn from_device(path: &Path) -> Result<DetachedMount, SetupError> {
        DetachedMount::clone_at(CWD, path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW)
    }

    /// Clones the tree of a descriptor. `path` is only for error messages.
    pub(super) fn from_fd(place: &OwnedFd, path: &Path) -> Result<DetachedMount, SetupError> {
        let tree = open_tree(place, "", clone_flags() | OpenTreeFlags::AT_EMPTY_PATH);
        Ok(DetachedMount { root: path_context("clone the mount of", path, tree)? })
    }

    fn clone_at(
        directory: impl AsFd,
        path: &Path,
        flags: OpenTreeFlags,
    ) -> Result<DetachedMount, SetupError> {
        Ok(DetachedMount {
            root: path_context(
                "clone the mount of",
                path,
                open_tree(directory, path, clone_flags() | flags),
            )?,
        })
    }

    /// Makes it read-only, with all mounts below it.
    pub(super) fn read_only(self) -> Result<DetachedMount, SetupError> {
        let set = bits(MountAttrFlags::MOUNT_ATTR_RDONLY);
        let change = MountAttr { set, ..MountAttr::default() };
        context("make a mount read-only", mount_setattr(&self.root, c"", change))?;
        Ok(self)
    }

    pub(super) fn is_directory(&self) -> bool {
        let kind = fstat(&self.root).map(|status| FileType::from_raw_mode(status.st_mode));
        kind == Ok(FileType::Directory)
    }

    /// Attaches it to a path, which must not be a symlink.
    pub(super) fn attach(&self, path: &Path) -> Result<(), SetupError> {
        let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        path_context("mount over", path, move_mount(&self.root, "", CWD, path, from))
    }

    /// Attaches it to an open directory or file. `path` is only for error messages.
    pub(super) fn attach_at(&self, place: &OwnedFd, path: &Path) -> Result<(), SetupError> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        path_context("mount over", path, move_mount(&self.root, "", place, "", flags))
    }
}

/// A new file system in memory.
pub(super) struct Tmpfs {
    options: &'static [(&'static str, &'static str)],
}

impl Tmpfs {
    /// For mount points and small files.
    pub(super) fn small() -> Tmpfs {
        Tmpfs { options: &[("mode", "755"), ("size", "16m"), ("nr_inodes", "4096")] }
    }

    /// For shared memory: up to half of the RAM, as outside.
    pub(super) fn large() -> Tmpfs {
        Tmpfs { options: &[("mode", "1777")] }
    }

    pub(super) fn make(self) -> Result<DetachedMount, SetupError> {
        new_file_system("tmpfs", self.options, SAFE_ATTRIBUTES)
    }
}

/// The processes of this namespace. Read-only: root could change settings of the whole system there.
pub(super) fn procfs() -> Result<DetachedMount, SetupError> {
    let attributes =
        SAFE_ATTRIBUTES | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
    new_file_system("proc", &[], attributes)
}

/// New pseudo-terminals.
pub(super) fn devpts() -> Result<DetachedMount, SetupError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    new_file_system("devpts", &[("ptmxmode", "0666"), ("mode", "0620")], attributes)
}

fn new_file_system(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<DetachedMount, SetupError> {
    let make = || -> io::Result<OwnedFd> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            fsconfig_set_string(&context, *key, *value)?;
        }
        fsconfig_create(&context)?;
        Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    };
    Ok(DetachedMount {
        root: path_context("create a file system of type", Path::new(kind), make())?,
    })
}

/// An empty directory and an unreadable file, for covering hidden paths, and the DNS configuration.
pub(super) struct Placeholders {
    mount_point: PathBuf,
}

impl Placeholders {
    /// Mounts both on a path, from which they are cloned.
    pub(super) fn make(place: &Path, with_resolver: bool) -> Result<Placeholders, SetupError> {
        let tree = Tmpfs::small().make()?;
        let fill = || -> io::Result<()> {
            mkdirat(&tree.root, "directory", Mode::from_raw_mode(0o555))?;
            let new = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(&tree.root, "file", new, Mode::empty())?;
            if with_resolver {
                let resolver = openat(&tree.root, "resolver", new, Mode::from_raw_mode(0o444))?;
                write(&resolver, RESOLVER_CONTENT)?;
            }
            Ok(())
        };
        context("create placeholders for hidden paths", fill())?;
        tree.read_only()?.attach(place)?;
        Ok(Placeholders { mount_point: place.to_owned() })
    }

    pub(super) fn directory(&self) -> Result<DetachedMount, SetupError> {
        self.clone_entry("directory")
    }

    pub(super) fn file(&self) -> Result<DetachedMount, SetupError> {
        self.clone_entry("file")
    }

    /// The DNS configuration of commands that connect to hosts by name.
    pub(super) fn resolver(&self) -> Result<DetachedMount, SetupError> {
        self.clone_entry("resolver")
    }

    fn clone_entry(&self, name: &str) -> Result<DetachedMount, SetupError> {
        let path = self.mount_point.join(name);
        DetachedMount::clone_at(CWD, &path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW)?.make_safe(&path)
    }
}

fn clone_flags() -> OpenTreeFlags {
    OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE
}

fn bits(flags: MountAttrFlags) -> u64 {
    u64::from(flags.bits())
}
