//! A workspace as requests see it: its sessions, and the protocol.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::Bytes;
use hyper::{Request, Response};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use toolcrib_http::Refusal;

use super::guard::Guard;
use super::sessions::Sessions;
use crate::ndjson::MAX_MESSAGE_BYTES;

/// Answers the requests for one workspace.
pub(super) struct Endpoint<H> {
    sessions: Arc<Sessions>,
    service: StreamableHttpService<Arc<H>, Sessions>,
}

impl<H: ServerHandler> Endpoint<H> {
    pub(super) fn new(handler: H, sessions: Sessions) -> Self {
        let (handler, sessions) = (Arc::new(handler), Arc::new(sessions));
        let service =
            StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config());
        Endpoint { sessions, service }
    }

    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Answers a request that was checked.
    pub(super) async fn answer(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        self.service.handle(request).await
    }
}

/// The configuration of the protocol's HTTP layer. The guard has already checked `Host` and `Origin`.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
}

/// An endpoint, and what a request to it holds.
pub(super) type Opened<E> = (Arc<Endpoint<<E as Endpoints>::Handler>>, <E as Endpoints>::Held);

/// The endpoints of a server.
pub(super) trait Endpoints: Sized + Send + Sync + 'static {
    type Handler: ServerHandler;
    /// The name of an endpoint in a request.
    type Name: Send;
    /// What a request holds until it was answered.
    type Held: Send + Sync + Unpin + 'static;

    /// Decides on a request by its head, before the body is read.
    fn check<B>(&self, request: &Request<B>) -> Result<Self::Name, Refusal>;

    /// Who makes a request: one owner does not take the connections of another.
    fn owner(name: &Self::Name) -> &str;

    /// The endpoint for a request that was checked.
    fn open(&self, name: Self::Name) -> impl Future<Output = Result<Opened<Self>, Refusal>> + Send;

    /// Ends idle sessions and workspaces.
    fn end_idle(&self, now: Instant);
}

/// The endpoint of a server with one workspace.
pub(super) struct SoleEndpoint<H> {
    pub(super) guard: Guard,
    pub(super) endpoint: Arc<Endpoint<H>>,
}

impl<H: ServerHandler> Endpoints for SoleEndpoint<H> {
    type Handler = H;
    type Name = ();
    type Held = ();

    fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        self.guard.check(request)
    }

    fn owner((): &()) -> &str {
        ""
    }

    async fn open(&self, (): ()) -> Result<Opened<Self>, Refusal> {
        Ok((self.endpoint.clone(), ()))
    }

    fn end_idle(&self, now: Instant) {
        self.endpoint.sessions.end_idle(now);
    }
}
