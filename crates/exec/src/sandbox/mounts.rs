//! The file system as a command sees it: a mount namespace in which everything is read-only but for what
//! the sandbox names.
//!
//! What stays as it is (the roots, the session's `/tmp`, a few devices) is cloned before the rest is made
//! read-only, and laid over it afterwards, the outer before the inner. Everything goes by descriptors:
//! between looking at a name and mounting on it, nobody can put something else there. No name is ever made
//! in a root or in a home to have something to mount on.

mod devices;
pub(super) mod layout;
mod mount;
pub(super) mod protect;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};

use self::layout::{Layer, Plan, Seen};
use self::mount::{Fresh, Nothing, Tree};
use super::Sandbox;
use crate::setup_error::{Failure, at, plainly};

/// Makes the view around this process.
pub(super) fn make(sandbox: &Sandbox) -> Result<(), Failure> {
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    plainly("make a namespace of mounts", unshare(own))?;
    let plan = Plan::of(sandbox)?;
    let kept = plan.layers.iter().map(|layer| kept(&layer.seen));
    let kept: Vec<Option<Tree>> = kept.collect::<Result<_, _>>()?;
    let mut devices = devices::take()?;
    plainly("make everything read-only", mount::make_all_read_only())?;

    // In a place that is covered again in the end: only what is mounted can be taken more than once.
    let nothing = Nothing::make(Path::new("/proc"))?;
    for (layer, kept) in plan.layers.iter().zip(kept) {
        let tree = match (kept, &layer.seen) {
            (Some(kept), _) => kept,
            (None, Seen::EmptyDirectory) => nothing.directory()?,
            (None, Seen::UnreadableFile) => nothing.file()?,
            (None, Seen::Link(target)) => {
                at("link", &layer.path, symlink(target, &layer.path))?;
                continue;
            }
            (None, Seen::Devices) => {
                devices::lay(std::mem::take(&mut devices))?;
                continue;
            }
            (None, _) => Fresh::small().make()?,
        };
        lay(layer, &tree)?;
    }
    for hold in &plan.holds {
        hold.lay(&nothing)?;
    }
    mount::proc()?.lay(Path::new("/proc"))
}

/// What has to be taken before everything is read-only.
fn kept(seen: &Seen) -> Result<Option<Tree>, Failure> {
    match seen {
        Seen::AsItIs(source) => Tree::of(source).map(Some),
        Seen::ReadOnly(source) => Tree::of(source)?.read_only().map(Some),
        _ => Ok(None),
    }
}

/// Lays a tree over a place; makes the place, if it lies in something of ours.
fn lay(layer: &Layer, tree: &Tree) -> Result<(), Failure> {
    let hides = layer.seen.hides();
    if layer.path.symlink_metadata().is_err() && !hides {
        at("make a place for", &layer.path, make_place(&layer.path, tree.is_directory()))?;
    }
    if let Seen::AsItIs(source) | Seen::ReadOnly(source) = &layer.seen
        && source.path == layer.path
    {
        // Within another root, the place is one that a command could have replaced by a link.
        let place = at("open", &layer.path, protect::open(&layer.path))?;
        return tree.lay_on(&place, &layer.path);
    }
    match tree.lay(&layer.path) {
        Err(failure) if hides && failure.error.kind() == io::ErrorKind::NotFound => Ok(()),
        laid => laid,
    }
}

/// In what is not ours this fails: everything else is read-only by now, and what is writable was there.
fn make_place(path: &Path, directory: bool) -> io::Result<()> {
    if directory {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    File::create_new(path).map(drop)
}
