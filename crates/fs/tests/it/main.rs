//! Tests of the crate on a real file system.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests read the disk from outside, start programs, and fail by panicking"
)]

mod change;
mod change_capture;
mod confinement;

mod journal;
mod kinds;
mod private;
mod without_openat2;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Root, RootMode, Workspace};

/// A workspace `ws` with a sibling `ws-evil` and a directory `out` that must stay out of reach.
struct Tree {
    top: tempfile::TempDir,
    workspace: Workspace,
}

impl Tree {
    fn new() -> Tree {
        let top = tempfile::tempdir().unwrap();
        for directory in ["ws/a", "ws-evil", "out"] {
            std::fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for (file, content) in
            [("ws/a/f", "inside"), ("ws-evil/secret", "secret"), ("out/canary", "canary")]
        {
            std::fs::write(top.path().join(file), content).unwrap();
        }
        let root = Root::open(top.path().join("ws"), RootMode::ReadWrite).unwrap();
        Tree { workspace: Workspace::new(vec![root]).unwrap(), top }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.top.path().join(relative)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.path("ws").join(name)).unwrap();
    }

    fn resolve(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<toolcrib_fs::ResolvedPath, toolcrib_fs::FsError> {
        self.workspace.resolve(&self.workspace.top(), path.as_ref())
    }
}
