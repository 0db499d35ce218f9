//! The first line on a connection: the server tells who it is, before the client sends anything. A connection that ends
//! before it has transferred nothing, so the client can try again.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_monitor::require_same_user;

use super::key::SharedKey;
use super::place::Place;

/// Longer than any greeting.
const MAX_BYTES: u64 = 1_000;

/// A server that does not greet within this time is stopped, or the machine is overloaded.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Greeting {
    /// The connection is served.
    Welcome { process: u32, key: String },
    /// It is not, for this reason.
    Refused(String),
}

/// A connection to a server.
pub(super) struct Joined {
    pub(super) stream: UnixStream,
    /// The process of the server.
    pub(super) process: u32,
}

/// Welcomes a client.
pub(super) fn welcome(stream: &UnixStream, key: &SharedKey) -> io::Result<()> {
    let (process, key) = (std::process::id(), key.digits().to_owned());
    write(stream, &Greeting::Welcome { process, key })
}

/// Refuses a client.
pub(super) fn refuse(stream: &UnixStream, reason: &str) -> io::Result<()> {
    write(stream, &Greeting::Refused(reason.to_owned()))
}

fn write(mut stream: &UnixStream, greeting: &Greeting) -> io::Result<()> {
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    // It fits into the empty buffer of a new connection.
    stream.write_all(&line)
}

/// Connects to the server of a key. `None` if there is none, or if it is just ending.
pub(super) fn connect(key: &SharedKey, place: &Place) -> Result<Option<Joined>, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", place.socket.display());
    let stream = match UnixStream::connect(&place.socket) {
        Ok(stream) => stream,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(at(&error)),
    };
    require_same_user(&stream).map_err(|error| at(&error))?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(|error| at(&error))?;
    let line = match line(&stream) {
        Ok(Some(line)) => line,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(at(&"the shared server does not answer"));
        }
        Err(error) => return Err(at(&error)),
    };
    stream.set_read_timeout(None).map_err(|error| at(&error))?;
    match serde_json::from_slice(&line) {
        Ok(Greeting::Welcome { process, key: found }) if found == key.digits() => {
            Ok(Some(Joined { stream, process }))
        }
        Ok(Greeting::Welcome { .. }) => Err(at(&"the server has other settings")),
        Ok(Greeting::Refused(reason)) => Err(reason),
        Err(_) => Err(at(&"this is not a shared server")),
    }
}

/// Whether there is no socket, or no server listens on it.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Reads a line, and nothing behind it. `None` if the connection ends before.
#[expect(clippy::unbuffered_bytes, reason = "a buffer would take bytes behind the line")]
fn line(stream: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    for byte in stream.take(MAX_BYTES).bytes() {
        match byte? {
            b'\n' => return Ok(Some(line)),
            byte => line.push(byte),
        }
    }
    if line.len() as u64 == MAX_BYTES {
        return Err(io::Error::other("the greeting is too long"));
    }
    Ok(None)
}
