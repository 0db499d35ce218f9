//! A `/dev` with only the devices that programs need.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::mount::{self, DetachedMount, Tmpfs};
use crate::setup_error::{SetupError, context, path_context};

/// Devices without content. `tty` is the controlling terminal of a program; commands have none except those
/// that they make themselves.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const SYMLINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Clones the devices of this system, before everything is made read-only.
pub(super) fn clone_devices() -> Result<Vec<(&'static str, DetachedMount)>, SetupError> {
    let existing = DEVICES.into_iter().map(|name| (name, Path::new("/dev").join(name)));
    let existing = existing.filter(|(_, path)| path.symlink_metadata().is_ok());
    existing.map(|(name, path)| Ok((name, DetachedMount::from_device(&path)?))).collect()
}

/// Mounts a `/dev` with these devices, its own terminals and its own shared memory.
pub(super) fn mount_dev(devices: Vec<(&'static str, DetachedMount)>) -> Result<(), SetupError> {
    let root = Path::new("/dev");
    Tmpfs::small().make()?.attach(root)?;
    for (name, device) in devices {
        let path = root.join(name);
        path_context("create a mount point for", &path, fs::File::create_new(&path))?;
        device.attach(&path)?;
    }
    let links = || -> io::Result<()> {
        SYMLINKS.iter().try_for_each(|(name, target)| symlink(target, root.join(name)))
    };
    context("create the symlinks in /dev", links())?;
    for (name, tree) in [("pts", mount::devpts()?), ("shm", Tmpfs::large().make()?)] {
        let path = root.join(name);
        path_context("create a mount point for", &path, fs::create_dir(&path))?;
        tree.attach(&path)?;
    }
    Ok(())
}
