//! A full disk: a change that does not fit is refused and leaves the file unchanged, whether the disk of the file
//! or that of the journal is full.
//!
//! The disk is a tmpfs of 128 KiB, mounted in the sandbox, which needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::super::Effort;
use super::super::report::{Report, Row};
use crate::error::Result;
use crate::process;
use crate::random::Random;
use crate::sandbox::{self, Sandbox};

const PART: &str = "full disk";
const DISK_BYTES: usize = 128 << 10;
const PAGE: usize = 4096;
const OLD_BYTES: usize = 40 << 10;
const NEW_BYTES: usize = 90 << 10;
const FILE: &str = "file.txt";
const AGAIN: &str = "cargo xtask torture fs full-disk";

pub(super) fn run(binary: &Path, _: Effort, report: &mut Report) -> Result<()> {
    if let Err(why) = can_mount() {
        report.add(Row::skipped(PART, "workspace and journal on a full tmpfs", why.to_string()));
        return Ok(());
    }
    report.add(full_workspace(binary)?);
    report.add(full_journal(binary)?);
    Ok(())
}

/// Fails if mounting is not permitted. In some containers not even root may mount.
fn can_mount() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err("mounting a tmpfs needs root".into());
    }
    let directory = tempfile::tempdir()?;
    Disk::mount(directory.path().to_owned()).map(drop)
}

/// Writes 90 KiB over 40 KiB on a disk of 128 KiB: both versions must exist at the same time.
fn full_workspace(binary: &Path) -> Result<Row> {
    let sandbox = Sandbox::new(binary)?;
    let _disk = Disk::mount(sandbox.workspace())?;
    let mut random = Random::new(11);
    let (old, new) = (random.text(OLD_BYTES), random.text(NEW_BYTES));
    let file = sandbox.workspace().join(FILE);
    fs::write(&file, &old)?;
    let read = sandbox.must_call("Read", &json!({"file_path": FILE, "limit": 1}))?;
    let hash = read.pointer("/metadata/hash").cloned();
    let arguments = json!({"file_path": FILE, "content": new, "expected_hash": hash});
    let reply = sandbox.call("Write", &arguments)?;

    let mut row = Row::new(PART, "Write of 90 KiB over 40 KiB on a disk of 128 KiB");
    row.tally.add(sandbox::kind(&reply));
    if sandbox::kind(&reply) != "io" || !reply.to_string().contains("ENOSPC") {
        row.violate(format!("no error of kind io that names ENOSPC: {reply}"), AGAIN);
    }
    if fs::read_to_string(&file)? != old {
        row.violate("the old file was changed", AGAIN);
    }
    let names: Vec<_> = fs::read_dir(sandbox.workspace())?.flatten().collect();
    if names.len() != 1 {
        row.violate(format!("stray files: {names:?}"), AGAIN);
    }
    Ok(row)
}

/// With a shrinking disk for the journal, a change is made and journaled, or refused and not made.
fn full_journal(binary: &Path) -> Result<Row> {
    let mut row = Row::new(PART, "Edit with the journal on a disk with 0 to 24 pages free");
    for free_pages in 0..=24 {
        let sandbox = Sandbox::new(binary)?;
        fs::create_dir(sandbox.state())?;
        let _disk = Disk::mount(sandbox.state())?;
        fs::write(sandbox.state().join("filler"), vec![b'x'; DISK_BYTES - free_pages * PAGE])?;
        let body = Random::new(13).text(OLD_BYTES);
        let file = sandbox.workspace().join(FILE);
        fs::write(&file, format!("old\n{body}"))?;
        let arguments = json!({"file_path": FILE, "old_string": "old\n", "new_string": "new\n"});
        let reply = sandbox.call("Edit", &arguments)?;
        row.tally.add(sandbox::kind(&reply));
        let again = format!("{AGAIN} ({free_pages} pages of 4 KiB free)");
        let is_made = sandbox::is_success(&reply);
        let expected = format!("{}\n{body}", if is_made { "new" } else { "old" });
        if fs::read_to_string(&file)? != expected {
            row.violate(format!("the file contradicts the reply: {reply}"), &again);
        }
        if free_pages == 0 && is_made {
            row.violate("a change was made that could not be journaled", &again);
        }
        if fs::read_dir(sandbox.workspace())?.count() != 1 {
            row.violate("stray files in the workspace", &again);
        }
        match sandbox.logged() {
            Ok(logged) if logged == u64::from(is_made) => {}
            Ok(logged) => row.violate(format!("{logged} changes in the journal: {reply}"), again),
            Err(error) => row.violate(format!("the journal cannot be read: {error}"), again),
        }
    }
    Ok(row)
}

/// A small tmpfs, unmounted when dropped.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(at: PathBuf) -> Result<Disk> {
        let size = format!("size={DISK_BYTES},mode=700");
        let mut command = Command::new("mount");
        process::run(command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at))?;
        Ok(Disk { at })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = process::run(Command::new("umount").arg(&self.at)) {
            println!("{error}");
        }
    }
}
