//! The parsers of DNS queries, TLS client messages and HTTP requests: a complete message stays what it is,
//! whatever follows, and replies are bounded.

use std::net::Ipv4Addr;

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
    let first_word = |text: String| text.split([' ', '{']).next().unwrap_or_default().to_owned();
    let [hello, request] = [format!("{hello:?}"), format!("{request:?}")].map(first_word);
    format!("dns {}, tls {hello}, http {request}", dns.is_some())
}
