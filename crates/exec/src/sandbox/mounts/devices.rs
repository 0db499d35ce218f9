//! The devices that programs need, and no others.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::mount::{self, Fresh, Tree};
use crate::setup_error::{Failure, at, plainly};

/// Devices that hold nothing and lead nowhere; `tty` is the terminal of a program that has one, and ours
/// have none but those that they make themselves.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Those that this system has, to be taken before everything is made read-only.
pub(super) fn take() -> Result<Vec<(&'static str, Tree)>, Failure> {
    let there = DEVICES.into_iter().map(|name| (name, Path::new("/dev").join(name)));
    let there = there.filter(|(_, path)| path.symlink_metadata().is_ok());
    there.map(|(name, path)| Ok((name, Tree::of_device(&path)?))).collect()
}

/// A `/dev` with these devices, with terminals and shared memory of its own.
pub(super) fn lay(devices: Vec<(&'static str, Tree)>) -> Result<(), Failure> {
    let root = Path::new("/dev");
    Fresh::small().make()?.lay(root)?;
    for (name, device) in devices {
        let path = root.join(name);
        at("make a place for", &path, fs::File::create_new(&path))?;
        device.lay(&path)?;
    }
    let links = || -> io::Result<()> {
        LINKS.iter().try_for_each(|(name, target)| symlink(target, root.join(name)))
    };
    plainly("make the links of /dev", links())?;
    for (name, tree) in [("pts", mount::terminals()?), ("shm", Fresh::large().make()?)] {
        let path = root.join(name);
        at("make a place for", &path, fs::create_dir(&path))?;
        tree.lay(&path)?;
    }
    Ok(())
}
