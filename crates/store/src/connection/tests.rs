//! A connection with a server that sends whatever the test wants.

#![allow(clippy::disallowed_types, reason = "the test is the server")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;

use super::*;

/// The error of connecting to a server that reads the first message, sends these bytes, and closes.
fn error_after(bytes: Vec<u8>) -> StoreError {
    let top = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(top.path().join(".s.PGSQL.5432")).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; 1024];
        let _ = stream.read(&mut first).unwrap();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        // Until the client has read everything.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let url = format!("postgres://acme:secret@/tools?host={}", top.path().display());
    let error = Connection::open(&StoreUrl::parse(&url).unwrap()).err().unwrap();
    server.join().unwrap();
    assert!(!error.to_string().contains("secret"), "{error}");
    error
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag], length.as_slice(), body].concat()
}

#[test]
fn a_hostile_server_costs_neither_memory_nor_time() {
    let says = |bytes: Vec<u8>| error_after(bytes).to_string();
    let huge = [b"D", 0x7fff_ffff_u32.to_be_bytes().as_slice()].concat();
    assert!(says(huge).contains("too large a message"));
    assert!(says(vec![b'D', 0, 0, 0, 1]).contains("not of PostgreSQL"));
    assert!(says(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).contains("too large a message"));
    assert!(says(Vec::new()).contains("closed the connection"));
    let refusal = message(b'E', b"SFATAL\0C28P01\0Mwrong\x1b[2J\0\0");
    let said = says(refusal);
    assert!(said.contains("(28P01)") && !said.contains(char::is_control), "{said}");
    let sasl = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let rounds = message(b'R', b"\0\0\0\x0br=x,s=c2FsdA==,i=2000000000");
    assert!(says([sasl.clone(), rounds].concat()).contains("too much work"));
    // A server that does not know the password.
    let ok = message(b'R', b"\0\0\0\0");
    assert!(says([sasl, ok].concat()).contains("broke off"));
    let kerberos = message(b'R', b"\0\0\0\x02");
    assert!(says(kerberos).contains("not supported"));
}
