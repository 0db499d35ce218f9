//! HTTP request heads: an accepted head has the token, and every host in it is this server.

use std::sync::LazyLock;

use hyper::Request;
use toolcrib_mcp::{Guard, Token};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

static GUARD: LazyLock<Guard> = LazyLock::new(|| {
    let token = Token::new(TOKEN).expect("it is long enough");
    Guard::new(token, &["tools.example".to_owned()], Some(8765)).expect("it is a name")
});

/// The first line is a method and a target, each other line a header. `TOKEN` stands for the right token.
pub(crate) fn http(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input).replace("TOKEN", TOKEN);
    let Some(request) = request(&text) else { return "not a request".to_owned() };
    match GUARD.check(&request) {
        Err(refusal) => {
            assert!(refusal.status.is_client_error(), "{refusal:?}");
            refusal.status.as_u16().to_string()
        }
        Ok(()) => {
            let all = |name: &str| -> Vec<String> {
                let values = request.headers().get_all(name).iter();
                values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
            };
            let [authorization] = &all("authorization")[..] else { panic!("one token") };
            assert!(authorization.trim().ends_with(TOKEN), "{authorization}");
            let [host] = &all("host")[..] else { panic!("one host") };
            let hosts = ["localhost", "127.0.0.1", "[::1]"];
            let own = hosts.iter().flat_map(|host| [(*host).to_owned(), format!("{host}:8765")]);
            let proxy = ["tools.example".to_owned(), "tools.example:443".to_owned()];
            assert!(own.chain(proxy).any(|own| own.eq_ignore_ascii_case(host)), "{host}");
            assert!(all("origin").len() <= 1 && all("sec-fetch-site").len() <= 1);
            for origin in all("origin") {
                let origin = origin.to_lowercase();
                let own = hosts.iter().map(|host| format!("http://{host}:8765"));
                assert!(own.chain(["https://tools.example".to_owned()]).any(|own| own == origin));
            }
            assert!(!all("sec-fetch-site").iter().any(|site| site.contains("site")));
            assert_eq!(request.uri().authority(), None, "no host in the target");
            assert_eq!(request.uri().path(), "/mcp");
            "accepted".to_owned()
        }
    }
}

fn request(text: &str) -> Option<Request<()>> {
    let mut lines = text.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        request = request.header(name, value.trim());
    }
    request.body(()).ok()
}
