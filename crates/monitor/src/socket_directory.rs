//! The sockets of the user's servers, in one directory.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use toolcrib::{make_private_directory, random_bytes};

/// The end of a socket's file name.
const SUFFIX: &str = ".sock";

/// More servers than a user runs. Others are not listed.
const MAX_SOCKETS: usize = 256;

/// The socket of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketPath {
    /// Id of the server: its process id and a random part.
    pub server: String,
    /// Path of the socket.
    pub path: PathBuf,
}

impl SocketPath {
    /// Connects to the server. The socket of a process that has ended is removed.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let connected = UnixStream::connect(&self.path);
        if connected.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // Another process may have removed it.
            let _ = std::fs::remove_file(&self.path);
        }
        connected
    }
}

/// Lists the sockets in a directory, sorted by server. Empty if there is no directory.
pub fn sockets(directory: &Path) -> Vec<SocketPath> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let sockets = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let server = name.strip_suffix(SUFFIX)?.to_owned();
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        is_socket.then(|| SocketPath { server, path: entry.path() })
    });
    let mut sockets: Vec<SocketPath> = sockets.take(MAX_SOCKETS).collect();
    sockets.sort();
    sockets
}

/// Creates the socket of a server in a directory that only the user can access. The directory is created if it does
/// not exist. Without an id, the server gets a random one.
pub(crate) fn bind(directory: &Path, id: Option<&str>) -> io::Result<(UnixListener, SocketPath)> {
    let directory =
        make_private_directory(directory).map_err(|error| io::Error::other(error.to_string()))?;
    let server = match id {
        Some(id) => id.to_owned(),
        None => random_id()?,
    };
    let path = directory.join(format!("{server}{SUFFIX}"));
    Ok((bind_private(&path)?, SocketPath { server, path }))
}

/// Creates a socket that only the user can open, in a directory that only the user can access. It replaces a socket
/// with the same name. The name must have a suffix.
///
/// # Errors
///
/// Fails if the socket cannot be created.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    // Whoever finds a socket that does not listen removes it, so it gets its name when it listens.
    let unnamed = path.with_extension("");
    // A process that was killed may have left it.
    let _ = std::fs::remove_file(&unnamed);
    let listener = UnixListener::bind(&unnamed)?;
    std::fs::set_permissions(&unnamed, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&unnamed, path)?;
    Ok(listener)
}

fn random_id() -> io::Result<String> {
    let random: [u8; 6] = random_bytes().map_err(io::Error::other)?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{random}", std::process::id()))
}
