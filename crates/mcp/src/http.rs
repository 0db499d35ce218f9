//! The HTTP transport, for programs on this machine that have the token.

mod guard;
mod server_names;
mod sessions;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib::Runtime;
use toolcrib_http::{
    BodyLimit, BodyWith, Connection, Connections, NextHead, Refusal, StrictHeads, Token, read_body,
    serve_connection,
};

pub use self::guard::Guard;
use self::sessions::Sessions;
use crate::client_session::Client;
use crate::handler::{Handler, ServeOptions};
use crate::ndjson::MAX_MESSAGE_BYTES;
use crate::serve_error::ServeError;

/// Options of the HTTP transport.
#[derive(Debug)]
pub struct HttpOptions {
    /// A listening socket.
    pub listener: Listener,
    /// The token that every request must have.
    pub token: Token,
    /// Host names of proxies on this machine, besides its own names: `NAME` for a proxy on the default TLS port, or
    /// `NAME:PORT`.
    pub hosts: Vec<String>,
}

/// A listening socket.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "the transport listens")]
pub enum Listener {
    /// On a loopback address.
    Tcp(std::net::TcpListener),
    /// At a path.
    Unix(std::os::unix::net::UnixListener),
}

/// More than any legitimate request head.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The largest body of a request.
const MAX_BODY: BodyLimit = BodyLimit {
    bytes: MAX_MESSAGE_BYTES,
    sentence: "The body is too large: a message has at most 64 MiB.",
};

/// The pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves MCP over HTTP until the process is ended.
pub fn serve_http(
    runtime: Runtime,
    options: ServeOptions,
    http: HttpOptions,
) -> Result<Infallible, ServeError> {
    serve_handler(Handler::new(runtime, options)?, http)
}

/// Serves MCP over HTTP with another handler, such as one that wraps [`Handler`].
pub fn serve_handler(
    handler: impl ServerHandler,
    http: HttpOptions,
) -> Result<Infallible, ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let handler = Arc::new(handler);
    let port = http.listener.port().map_err(|error| failed(&error))?;
    let guard = Guard::new(http.token, &http.hosts, port).map_err(|error| failed(&error))?;
    let threads = Handler::threads().map_err(|error| failed(&error))?;
    let sessions = Arc::new(Sessions::new());
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config());
    let server = Arc::new(HttpServer { guard, sessions, service });
    threads.block_on(accept(http.listener, server)).map_err(|error| failed(&error))
}

/// The configuration of the protocol's HTTP layer. The guard has already checked `Host` and `Origin`.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
}

async fn accept<H: ServerHandler>(
    listener: Listener,
    server: Arc<HttpServer<H>>,
) -> io::Result<Infallible> {
    let connections = Arc::new(Connections::default());
    let socket = Socket::of(listener)?;
    let swept = server.clone();
    tokio::spawn(async move { swept.sessions.sweep().await });
    loop {
        let server = server.clone();
        let opened = match &socket {
            Socket::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Responses are small and should be sent at once.
                let _ = stream.set_nodelay(true);
                server.open(stream, connections.open());
            }),
            Socket::Unix(unix) => {
                unix.accept().await.map(|(stream, _)| server.open(stream, connections.open()))
            }
        };
        if opened.is_err() {
            connections.close_oldest_unauthenticated();
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
        }
        // A burst of new connections must not starve the open ones.
        tokio::task::yield_now().await;
    }
}

/// A non-blocking [`Listener`].
enum Socket {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Socket {
    fn of(listener: Listener) -> io::Result<Socket> {
        match listener {
            Listener::Tcp(tcp) => {
                tcp.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(tcp).map(Socket::Tcp)
            }
            Listener::Unix(unix) => {
                unix.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(unix).map(Socket::Unix)
            }
        }
    }
}

struct HttpServer<H> {
    guard: Guard,
    sessions: Arc<Sessions>,
    service: StreamableHttpService<Arc<H>, Sessions>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl<H: ServerHandler> HttpServer<H> {
    /// Serves one connection in its own task.
    fn open(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Arc<Connection>,
    ) {
        let (stream, next_head) = StrictHeads::new(stream);
        let client = Arc::new(Client::default());
        let to_close = connection.clone();
        let service = service_fn(move |request| {
            let (server, connection) = (self.clone(), connection.clone());
            let (client, next_head) = (client.clone(), next_head.clone());
            async move {
                let answered = server.answer(request, &connection, &client, &next_head).await;
                let refused = |refusal: Refusal| refusal.response().map(|body| body.boxed());
                Ok::<_, Infallible>(answered.unwrap_or_else(refused))
            }
        });
        tokio::spawn(async move {
            serve_connection(stream, MAX_HEADER_BYTES, service, &to_close).await;
        });
    }

    /// Answers a request, or refuses it.
    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
        client: &Arc<Client>,
        next_head: &NextHead,
    ) -> Result<Answer, Refusal> {
        self.guard.check(&request)?;
        let busy = connection.begin_request().map_err(|_| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            sentence: "Every connection is busy. Try again later.",
        })?;
        let client = self.sessions.client(request.headers(), client).ok_or(Refusal {
            status: StatusCode::BAD_REQUEST,
            sentence: "Toolcrib-Session has 1 to 64 letters, digits, `-`, `_` or `.`.",
        })?;
        let (mut head, body) = request.into_parts();
        head.extensions.insert(client.clone());
        let body = read_body(body, MAX_BODY).await?;
        next_head.follows();
        let answer = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        Ok(answer.map(|body| BodyWith::new(body, (busy, client)).boxed()))
    }
}

impl Listener {
    /// Its port, if it has one. Fails for an address that other machines can reach: the token and files would be
    /// sent in clear text.
    fn port(&self) -> io::Result<Option<u16>> {
        match self {
            Listener::Unix(_) => Ok(None),
            Listener::Tcp(tcp) => {
                let address = tcp.local_addr()?;
                if address.ip().is_loopback() {
                    Ok(Some(address.port()))
                } else {
                    Err(io::Error::other(format!(
                        "{address} can be reached from other machines without encryption"
                    )))
                }
            }
        }
    }
}
