//! The HTTP transport: for programs on this machine that have the token, or for callers with access tokens of an identity
//! provider.

mod authorization;
mod connection_sessions;
mod endpoint;
mod guard;
mod json_rpc_error;
mod over_quota;
mod public_url;
mod refused;
mod required_scopes;
mod server_names;
mod session_count;
mod sessions;
mod start_on_thread;
mod unparsed_message;
mod value_count;
mod workspace_id;
mod workspaces;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use toolcrib::Runtime;
use toolcrib_http::{
    BodyBudget, BodyLimit, BodyWith, Connection, Connections, NextHead, Refusal, StrictHeads,
    Token, read_body, serve_connection,
};

use self::authorization::Authorization;
pub use self::authorization::{Identify, Identifying, Unidentified};
use self::connection_sessions::ConnectionSessions;
use self::endpoint::{Admission, CallChecks, Endpoint, Endpoints, SoleEndpoint};
pub use self::guard::Guard;
use self::guard::{Head, HeadCheck};
pub use self::public_url::PublicUrl;
use self::refused::Refused;
use self::required_scopes::required_scopes;
use self::sessions::{NoClient, SWEEP_INTERVAL, Sessions, answer_for};
use self::start_on_thread::start_on_thread;
use self::unparsed_message::unparsed_message;
use self::value_count::has_many_values;
pub use self::workspace_id::WorkspaceId;
use self::workspaces::Workspaces;
pub use self::workspaces::{OpenedWorkspace, WorkspaceSource};
use crate::handler::{Handler, ServeOptions};
use crate::ndjson::MAX_MESSAGE_BYTES;
use crate::serve_error::ServeError;

/// Options of the HTTP transport.
pub struct HttpOptions {
    /// A listening socket.
    pub listener: Listener,
    /// Who is served.
    pub access: Access,
    /// Host names of proxies, besides the server's own names: `NAME` for a proxy on the default TLS port, or `NAME:PORT`.
    pub hosts: Vec<String>,
    /// The URL by which clients reach the server, if it is not the address of the listener.
    pub public_url: Option<PublicUrl>,
    /// Serving ends when the process gets SIGTERM or SIGINT. Otherwise these signals end the process.
    pub ends_on_signals: bool,
}

/// Who is served.
pub enum Access {
    /// Everybody with this token.
    Token(Token),
    /// Callers with access tokens.
    Identity(Box<dyn Identify>),
}

/// A listening socket.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "the transport listens")]
pub enum Listener {
    /// At an address. Other machines reach it only with identities, and with TLS by a proxy that `public_url` names.
    Tcp(std::net::TcpListener),
    /// At an address, with TLS.
    #[cfg(feature = "tls")]
    Tls(std::net::TcpListener, Arc<toolcrib_http::ServerTls>),
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

/// The memory of all bodies of unfinished requests, and of those of one caller in one workspace, besides the first part of each.
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

const NO_SUCH_SESSION: Refusal =
    Refusal { status: StatusCode::NOT_FOUND, sentence: "There is no such session here." };

/// The pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How long calls have to end after their sessions have ended.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// Serves MCP over HTTP until the process is ended, or gets a signal.
pub fn serve_http(
    runtime: Runtime,
    options: ServeOptions,
    http: HttpOptions,
) -> Result<(), ServeError> {
    serve_sole(Handler::new(runtime, options)?, CallChecks::OWN, http)
}

/// Serves MCP over HTTP with another handler, such as one that wraps [`Handler`]. For callers with access tokens, each of
/// its tools counts as one that runs commands.
pub fn serve_handler<H: ServerHandler>(handler: H, http: HttpOptions) -> Result<(), ServeError> {
    serve_sole(handler, CallChecks::UNKNOWN, http)
}

fn serve_sole<H: ServerHandler>(
    handler: H,
    checks: CallChecks<H>,
    http: HttpOptions,
) -> Result<(), ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let identifies = matches!(http.access, Access::Identity(_));
    let reached = Reached::new(&http.listener, http.public_url, identifies)
        .map_err(|error| failed(&error))?;
    let heads = reached.heads(&http.hosts).map_err(|error| failed(&error))?;
    let admission = match http.access {
        Access::Token(token) => Admission::Token(Guard::with_heads(token, heads)),
        Access::Identity(identify) => {
            let public = reached.url().map_err(|error| failed(&error))?;
            Admission::Identity(Box::new(Authorization::new(identify, public)), heads)
        }
    };
    let sessions = if identifies { Sessions::among(Arc::default()) } else { Sessions::new() };
    let endpoint = Arc::new(Endpoint::new(handler, checks, sessions));
    let capacity = if identifies { MANY_CALLERS } else { ONE_WORKSPACE };
    let endpoints = SoleEndpoint { admission, endpoint };
    serve_endpoints(endpoints, http.listener, capacity, http.ends_on_signals)
}

