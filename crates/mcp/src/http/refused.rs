//! The refusal of a request, with what the client must do to be served.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use toolcrib_http::Refusal;

/// The refusal of a request.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    /// The value of `WWW-Authenticate`, if it says more than that a token is needed.
    pub(super) challenge: Option<HeaderValue>,
}

impl Refused {
    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let mut response = self.refusal.response();
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused { refusal, challenge: None }
    }
}
