//! Sends and receives file descriptors with bytes on a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The largest number of descriptors in one message.
const MAX_DESCRIPTORS: usize = 140;

/// Sends bytes. The descriptors go with the first of them.
pub(crate) fn send(
    mut socket: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes_to_send = [IoSlice::new(bytes)];
    let send = || sendmsg(socket, &bytes_to_send, &mut ancillary, SendFlags::NOSIGNAL);
    let sent = retry_on_intr(send)?;
    io::Write::write_all(&mut socket, &bytes[sent..])
}

/// Reads some bytes, and the descriptors that came with them.
pub(crate) fn receive(socket: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(buffer)];
    // Stopping and continuing the process also interrupts a socket with a timeout.
    let receive = || recvmsg(socket, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let received = retry_on_intr(receive)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, descriptors))
}
