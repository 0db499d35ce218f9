//! The server over HTTP: for programs of this machine, and only for those that hold the token.

mod guard;
mod token;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcrib::Runtime;

use self::guard::Guard;
pub use self::token::{Token, TokenError};
use crate::handler::{Handler, ServeOptions};
use crate::lines::MAX_MESSAGE_BYTES;
use crate::stdio::ServeError;

/// Where to listen, and who may ask.
#[derive(Debug)]
pub struct HttpOptions {
    /// A socket that listens already.
    pub listener: Listener,
    /// What every request must bring.
    pub token: Token,
    /// Names, besides those of this machine itself, under which a proxy on it is reached.
    pub hosts: Vec<String>,
}

/// A socket that listens.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "a door listens")]
pub enum Listener {
    /// On an address of this machine.
    Tcp(std::net::TcpListener),
    /// At a path.
    Unix(std::os::unix::net::UnixListener),
}

/// More clients than this at a time wait at the door.
const MAX_CONNECTIONS: usize = 128;

/// Who has not said what they want by then is sent away.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// More than any honest head of a request.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// After a connection could not be taken, most likely because there are too many files open.
const PAUSE: Duration = Duration::from_millis(50);

/// The names of this machine that lead nowhere else.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

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
    let threads = Handler::threads().map_err(|error| failed(&error))?;
    let door = Arc::new(Door {
        guard: Guard::new(http.token),
        service: StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            config(&http.hosts, port),
        ),
    });
    threads.block_on(accept(http.listener, door)).map_err(|error| failed(&error))
}

/// What the protocol's own layer checks: the names by which it is called, and that no page of a browser
/// calls it.
fn config(hosts: &[String], port: Option<u16>) -> StreamableHttpServerConfig {
    let own_origins = port.into_iter().flat_map(|port| {
        ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}"))
    });
    let origins = own_origins.chain(hosts.iter().map(|host| format!("https://{host}:443")));
    let names = OWN_NAMES.into_iter().chain(hosts.iter().map(String::as_str));
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(names)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
}

async fn accept<H: ServerHandler>(
    listener: Listener,
    door: Arc<Door<H>>,
) -> io::Result<Infallible> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let socket = Socket::of(listener)?;
    loop {
        let permit = permit(&room).await?;
        let door = door.clone();
        let opened = match &socket {
            Socket::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Answers are small, and somebody waits for each.
                let _ = stream.set_nodelay(true);
                door.open(stream, permit);
            }),
            Socket::Unix(unix) => unix.accept().await.map(|(stream, _)| door.open(stream, permit)),
        };
        if opened.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
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

async fn permit(room: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    room.clone().acquire_owned().await.map_err(io::Error::other)
}

struct Door<H> {
    guard: Guard,
    service: StreamableHttpService<Arc<H>, LocalSessionManager>,
}

impl<H: ServerHandler> Door<H> {
    /// Serves one connection, beside the others.
    fn open(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        permit: OwnedSemaphorePermit,
    ) {
        let service = service_fn(move |request| {
            let door = self.clone();
            async move {
                Ok::<_, Infallible>(match door.guard.refuse(&request) {
                    Some(refusal) => refusal.map(|body| body.boxed()),
                    None => door.service.handle(request).await,
                })
            }
        });
        tokio::spawn(async move {
            // What goes wrong on a connection is told to who is at its other end, or nobody is there.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .max_buf_size(MAX_HEADER_BYTES)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
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
                        "{address} can be reached from other machines, and nothing is encrypted"
                    ))),
                }
            }
        }
    }
}
