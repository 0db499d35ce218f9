//! Decides on each HTTP request of a connection, and adds credentials that the command does not have.
//!
//! # Theory of operation
//!
//! The gateway ends the TLS of the command with a certificate for the host that it issues itself ([`authority`]), and
//! connects to the host with TLS of its own, which it verifies. Both sides use the same protocol, HTTP/1.1 or HTTP/2.
//! Requests are parsed and written anew by hyper, so the host never sees bytes that the command has framed. The host and
//! the path of each request are checked ([`check_request`]), the policy decides, and headers that belong to one
//! connection are removed ([`headers`]). A [`Credential`] is set last ([`forward`]).
//!
//! The key of the authority is in memory only, and made anew for each [`Inspector`]. Commands trust its certificate
//! because they see files of the system with it added ([`SystemTrust`]).

mod authority;
mod byte_counts;
mod check_request;
mod connection;
mod credential;
mod forward;
mod headers;
mod java_keystore;
mod system_trust;
mod upstream;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

use self::authority::Authority;
pub(crate) use self::connection::InspectedConnection;
pub use self::credential::Credential;
pub(crate) use self::system_trust::authorities_in;
pub use self::system_trust::{SystemTrust, TrustedFile};
use self::upstream::UpstreamTls;
pub(crate) use self::upstream::root_store;
use crate::host::Host;

/// Inspects connections.
pub struct Inspector {
    authority: Authority,
    upstream: UpstreamTls,
    credentials: Vec<Credential>,
}

impl Inspector {
    /// Makes an authority, and trusts the hosts of the authorities in `roots`, in PEM.
    ///
    /// # Errors
    ///
    /// Fails if a key cannot be made, or if `roots` has no certificate.
    pub fn new(roots: &[u8], credentials: Vec<Credential>) -> Result<Inspector, String> {
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let authority = Authority::new(provider.clone())?;
        let upstream = UpstreamTls::new(provider, roots)?;
        Ok(Inspector { authority, upstream, credentials })
    }

    /// The certificate of the authority, in PEM.
    pub fn certificate(&self) -> String {
        self.authority.certificate_pem()
    }

    /// The files that make programs trust the authority, in place of those of the system.
    pub fn trusted_files(&self, system: &SystemTrust) -> Vec<TrustedFile> {
        let authority = &self.authority;
        let pem = authority.certificate_pem();
        system.with_authority(&pem, authority.certificate_der(), authority::HASHED_NAME)
    }

    /// Whether requests to a host get a credential.
    pub fn has_credential_for(&self, host: &Host, port: u16) -> bool {
        self.credentials.iter().any(|credential| credential.is_for(host, port))
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").finish_non_exhaustive()
    }
}
