//! Programs for other processors, under QEMU's user-mode emulation. It has neither seccomp nor Landlock, so this
//! tests the tools that start no command.

use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::system_packages::QEMU;

use super::new_user::NewUser;
use crate::build::existing;
use crate::release_info::Release;
use crate::target::{TARGETS, Target};

/// Lets the kernel start programs for aarch64 in QEMU, for this process and its children only: the list of interpreters
/// belongs to its user namespace. Linux 6.7 or newer.
const WITH_INTERPRETER: &str = r#"
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
printf '%s' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$0"':F' \
    > /proc/sys/fs/binfmt_misc/register &&
exec "$@""#;

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
        run_cases(target)?;
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

/// The Markdown cases that run no command, through each transport.
fn run_cases(target: &'static Target) -> Result<()> {
    let program = existing(target)?;
    if process::probe(&mut in_namespace(&["true"])?).is_none() {
        println!("   {}: this kernel has no list of interpreters for a namespace", target.name);
        return Ok(());
    }
    let mut test = in_namespace(&["cargo", "test", "--quiet", "--locked", "-p", "toolcrib-cli"])?;
    test.args(["--test", "cases"]);
    test.env("TOOLCRIB_TEST_PROGRAM", &program.path).env("TOOLCRIB_TEST_COMMANDS", "0");
    process::run(test.current_dir(toolcrib_devtools::workspace::root()))?;
    println!("   {}: the cases that run no command pass, emulated", target.name);
    Ok(())
}

fn in_namespace(words: &[&str]) -> Result<Command> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", WITH_INTERPRETER]);
    command.arg(interpreter()?).args(words);
    Ok(command)
}

/// The kernel wants an absolute path.
fn interpreter() -> Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|place| place.join(QEMU.program));
    places.find(|place| Path::is_file(place)).ok_or_else(|| "QEMU is not on the PATH".into())
}
