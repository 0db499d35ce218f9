//! The mount layout of a command, as data. Mostly we mount it ourselves ([`super::build`]), otherwise the
//! system's bubblewrap does ([`crate::sandbox::bubblewrap`]).

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::hide_and_pin::{InnerMount, Roots, open_no_symlinks};
use crate::sandbox::{Network, PinnedPath, SESSION_TMP, Sandbox};
use crate::setup_error::{SetupError, path_context};

/// Mostly holds sockets of system services. Mounted empty.
const RUN: &str = "/run";

/// Mounted with the few devices that programs need.
const DEV: &str = "/dev";

/// The DNS configuration. May be a symlink into [`RUN`].
const RESOLVER: &str = "/etc/resolv.conf";

/// The path in [`RUN`] at which some systems have their programs.
const PROGRAMS_IN_RUN: &str = "/run/current-system";

/// All differences from a read-only view of the whole file system.
pub(crate) struct MountPlan {
    /// Outer mounts come first.
    pub(crate) layers: Vec<Layer>,
    /// Mounts within the roots, made after all layers.
    pub(crate) inner_mounts: Vec<InnerMount>,
}

/// A mount on a path.
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) kind: LayerKind,
}

pub(crate) enum LayerKind {
    /// A bind mount that stays writable.
    Writable(Source),
    /// A read-only bind mount.
    ReadOnly(Source),
    /// A new file system with mount points for other layers.
    Tmpfs,
    /// A symlink to this target.
    Symlink(PathBuf),
    /// A `/dev` with the few devices that programs need.
    Devices,
    /// An empty directory in place of a hidden one.
    EmptyDirectory,
    /// An unreadable file in place of a hidden one.
    UnreadableFile,
    /// The DNS configuration of commands that connect to hosts by name.
    ResolverFile,
}

/// The DNS configuration of commands that connect to hosts by name. The [gateway](crate::Gateway) answers.
pub(crate) const RESOLVER_CONTENT: &[u8] = b"nameserver 127.0.0.1\n";

/// The source of a bind mount.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// The device and inode that it must have. `None` accepts any file.
    pub(crate) identity: Option<(u64, u64)>,
}

impl Source {
    /// Opens it without following symlinks. Fails if it is not the expected file.
    pub(crate) fn open(&self) -> Result<OwnedFd, SetupError> {
        let file = path_context("open", &self.path, open_no_symlinks(&self.path))?;
        self.check(&file)?;
        Ok(file)
    }

    /// Fails if the file is not the expected one.
    pub(crate) fn check(&self, file: &OwnedFd) -> Result<(), SetupError> {
        let status = path_context("inspect", &self.path, fstat(file))?;
        let is_same = self
            .identity
            .is_none_or(|pinned_source| pinned_source == (status.st_dev, status.st_ino));
        let replaced = if is_same { Ok(()) } else { Err(Errno::STALE) };
        path_context(
            "find the original directory (it was renamed or replaced):",
            &self.path,
            replaced,
        )
    }
}

impl LayerKind {
    /// Whether it only hides a path. A file that no longer exists need not be hidden.
    pub(crate) fn is_placeholder(&self) -> bool {
        matches!(self, LayerKind::EmptyDirectory | LayerKind::UnreadableFile)
    }
}

impl MountPlan {
    pub(crate) fn of(sandbox: &Sandbox) -> Result<MountPlan, SetupError> {
        let sources = source_layers(sandbox)?;
        let mut roots = Roots::of(sandbox);
        // Missing and inaccessible paths need no hiding.
        let hidden = sandbox.hidden.iter().filter_map(|path| fs::canonicalize(path).ok());
        // Several paths may name the same file.
        let hidden: BTreeSet<PathBuf> = hidden.collect();
        let (inside, outside): (Vec<_>, Vec<_>) =
            hidden.into_iter().partition(|path| roots.contains(path));
        let replaced = [RUN, DEV].into_iter().chain(SESSION_TMP);
        let unseen = |path: &PathBuf| replaced.clone().any(|top| path.starts_with(top));
        let outside = outside.into_iter().filter(|path| !unseen(path));

        let mut layers = tmp_layers(sandbox)?;
        layers.push(Layer { path: RUN.into(), kind: LayerKind::Tmpfs });
        let programs = fs::read_link(PROGRAMS_IN_RUN).ok().map(LayerKind::Symlink);
        layers.extend(programs.map(|kind| Layer { path: PROGRAMS_IN_RUN.into(), kind }));
        layers.push(Layer { path: DEV.into(), kind: LayerKind::Devices });
        layers.extend(
            replaced_resolver(sandbox).map(|path| Layer { path, kind: LayerKind::ResolverFile }),
        );
        layers.extend(outside.map(|path| {
            let kind = placeholder_for(&path, &sources);
            Layer { path, kind }
        }));
        // A root within another root must not be renamed: otherwise the next command would find another
        // directory there.
        for path in sources.iter().map(|layer| layer.path.clone()).collect::<Vec<_>>() {
            let above = roots.unpinned_parents(&path);
            layers.extend(above.into_iter().map(|path| {
                let source = Source { path: path.clone(), identity: None };
                Layer { path, kind: LayerKind::Writable(source) }
            }));
        }
        layers.extend(sources);
        sort_outer_first(&mut layers);
        let mut inner_mounts = Vec::new();
        for path in inside {
            inner_mounts.extend(roots.hide(path));
        }
        Ok(MountPlan { layers, inner_mounts })
    }
}

