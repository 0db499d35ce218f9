//! What a command is to see, as data: for whoever mounts it, which is mostly us ([`super::make`]), and
//! otherwise the system's bubblewrap ([`crate::sandbox::bubblewrap`]).

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::protect::{Hold, Roots, open};
use crate::sandbox::{HeldPath, Network, SESSION_TMP, Sandbox};
use crate::setup_error::{Failure, at};

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
}

/// Something to be seen in a place.
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) seen: Seen,
}

pub(crate) enum Seen {
    /// What is here, as writable as it is.
    AsItIs(Source),
    /// What is here, to be read only.
    ReadOnly(Source),
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

/// Something that is seen in a place.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Which file it must be; nothing, if any that is there will do.
    pub(crate) identity: Option<(u64, u64)>,
}

impl Source {
    /// Opens it without following any link, if it is still the file that is meant.
    pub(crate) fn open(&self) -> Result<OwnedFd, Failure> {
        let file = at("open", &self.path, open(&self.path))?;
        self.check(&file)?;
        Ok(file)
    }

    /// Fails if something else has taken the path.
    pub(crate) fn check(&self, file: &OwnedFd) -> Result<(), Failure> {
        let status = at("look at", &self.path, fstat(file))?;
        let is_same = self.identity.is_none_or(|meant| meant == (status.st_dev, status.st_ino));
        let replaced = if is_same { Ok(()) } else { Err(Errno::STALE) };
        at(
            "find the directory of the session, which was renamed or replaced:",
            &self.path,
            replaced,
        )
    }
}

impl Seen {
    /// Whether it only hides: a file that is gone by now needs no hiding any more.
    pub(crate) fn hides(&self) -> bool {
        matches!(self, Seen::EmptyDirectory | Seen::UnreadableFile)
    }
}

impl Plan {
    pub(crate) fn of(sandbox: &Sandbox) -> Result<Plan, Failure> {
        let kept = kept(sandbox)?;
        let mut roots = Roots::of(sandbox);
        // What is not there, or may not be looked at, needs no hiding; most are not, which is seen by one call.
        let there = sandbox.hidden.iter().filter(|path| path.exists());
        let hidden = there.filter_map(|path| fs::canonicalize(path).ok());
        let (inside, outside): (Vec<_>, Vec<_>) = hidden.partition(|path| roots.contain(path));
        let replaced = [RUN, DEV].into_iter().chain(SESSION_TMP);
        let unseen = |path: &PathBuf| replaced.clone().any(|top| path.starts_with(top));
        let outside = outside.into_iter().filter(|path| !unseen(path));

        let mut layers = private(sandbox)?;
        layers.push(Layer { path: RUN.into(), seen: Seen::Fresh });
        let programs = fs::read_link(PROGRAMS_IN_RUN).ok().map(Seen::Link);
        layers.extend(programs.map(|seen| Layer { path: PROGRAMS_IN_RUN.into(), seen }));
        layers.push(Layer { path: DEV.into(), seen: Seen::Devices });
        layers.extend(outside.map(|path| {
            let seen = hidden_as(&path, &kept);
            Layer { path, seen }
        }));
        // A root within another stays where it is: else the next command would find another one there.
        for path in kept.iter().map(|layer| layer.path.clone()).collect::<Vec<_>>() {
            let above = roots.directories_above(&path);
            layers.extend(above.into_iter().map(|path| {
                let source = Source { path: path.clone(), identity: None };
                Layer { path, seen: Seen::AsItIs(source) }
            }));
        }
        layers.extend(kept);
        outer_first(&mut layers);
        let mut holds = Vec::new();
        for path in inside {
            holds.extend(roots.hide(path));
        }
        Ok(Plan { layers, holds })
    }
}

/// Puts the outer before the inner. Of two for the same place, the later lies on top.
pub(crate) fn outer_first(layers: &mut [Layer]) {
    layers.sort_by_key(|layer| layer.path.components().count());
}

/// What is seen as it is: all of it must be there.
fn kept(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let any = |path: PathBuf| Source { path, identity: None };
    let meant = |held: &HeldPath| Source { path: held.path.clone(), identity: Some(held.identity) };
    let writable = |source: Source| Layer { path: source.path.clone(), seen: Seen::AsItIs(source) };
    let read_only =
        |source: Source| Layer { path: source.path.clone(), seen: Seen::ReadOnly(source) };
    let mut kept = Vec::new();
    for held in &sandbox.writable {
        // Nothing can be laid over the root of all: who sees it sees it as it is.
        let possible = held.path.parent().map(drop).ok_or(Errno::INVAL);
        at("make all writable that is in", &held.path, possible)?;
        kept.push(writable(meant(held)));
    }
    kept.extend(sandbox.read_only.iter().map(meant).map(read_only));
    let resolver = fs::canonicalize(RESOLVER).ok().filter(|path| path.starts_with(RUN));
    let resolver = resolver.filter(|_| sandbox.network == Network::All);
    kept.extend(resolver.map(any).map(read_only));
    Ok(kept)
}

/// The session's own directory, for each name under which programs expect one.
fn private(sandbox: &Sandbox) -> Result<Vec<Layer>, Failure> {
    let tmp = real(&sandbox.tmp)?;
    let places = SESSION_TMP.iter().filter_map(|path| fs::canonicalize(path).ok());
    let source = || Source { path: tmp.clone(), identity: None };
    Ok(places.map(|path| Layer { path, seen: Seen::AsItIs(source()) }).collect())
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
