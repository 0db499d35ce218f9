//! A full disk: a change that does not fit is refused and leaves the file unchanged, whether the disk of the file
//! or that of the journal is full.
//!
//! The disk is a tmpfs of 128 KiB, mounted in the sandbox, which needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Effort;
use super::super::report::{Report, Row};

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
    let scratch = Scratch::new(binary)?;
    let _disk = Disk::mount(scratch.workspace())?;
    let mut random = Random::new(11);
    let (old, new) = (random.text(OLD_BYTES), random.text(NEW_BYTES));
    let file = scratch.workspace().join(FILE);
    fs::write(&file, &old)?;
    let read = scratch.must_call("Read", &json!({"file_path": FILE, "limit": 1}))?;
    let hash = read.pointer("/metadata/hash").cloned();
    let arguments = json!({"file_path": FILE, "content": new, "expected_hash": hash});
    let reply = scratch.call("Write", &arguments)?;

    let mut row = Row::new(PART, "Write of 90 KiB over 40 KiB on a disk of 128 KiB");
    row.tally.add(scratch::kind(&reply));
    if scratch::kind(&reply) != "io" || !reply.to_string().contains("ENOSPC") {
        row.violate(format!("no error of kind io that names ENOSPC: {reply}"), AGAIN);
    }
    if fs::read_to_string(&file)? != old {
        row.violate("the old file was changed", AGAIN);
    }
    let names: Vec<_> = fs::read_dir(scratch.workspace())?.flatten().collect();
    if names.len() != 1 {
        row.violate(format!("stray files: {names:?}"), AGAIN);
    }
    Ok(row)
}

/// With a shrinking disk for the journal, a change is made and journaled, or refused and not made.
fn full_journal(binary: &Path) -> Result<Row> {
    let mut row = Row::new(PART, "Edit with the journal on a disk with 0 to 24 pages free");
    for free_pages in 0..=24 {
        let scratch = Scratch::new(binary)?;
        fs::create_dir(scratch.state())?;
        let _disk = Disk::mount(scratch.state())?;
        fs::write(scratch.state().join("filler"), vec![b'x'; DISK_BYTES - free_pages * PAGE])?;
        let body = Random::new(13).text(OLD_BYTES);
        let file = scratch.workspace().join(FILE);
        fs::write(&file, format!("old\n{body}"))?;
        let arguments = json!({"file_path": FILE, "old_string": "old\n", "new_string": "new\n"});
        let reply = scratch.call("Edit", &arguments)?;
        row.tally.add(scratch::kind(&reply));
        let again = format!("{AGAIN} ({free_pages} pages of 4 KiB free)");
        let is_made = scratch::is_success(&reply);
        let expected = format!("{}\n{body}", if is_made { "new" } else { "old" });
        if fs::read_to_string(&file)? != expected {
            row.violate(format!("the file contradicts the reply: {reply}"), &again);
        }
        if free_pages == 0 && is_made {
            row.violate("a change was made that could not be journaled", &again);
        }
        if fs::read_dir(scratch.workspace())?.count() != 1 {
            row.violate("stray files in the workspace", &again);
        }
        match scratch.logged() {
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
