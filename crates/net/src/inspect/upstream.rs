//! TLS to the host, verified with the authorities that the user trusts.

use std::net::TcpStream as BlockingStream;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::byte_counts::Counted;
use crate::host::Host;

/// A socket to a host.
pub(super) type HostSocket = Counted<tokio::net::TcpStream>;

/// More authorities than a system has.
const MAX_ROOTS: usize = 4096;

/// The client side of TLS.
pub(super) struct UpstreamTls {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
}

impl UpstreamTls {
    pub(super) fn new(provider: Arc<CryptoProvider>, pem: &[u8]) -> Result<UpstreamTls, String> {
        Ok(UpstreamTls { provider, roots: Arc::new(root_store(pem)?) })
    }

    /// Connects with one of these protocols. Fails with the reason.
    pub(super) async fn connect(
        &self,
        host: &Host,
        socket: HostSocket,
        protocols: Vec<Vec<u8>>,
    ) -> Result<TlsStream<HostSocket>, String> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols;
        let name = match host {
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| error.to_string())?
            }
            Host::Address(address) => ServerName::IpAddress((*address).into()),
        };
        let connected = TlsConnector::from(Arc::new(config)).connect(name, socket).await;
        connected.map_err(|error| error.to_string())
    }
}

/// The authorities in PEM.
pub(crate) fn root_store(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).take(MAX_ROOTS).filter_map(Result::ok);
    // Systems have some certificates that are no authorities.
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err("the system has no certificate authorities that Toolcrib finds".to_owned());
    }
    Ok(roots)
}

/// The socket for asynchronous use.
pub(super) fn socket(stream: BlockingStream) -> std::io::Result<tokio::net::TcpStream> {
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}
