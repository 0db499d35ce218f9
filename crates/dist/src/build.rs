//! Building the program for a target.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process, python, workspace};

use super::target::Target;

/// A program, built.
pub(super) struct Program {
    pub(super) target: &'static Target,
    pub(super) path: PathBuf,
}

impl Program {
    /// The file itself.
    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        fs::read(&self.path).map_err(|error| format!("{}: {error}", self.path.display()).into())
    }
}

/// Builds it with Zig as C compiler and linker: it has every C library, so the result does not depend on the compiler
/// and the C library of this machine.
pub(super) fn build(target: &'static Target) -> Result<Program> {
    println!("building {} (some minutes)", target.name);
    let began = Instant::now();
    let compiler = process::capture(Command::new("rustc").arg("--version"))?;
    check_compiler(&compiler, &rust_version()?)?;
    process::run(Command::new("rustup").args(["target", "add", target.triple]))?;
    let python = python::with_libraries("build-requirements.txt", "build-venv")?;
    let tools = python.parent().ok_or("the virtual environment has no bin directory")?;
    let mut command = process::cargo(&["zigbuild", "--locked", "--profile", "dist"]);
    command.args(["-p", "toolcrib-cli", "--bin", "toolcrib", "--target", target.linked_for]);
    command.env("PATH", path_with(tools)?);
    let renamed = renamed_directories()?;
    // Code at a fixed address: at random addresses, each start would change 85,000 pointers in 440 pages of memory, which
    // takes as long as everything else. Stack, heap and mappings stay at random addresses.
    let code = "\x1f-Crelocation-model=static";
    let rust_flags = flags("--remap-path-prefix=", "\x1f", &renamed) + code;
    command.env("CARGO_ENCODED_RUSTFLAGS", rust_flags);
    command.env("CFLAGS", flags("-ffile-prefix-map=", " ", &renamed));
    process::run(&mut command)?;
    let program = existing(target)?;
    let size = fs::metadata(&program.path)?.len();
    println!("{}: {size} bytes, {} s", target.name, began.elapsed().as_secs());
    Ok(program)
}

/// Another version of the compiler gives other bytes.
fn check_compiler(printed: &str, pinned: &str) -> Result<()> {
    let version = printed.split_whitespace().nth(1).unwrap_or_default();
    if is_pinned(version, pinned) {
        Ok(())
    } else {
        Err(format!("releases are built by rustc {pinned}, not by {version}").into())
    }
}

/// Whether a version of the compiler is the pinned one, which may leave out the last number.
pub(super) fn is_pinned(version: &str, pinned: &str) -> bool {
    version == pinned || version.starts_with(&format!("{pinned}."))
}

/// `rust-version` of the workspace.
pub(super) fn rust_version() -> Result<String> {
    let members = metadata::of_members()?;
    let product = metadata::member(&members, "toolcrib-cli")?;
    Ok(metadata::text(product, "rust_version")?.to_owned())
}

/// The program of an earlier build.
pub(super) fn existing(target: &'static Target) -> Result<Program> {
    let path = target_directory()?.join(target.triple).join("dist").join("toolcrib");
    if path.exists() {
        Ok(Program { target, path })
    } else {
        Err(format!("{} is not built: run `cargo xtask dist`", target.name).into())
    }
}

fn target_directory() -> Result<PathBuf> {
    let metadata = metadata::of_members()?;
    Ok(PathBuf::from(metadata::text(&metadata, "target_directory")?))
}

fn path_with(tools: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(tools.to_owned()).chain(env::split_paths(&path));
    Ok(env::join_paths(all)?)
}

/// Directories of this machine, and their names in the messages of the program. Where two match, the later one counts.
fn renamed_directories() -> Result<Vec<(PathBuf, String)>> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").ok_or("HOME is not set")?).join(".cargo"),
    };
    let ask = |words: &[&str]| process::capture(Command::new("rustc").args(words));
    let sysroot = ask(&["--print", "sysroot"])?;
    let version = ask(&["-vV"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    let commit = commit.ok_or("rustc does not tell its commit")?;
    Ok(vec![
        (workspace::root().to_owned(), "/toolcrib".to_owned()),
        (target_directory()?, "/target".to_owned()),
        (cargo_home, "/cargo".to_owned()),
        // Without the sources of the standard library, its paths are like this already.
        (Path::new(sysroot.trim()).join("lib/rustlib/src/rust"), format!("/rustc/{commit}")),
    ])
}

fn flags(option: &str, separator: &str, renamed: &[(PathBuf, String)]) -> String {
    let flag = |(from, to): &(PathBuf, String)| format!("{option}{}={to}", from.display());
    renamed.iter().map(flag).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_compiler_builds_a_release() {
        assert!(check_compiler("rustc 1.95.0 (59807616e 2026-04-14)", "1.95").is_ok());
        assert!(check_compiler("rustc 1.95.1 (59807616e 2026-04-14)", "1.95.1").is_ok());
        for other in ["rustc 1.96.0 (x)", "rustc 1.9.5 (x)", "rustc 1.951.0 (x)", ""] {
            assert!(check_compiler(other, "1.95").is_err(), "{other}");
        }
    }

    #[test]
    fn each_directory_has_its_flag() {
        let renamed = [("/home/me/x", "/x"), ("/t", "/target")];
        let renamed = renamed.map(|(from, to)| (PathBuf::from(from), to.to_owned()));
        assert_eq!(flags("-m=", " ", &renamed), "-m=/home/me/x=/x -m=/t=/target");
    }
}
