//! The files of a shared server, in the directory of the user's sockets.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use toolcrib::{make_private_directory, user_machine};

use super::key::SharedKey;

/// Messages of a server that a client prints.
const MAX_MESSAGE_BYTES: u64 = 64 << 10;

/// Where a shared server is found.
pub(super) struct Place {
    /// The socket. Its name differs from those of monitors.
    pub(super) socket: PathBuf,
    lock: PathBuf,
    /// The messages of the server.
    pub(super) log: PathBuf,
}

/// The right to start or end the server.
pub(super) struct PlaceLock(#[expect(dead_code, reason = "locked until it is closed")] File);

impl Place {
    /// The place of a key. The directory is created if it does not exist, and only the user can access it.
    pub(super) fn of(key: &SharedKey) -> Result<Place, String> {
        let directory = user_machine::socket_directory().ok_or(
            "the directory for sockets of the user is unknown, so no server can be shared",
        )?;
        let directory = make_private_directory(&directory).map_err(|error| error.to_string())?;
        let file = |end: &str| directory.join(format!("{}.{end}", key.name()));
        Ok(Place { socket: file("shared"), lock: file("shared-lock"), log: file("shared-log") })
    }

    /// Waits until no other client starts the server.
    pub(super) fn lock(&self) -> Result<PlaceLock, String> {
        let at = |error: io::Error| format!("{}: {error}", self.lock.display());
        loop {
            let file = self.open_lock().map_err(at)?;
            file.lock().map_err(at)?;
            if self.is_lock(&file).map_err(at)? {
                return Ok(PlaceLock(file));
            }
        }
    }

    /// Does not wait. `None` if a client starts the server.
    pub(super) fn try_lock(&self) -> io::Result<Option<PlaceLock>> {
        let file = self.open_lock()?;
        match file.try_lock() {
            Ok(()) => Ok(self.is_lock(&file)?.then_some(PlaceLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.lock)
    }

    /// Whether the file is still the lock. A server that ends removes it.
    fn is_lock(&self, file: &File) -> io::Result<bool> {
        let own = file.metadata()?;
        match self.lock.metadata() {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A new file for the messages of a server that is started.
    pub(super) fn new_log(&self) -> Result<File, String> {
        // Another process may still write to the old one.
        let _ = std::fs::remove_file(&self.log);
        let mut options = OpenOptions::new();
        let log = options.append(true).create_new(true).mode(0o600).open(&self.log);
        log.map_err(|error| format!("{}: {error}", self.log.display()))
    }

    /// The first messages of the server.
    pub(super) fn messages(&self) -> Vec<u8> {
        let mut messages = Vec::new();
        if let Ok(log) = File::open(&self.log) {
            // What could be read is enough.
            let _ = log.take(MAX_MESSAGE_BYTES).read_to_end(&mut messages);
        }
        messages
    }

    /// Removes all files. The caller holds the lock.
    pub(super) fn remove(&self, _: &PlaceLock) {
        for path in [&self.socket, &self.log, &self.lock] {
            remove(path);
        }
    }

    /// Removes the socket of a killed server. The caller holds the lock.
    pub(super) fn remove_socket(&self, _: &PlaceLock) {
        remove(&self.socket);
    }
}

fn remove(path: &Path) {
    // It may be missing. Otherwise creating it again tells the error.
    let _ = std::fs::remove_file(path);
}
