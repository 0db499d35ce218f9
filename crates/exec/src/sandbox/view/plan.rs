//! What a command is to see, as data: for whoever mounts it, which is mostly us ([`super::make`]), and
//! otherwise the system's bubblewrap ([`crate::sandbox::bubblewrap`]).

use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::protect::{Hold, Roots};
use crate::sandbox::{Network, Sandbox};
use crate::step::{Failure, at};

/// Where the session's own directory is found.
const TMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// Sockets of the system's services are there, and little else: it is seen empty.
const RUN: &str = "/run";

/// Has the few devices that programs need, and no others.
const DEV: &str = "/dev";

/// Where names on the network are looked up; may lead into [`RUN`].
const RESOLVER: &str = "/etc/resolv.conf";

/// What is in [`RUN`] on systems that have their programs there.
const PROGRAMS_IN_RUN: &str = "/run/current-system";

/// What a command is to see where it is not simply what is there, to be read only.
pub(crate) struct Plan {
    /// The outer before the inner.
    pub(crate) layers: Vec<Layer>,
    /// What is held within the roots, once everything else is in its place.
    pub(crate) holds: Vec<Hold>,
    /// Protected names that are not there, or lie behind a link, so that nothing can be laid over them.
    pub(crate) unprotected: Vec<PathBuf>,
}

/// Something to be seen in a place.
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) seen: Seen,
}

pub(crate) enum Seen {
    /// What is here, as writable as it is.
    AsItIs(PathBuf),
    /// What is here, to be read only.
    ReadOnly(PathBuf),
    /// A new directory, in which there are places for others.
    Fresh,
    /// A link to somewhere.
    Link(PathBuf),
    /// The few devices that programs need.
    Devices,
    /// An empty directory, instead of what is hidden.
    EmptyDirectory,
    /// A file that cannot be read, instead of what is hidden.
    UnreadableFile,
}

impl Seen {
    /// Whether it only hides: what is gone by now, as sockets go, needs no hiding any more.
    pub(crate) fn hides(&self) -> bool {
        matches!(self, Seen::EmptyDirectory | Seen::UnreadableFile)
    }
}

impl Plan {
    /// `sockets` are those of programs outside, which a connection would lead to whatever is read-only.
    pub(crate) fn of(sandbox: &Sandbox, sockets: &[PathBuf]) -> Result<Plan, Failure> {
        let kept = kept(sandbox)?;
        let mut roots = Roots::of(sandbox);
        // What is not there, or may not be looked at, needs no hiding; most are not, which is seen by one call.
        let there = sandbox.hidden.iter().filter(|path| path.exists());
        let hidden = there.filter_map(|path| fs::canonicalize(path).ok());
        let (inside, outside): (Vec<_>, Vec<_>) = hidden.partition(|path| roots.contain(path));
        let sockets = sockets.iter().filter(|path| !roots.contain(path)).cloned();
        let replaced = [RUN, DEV].into_iter().chain(TMP);
        let unseen = |path: &PathBuf| replaced.clone().any(|top| path.starts_with(top));
        let outside = outside.into_iter().chain(sockets).filter(|path| !unseen(path));

        let mut layers = private(sandbox)?;
        layers.push(Layer { path: RUN.into(), seen: Seen::Fresh });
        let programs = fs::read_link(PROGRAMS_IN_RUN).ok().map(Seen::Link);
        layers.extend(programs.map(|seen| Layer { path: PROGRAMS_IN_RUN.into(), seen }));
        layers.push(Layer { path: DEV.into(), seen: Seen::Devices });
        layers.extend(outside.map(|path| {
            let seen = hidden_as(&path, &kept);
            Layer { path, seen }
        }));
        layers.extend(kept);
        outer_first(&mut layers);
        let (mut holds, unprotected) = roots.protect(&sandbox.protected);
        for path in inside {
            holds.extend(roots.hide(path));
        }
        Ok(Plan { layers, holds, unprotected })
    }
}

/// Puts the outer before the inner. Of two for the same place, the later lies on top.
pub(crate) fn outer_first(layers: &mut [Layer]) {
    layers.sort_by_key(|layer| layer.path.components().count());
}

/// What is seen as it is: all of it must be there, except for caches.
fn kept(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let writable = |path: PathBuf| Layer { path: path.clone(), seen: Seen::AsItIs(path) };
    let read_only = |path: PathBuf| Layer { path: path.clone(), seen: Seen::ReadOnly(path) };
    let mut kept = Vec::new();
    for path in &sandbox.writable {
        let path = real(path)?;
        // Nothing can be laid over the root of all: who sees it sees it as it is.
        let possible = path.parent().map(drop).ok_or(Errno::INVAL);
        at("make all writable that is in", &path, possible)?;
        kept.push(writable(path));
    }
    kept.extend(sandbox.caches.iter().filter_map(|path| fs::canonicalize(path).ok()).map(writable));
    for path in &sandbox.read_only {
        kept.push(read_only(real(path)?));
    }
    let resolver = fs::canonicalize(RESOLVER).ok().filter(|path| path.starts_with(RUN));
    kept.extend(resolver.filter(|_| sandbox.network == Network::All).map(read_only));
    Ok(kept)
}

/// The session's own directory, for each name under which programs expect one.
fn private(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let tmp = real(&sandbox.tmp)?;
    let places = TMP.iter().filter_map(|path| fs::canonicalize(path).ok());
    Ok(places.map(|path| Layer { path, seen: Seen::AsItIs(tmp.clone()) }).collect())
}

/// What is seen instead of something hidden.
fn hidden_as(path: &Path, kept: &[Layer]) -> Seen {
    let holds_what_is_kept = kept.iter().any(|layer| layer.path.starts_with(path));
    match path.is_dir() {
        // A directory of its own, to have places in it.
        true if holds_what_is_kept => Seen::Fresh,
        true => Seen::EmptyDirectory,
        false => Seen::UnreadableFile,
    }
}

fn real(path: &Path) -> Result<PathBuf, Failure> {
    at("find", path, fs::canonicalize(path))
}
