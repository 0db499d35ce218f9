//! Finds processes that wait for keyboard input without a terminal.
//!
//! vim reads its input to the end, uses its stderr as the keyboard instead, and waits forever: the stderr of a
//! command is the write end of a pipe. No other program waits on such a descriptor.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Whether the input of a process is the write end of a pipe.
pub(crate) fn waits_for_keyboard(pid: i32) -> bool {
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0"));
    let is_pipe =
        input.is_ok_and(|input| input.as_os_str().as_encoded_bytes().starts_with(b"pipe:"));
    is_pipe
        && std::fs::read_to_string(format!("/proc/{pid}/fdinfo/0"))
            .is_ok_and(|about| is_write_only(&about))
}

/// Sends SIGTERM to a process, if it still waits for keyboard input.
pub(crate) fn end_if_waiting_for_keyboard(pid: i32) {
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Checked after it was opened, so that the pid cannot have been reused in between.
    if let Some(process) = process.filter(|_| waits_for_keyboard(pid)) {
        // It may have ended.
        let _ = pidfd_send_signal(&process, Signal::TERM);
    }
}

/// The last octal digit of the flags has the two bits of the access mode.
fn is_write_only(about: &str) -> bool {
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| flags.trim().ends_with(['1', '5']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_only_descriptors_are_recognised() {
        assert!(is_write_only("pos:\t0\nflags:\t01\nmnt_id:\t15\n"));
        assert!(is_write_only("flags:\t02000001\n"));
        for other in ["flags:\t00\n", "flags:\t0100002\n", "flags:\t04000\n", ""] {
            assert!(!is_write_only(other), "{other}");
        }
    }
}