/// Options of a server with many workspaces.
pub struct WorkspacesOptions {
    /// A listening socket.
    pub listener: Listener,
    /// Host names of proxies, as in [`HttpOptions`].
    pub hosts: Vec<String>,
    /// The maximum number of open workspaces.
    pub max_workspaces: usize,
    /// Identifies callers. Without it, the source of workspaces admits them by their tokens.
    pub identity: Option<Box<dyn Identify>>,
    /// The URL by which clients reach the server, as in [`HttpOptions`].
    pub public_url: Option<PublicUrl>,
    /// Serving ends when the process gets SIGTERM or SIGINT, as in [`HttpOptions`].
    pub ends_on_signals: bool,
}

/// Serves many workspaces over HTTP until the process is ended, or gets a signal, each at its own path `/w/ID/mcp`.
pub fn serve_workspaces(
    source: impl WorkspaceSource,
    http: WorkspacesOptions,
) -> Result<(), ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let reached = Reached::new(&http.listener, http.public_url, http.identity.is_some())
        .map_err(|error| failed(&error))?;
    let heads = reached.heads(&http.hosts).map_err(|error| failed(&error))?;
    let authorization = match http.identity {
        Some(identify) => {
            Some(Authorization::new(identify, reached.url().map_err(|error| failed(&error))?))
        }
        None => None,
    };
    let workspaces = Workspaces::new(source, heads, authorization, http.max_workspaces);
    serve_endpoints(workspaces, http.listener, MANY_WORKSPACES, http.ends_on_signals)
}

/// How much a server does at the same time.
struct Capacity {
    calls: usize,
    /// Connections with the token.
    connections: usize,
}

const ONE_WORKSPACE: Capacity = Capacity { calls: Handler::THREADS, connections: 128 };

const MANY_CALLERS: Capacity = Capacity { calls: Handler::THREADS, connections: 1_024 };

const MANY_WORKSPACES: Capacity = Capacity { calls: 512, connections: 1_024 };

fn serve_endpoints(
    endpoints: impl Endpoints,
    listener: Listener,
    capacity: Capacity,
    ends_on_signals: bool,
) -> Result<(), ServeError> {
    let failed = |error: &dyn Display| ServeError::new(error);
    let threads = Handler::threads(capacity.calls + PARSERS).map_err(|error| failed(&error))?;
    let bodies = BodyBudget::new(MAX_BODIES, MAX_BODIES_OF_OWNER);
    let server = Arc::new(HttpServer { endpoints, bodies, parsers: Semaphore::new(PARSERS) });
    let served = threads.block_on(async {
        let accepted = accept(listener, server.clone(), capacity.connections);
        tokio::select! {
            accepted = accepted => accepted.map(|never| match never {}),
            ended = signalled(), if ends_on_signals => ended,
        }?;
        server.endpoints.end_all();
        io::Result::Ok(())
    });
    drop(server);
    // A call that does not end in time is left to the end of the process.
    threads.shutdown_timeout(LAST_CALLS);
    served.map_err(|error| failed(&error))
}

/// Waits for a signal to end.
async fn signalled() -> io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
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
            #[cfg(feature = "tls")]
            Socket::Tls(tcp, tls) => tcp.accept().await.map(|(stream, _)| {
                let _ = stream.set_nodelay(true);
                let (tls, connection) = (tls.clone(), connections.open());
                tokio::spawn(async move {
                    tokio::select! {
                        accepted = tls.accept(stream) => {
                            // A failed handshake concerns only its client.
                            let _ = accepted.map(|stream| server.open(stream, connection.clone()));
                        }
                        () = connection.wait_for_close() => {}
                    }
                });
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
    #[cfg(feature = "tls")]
    Tls(tokio::net::TcpListener, Arc<toolcrib_http::ServerTls>),
    Unix(tokio::net::UnixListener),
}

impl Socket {
    fn of(listener: Listener) -> io::Result<Socket> {
        match listener {
            Listener::Tcp(tcp) => {
                tcp.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(tcp).map(Socket::Tcp)
            }
            #[cfg(feature = "tls")]
            Listener::Tls(tcp, tls) => {
                tcp.set_nonblocking(true)?;
                Ok(Socket::Tls(tokio::net::TcpListener::from_std(tcp)?, tls))
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
                let refused = |refused: Refused| refused.response().map(|body| body.boxed());
                Ok::<_, Infallible>(answered.unwrap_or_else(refused))
            }
        });
        tokio::spawn(async move {
            serve_connection(stream, MAX_HEADER_BYTES, service, &to_close).await;
        });
    }

    /// Answers a request, or refuses it.
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
        sessions: &Arc<ConnectionSessions>,
        next_head: &NextHead,
    ) -> Result<Answer, Refused> {
        let (mut head, body) = request.into_parts();
        if let Some(answer) = self.endpoints.metadata(Head::from(&head)) {
            return answer;
        }
        let checked = self.endpoints.check(Head::from(&head)).await?;
        let connection_owner = E::connection_owner(&checked);
        let busy = connection.begin_request(&connection_owner).map_err(|_| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            sentence: "Every connection is busy. Try again later.",
        })?;
        let mut reserved = self.bodies.begin(&connection_owner);
        let (owner, caller) = (checked.owner(), checked.caller);
        let (endpoint, held) = self.endpoints.open(checked.name, &owner).await?;
        endpoint.sessions().check(&head.headers, &owner).map_err(no_client)?;
        if head.method == Method::DELETE && !endpoint.sessions().knows(&head.headers) {
            return Err(NO_SUCH_SESSION.into());
        }
        let body = read_body(body, MAX_BODY, &mut reserved).await?;
        next_head.follows();
        let is_large = body.len() > MAX_PARSED_HERE;
        let (server, sessions) = (self.clone(), sessions.clone());
        let answer = async move {
            if has_many_values(&body) {
                return Err(Refused::from(TOO_MANY_VALUES));
            }
            if let Some(caller) = &caller {
                let needed = required_scopes(&body, |tool| endpoint.scope_of(tool));
                server.endpoints.require(head.uri.path(), caller, &needed)?;
                head.extensions.insert(caller.clone());
            }
            if let Some(call) = endpoint.over_quota(&body) {
                return Ok((call.response().map(|body| body.boxed()), None));
            }
            // A request that is refused starts no session.
            let client = endpoint.sessions().client(&head.headers, &sessions, &owner);
            let client = client.map_err(no_client)?;
            head.extensions.insert(client.clone());
            let answer = endpoint.answer(Request::from_parts(head, Full::new(body.clone())));
            let answer = answer_for(owner, answer).await.map_err(no_client)?;
            // The type of the content was checked with the head.
            if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                return Ok((unparsed_message(&body).map(|body| body.boxed()), None));
            }
            Ok((answer, Some(client)))
        };
        let (answer, client) = if is_large {
            start_on_thread(&self.parsers, answer).await.map_err(|_| NOT_PARSED)??
        } else {
            answer.await?
        };
        Ok(answer.map(|body| BodyWith::new(body, (busy, client, held, reserved)).boxed()))
    }
}

