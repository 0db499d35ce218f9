//! The parsers of DNS queries, TLS client messages, HTTP requests and their paths: a complete message stays what it
//! is, whatever follows, replies are bounded, and an accepted path names nothing above itself.

use std::net::Ipv4Addr;

use toolcrib_net::RequestPath;
use toolcrib_net::client_hello::ClientHello;
use toolcrib_net::dns::{Answer, Query};
use toolcrib_net::http_request::HttpRequest;

pub(crate) fn network(input: &[u8]) -> String {
    let more = [input, b"\r\n\r\nmore"].concat();
    let dns = Query::read(input).map(|query| {
        let reply = query.reply(Answer::Address(Ipv4Addr::LOCALHOST));
        assert!(reply.len() <= 512, "a reply fits into the smallest message");
        assert!(query.name.bytes().all(|byte| byte.is_ascii_graphic()), "names are printable");
        let longer = Query::read(&more).expect("bytes after the question are ignored");
        assert_eq!(longer.name, query.name);
    });
    let hello = ClientHello::read(input);
    if !matches!(hello, ClientHello::Incomplete) {
        assert_eq!(ClientHello::read(&more), hello, "later bytes change nothing");
    }
    let request = HttpRequest::read(input);
    if matches!(request, HttpRequest::Complete { .. }) {
        assert_eq!(HttpRequest::read(&more), request, "later bytes change nothing");
    }
    let path = path(input);
    let first_word = |text: String| text.split([' ', '{']).next().unwrap_or_default().to_owned();
    let [hello, request] = [format!("{hello:?}"), format!("{request:?}")].map(first_word);
    format!("dns {}, tls {hello}, http {request}, path {path}", dns.is_some())
}

/// Whether the input, as the target of a request, has a path with one meaning.
fn path(input: &[u8]) -> bool {
    let Ok(parsed) = RequestPath::parse(&String::from_utf8_lossy(input)) else { return false };
    assert_eq!(RequestPath::parse(&parsed.target()).as_ref(), Ok(&parsed), "it has one spelling");
    let decoded = parsed.path().replace("%2F", "/").replace("%5C", "/");
    let is_dot = |segment: &str| matches!(segment, "." | "..");
    assert!(!decoded.contains("//") && !decoded.split('/').any(is_dot), "no segment is special");
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#');
    assert!(parsed.path().bytes().all(is_plain), "it is printable");
    true
}
