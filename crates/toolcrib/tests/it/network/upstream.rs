//! A company proxy between this machine and the hosts.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib::UpstreamProxy;

use super::*;

/// A proxy that connects every tunnel to one port of this machine.
struct Proxy {
    port: u16,
    /// The port that tunnels lead to.
    target: Arc<Mutex<u16>>,
    /// The first line of each request.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (target, requests) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let proxy = Proxy { port, target: target.clone(), requests: requests.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (target, requests) = (*target.lock(), requests.clone());
                std::thread::spawn(move || serve(client.unwrap(), target, &requests));
            }
        });
        proxy
    }
}

fn serve(mut client: TcpStream, target: u16, requests: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    requests.lock().push(head.lines().next().unwrap().to_owned());
    let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[test]
fn hosts_are_reached_through_a_company_proxy() {
    let proxy = Proxy::start();
    let url = format!("http://127.0.0.1:{}", proxy.port);
    let proxies = UpstreamProxies::default().with_proxy(UpstreamProxy::parse(&url).unwrap());
    let listed = Listed::with(&[], proxies, &[]);
    *proxy.target.lock() = listed.server.https;
    // The resolver of the test does not know this name.
    let reply = listed.bash("curl -sS -k https://missing.test/hello");
    assert!(reply.contains("hello\n"), "{reply}");
    assert_eq!(*proxy.requests.lock(), ["CONNECT missing.test:443 HTTP/1.1"]);
    let logged = listed.connections("missing.test");
    assert_eq!(logged[0].address.as_deref(), Some(format!("127.0.0.1:{}", proxy.port).as_str()));
    // Rules still decide, and the first bytes are still checked.
    let reply = listed.bash("h=$(echo no.ok.test); curl -sS -k https://$h/hello");
    assert!(reply.contains("no.ok.test:443 refused: it is not for agents"), "{reply}");
    let reply = listed.bash("curl -sS -k --connect-to ::a.ok.test: https://b.ok.test/hello");
    assert!(reply.contains("asks for the TLS server name b.ok.test"), "{reply}");
    assert_eq!(proxy.requests.lock().len(), 2);
}

/// Commands would reach no host through a proxy outside, and may not see its password.
#[test]
fn commands_do_not_see_the_proxy_of_the_user() {
    let listed = Listed::new();
    let reply = listed.bash("env | grep -i _proxy; curl -s http://a.ok.test/hello");
    assert!(reply.starts_with("hello\n"), "{reply}");
}
