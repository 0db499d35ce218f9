//! TLS of a server, with a certificate that can be replaced while it runs.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// More certificates than any chain has.
const MAX_CERTIFICATES: usize = 20;

/// The certificate and the key of a server.
pub struct ServerTls(Mutex<Arc<ServerConfig>>);

impl ServerTls {
    /// From a chain of certificates, that of the server first, and its key, both in PEM. Fails with the reason.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<ServerTls, String> {
        Ok(ServerTls(Mutex::new(config(certificates, key)?)))
    }

    /// Uses another certificate for new connections. If it is not valid, the old one stays.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), String> {
        let config = config(certificates, key)?;
        *self.0.lock() = config;
        Ok(())
    }

    /// The handshake on a new connection.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        let config = self.0.lock().clone();
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn config(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(certificates).take(MAX_CERTIFICATES).collect();
    let chain = chain.map_err(|error| format!("the certificates: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in PEM".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    }

    fn pem(label: &str, der: &[u8]) -> String {
        use base64::Engine as _;
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn a_certificate_needs_its_own_key() {
        let ((certificate, key), (other, _)) = (pair(), pair());
        let tls = ServerTls::new(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(!format!("{tls:?}").contains("key"));
        for (certificate, key) in [
            (other.as_str(), key.as_str()),
            ("", &key),
            ("nonsense", &key),
            (&certificate, ""),
            (&certificate, &certificate),
        ] {
            assert!(tls.replace(certificate.as_bytes(), key.as_bytes()).is_err());
        }
    }
}