/// The files outside directories of the session in whose place a command sees other files.
pub(crate) fn replaced_files(sandbox: &Sandbox) -> impl Iterator<Item = PathBuf> {
    sandbox.replaced.iter().map(|one| one.path.clone()).chain(replaced_resolver(sandbox))
}

/// The DNS configuration, if commands have their own. Without it, programs ask the same server.
fn replaced_resolver(sandbox: &Sandbox) -> Option<PathBuf> {
    fs::canonicalize(RESOLVER).ok().filter(|_| sandbox.network == Network::List)
}

/// Sorts outer mounts first. Of two mounts on the same path, the later stays on top.
pub(crate) fn sort_outer_first(layers: &mut [Layer]) {
    layers.sort_by_key(|layer| layer.path.components().count());
}

/// The layers of the sandbox's own paths, all of which must exist.
fn source_layers(sandbox: &Sandbox) -> Result<Vec<Layer>, SetupError> {
    let any = |path: PathBuf| Source { path, identity: None };
    let pinned_source =
        |pinned: &PinnedPath| Source { path: pinned.path.clone(), identity: Some(pinned.identity) };
    let writable =
        |source: Source| Layer { path: source.path.clone(), kind: LayerKind::Writable(source) };
    let read_only =
        |source: Source| Layer { path: source.path.clone(), kind: LayerKind::ReadOnly(source) };
    let mut sources = Vec::new();
    for pinned in &sandbox.writable {
        // Nothing can be mounted over the root directory of this process.
        let possible = pinned.path.parent().map(drop).ok_or(Errno::INVAL);
        path_context("make everything writable in", &pinned.path, possible)?;
        sources.push(writable(pinned_source(pinned)));
    }
    sources.extend(sandbox.read_only.iter().map(pinned_source).map(read_only));
    sources.extend(sandbox.replaced.iter().map(|replaced| {
        let kind = LayerKind::ReadOnly(pinned_source(&replaced.by));
        Layer { path: replaced.path.clone(), kind }
    }));
    let resolver = fs::canonicalize(RESOLVER).ok().filter(|path| path.starts_with(RUN));
    let resolver = resolver.filter(|_| sandbox.network == Network::All);
    sources.extend(resolver.map(any).map(read_only));
    Ok(sources)
}

/// The session's temporary directory, at each path where programs expect one.
fn tmp_layers(sandbox: &Sandbox) -> Result<Vec<Layer>, SetupError> {
    let tmp = canonicalize(&sandbox.tmp)?;
    let places = SESSION_TMP.iter().filter_map(|path| fs::canonicalize(path).ok());
    let source = || Source { path: tmp.clone(), identity: None };
    Ok(places.map(|path| Layer { path, kind: LayerKind::Writable(source()) }).collect())
}

/// The layer kind that hides a path.
fn placeholder_for(path: &Path, sources: &[Layer]) -> LayerKind {
    let contains_source = sources.iter().any(|layer| layer.path.starts_with(path));
    if !path.is_dir() {
        LayerKind::UnreadableFile
    } else if contains_source {
        // With mount points for the layers in it.
        LayerKind::Tmpfs
    } else {
        LayerKind::EmptyDirectory
    }
}

fn canonicalize(path: &Path) -> Result<PathBuf, SetupError> {
    path_context("find", path, fs::canonicalize(path))
}
