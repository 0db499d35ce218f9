//! Makes a shell run a script from a descriptor and report its state at the end, without wrapping the script.
//!
//! bash reads `$BASH_ENV` before a script. Ours sets an exit trap that writes the exit codes of the last
//! pipeline, its last command, the directory and the exported variables. The script is then read as the main
//! script, with its own exit code, line numbers and ways to end. A script with its own exit trap replaces
//! ours and reports nothing; so does one that ends by `exec` or a signal.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};

/// The script for `$BASH_ENV`. Only the trap remains visible to the main script.
///
/// `builtin` and the overwriting redirection make it work whatever functions and options a script sets; `||`
/// keeps it from ending a shell with `set -e`. The shim's files are opened by path, so that no child inherits
/// them. Only the main script must be inherited, so that its path is the same in every message; it is closed
/// before the first command, unless that is a pipeline, and is useless to other programs.
pub(super) fn prologue_script(script: &OwnedFd, left: &OwnedFd) -> Vec<u8> {
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

/// Lets the shell inherit the script. Returns the path of the script for the shell.
pub(super) fn inherit_script(script: &OwnedFd) -> io::Result<String> {
    fcntl_setfd(script, FdFlags::empty())?;
    Ok(format!("/dev/fd/{}", script.as_raw_fd()))
}

/// A path by which other processes can open a file of this process.
pub(super) fn proc_path(file: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}
