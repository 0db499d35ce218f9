//! Installs third-party programs to compare with, from crates.io into the cache.

use std::path::PathBuf;

use crate::error::Result;
use crate::{cache, process};

/// The installed search programs.
pub struct Peers {
    /// ripgrep.
    pub rg: PathBuf,
    /// fd.
    pub fd: PathBuf,
}

/// Installs missing programs. This takes minutes the first time.
pub fn install() -> Result<Peers> {
    install_with(&[])
}

/// The same for comparisons of results only: unoptimized programs, which are quicker to build.
pub fn install_debug() -> Result<Peers> {
    install_with(&["--debug"])
}

fn install_with(flags: &[&str]) -> Result<Peers> {
    Ok(Peers { rg: program("ripgrep", "rg", flags)?, fd: program("fd-find", "fd", flags)? })
}

/// Another MCP file server written in Rust.
pub fn server() -> Result<PathBuf> {
    program("rust-mcp-filesystem", "rust-mcp-filesystem", &[])
}

/// mdBook, without its web server and its search index.
pub fn mdbook() -> Result<PathBuf> {
    program("mdbook", "mdbook", &["--no-default-features", "--debug"])
}

/// cargo-llvm-cov, which measures which lines run.
pub fn coverage() -> Result<PathBuf> {
    program("cargo-llvm-cov", "cargo-llvm-cov", &["--debug"])
}

fn program(package: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let is_debug = flags.contains(&"--debug");
    let root = cache::directory()?.join(if is_debug { "peers-debug" } else { "peers" });
    let program = root.join("bin").join(name);
    if !program.exists() {
        println!("   installing {package} from crates.io");
        let mut command = process::cargo(&["install", "--quiet", "--locked", package]);
        command.args(flags);
        process::run(command.arg("--root").arg(&root).env("CARGO_TARGET_DIR", root.join("build")))?;
        // The build directory is many times the size of the program.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    Ok(program)
}
