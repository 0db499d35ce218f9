//! Other programs that apply patches: GNU patch, and git with a three-way merge.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::ours::{Outcome, Refusal};
use super::repository::{Repository, Version, git};
use super::tree::Tree;

/// Overrides attributes of the repository, which could make git write other bytes than it stores.
const ATTRIBUTES: &str = "* -text !eol !ident !filter !working-tree-encoding !merge !diff\n";

/// A directory for each program.
pub(super) struct Oracles {
    directory: TempDir,
}

impl Oracles {
    /// Creates the directories for patches of this repository. A merge by git needs its objects.
    pub(super) fn new(repository: &Repository) -> Result<Oracles> {
        if process::probe(Command::new("patch").arg("--version")).is_none() {
            return Err("GNU patch is not installed".into());
        }
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let oracles = Oracles { directory };
        let merged = oracles.path("3way");
        fs::create_dir(&merged)?;
        process::run(git(&merged).args(["init", "--quiet"]))?;
        let alternates = format!("{}\n", repository.objects()?.display());
        fs::write(merged.join(".git/objects/info/alternates"), alternates)?;
        fs::create_dir_all(merged.join(".git/info"))?;
        fs::write(merged.join(".git/info/attributes"), ATTRIBUTES)?;
        Ok(oracles)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Applies a patch with GNU patch and its default fuzz, without questions and without reversing.
    pub(super) fn gnu_patch(&self, base: &Tree, patch: &[u8]) -> Result<Outcome> {
        let directory = self.path("patch");
        base.write(&directory)?;
        let mut command = Command::new("patch");
        let quiet = ["--batch", "--forward", "--silent", "--binary"];
        command.args(["-p1", "--no-backup-if-mismatch", "--reject-file=-"]).args(quiet);
        outcome(command.current_dir(&directory).env("LC_ALL", "C"), patch, &directory)
    }

    /// Applies a patch with git, which finds the base version and merges. If it cannot, it applies the patch
    /// directly.
    pub(super) fn three_way(
        &self,
        base: &Tree,
        versions: &[Version],
        patch: &[u8],
    ) -> Result<Outcome> {
        let directory = self.path("3way");
        base.write(&directory)?;
        let mut listed = Vec::new();
        for version in versions {
            listed.extend_from_slice(format!("{} {}\t", version.mode, version.blob).as_bytes());
            listed.extend_from_slice(&version.path);
            listed.push(0);
        }
        let index = directory.join(".git/index");
        if index.exists() {
            fs::remove_file(index)?;
        }
        feed(git(&directory).args(["update-index", "-z", "--index-info"]), &listed)?;
        // Refreshes the stat data, by which git recognizes unchanged files.
        process::run(git(&directory).args([
            "checkout-index",
            "--all",
            "--force",
            "-u",
            "--quiet",
        ]))?;
        outcome(git(&directory).args(["apply", "--3way", "--whitespace=nowarn"]), patch, &directory)
    }
}

/// Runs a program on a patch and returns its result.
fn outcome(command: &mut Command, patch: &[u8], directory: &Path) -> Result<Outcome> {
    let (success, message) = feed(command, patch)?;
    if success {
        return Ok(Outcome::Applied(Tree::read(directory)?));
    }
    Ok(Outcome::Refused(Refusal { kind: "refused".into(), message }))
}

/// Runs a program with this input. Returns whether it succeeded, and its output.
fn feed(command: &mut Command, input: &[u8]) -> Result<(bool, String)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdin.take().ok_or("the process has no input")?;
    // It may exit before it has read everything, and prints little, so that no pipe fills up.
    let _ = pipe.write_all(input);
    drop(pipe);
    let output = child.wait_with_output()?;
    let output_text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&output_text).into_owned()))
}