/// The answer to a request without a client.
fn no_client(problem: NoClient) -> Refusal {
    match problem {
        NoClient::InvalidName => Refusal {
            status: StatusCode::BAD_REQUEST,
            sentence: "Toolcrib-Session has 1 to 64 letters, digits, `-`, `_` or `.`.",
        },
        NoClient::OfAnother => NO_SUCH_SESSION,
        NoClient::TooMany => Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            sentence: "There are too many sessions. Try again later.",
        },
    }
}

impl Listener {
    /// Its address, if it has one, and whether connections to it are encrypted.
    fn address(&self) -> io::Result<Option<(SocketAddr, bool)>> {
        match self {
            Listener::Unix(_) => Ok(None),
            Listener::Tcp(tcp) => Ok(Some((tcp.local_addr()?, false))),
            #[cfg(feature = "tls")]
            Listener::Tls(tcp, _) => Ok(Some((tcp.local_addr()?, true))),
        }
    }
}

/// How clients reach the server.
struct Reached {
    address: Option<(SocketAddr, bool)>,
    public: Option<PublicUrl>,
}

impl Reached {
    /// Fails if other machines could reach the server without encryption, or with a token that is always valid.
    fn new(
        listener: &Listener,
        public: Option<PublicUrl>,
        identifies: bool,
    ) -> Result<Reached, String> {
        let address = listener.address().map_err(|error| error.to_string())?;
        let is_https = public.as_ref().is_some_and(PublicUrl::is_https);
        let is_safe = identifies && is_https;
        match address {
            Some((address, _)) if !is_safe && !address.ip().is_loopback() => {
                return Err(format!(
                    "{address} can be reached from other machines: that needs identities, and a public URL with https"
                ));
            }
            Some((_, true)) if public.is_some() && !is_https => {
                return Err("the public URL begins with https:// if the server uses TLS".to_owned());
            }
            _ => {}
        }
        Ok(Reached { address, public })
    }

    /// The checks of `Host` and `Origin`.
    fn heads(&self, hosts: &[String]) -> Result<HeadCheck, String> {
        let mut hosts = hosts.to_vec();
        let own = self.address.filter(|(_, is_encrypted)| *is_encrypted);
        hosts.extend(own.map(|(address, _)| address.to_string()));
        let public = self.public.as_ref().filter(|public| public.is_https());
        hosts.extend(public.map(|public| public.authority().to_owned()));
        HeadCheck::new(&hosts, self.address.map(|(address, _)| address.port()))
    }

    /// The URL of the server: the public one, or else that of its address.
    fn url(self) -> Result<PublicUrl, String> {
        let of_address = |(address, is_encrypted): (SocketAddr, bool)| {
            let scheme = if is_encrypted { "https" } else { "http" };
            PublicUrl::parse(&format!("{scheme}://{address}"))
        };
        match (self.public, self.address) {
            (Some(public), _) => Ok(public),
            (None, Some(address)) => of_address(address),
            (None, None) => Err("identities on a socket path need a public URL".to_owned()),
        }
    }
}
