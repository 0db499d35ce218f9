//! Copies bytes between the standard streams of a client and its server.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::greeting::Joined;
use super::place::Place;
use crate::output;

/// As much as a pipe has.
const BUFFER_BYTES: usize = 64 << 10;

/// Copies in both directions until one end is closed. A side that does not read stops the other, since nothing is kept here.
pub(super) fn relay(joined: Joined, place: &Place) -> Result<ExitCode, String> {
    let Joined { stream, process } = joined;
    let failed = |error: io::Error| format!("cannot use the standard streams: {error}");
    let (input, output) = (io::stdin(), io::stdout());
    // Without the buffers of the standard library, which would be a second copy.
    let input = owned(&input).map_err(failed)?;
    let output = owned(&output).map_err(failed)?;
    let sending = stream.try_clone().map_err(failed)?;
    let has_ended = Arc::new(AtomicBool::new(false));
    let input_ended = has_ended.clone();
    let thread = thread::Builder::new().name("input".to_owned());
    thread.spawn(move || send(input, &sending, &input_ended)).map_err(failed)?;
    let copied = copy(&stream, File::from(output));
    if let Err(error) = &copied
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        // The client has closed its end, which ends a server over stdio, too.
        return Ok(ExitCode::SUCCESS);
    }
    if has_ended.load(Ordering::Acquire) {
        return Ok(ExitCode::SUCCESS);
    }
    output::usage_error(&format!(
        "the shared server (process {process}) has closed the connection; its messages are in {}",
        place.log.display()
    ));
    Ok(ExitCode::FAILURE)
}

/// Sends the input, and its end.
fn send(input: OwnedFd, stream: &UnixStream, has_ended: &AtomicBool) {
    // An error of the socket ends the other direction, too.
    if copy(File::from(input), stream).is_ok() {
        has_ended.store(true, Ordering::Release);
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// Copies through one buffer until the end. `std::io::copy` would splice, and the kernel locks the pipe of the client while
/// it waits for the socket, so that the client could not read from it.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn owned(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}
