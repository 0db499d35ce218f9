//! The authority that commands trust for inspected hosts. Its key never leaves this process.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::host::Host;

/// The name of the authority. [`HASHED_NAME`] depends on it.
const NAME: &str = "Toolcrib inspected hosts";

/// The name under which OpenSSL finds a certificate with [`NAME`] in a directory.
pub(super) const HASHED_NAME: &str = "b8ac5978.0";

/// Certificates that are kept. Beyond that, all are made again.
const MAX_CERTIFICATES: usize = 256;

/// Characters of a line in PEM.
const PEM_LINE: usize = 64;

/// The authority, and the certificates that it has issued.
pub(super) struct Authority {
    provider: Arc<CryptoProvider>,
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of all hosts.
    host_key: KeyPair,
    issued: Mutex<HashMap<Host, Arc<CertifiedKey>>>,
}

impl Authority {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Result<Authority, String> {
        let failed = |error: rcgen::Error| format!("no certificate authority can be made: {error}");
        let mut params = validity();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        let host_key = KeyPair::generate().map_err(failed)?;
        Ok(Authority { provider, issuer, host_key, issued: Mutex::default() })
    }

    pub(super) fn certificate_der(&self) -> &[u8] {
        self.issuer.der()
    }

    pub(super) fn certificate_pem(&self) -> String {
        let text = STANDARD.encode(self.certificate_der());
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for line in text.as_bytes().chunks(PEM_LINE) {
            pem += &String::from_utf8_lossy(line);
            pem.push('\n');
        }
        pem + "-----END CERTIFICATE-----\n"
    }

    /// The server side of TLS for a host, with at most one protocol.
    pub(super) fn server_config(
        &self,
        host: &Host,
        protocol: Option<&[u8]>,
    ) -> Result<Arc<ServerConfig>, String> {
        let certificate = SingleCertAndKey::from(self.certificate_of(host)?);
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificate));
        config.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
        // Each connection has its own configuration, so no session can be resumed.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn certificate_of(&self, host: &Host) -> Result<Arc<CertifiedKey>, String> {
        let mut issued = self.issued.lock();
        if let Some(known) = issued.get(host) {
            return Ok(known.clone());
        }
        let made = Arc::new(self.issue(host)?);
        if issued.len() >= MAX_CERTIFICATES {
            issued.clear();
        }
        issued.insert(host.clone(), made.clone());
        Ok(made)
    }

    fn issue(&self, host: &Host) -> Result<CertifiedKey, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("no certificate can be issued for {host}: {error}")
        };
        let mut params = validity();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![subject(host).map_err(|error| failed(&error))?];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate =
            params.signed_by(&self.host_key, &self.issuer).map_err(|error| failed(&error))?;
        let chain = vec![certificate.der().clone(), self.issuer.der().clone()];
        let key = PrivatePkcs8KeyDer::from(self.host_key.serialize_der());
        CertifiedKey::from_der(chain, key.into(), &self.provider).map_err(|error| failed(&error))
    }
}

fn subject(host: &Host) -> Result<SanType, rcgen::Error> {
    Ok(match host {
        Host::Name(name) => SanType::DnsName(name.as_str().try_into()?),
        Host::Address(IpAddr::V4(address)) => SanType::IpAddress(IpAddr::V4(*address)),
        Host::Address(address) => SanType::IpAddress(*address),
    })
}

/// Certificates that are valid at any time: the keys end with the process.
fn validity() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
    params
}
