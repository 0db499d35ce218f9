//! Programs for other processors, under QEMU's user-mode emulation. It has neither seccomp nor Landlock, so this
//! tests the tools that start no process.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::system_packages::QEMU;

use super::new_user::NewUser;
use crate::build::existing;
use crate::release_info::Release;
use crate::target::{TARGETS, Target};

/// Calls that use the file system, the index, the journal and the parsers, with words of their replies.
const CALLS: &[(&str, &str, &str)] = &[
    ("Write", r#"{"file_path": "a.txt", "content": "one\ntwo\n"}"#, "a.txt"),
    ("Edit", r#"{"file_path": "a.txt", "old_string": "two", "new_string": "three"}"#, "three"),
    ("Grep", r#"{"pattern": "thr.e", "output_mode": "content"}"#, "three"),
    ("Glob", r#"{"pattern": "*.txt"}"#, "a.txt"),
    ("Undo", "{}", "a.txt"),
    ("Read", r#"{"file_path": "a.txt"}"#, "two"),
];

pub(super) fn run(release: &Release) -> Result<()> {
    QEMU.obtain()?;
    for target in TARGETS.iter().filter(|target| !target.runs_here()) {
        try_out(release, target)?;
    }
    Ok(())
}

fn try_out(release: &Release, target: &'static Target) -> Result<()> {
    let (user, program) = (NewUser::new()?, existing(target)?);
    let emulated = |words: &[&str]| -> Result<String> {
        let mut command: Command = user.command(QEMU.program);
        command.arg(&program.path).args(words);
        process::capture(&mut command)
    };
    let version = emulated(&["--version"])?;
    if version.trim() != format!("toolcrib {}", release.version) {
        return Err(format!("{}: printed {version}", target.name).into());
    }
    for (tool, arguments, expected) in CALLS {
        let reply = emulated(&["--text", "call", tool, arguments])?;
        if !reply.contains(expected) {
            return Err(format!("{}: {tool} replied {reply}", target.name).into());
        }
    }
    println!("   {}: {} calls are right, emulated", target.name, CALLS.len());
    Ok(())
}
