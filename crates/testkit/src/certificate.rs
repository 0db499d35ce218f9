//! Certificates for TLS servers in tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A new certificate for `localhost` that trusts itself, and its key, both in PEM.
pub fn self_signed_certificate() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("keys can be made");
    let names = vec!["localhost".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).expect("localhost is a name");
    let certificate = parameters.self_signed(&key).expect("a certificate can be made");
    (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}
