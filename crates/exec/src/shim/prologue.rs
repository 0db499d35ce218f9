//! How a shell is had to run a script from a descriptor, and to say what it leaves, without the script
//! being wrapped in anything.
//!
//! bash reads `$BASH_ENV` before a script. Ours sets a trap for the shell's exit, which writes the exit
//! codes of the last pipeline, its last command, the directory and the exported variables; the script itself is then read as the main script it is, with
//! its exit code, its line numbers and its ways to end. A script with an exit trap of its own replaces
//! ours, and leaves nothing; so does one that ends by `exec` or by a signal.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};

/// What is read before the script: nothing of it is seen by the script but the trap.
///
/// `builtin` and the redirection that overwrites: whatever functions and options a script sets, this
/// works; `||` keeps it from ending a shell with `set -e`. The keeper's files are opened by path, so no
/// child inherits them. Only the script must be inherited, for its path to be the same in every message;
/// it is let go before the first command, unless that is a pipe, and is of no use to anybody.
pub(super) fn text(script: &OwnedFd, left: &OwnedFd) -> Vec<u8> {
    let (script, left) = (script.as_raw_fd(), left.as_raw_fd());
    format!(
        "trap '{{ builtin printf \"%s \" \"${{PIPESTATUS[@]-}}\"; \
         builtin printf \"\\0%s\\0\" \"${{BASH_COMMAND-}}\"; \
         builtin pwd -P; builtin printf \"\\0\"; builtin declare -px; }} \
         >|/proc/$PPID/fd/{left} 2>&- || builtin :' EXIT\n\
         unset -v BASH_ENV\n\
         trap 'exec {script}<&-; trap - DEBUG' DEBUG\n"
    )
    .into_bytes()
}

/// Lets the shell inherit the script, and says under what path it finds it.
pub(super) fn hand_on(script: &OwnedFd) -> io::Result<String> {
    fcntl_setfd(script, FdFlags::empty())?;
    Ok(format!("/dev/fd/{}", script.as_raw_fd()))
}

/// The path of a file of this process, for others.
pub(super) fn path_of(file: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}
