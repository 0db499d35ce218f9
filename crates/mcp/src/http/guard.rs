//! Who may ask at all. Looked at before anything of a request's body is read.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use super::token::Token;

/// The one path there is.
const PATH: &str = "/mcp";

pub(super) struct Guard {
    token: Token,
}

impl Guard {
    pub(super) fn new(token: Token) -> Self {
        Guard { token }
    }

    /// The answer to a request that goes no further.
    pub(super) fn refuse<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let headers = request.headers();
        if !bearer(headers).is_some_and(|given| self.token.is(given)) {
            let mut refusal = say(
                StatusCode::UNAUTHORIZED,
                "The token is missing or wrong. Send `Authorization: Bearer TOKEN`; toolcrib serve \
                 names the file with the token when it starts.",
            );
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Some(refusal);
        }
        if request.uri().path() != PATH {
            return Some(say(StatusCode::NOT_FOUND, "MCP is at /mcp."));
        }
        // A page in a browser can send other types to anywhere without being asked.
        if request.method() == Method::POST && !is_json(headers) {
            return Some(say(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Send `Content-Type: application/json`.",
            ));
        }
        None
    }
}

/// The token of a request, from the one place where it belongs.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (all.next()?, all.next());
    let (scheme, token) = first.as_bytes().split_at_checked(b"Bearer ".len())?;
    (second.is_none() && scheme.eq_ignore_ascii_case(b"Bearer ")).then(|| token.trim_ascii())
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn say(status: StatusCode, sentence: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(sentence.as_bytes())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
