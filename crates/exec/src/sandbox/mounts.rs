//! The file system in a command's view: a mount namespace in which everything is read-only except the paths
//! that the sandbox names.
//!
//! Writable trees (the roots, the session's `/tmp`, a few devices) are cloned before everything is made
//! read-only, and mounted over it afterwards, outer ones first. All steps use descriptors, so that nothing
//! can be swapped between the check of a path and its mount. No mount point is ever created in a root or in a
//! home.

mod devices;
pub(super) mod hide_and_pin;
pub(super) mod layout;
mod mount;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};

use self::layout::{Layer, LayerKind, MountPlan};
use self::mount::{DetachedMount, Placeholders, Tmpfs};
use super::{Network, Sandbox};
use crate::setup_error::{SetupError, context, path_context};

/// Makes the mount namespace of this process.
pub(super) fn build(sandbox: &Sandbox) -> Result<(), SetupError> {
    let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    context("create a mount namespace", unshare(flags))?;
    let plan = MountPlan::of(sandbox)?;
    let clones = plan.layers.iter().map(|layer| clone_source(&layer.kind));
    let clones: Vec<Option<DetachedMount>> = clones.collect::<Result<_, _>>()?;
    let mut devices = devices::clone_devices()?;
    context("make all mounts read-only", mount::make_all_read_only())?;

    // On a path that is covered again at the end: only a mounted tree can be cloned more than once.
    let placeholders = Placeholders::make(Path::new("/proc"), sandbox.network == Network::List)?;
    for (layer, clones) in plan.layers.iter().zip(clones) {
        let tree = match (clones, &layer.kind) {
            (Some(clones), _) => clones,
            (None, LayerKind::EmptyDirectory) => placeholders.directory()?,
            (None, LayerKind::UnreadableFile) => placeholders.file()?,
            (None, LayerKind::ResolverFile) => placeholders.resolver()?,
            (None, LayerKind::Symlink(target)) => {
                path_context("create the symlink", &layer.path, symlink(target, &layer.path))?;
                continue;
            }
            (None, LayerKind::Devices) => {
                devices::mount_dev(std::mem::take(&mut devices))?;
                continue;
            }
            (None, _) => Tmpfs::small().make()?,
        };
        attach_layer(layer, &tree)?;
    }
    for inner_mount in &plan.inner_mounts {
        inner_mount.attach(&placeholders)?;
    }
    mount::procfs()?.attach(Path::new("/proc"))
}

/// Clones trees that must be cloned before everything is read-only.
fn clone_source(seen: &LayerKind) -> Result<Option<DetachedMount>, SetupError> {
    match seen {
        LayerKind::Writable(source) => DetachedMount::from_source(source).map(Some),
        LayerKind::ReadOnly(source) => DetachedMount::from_source(source)?.read_only().map(Some),
        _ => Ok(None),
    }
}

/// Mounts a tree on the path of a layer. Creates the mount point if it is in a file system of our own.
fn attach_layer(layer: &Layer, tree: &DetachedMount) -> Result<(), SetupError> {
    let hides = layer.kind.is_placeholder();
    if layer.path.symlink_metadata().is_err() && !hides {
        path_context(
            "create a mount point for",
            &layer.path,
            make_mount_point(&layer.path, tree.is_directory()),
        )?;
    }
    if let LayerKind::Writable(source) | LayerKind::ReadOnly(source) = &layer.kind
        && source.path == layer.path
    {
        // Within another root, a command could have replaced the mount point by a symlink.
        let mount_point =
            path_context("open", &layer.path, hide_and_pin::open_no_symlinks(&layer.path))?;
        return tree.attach_at(&mount_point, &layer.path);
    }
    match tree.attach(&layer.path) {
        Err(failure) if hides && failure.error.kind() == io::ErrorKind::NotFound => Ok(()),
        laid => laid,
    }
}

/// Fails outside our own file systems: everything else is read-only by now, and writable paths exist.
fn make_mount_point(path: &Path, directory: bool) -> io::Result<()> {
    if directory {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    File::create_new(path).map(drop)
}
