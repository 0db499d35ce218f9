//! Accepts connections and answers their requests.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use toolcrib_http::{
    BodyBudget, BodyLimit, BodyWith, Connection, Connections, NextHead, StrictHeads,
    UnfinishedRequest, read_body, serve_connection,
};

use crate::api_error::ApiError;
use crate::assets;
use crate::event_stream::EventBody;
use crate::head_checks::{ServerNames, check_stream, check_token};
use crate::peer_user::is_same_user;
use crate::query::Query;
use crate::response::{self, PageResponse};
use crate::routes::{Api, ApiRequest};

/// More than any head of a browser.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// More than any answer or rule.
const MAX_BODY: BodyLimit = BodyLimit {
    bytes: 256 << 10,
    time: Duration::from_secs(10),
    sentence: "The body is too large: it has at most 256 KiB.",
};

/// The memory of all bodies, besides the first part of each.
const MAX_BODIES: usize = 8 << 20;

/// The pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The server of the page.
pub(crate) struct PageServer {
    address: SocketAddr,
    names: ServerNames,
    api: Arc<Api>,
    bodies: Arc<BodyBudget>,
}

/// Serves until the process is ended.
pub(crate) async fn accept(listener: TcpListener, api: Arc<Api>) -> io::Result<Infallible> {
    let address = listener.local_addr()?;
    let names = ServerNames::new(address.port());
    let bodies = BodyBudget::new(MAX_BODIES, MAX_BODIES);
    let server = Arc::new(PageServer { address, names, api, bodies });
    let connections = Arc::new(Connections::default());
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                server.clone().open(stream, peer, connections.open());
            }
            Err(_) => {
                connections.close_oldest_unauthenticated();
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
        // A burst of new connections must not starve the open ones.
        tokio::task::yield_now().await;
    }
}

impl PageServer {
    /// Serves one connection in its own task.
    fn open(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, connection: Arc<Connection>) {
        let (stream, next_head) = StrictHeads::new(stream);
        let to_close = connection.clone();
        let service = service_fn(move |request| {
            let (server, connection) = (self.clone(), connection.clone());
            let next_head = next_head.clone();
            async move {
                let answered = server.answer(request, peer, &connection, &next_head).await;
                Ok::<_, Infallible>(answered.unwrap_or_else(response::refusal))
            }
        });
        tokio::spawn(async move {
            serve_connection(stream, MAX_HEAD_BYTES, service, &to_close).await;
        });
    }

    /// Answers a request, or refuses it.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        connection: &Arc<Connection>,
        next_head: &NextHead,
    ) -> Result<PageResponse, ApiError> {
        self.names.check(&request)?;
        let path = request.uri().path().to_owned();
        let is_get = request.method() == Method::GET;
        if !path.starts_with("/api/") {
            let asset = assets::at(&path).filter(|_| is_get);
            let asset = asset.ok_or_else(|| ApiError::not_found("There is no such page."))?;
            next_head.follows();
            return Ok(response::asset(asset));
        }
        if path == "/api/session" && !is_get {
            let own = self.address;
            let looked_up = tokio::task::spawn_blocking(move || is_same_user(peer, own)).await;
            if !looked_up.unwrap_or(false) {
                let message = "This page belongs to another user.";
                return Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message));
            }
            let body = self.body_of(request, next_head).await?;
            return Ok(response::json(self.api.sign_in(&body)));
        }
        let browser = check_token(&request, &self.api.sign_in)?;
        let busy = connection.begin_request("").map_err(|_| {
            let message = "Every connection is busy. Try again later.";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
        })?;
        if path == "/api/events" && is_get {
            check_stream(&request)?;
            let last = request.headers().get("last-event-id");
            let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
            next_head.follows();
            let body = EventBody::new(self.api.live.clone(), last);
            let body = BodyWith::new(body, busy).boxed();
            return Ok(response::with_body(StatusCode::OK, "text/event-stream", body));
        }
        let method = request.method().clone();
        let query = Query::parse(request.uri().query());
        let body = self.body_of(request, next_head).await?;
        Ok(self.call_api(ApiRequest { browser, method, path, query, body }, busy).await)
    }

    /// Answers on another thread: the logs are files, and an undo writes some.
    async fn call_api(&self, request: ApiRequest, busy: UnfinishedRequest) -> PageResponse {
        let api = self.api.clone();
        let answered = tokio::task::spawn_blocking(move || api.answer(&request)).await;
        let answered = answered.unwrap_or_else(|_| {
            Err(ApiError::io("The request failed by an error in this program."))
        });
        response::json(answered).map(|body| BodyWith::new(body, busy).boxed())
    }

    async fn body_of(
        &self,
        request: Request<Incoming>,
        next_head: &NextHead,
    ) -> Result<Vec<u8>, ApiError> {
        let mut reserved = self.bodies.begin("");
        let body = read_body(request.into_body(), MAX_BODY, &mut reserved).await;
        let body =
            body.map_err(|refusal| ApiError::new(refusal.status, "invalid", refusal.sentence))?;
        next_head.follows();
        Ok(body.to_vec())
    }
}
