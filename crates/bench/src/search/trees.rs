//! The searched trees: Debian's kernel sources, and the last commit of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process, workspace};

/// A repository of about 300 files: our sources and documents.
pub(super) fn small() -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let archive = directory.path().join("archive.tar");
    let output = format!("--output={}", archive.display());
    let root = workspace::root();
    let sources = ["archive", &output, "HEAD", ":(glob)crates/*/src/**", "docs", "README.md"];
    process::run(Command::new("git").args(sources).current_dir(root))?;
    process::run(Command::new("tar").arg("-xf").arg(&archive).current_dir(directory.path()))?;
    std::fs::remove_file(archive)?;
    as_repository(directory.path())?;
    Ok(directory)
}

/// Debian's kernel sources in the cache; `None` if apt has none.
pub(super) fn kernel() -> Result<Option<PathBuf>> {
    let cache = cache::directory()?;
    let tree = cache.join("kernel");
    if tree.join("Makefile").exists() {
        as_repository(&tree)?;
        return Ok(Some(tree));
    }
    let depends = process::probe(Command::new("apt-cache").args(["depends", "linux-source"]));
    let package = depends.unwrap_or_default();
    let package = package.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let Some(package) = package else { return Ok(None) };
    println!("   fetching {package} from Debian");
    std::fs::create_dir_all(&tree)?;
    let parts = cache.join("kernel-package");
    std::fs::create_dir_all(&parts)?;
    process::run(Command::new("apt-get").args(["download", package]).current_dir(&parts))?;
    let unpack = "dpkg-deb -x linux-source-*.deb . && tar -C ../kernel --strip-components=1 -xf usr/src/linux-source-*.tar.xz";
    process::run(Command::new("sh").args(["-c", unpack]).current_dir(&parts))?;
    std::fs::remove_dir_all(parts)?;
    as_repository(&tree)?;
    Ok(Some(tree))
}

/// Makes the tree a repository, because ripgrep applies ignore files only in one, and removes the top ignore file
/// of Debian's package, which ignores everything.
fn as_repository(tree: &Path) -> Result<()> {
    let ignore = tree.join(".gitignore");
    if let Ok(rules) = std::fs::read_to_string(&ignore) {
        let kept: Vec<&str> = rules.lines().filter(|line| line.trim() != "/*").collect();
        if kept.len() != rules.lines().count() {
            std::fs::write(&ignore, kept.join("\n") + "\n")?;
        }
    }
    std::fs::create_dir_all(tree.join(".git"))?;
    Ok(())
}

/// The number of files without `.git`.
pub(super) fn count(tree: &Path) -> Result<u64> {
    let mut pending = vec![tree.to_owned()];
    let mut files = 0;
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { pending.push(entry.path()) } else { files += 1 }
        }
    }
    Ok(files)
}
