//! Forks a shim that has no command yet.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::stdio::dup2_stdin;

use super::{control_socket, send_message};
use crate::sandbox::{Forked, fork_sibling};
use crate::setup_error::{SetupError, context};
use crate::shim_messages::{self, Request, ShimMessage};

/// The position of the last byte of the arguments among the fields of `/proc/self/stat` that follow the name.
const ARGUMENTS_END: usize = 46;

/// Forks for each request to do so. Returns the first other request, in this process or in a copy.
pub(super) fn next_request() -> io::Result<(Request<'static>, Vec<OwnedFd>)> {
    loop {
        let control = control_socket()?;
        match shim_messages::read_request(&control)? {
            (Request::Fork { id }, descriptors) => match fork(&id, descriptors) {
                Ok(Forked::Parent(pid)) => {
                    send_message(&control, &ShimMessage::Forked { pid: pid.as_raw_pid() });
                }
                Ok(Forked::Child) => {}
                Err(failure) => send_message(&control, &failure.into()),
            },
            other => return Ok(other),
        }
    }
}

/// Forks. The copy has another id, and another socket as stdin.
fn fork(id: &str, descriptors: Vec<OwnedFd>) -> Result<Forked, SetupError> {
    let missing = || io::Error::from_raw_os_error(libc::EBADF);
    let control = descriptors.into_iter().next().ok_or_else(missing);
    let control = context("receive the socket", control)?;
    // In this process, so that a failure can be reported. Its own id is not needed: it is not a job.
    context("set the id", replace_last_argument(id))?;
    let forked = context("fork", fork_sibling())?;
    if matches!(forked, Forked::Child) {
        // Fails for no valid descriptor.
        let _ = dup2_stdin(control);
    }
    Ok(forked)
}

/// Replaces the last argument of this process, which listings of processes show, by one of the same length.
fn replace_last_argument(with: &str) -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').map(|(_, fields)| fields);
    let end = after_name.and_then(|fields| fields.split_ascii_whitespace().nth(ARGUMENTS_END));
    let end: Option<u64> = end.and_then(|end| end.parse().ok());
    // A zero byte is at the end.
    let at = end.and_then(|end| end.checked_sub(with.len() as u64 + 1));
    let at = at.ok_or(io::ErrorKind::InvalidData)?;
    OpenOptions::new().write(true).open("/proc/self/mem")?.write_all_at(with.as_bytes(), at)
}
