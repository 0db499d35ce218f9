//! Processes that wait for keys where there is no terminal.
//!
//! vim reads the end of its input, takes its stderr for the keyboard instead, and waits for ever: the stderr
//! of a command is the end of a pipe that can only be written. Nothing else waits on such a thing.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Whether the input of a process is a pipe that it can only write to.
pub(crate) fn waits_for_keys(pid: i32) -> bool {
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0"));
    let is_pipe =
        input.is_ok_and(|input| input.as_os_str().as_encoded_bytes().starts_with(b"pipe:"));
    is_pipe
        && std::fs::read_to_string(format!("/proc/{pid}/fdinfo/0"))
            .is_ok_and(|about| is_write_only(&about))
}

/// Tells a process to end, if it still waits for keys.
pub(crate) fn end_if_it_waits_for_keys(pid: i32) {
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Looked at after it was opened, so that the number cannot have become another's in between.
    if let Some(process) = process.filter(|_| waits_for_keys(pid)) {
        // One that has ended needs no word.
        let _ = pidfd_send_signal(&process, Signal::TERM);
    }
}

/// The last octal digit of the flags has the two bits for reading and writing.
fn is_write_only(about: &str) -> bool {
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| flags.trim().ends_with(['1', '5']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_a_descriptor_tell_what_it_is_for() {
        assert!(is_write_only("pos:\t0\nflags:\t01\nmnt_id:\t15\n"));
        assert!(is_write_only("flags:\t02000001\n"));
        for other in ["flags:\t00\n", "flags:\t0100002\n", "flags:\t04000\n", ""] {
            assert!(!is_write_only(other), "{other}");
        }
    }
}
