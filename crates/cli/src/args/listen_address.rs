//! The address of an HTTP server.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toolcrib_mcp::Listener;

/// An address or a socket path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenAt {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for ListenAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("unix: needs a path after it".to_owned())
            } else {
                Ok(ListenAt::Unix(path.into()))
            };
        }
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse::<u16>() {
            return Ok(ListenAt::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            "not a port, an address such as 127.0.0.1:8765, or unix:PATH".to_owned()
        })?;
        Ok(ListenAt::Tcp(address))
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAt::Tcp(address) => write!(f, "{address}"),
            ListenAt::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ListenAt {
    /// Whether other machines can reach it.
    pub(crate) fn is_reachable(&self) -> bool {
        matches!(self, ListenAt::Tcp(address) if !address.ip().is_loopback())
    }

    /// Listens. Returns the listener and the address of a path, for display.
    pub(crate) fn listen(&self, at: &str) -> Result<(Listener, String), String> {
        match self {
            ListenAt::Tcp(address) => {
                let failed = |error: io::Error| cannot_listen(*address, &error);
                let tcp = TcpListener::bind(address).map_err(failed)?;
                let address = tcp.local_addr().map_err(failed)?;
                Ok((Listener::Tcp(tcp), format!("http://{address}{at}")))
            }
            ListenAt::Unix(path) => {
                let unix = bind(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok((Listener::Unix(unix), format!("{at} on the socket {}", path.display())))
            }
        }
    }
}

/// Why a TCP address cannot be listened on, and the next step.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    if error.kind() == ErrorKind::AddrInUse {
        let port = address.port();
        return format!(
            "cannot listen on {address}: another program uses this port. Choose another port, or end that program: \
             `ss -ltnp 'sport = :{port}'` shows it."
        );
    }
    format!("cannot listen on {address}: {error}")
}

/// Binds a socket that only its owner can use. Replaces a stale socket of an earlier server; anything else at the
/// path is an error.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn is_left_behind(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_those_of_other_machines_are_known() {
        let tcp = |text: &str| ListenAt::Tcp(text.parse().unwrap());
        for (text, expected) in [
            ("8765", tcp("127.0.0.1:8765")),
            ("localhost:0", tcp("127.0.0.1:0")),
            ("127.0.0.9:80", tcp("127.0.0.9:80")),
            ("[::1]:80", tcp("[::1]:80")),
            ("unix:/run/x", ListenAt::Unix("/run/x".into())),
        ] {
            assert!(!expected.is_reachable());
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["0.0.0.0:80", "192.168.1.7:80", "[::]:80"] {
            assert!(text.parse::<ListenAt>().unwrap().is_reachable(), "{text}");
        }
        for (text, reason) in [
            ("localhost", "not a port"),
            ("example.com:80", "not a port"),
            ("127.0.0.1:99999", "not a port"),
            ("unix:", "needs a path"),
        ] {
            let refusal = text.parse::<ListenAt>().unwrap_err();
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_port_in_use_is_named_with_the_next_step() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = other.local_addr().unwrap();
        let problem = ListenAt::Tcp(address).listen("").err().unwrap();
        let step = format!("`ss -ltnp 'sport = :{}'` shows it.", address.port());
        assert!(problem.contains("another program uses this port"), "{problem}");
        assert!(problem.ends_with(&step), "{problem}");
    }

    #[test]
    fn a_stale_socket_is_replaced_and_other_files_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listening = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse, "a server listens");
        drop(listening);
        drop(bind(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
