//! Trees of files that are not anywhere yet, and laying them over places.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::layout::Source;
use crate::sandbox::syscalls::{MountChange, change_mounts};
use crate::setup_error::{Failure, at, plainly};

/// Programs of other users give no rights, and devices are files without a function.
const HARMLESS: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Makes every mount of this namespace read-only, and deaf to what is mounted outside.
pub(super) fn make_all_read_only() -> io::Result<()> {
    let set = HARMLESS | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let change =
        MountChange { set: bits(set), propagation: libc::MS_PRIVATE, ..MountChange::default() };
    change_mounts(CWD, c"/", change)
}

/// A tree of files that is not anywhere yet.
pub(super) struct Tree {
    root: OwnedFd,
}

impl Tree {
    /// What is in a place, with all that is mounted below it.
    pub(super) fn of(source: &Source) -> Result<Tree, Failure> {
        Tree::of_open(&source.open()?, &source.path)?.harmless(&source.path)
    }

    fn harmless(self, path: &Path) -> Result<Tree, Failure> {
        let tree = self;
        let change = MountChange {
            set: bits(HARMLESS),
            propagation: libc::MS_PRIVATE,
            ..MountChange::default()
        };
        at("make harmless", path, change_mounts(&tree.root, c"", change))?;
        Ok(tree)
    }

    /// The same as it is: a device stays one.
    pub(super) fn of_device(path: &Path) -> Result<Tree, Failure> {
        Tree::clone_of(CWD, path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW)
    }

    /// What is open; `path` is for words only.
    pub(super) fn of_open(place: &OwnedFd, path: &Path) -> Result<Tree, Failure> {
        let tree = open_tree(place, "", clone_flags() | OpenTreeFlags::AT_EMPTY_PATH);
        Ok(Tree { root: at("take", path, tree)? })
    }

    fn clone_of(directory: impl AsFd, path: &Path, flags: OpenTreeFlags) -> Result<Tree, Failure> {
        Ok(Tree { root: at("take", path, open_tree(directory, path, clone_flags() | flags))? })
    }

    /// The same, read-only with all below it.
    pub(super) fn read_only(self) -> Result<Tree, Failure> {
        let set = bits(MountAttrFlags::MOUNT_ATTR_RDONLY);
        let change = MountChange { set, ..MountChange::default() };
        plainly("make read-only", change_mounts(&self.root, c"", change))?;
        Ok(self)
    }

    pub(super) fn is_directory(&self) -> bool {
        let kind = fstat(&self.root).map(|status| FileType::from_raw_mode(status.st_mode));
        kind == Ok(FileType::Directory)
    }

    /// Lays it over a place, which is not a link.
    pub(super) fn lay(&self, path: &Path) -> Result<(), Failure> {
        let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        at("lay something over", path, move_mount(&self.root, "", CWD, path, from))
    }

    /// Lays it over a place that is open; `path` is for words only.
    pub(super) fn lay_on(&self, place: &OwnedFd, path: &Path) -> Result<(), Failure> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        at("lay something over", path, move_mount(&self.root, "", place, "", flags))
    }
}

/// A new file system in memory.
pub(super) struct Fresh {
    options: &'static [(&'static str, &'static str)],
}

impl Fresh {
    /// For names, and what little is written beside them.
    pub(super) fn small() -> Fresh {
        Fresh { options: &[("mode", "755"), ("size", "16m"), ("nr_inodes", "4096")] }
    }

    /// For what programs share with each other: up to half of the memory, as it is outside.
    pub(super) fn large() -> Fresh {
        Fresh { options: &[("mode", "1777")] }
    }

    pub(super) fn make(self) -> Result<Tree, Failure> {
        new_file_system("tmpfs", self.options, HARMLESS)
    }
}

/// The processes of this namespace. Read-only: what root may set in there is the whole system's.
pub(super) fn proc() -> Result<Tree, Failure> {
    let attributes =
        HARMLESS | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
    new_file_system("proc", &[], attributes)
}

/// Terminals of our own.
pub(super) fn terminals() -> Result<Tree, Failure> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    new_file_system("devpts", &[("ptmxmode", "0666"), ("mode", "0620")], attributes)
}

fn new_file_system(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<Tree, Failure> {
    let make = || -> io::Result<OwnedFd> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            fsconfig_set_string(&context, *key, *value)?;
        }
        fsconfig_create(&context)?;
        Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    };
    Ok(Tree { root: at("make a file system", Path::new(kind), make())? })
}

/// An empty directory and a file that cannot be read, to lay over what is hidden.
pub(super) struct Nothing {
    place: PathBuf,
}

impl Nothing {
    /// Mounts them on a place, from which they are taken.
    pub(super) fn make(place: &Path) -> Result<Nothing, Failure> {
        let tree = Fresh::small().make()?;
        let fill = || -> io::Result<()> {
            mkdirat(&tree.root, "directory", Mode::from_raw_mode(0o555))?;
            let new = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(&tree.root, "file", new, Mode::empty())?;
            Ok(())
        };
        plainly("make what hides", fill())?;
        tree.read_only()?.lay(place)?;
        Ok(Nothing { place: place.to_owned() })
    }

    pub(super) fn directory(&self) -> Result<Tree, Failure> {
        self.take("directory")
    }

    pub(super) fn file(&self) -> Result<Tree, Failure> {
        self.take("file")
    }

    fn take(&self, name: &str) -> Result<Tree, Failure> {
        let path = self.place.join(name);
        Tree::clone_of(CWD, &path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW)?.harmless(&path)
    }
}

fn clone_flags() -> OpenTreeFlags {
    OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE
}

fn bits(flags: MountAttrFlags) -> u64 {
    u64::from(flags.bits())
}
