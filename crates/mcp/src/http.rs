//! The HTTP transport, for programs on this machine that have the token.

mod connection_sessions;
mod endpoint;
mod guard;
mod server_names;
mod sessions;
mod start_on_thread;
mod value_count;
mod workspace_id;
mod workspaces;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use toolcrib::Runtime;
use toolcrib_http::{
    BodyBudget, BodyLimit, BodyWith, Connection, Connections, NextHead, Refusal, StrictHeads,
    Token, read_body, serve_connection,
};

use self::connection_sessions::ConnectionSessions;
use self::endpoint::{Endpoint, Endpoints, SoleEndpoint};
pub use self::guard::Guard;
use self::guard::HeadCheck;
use self::sessions::{SWEEP_INTERVAL, Sessions};
use self::start_on_thread::start_on_thread;
use self::value_count::has_many_values;
pub use self::workspace_id::WorkspaceId;
use self::workspaces::Workspaces;
pub use self::workspaces::{OpenedWorkspace, WorkspaceSource};
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
    time: Duration::from_secs(60),
    sentence: "The body is too large: a message has at most 64 MiB.",
};

/// The memory of all bodies of unfinished requests, and of those for one workspace, besides the first part of each.
const MAX_BODIES: usize = 8 * MAX_MESSAGE_BYTES;
const MAX_BODIES_OF_OWNER: usize = 2 * MAX_MESSAGE_BYTES;

/// Larger bodies are parsed on another thread.
const MAX_PARSED_HERE: usize = 64 << 10;

/// How many bodies are parsed on other threads at the same time.
const PARSERS: usize = 2;

const NOT_PARSED: Refusal = Refusal {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    sentence: "The body could not be processed, by an error in this program.",
};

const TOO_MANY_VALUES: Refusal = Refusal {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    sentence: "The body has too many values: a message has at most 100,000.",
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
    let port = http.listener.port().map_err(|error| failed(&error))?;
    let guard = Guard::new(http.token, &http.hosts, port).map_err(|error| failed(&error))?;
    let endpoint = Arc::new(Endpoint::new(handler, Sessions::new()));
    serve_endpoints(SoleEndpoint { guard, endpoint }, http.listener, ONE_WORKSPACE)
}

/// Options of a server with many workspaces.
#[derive(Debug)]
pub struct WorkspacesOptions {
    /// A listening socket.
    pub listener: Listener,
    /// Host names of proxies, as in [`HttpOptions`].
    pub hosts: Vec<String>,
    /// The maximum number of open workspaces.
    pub max_workspaces: usize,
}

/// Serves many workspaces over HTTP until the process is ended, each at its own path `/w/ID/mcp`.
pub fn serve_workspaces(
    source: impl WorkspaceSource,
    http: WorkspacesOptions,
) -> Result<Infallible, ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let port = http.listener.port().map_err(|error| failed(&error))?;
    let heads = HeadCheck::new(&http.hosts, port).map_err(|error| failed(&error))?;
    let workspaces = Workspaces::new(source, heads, http.max_workspaces);
    serve_endpoints(workspaces, http.listener, MANY_WORKSPACES)
}

/// How much a server does at the same time.
struct Capacity {
    calls: usize,
    /// Connections with the token.
    connections: usize,
}

const ONE_WORKSPACE: Capacity = Capacity { calls: Handler::THREADS, connections: 128 };

const MANY_WORKSPACES: Capacity = Capacity { calls: 512, connections: 1_024 };

fn serve_endpoints(
    endpoints: impl Endpoints,
    listener: Listener,
    capacity: Capacity,
) -> Result<Infallible, ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let threads = Handler::threads(capacity.calls + PARSERS).map_err(|error| failed(&error))?;
    let bodies = BodyBudget::new(MAX_BODIES, MAX_BODIES_OF_OWNER);
    let server = Arc::new(HttpServer { endpoints, bodies, parsers: Semaphore::new(PARSERS) });
    let accepted = accept(listener, server, capacity.connections);
    threads.block_on(accepted).map_err(|error| failed(&error))
}

async fn accept<E: Endpoints>(
    listener: Listener,
    server: Arc<HttpServer<E>>,
    max_connections: usize,
) -> io::Result<Infallible> {
    let connections = Arc::new(Connections::with_max_authenticated(max_connections));
    let socket = Socket::of(listener)?;
    let swept = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            swept.endpoints.end_idle(Instant::now());
        }
    });
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

struct HttpServer<E> {
    endpoints: E,
    bodies: Arc<BodyBudget>,
    parsers: Semaphore,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl<E: Endpoints> HttpServer<E> {
    /// Serves one connection in its own task.
    fn open(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Arc<Connection>,
    ) {
        let (stream, next_head) = StrictHeads::new(stream);
        let sessions = Arc::new(ConnectionSessions::new());
        let to_close = connection.clone();
        let service = service_fn(move |request| {
            let (server, connection) = (self.clone(), connection.clone());
            let (sessions, next_head) = (sessions.clone(), next_head.clone());
            async move {
                let answered = server.answer(request, &connection, &sessions, &next_head).await;
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
        sessions: &ConnectionSessions,
        next_head: &NextHead,
    ) -> Result<Answer, Refusal> {
        let name = self.endpoints.check(&request)?;
        let busy = connection.begin_request(E::owner(&name)).map_err(|_| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            sentence: "Every connection is busy. Try again later.",
        })?;
        let mut reserved = self.bodies.begin(E::owner(&name));
        let (endpoint, held) = self.endpoints.open(name).await?;
        let client = endpoint.sessions().client(request.headers(), sessions).ok_or(Refusal {
            status: StatusCode::BAD_REQUEST,
            sentence: "Toolcrib-Session has 1 to 64 letters, digits, `-`, `_` or `.`.",
        })?;
        if request.method() == Method::DELETE && !endpoint.sessions().knows(request.headers()) {
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                sentence: "There is no such session here.",
            });
        }
        let (mut head, body) = request.into_parts();
        head.extensions.insert(client.clone());
        let body = read_body(body, MAX_BODY, &mut reserved).await?;
        next_head.follows();
        let is_large = body.len() > MAX_PARSED_HERE;
        let answer = async move {
            if has_many_values(&body) {
                return Err(TOO_MANY_VALUES);
            }
            Ok(endpoint.answer(Request::from_parts(head, Full::new(body))).await)
        };
        let answer = if is_large {
            start_on_thread(&self.parsers, answer).await.map_err(|_| NOT_PARSED)??
        } else {
            answer.await?
        };
        Ok(answer.map(|body| BodyWith::new(body, (busy, client, held, reserved)).boxed()))
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
