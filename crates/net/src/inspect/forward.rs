//! Answers one request: refuses it, or forwards it to the host.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Empty, Full, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::Inspector;
use super::check_request::{CheckedRequest, Expected, WEBSOCKET, check, subject};
use super::headers::{strip, tokens};
use crate::connection_policy::{
    Attempt, ConnectionPolicy, RequestLine, RequestRefusal, RequestRuling,
};

/// The body of a response.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// The rule of requests that no rule can allow.
const BUILT_IN: &str = "network:inspect";

/// What sends requests to the host.
pub(super) enum Sender {
    /// By HTTP/1.1, one after the other.
    Http1(tokio::sync::Mutex<http1::SendRequest<Incoming>>),
    /// By HTTP/2.
    Http2(http2::SendRequest<Incoming>),
    /// Nothing, for this reason.
    Failed(String),
}

/// Answers the requests of one connection.
pub(super) struct Forwarder {
    pub(super) inspector: Arc<Inspector>,
    pub(super) policy: Arc<dyn ConnectionPolicy>,
    pub(super) attempt: Attempt,
    pub(super) expected: Expected,
    pub(super) sender: Sender,
    /// Copies the bytes of another protocol, after an upgrade.
    pub(super) upgraded: Mutex<Option<JoinHandle<()>>>,
}

impl Forwarder {
    /// Answers a request. An error ends the connection, as if the host had ended it.
    pub(super) async fn answer(
        self: Arc<Forwarder>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, hyper::Error> {
        let checked = match self.decide(&request) {
            Ok(checked) => checked,
            Err(refusal) => return Ok(self.refuse(&request, &refusal)),
        };
        let upgrade = checked.is_upgrade.then(|| hyper::upgrade::on(&mut request));
        let Some(request) = self.prepared(request, &checked) else {
            let sentence = "Toolcrib cannot forward the request: its host or path is invalid.";
            return Ok(text_response(StatusCode::BAD_REQUEST, sentence));
        };
        let mut response = match &self.sender {
            Sender::Http1(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Failed(reason) => return Ok(text_response(StatusCode::BAD_GATEWAY, reason)),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(self.switch_protocols(upgrade, response));
        }
        let is_last = tokens(response.headers(), &header::CONNECTION).any(|token| token == "close");
        strip(response.headers_mut());
        response.headers_mut().remove(header::ALT_SVC);
        if is_last && matches!(self.sender, Sender::Http1(_)) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        *response.version_mut() = Version::default();
        Ok(response.map(|body| body.boxed_unsync()))
    }

    /// Checks a request and asks the policy.
    fn decide(&self, request: &Request<Incoming>) -> Result<CheckedRequest, RequestRefusal> {
        let checked =
            check(request, &self.expected).map_err(|why| RequestRefusal::built_in(&why))?;
        let line = RequestLine {
            method: request.method().as_str(),
            path: &checked.path,
            is_upgrade: checked.is_upgrade,
        };
        match self.policy.decide_request(&self.attempt, &line) {
            RequestRuling::Allow => Ok(checked),
            RequestRuling::Deny(refusal) => Err(refusal),
        }
    }

    fn refuse(&self, request: &Request<Incoming>, refusal: &RequestRefusal) -> Response<Body> {
        let subject = subject(request);
        self.policy.request_refused(&self.attempt, &subject, refusal);
        let sentence = format!(
            "Toolcrib refused {subject} on {}: {} ({}).",
            self.attempt.target(),
            refusal.why,
            refusal.rule
        );
        text_response(StatusCode::FORBIDDEN, &sentence)
    }

    /// The request as it is sent to the host. `None` if it cannot be written.
    fn prepared(
        &self,
        mut request: Request<Incoming>,
        checked: &CheckedRequest,
    ) -> Option<Request<Incoming>> {
        let headers = request.headers_mut();
        strip(headers);
        if self.expected.is_tls {
            let (host, port) = (&self.expected.host, self.expected.port);
            let credentials = self.inspector.credentials.iter();
            for credential in credentials.filter(|credential| credential.is_for(host, port)) {
                credential.set(headers);
            }
        }
        headers.remove(header::HOST);
        let target = checked.path.target();
        if matches!(self.sender, Sender::Http2(_)) {
            let uri = Uri::builder().scheme("https").authority(checked.authority.as_str());
            *request.uri_mut() = uri.path_and_query(target).build().ok()?;
            *request.version_mut() = Version::HTTP_2;
            return Some(request);
        }
        headers.insert(header::HOST, HeaderValue::from_str(&checked.authority).ok()?);
        if checked.is_upgrade {
            headers.insert(header::UPGRADE, HeaderValue::from_static(WEBSOCKET));
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        *request.uri_mut() = target.parse().ok()?;
        *request.version_mut() = Version::HTTP_11;
        Some(request)
    }

    /// Copies bytes from now on, if the client has asked for that.
    fn switch_protocols(
        &self,
        upgrade: Option<OnUpgrade>,
        mut response: Response<Incoming>,
    ) -> Response<Body> {
        let Some(client) = upgrade else {
            let sentence = "the host changes the protocol without being asked";
            return text_response(StatusCode::BAD_GATEWAY, sentence);
        };
        let host = hyper::upgrade::on(&mut response);
        let copying = tokio::spawn(async move {
            if let (Ok(client), Ok(host)) = tokio::join!(client, host) {
                copy_both(client, host).await;
            }
        });
        *self.upgraded.lock() = Some(copying);
        let (parts, _) = response.into_parts();
        Response::from_parts(parts, Empty::new().map_err(|never| match never {}).boxed_unsync())
    }
}

async fn copy_both(client: Upgraded, host: Upgraded) {
    let (mut client, mut host) = (TokioIo::new(client), TokioIo::new(host));
    // The end of either side ends both.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut host).await;
}

impl RequestRefusal {
    fn built_in(why: &str) -> RequestRefusal {
        RequestRefusal { rule: BUILT_IN.to_owned(), why: why.to_owned(), remedy: String::new() }
    }
}

/// A response with a sentence.
fn text_response(status: StatusCode, sentence: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{sentence}\n")));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
