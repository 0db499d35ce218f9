//! The file system as a command sees it: a mount namespace in which everything is read-only but for what
//! the sandbox names.
//!
//! What stays as it is (the roots, the session's `/tmp`, a few devices) is cloned before the rest is made
//! read-only, and laid over it afterwards, the outer before the inner. Everything goes by descriptors:
//! between looking at a name and mounting on it, nobody can put something else there. No name is ever made
//! in a root or in a home to have something to mount on.

mod devices;
mod mount;
mod protect;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;

use self::mount::{Fresh, Nothing, Tree};
use self::protect::Roots;
use super::{Network, Sandbox};
use crate::step::{Failure, at, plainly};

/// Where the session's own directory is found.
const TMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// Sockets of the system's services are there, and little else: it is seen empty.
const RUN: &str = "/run";

/// Where names on the network are looked up; may lead into [`RUN`].
const RESOLVER: &str = "/etc/resolv.conf";

/// What is in [`RUN`] on systems that have their programs there.
const PROGRAMS_IN_RUN: &str = "/run/current-system";

/// Makes the view around this process. Answers which protected names are not there, or lie behind a link,
/// so that nothing could be laid over them.
///
/// `sockets` are those of programs outside, which a connection would lead to whatever is read-only.
pub(super) fn make(sandbox: &Sandbox, sockets: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    plainly("make a namespace of mounts", unshare(own))?;
    let kept = kept(sandbox)?;
    let devices = devices::take()?;
    let private = private(sandbox)?;
    let programs = fs::read_link(PROGRAMS_IN_RUN);
    plainly("make everything read-only", mount::make_all_read_only())?;

    let mut roots = Roots::of(sandbox);
    // What is not there, or may not be looked at, needs no hiding.
    let hidden = sandbox.hidden.iter().filter_map(|path| fs::canonicalize(path).ok());
    let (inside, outside): (Vec<_>, Vec<_>) = hidden.partition(|path| roots.contain(path));
    let sockets = sockets.iter().filter(|path| !roots.contain(path)).cloned();
    let unseen =
        |path: &PathBuf| path.starts_with(RUN) || TMP.iter().any(|tmp| path.starts_with(tmp));
    let outside = outside.into_iter().chain(sockets).filter(|path| !unseen(path));
    // In a place that is covered again in the end: only what is mounted can be taken more than once.
    let nothing = Nothing::make(Path::new("/proc"))?;

    let mut layers = private;
    layers.push(Layer::new(RUN.into(), Fresh::small().make()?));
    layers.extend(hide(outside, &kept, &nothing)?);
    layers.extend(kept);
    // Stable: of two for the same place, what was named to be seen lies on top.
    layers.sort_by_key(|layer| layer.path.components().count());
    for layer in layers {
        lay(&layer)?;
    }
    if let Ok(target) = programs {
        let linked = std::os::unix::fs::symlink(target, PROGRAMS_IN_RUN);
        at("link", Path::new(PROGRAMS_IN_RUN), linked)?;
    }
    devices::lay(devices)?;
    let unprotected = roots.protect(&sandbox.protected)?;
    for path in inside {
        roots.hide(&path, &nothing)?;
    }
    mount::proc()?.lay(Path::new("/proc"))?;
    Ok(unprotected)
}

/// Something to be seen in a place.
struct Layer {
    path: PathBuf,
    tree: Tree,
    /// Whether it only hides: what is gone by now, as sockets go, needs no hiding any more.
    hides: bool,
}

impl Layer {
    fn new(path: PathBuf, tree: Tree) -> Layer {
        Layer { path, tree, hides: false }
    }
}

/// What is seen as it is: all of it must be there, except for caches.
fn kept(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let mut kept = Vec::new();
    for path in &sandbox.writable {
        let path = real(path)?;
        // Nothing can be laid over the root of all: who sees it sees it as it is.
        let possible = path.parent().map(drop).ok_or(Errno::INVAL);
        at("make all writable that is in", &path, possible)?;
        kept.push(Layer::new(path.clone(), Tree::of(&path)?));
    }
    for path in sandbox.caches.iter().filter_map(|path| fs::canonicalize(path).ok()) {
        kept.push(Layer::new(path.clone(), Tree::of(&path)?));
    }
    for path in &sandbox.read_only {
        let path = real(path)?;
        kept.push(Layer::new(path.clone(), Tree::of(&path)?.read_only()?));
    }
    let resolver = fs::canonicalize(RESOLVER).ok().filter(|path| path.starts_with(RUN));
    if let Some(path) = resolver.filter(|_| sandbox.network == Network::All) {
        kept.push(Layer::new(path.clone(), Tree::of(&path)?.read_only()?));
    }
    Ok(kept)
}

/// The session's own directory, for each name under which programs expect one.
fn private(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let tmp = real(&sandbox.tmp)?;
    let mut layers = Vec::new();
    for path in TMP.iter().filter_map(|path| fs::canonicalize(path).ok()) {
        layers.push(Layer::new(path, Tree::of(&tmp)?));
    }
    Ok(layers)
}

/// Nothing, for each place that is hidden.
fn hide(
    places: impl Iterator<Item = PathBuf>,
    kept: &[Layer],
    nothing: &Nothing,
) -> Result<Vec<Layer>, Failure> {
    let mut layers = Vec::new();
    for path in places {
        let holds_what_is_kept = kept.iter().any(|layer| layer.path.starts_with(&path));
        let tree = match path.is_dir() {
            // A directory of its own, to have places in it.
            true if holds_what_is_kept => Fresh::small().make()?,
            true => nothing.directory()?,
            false => nothing.file()?,
        };
        layers.push(Layer { path, tree, hides: true });
    }
    Ok(layers)
}

/// Lays a tree over a place; makes the place, if it lies in something of ours.
fn lay(layer: &Layer) -> Result<(), Failure> {
    if layer.path.symlink_metadata().is_err() && !layer.hides {
        at("make a place for", &layer.path, make_place(&layer.path, layer.tree.is_directory()))?;
    }
    match layer.tree.lay(&layer.path) {
        Err(failure) if layer.hides && failure.error.kind() == io::ErrorKind::NotFound => Ok(()),
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

fn real(path: &Path) -> Result<PathBuf, Failure> {
    at("find", path, fs::canonicalize(path))
}
