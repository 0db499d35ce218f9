//! TLS to a real server: only one whose certificate is for the host, and signed by a trusted authority, gets anything.

use std::path::Path;

use base64::Engine as _;
use toolcrib_store::{StoreUrl, check_all, initialize};
use toolcrib_testkit::{PostgresServer, make_private};

fn write_pem(file: &Path, label: &str, der: &[u8]) {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..body.len()).step_by(64).map(|at| &body[at..body.len().min(at + 64)]).collect();
    let text = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"));
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_server_is_verified_before_anything_is_sent() {
    let top = tempfile::tempdir().unwrap();
    let authority = top.path().join("authority.pem");
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    write_pem(&authority, "CERTIFICATE", certificate.der());
    let prepare = |data: &Path| {
        std::fs::copy(&authority, data.join("server.crt")).unwrap();
        write_pem(&data.join("server.key"), "PRIVATE KEY", &key.serialize_der());
        make_private(&data.join("server.key"));
    };
    let Some(server) = PostgresServer::start_with(&["ssl=on"], prepare) else { return };
    let (port, password) = (server.port(), server.admin_password());
    let url = |host: &str, parameters: &str| {
        let text = format!("postgres://admin:{password}@{host}:{port}/postgres?{parameters}");
        StoreUrl::parse(&text).unwrap()
    };
    let trusted = format!("sslrootcert={}", authority.display());
    initialize(&url("localhost", &trusted)).unwrap();
    let ssl = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl";
    assert_eq!(server.psql("postgres", ssl), "0", "the connection was closed");
    assert!(check_all(&url("localhost", &format!("sslmode=verify-full&{trusted}"))).is_ok());
    let refusal =
        |host: &str, parameters: &str| check_all(&url(host, parameters)).unwrap_err().to_string();
    // Another name, and an authority that nobody trusts.
    assert!(
        refusal("127.0.0.1", &trusted).contains("certificate"),
        "{}",
        refusal("127.0.0.1", &trusted)
    );
    assert!(refusal("localhost", "").contains("certificate"), "{}", refusal("localhost", ""));
    assert!(refusal("localhost", "sslrootcert=/no/such").contains("cannot be read"));
    assert!(check_all(&url("localhost", "sslmode=disable")).is_ok(), "if it is asked for");
}

/// A server without TLS is not talked to in the clear.
#[test]
fn a_server_without_tls_gets_no_password() {
    let Some(server) = PostgresServer::start() else { return };
    let text = format!(
        "postgres://admin:{}@localhost:{}/postgres",
        server.admin_password(),
        server.port()
    );
    let refusal = check_all(&StoreUrl::parse(&text).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("has no TLS"), "{refusal}");
}
