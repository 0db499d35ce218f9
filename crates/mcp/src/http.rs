//! The server over HTTP: for programs of this machine, and only for those that hold the token.

mod body;
mod connections;
mod guard;
mod names;
mod sessions;
mod strict_heads;
mod token;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib::Runtime;

use self::body::Holding;
use self::connections::{Connection, Connections};
pub use self::guard::{Guard, Refusal};
use self::sessions::Sessions;
use self::strict_heads::{NextHead, StrictHeads};
pub use self::token::{Token, TokenError};
use crate::client_session::Client;
use crate::handler::{Handler, ServeOptions};
use crate::ndjson::MAX_MESSAGE_BYTES;
use crate::stdio::ServeError;

/// Where to listen, and who may ask.
#[derive(Debug)]
pub struct HttpOptions {
    /// A socket that listens already.
    pub listener: Listener,
    /// What every request must bring.
    pub token: Token,
    /// Names, besides those of this machine itself, under which a proxy on it is reached: `NAME` for one at the
    /// usual port of TLS, or `NAME:PORT`.
    pub hosts: Vec<String>,
}

/// A socket that listens.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "the transport listens")]
pub enum Listener {
    /// On an address of this machine.
    Tcp(std::net::TcpListener),
    /// At a path.
    Unix(std::os::unix::net::UnixListener),
}

/// More than any honest head of a request.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// After a connection could not be taken, most likely because there are too many files open.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves MCP over HTTP until the process is ended.
pub fn serve_http(
    runtime: Runtime,
    options: ServeOptions,
    http: HttpOptions,
) -> Result<Infallible, ServeError> {
    serve_handler(Handler::new(runtime, options)?, http)
}

/// The same for a handler of somebody else's, most likely one that wraps ours: what guards the door, and the
/// door, stay.
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
    let door = Arc::new(Door { guard, sessions, service });
    threads.block_on(accept(http.listener, door)).map_err(|error| failed(&error))
}

/// How the protocol's own layer is to be. The guard has compared `Host` and `Origin` before it is asked.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
}

async fn accept<H: ServerHandler>(
    listener: Listener,
    door: Arc<Door<H>>,
) -> io::Result<Infallible> {
    let connections = Arc::new(Connections::default());
    let socket = Socket::of(listener)?;
    let swept = door.clone();
    tokio::spawn(async move { swept.sessions.sweep().await });
    loop {
        let door = door.clone();
        let opened = match &socket {
            Socket::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Answers are small, and somebody waits for each.
                let _ = stream.set_nodelay(true);
                door.open(stream, connections.open());
            }),
            Socket::Unix(unix) => {
                unix.accept().await.map(|(stream, _)| door.open(stream, connections.open()))
            }
        };
        if opened.is_err() {
            connections.close_oldest_unauthenticated();
            tokio::time::sleep(PAUSE).await;
        }
        // Many connections at once must not keep those that are open from being served.
        tokio::task::yield_now().await;
    }
}

/// A [`Listener`] that is waited for without a thread.
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

struct Door<H> {
    guard: Guard,
    sessions: Arc<Sessions>,
    service: StreamableHttpService<Arc<H>, Sessions>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl<H: ServerHandler> Door<H> {
    /// Serves one connection, beside the others.
    fn open(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Arc<Connection>,
    ) {
        let (stream, next_head) = StrictHeads::new(stream);
        let client = Arc::new(Client::default());
        let to_close = connection.clone();
        let service = service_fn(move |request| {
            let (door, connection) = (self.clone(), connection.clone());
            let (client, next_head) = (client.clone(), next_head.clone());
            async move {
                let answered = door.answer(request, &connection, &client, &next_head).await;
                let refused = |refusal: Refusal| refusal.response().map(|body| body.boxed());
                Ok::<_, Infallible>(answered.unwrap_or_else(refused))
            }
        });
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .max_buf_size(MAX_HEADER_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // What goes wrong on a connection is told to who is at its other end, or nobody is there.
            tokio::select! {
                _ = served => {}
                () = to_close.to_be_closed() => {}
            }
        });
    }

    /// Answers a request, if it may be asked at all.
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
        let body = body::read(body).await?;
        next_head.follows();
        let answer = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        Ok(answer.map(|body| Holding::new(body, (busy, client)).boxed()))
    }
}

impl Listener {
    /// Its port, if it has one. An address that others can reach is refused: what comes over a network in
    /// the clear, token and files, anybody on the way can read.
    fn port(&self) -> io::Result<Option<u16>> {
        match self {
            Listener::Unix(_) => Ok(None),
            Listener::Tcp(tcp) => {
                let address = tcp.local_addr()?;
                match address.ip().is_loopback() {
                    true => Ok(Some(address.port())),
                    false => Err(io::Error::other(format!(
                        "{address} can be reached from other machines without encryption"
                    ))),
                }
            }
        }
    }
}
