//! The user at the other end of a socket.

use std::io;
use std::os::unix::net::UnixStream;

/// Checks the user at the other end of a socket.
///
/// # Errors
///
/// Fails if the other end belongs to another user.
pub fn require_same_user(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other end is another user"))
    }
}
