//! Sockets hidden without laying anything over them: the directory of one is a new one, with all that is in
//! it but sockets.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::view::plan::{Layer, Seen, outer_first};

/// Of a directory with a socket in it, so much is shown.
const MAX_SHOWN: usize = 512;

/// The same layers, with no socket covered by one.
pub(super) fn without_sockets(layers: Vec<Layer>) -> Vec<Layer> {
    let (covered, mut layers): (Vec<Layer>, Vec<Layer>) =
        layers.into_iter().partition(|layer| layer.seen.hides() && is_socket(&layer.path));
    let parents = covered.iter().filter_map(|layer| layer.path.parent().map(Path::to_owned));
    let parents: BTreeSet<PathBuf> = parents.collect();
    for directory in parents {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let shown = entries.map(|entry| entry.path()).filter(|path| !is_socket(path));
        // What is shown in another way lies deeper, or on top.
        let shown = shown.filter(|path| !layers.iter().any(|layer| layer.path == *path));
        let shown: Vec<Layer> = shown.take(MAX_SHOWN).map(as_it_is).collect();
        layers.push(Layer { path: directory, seen: Seen::Fresh });
        layers.extend(shown);
    }
    outer_first(&mut layers);
    layers
}

fn as_it_is(path: PathBuf) -> Layer {
    let seen = match fs::read_link(&path) {
        Ok(target) => Seen::Link(target),
        Err(_) => Seen::ReadOnly(path.clone()),
    };
    Layer { path, seen }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket())
}
