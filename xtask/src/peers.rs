//! The newest ripgrep and fd, to compare with: installed from crates.io into the cache, once.

use std::path::PathBuf;

use crate::error::Result;
use crate::{process, workspace};

/// The programs.
pub(crate) struct Peers {
    pub(crate) rg: PathBuf,
    pub(crate) fd: PathBuf,
}

/// Installs what is not there yet; that takes minutes, once.
pub(crate) fn install() -> Result<Peers> {
    let root = workspace::cache_directory()?.join("peers");
    let program = |name: &str| root.join("bin").join(name);
    for (package, name) in [("ripgrep", "rg"), ("fd-find", "fd")] {
        if program(name).exists() {
            continue;
        }
        println!("   installing {package} from crates.io");
        let mut command = process::cargo(&["install", "--quiet", "--locked", package]);
        process::run(command.arg("--root").arg(&root).env("CARGO_TARGET_DIR", root.join("build")))?;
        // What it took to build them is many times their size.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    Ok(Peers { rg: program("rg"), fd: program("fd") })
}
