//! Checks the first bytes of a client: a host that they name must be the host of the connection.

use crate::client_hello::{ClientHello, MAX_HELLO_BYTES};
use crate::host::Host;
use crate::http_request::{HttpRequest, is_method_byte};

/// What the first bytes of a client show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// More bytes are needed.
    Incomplete,
    /// They name no other host.
    Accepted,
    /// They are refused, for this reason.
    Refused(String),
}

/// Checks the first bytes that a client sends to a host.
pub(crate) fn check(bytes: &[u8], host: &Host) -> FirstBytes {
    let Host::Name(name) = host else { return FirstBytes::Accepted };
    let refused = |what: &str| FirstBytes::Refused(format!("the connection to {name} {what}"));
    match ClientHello::read(bytes) {
        ClientHello::Complete { server_name: Some(other) } if other != *name => {
            return refused(&format!("asks for the TLS server name {other}"));
        }
        ClientHello::Complete { .. } => return FirstBytes::Accepted,
        ClientHello::Malformed => return refused("begins with an invalid TLS message"),
        ClientHello::Incomplete if bytes.len() > 2 * MAX_HELLO_BYTES => {
            return refused("begins with a TLS message that is too long");
        }
        ClientHello::Incomplete => return FirstBytes::Incomplete,
        ClientHello::Other => {}
    }
    match HttpRequest::read(bytes) {
        HttpRequest::Incomplete => FirstBytes::Incomplete,
        HttpRequest::Malformed => refused("begins with an invalid HTTP request"),
        HttpRequest::Complete { host: Some(other) } if other != *host => {
            refused(&format!("asks for the HTTP host {other}"))
        }
        HttpRequest::Complete { .. } | HttpRequest::Other => FirstBytes::Accepted,
    }
}

/// Whether bytes are a single word, which names no host: the whole message of some protocols, or a method of HTTP.
pub(crate) fn is_word(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_method_byte(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_the_connection_is_accepted() {
        let host = Host::parse("a.example").unwrap();
        let own = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let other = b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
        assert_eq!(check(own, &host), FirstBytes::Accepted);
        assert_eq!(check(&own[..20], &host), FirstBytes::Incomplete);
        assert!(matches!(check(other, &host), FirstBytes::Refused(_)));
        assert!(matches!(
            check(b"\x16\x03\x01\0\x05\x02\0\0\x01\0", &host),
            FirstBytes::Refused(_)
        ));
        for hiding in [
            &b"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n"[..],
            b"\r\nGET / HTTP/1.1\r\nHost: b.example\r\n\r\n",
            b"get / HTTP/1.1\r\nHost: b.example\r\n\r\n",
            b"M-SEARCH / HTTP/1.1\r\nHost: b.example\r\n\r\n",
            b"GET\t/\tHTTP/1.1\r\nHost: b.example\r\n\r\n",
            b"GET /\xff HTTP/1.1 \r\nHost: b.example\r\n\r\n",
            // An alert in front of the first message.
            b"\x15\x03\x01\0\x02\x01\x5a",
        ] {
            let found = check(hiding, &host);
            assert!(matches!(found, FirstBytes::Refused(_)), "{hiding:?}: {found:?}");
        }
        let tunnel = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n";
        assert_eq!(check(tunnel, &host), FirstBytes::Accepted);
        assert_eq!(check(b"SSH-2.0-OpenSSH\r\n", &host), FirstBytes::Accepted);
        assert_eq!(check(b"", &host), FirstBytes::Incomplete);
        let address = Host::parse("10.0.0.5").unwrap();
        assert_eq!(check(other, &address), FirstBytes::Accepted);
    }
}
