//! Connects this program itself to servers that the user configured.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// Shorter timeouts would count as none.
pub(crate) const LEAST_TIMEOUT: Duration = Duration::from_millis(1);

/// Connects to the first address of a host that accepts the connection in time.
pub(crate) fn connect_tcp(host: &str, port: u16, until: Instant) -> Result<TcpStream, String> {
    let addresses = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let mut problem = format!("{host} has no address");
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now()).max(LEAST_TIMEOUT);
        match TcpStream::connect_timeout(&address, left) {
            Err(error) => problem = format!("{address}: {error}"),
            Ok(stream) => {
                let no_delay = stream.set_nodelay(true).map_err(|error| error.to_string());
                return no_delay.map(|()| stream);
            }
        }
    }
    Err(problem)
}

/// The client side of TLS with a host whose certificate one of these authorities has signed.
#[cfg(feature = "inspect")]
pub(crate) fn tls_client(
    host: &str,
    authorities: rustls::RootCertStore,
) -> Result<rustls::ClientConnection, String> {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection};

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
}
