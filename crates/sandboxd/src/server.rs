//! Accepts connections on both ports until the process is told to end.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tonic::Status;
use toolcrib::Runtime;
use toolcrib_http::{
    BodyWith, Connection, Connections, Http2Limits, NextHead, Refusal, StrictHeads,
    serve_connection, serve_http2_connection,
};
use toolcrib_monitor::Monitor;

use crate::access::{Access, HeadCheck};
use crate::grpc;
use crate::processes::{MAX_PROCESSES, MAX_WRITES, Processes};
use crate::rest::{FILE_THREADS, Rest, RestResponse, refused};
use crate::workspace::Workspace;

/// The sockets of both protocols.
#[derive(Debug)]
pub struct Listeners {
    /// For REST, over HTTP/1.1.
    pub rest: TcpListener,
    /// For gRPC, over HTTP/2.
    pub grpc: TcpListener,
}

/// Options of the server.
pub struct SandboxdOptions {
    /// The sockets.
    pub listeners: Listeners,
    /// Who is served.
    pub access: Access,
    /// Arbitrates the answers to questions.
    pub monitor: Arc<Monitor>,
    /// The environment, of which `/v1/metadata` shows a part.
    pub variables: Vec<(String, String)>,
    /// The beginning of the names of variables that are shown.
    pub prefix: String,
    /// The version of the program.
    pub version: String,
}

/// More than any legitimate request head, with a path of 4 KiB in which each byte is encoded.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// A gRPC client uses one connection for all its requests.
const HTTP2: Http2Limits =
    Http2Limits { streams: 256, head_bytes: 64 << 10, ping_timeout: Duration::from_secs(20) };

/// The pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How long processes have to end after SIGTERM when the server ends.
const PROCESS_GRACE: Duration = Duration::from_secs(2);

/// How long the last events of processes have to reach their clients.
const LAST_EVENTS: Duration = Duration::from_millis(500);

/// How often to check whether all processes have ended.
const ENDED_INTERVAL: Duration = Duration::from_millis(20);

/// Threads for signals, terminal sizes and chunks of files, which do not block for long.
const SHORT_THREADS: usize = 32;

const BUSY: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    sentence: "Every connection is busy. Try again later.",
};

/// Serves until the process gets SIGTERM or SIGINT. Then health checks fail and the processes end.
///
/// # Errors
///
/// Fails if other machines could reach a socket although a token protects it, or if the system has no threads left.
pub fn serve(runtime: Runtime, options: SandboxdOptions) -> io::Result<()> {
    let Listeners { rest, grpc } = options.listeners;
    if matches!(options.access, Access::Token(_)) {
        for address in [rest.local_addr()?, grpc.local_addr()?] {
            if !address.ip().is_loopback() {
                let problem = format!(
                    "{address} can be reached from other machines, which would see the token"
                );
                return Err(io::Error::other(problem));
            }
        }
    }
    let workspace = Arc::new(Workspace::new(runtime, options.monitor));
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_PROCESSES + MAX_WRITES + FILE_THREADS + SHORT_THREADS)
        .build()?;
    let server = Arc::new(Server {
        access: options.access,
        processes: Arc::new(Processes::new(workspace.clone())),
        rest: Arc::new(Rest::new(workspace, options.variables, &options.prefix, options.version)),
    });
    let served = threads.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let files = accept(rest, server.clone(), Server::open_rest);
        let processes = accept(grpc, server.clone(), Server::open_grpc);
        tokio::pin!(files, processes);
        tokio::select! {
            ended = &mut files => return ended.map(|never| match never {}),
            ended = &mut processes => return ended.map(|never| match never {}),
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // Requests are still answered, so that clients hear how their processes ended.
        tokio::select! {
            ended = files => ended.map(|never| match never {}),
            ended = processes => ended.map(|never| match never {}),
            () = server.end() => Ok(()),
        }
    });
    // A thread that still waits for a process ends with this program.
    threads.shutdown_background();
    served
}

struct Server {
    access: Access,
    processes: Arc<Processes>,
    rest: Arc<Rest>,
}

/// Accepts the connections of one socket.
async fn accept(
    listener: TcpListener,
    server: Arc<Server>,
    open: fn(Arc<Server>, TcpStream, Arc<HeadCheck>, Arc<Connection>),
) -> io::Result<Infallible> {
    let address: SocketAddr = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let heads = Arc::new(HeadCheck { is_local: address.ip().is_loopback() });
    let connections = Arc::new(Connections::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                open(server.clone(), stream, heads.clone(), connections.open());
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

impl Server {
    /// Serves one connection of HTTP/1.1 in its own task.
    fn open_rest(
        self: Arc<Self>,
        stream: TcpStream,
        heads: Arc<HeadCheck>,
        connection: Arc<Connection>,
    ) {
        let (stream, next_head) = StrictHeads::new(stream);
        let to_close = connection.clone();
        let service = service_fn(move |request| {
            let (server, heads) = (self.clone(), heads.clone());
            let (connection, next_head) = (connection.clone(), next_head.clone());
            async move {
                let answered = server.answer(request, &heads, &connection, &next_head).await;
                Ok::<_, Infallible>(answered.unwrap_or_else(refused))
            }
        });
        tokio::spawn(async move {
            serve_connection(stream, MAX_HEAD_BYTES, service, &to_close).await;
        });
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        heads: &HeadCheck,
        connection: &Arc<Connection>,
        next_head: &NextHead,
    ) -> Result<RestResponse, Refusal> {
        heads.check(request.uri(), request.headers())?;
        if let Some(health) = self.rest.health(request.method(), request.uri().path()) {
            next_head.follows();
            return Ok(health);
        }
        self.access.check(request.headers())?;
        let busy = connection.begin_request("").map_err(|_| BUSY)?;
        let response = self.rest.answer(request, next_head).await;
        Ok(response.map(|body| BodyWith::new(body, busy).boxed()))
    }

    /// Serves one connection of HTTP/2 in its own task.
    fn open_grpc(
        self: Arc<Self>,
        stream: TcpStream,
        heads: Arc<HeadCheck>,
        connection: Arc<Connection>,
    ) {
        let to_close = connection.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (server, heads) = (self.clone(), heads.clone());
            let connection = connection.clone();
            async move { Ok::<_, Infallible>(server.call(request, &heads, &connection).await) }
        });
        tokio::spawn(async move {
            serve_http2_connection(stream, HTTP2, service, &to_close).await;
        });
    }

    async fn call(
        &self,
        request: Request<Incoming>,
        heads: &HeadCheck,
        connection: &Arc<Connection>,
    ) -> hyper::Response<tonic::body::Body> {
        let checked = heads.check(request.uri(), request.headers());
        let checked = checked.and_then(|()| self.access.check(request.headers()));
        let busy = checked.and_then(|()| connection.begin_request("").map_err(|_| BUSY));
        match busy {
            Err(refusal) => status_of(refusal).into_http(),
            Ok(busy) => {
                let response = grpc::answer(self.processes.clone(), request).await;
                response.map(|body| tonic::body::Body::new(BodyWith::new(body, busy)))
            }
        }
    }

    /// Ends the processes.
    async fn end(&self) {
        self.rest.set_not_ready();
        if self.processes.is_idle() {
            return;
        }
        self.processes.terminate_all();
        let ended = async {
            while !self.processes.is_idle() {
                tokio::time::sleep(ENDED_INTERVAL).await;
            }
        };
        if tokio::time::timeout(PROCESS_GRACE, ended).await.is_err() {
            self.processes.cancel_all();
        }
        tokio::time::sleep(LAST_EVENTS).await;
    }
}

fn status_of(refusal: Refusal) -> Status {
    match refusal.status {
        StatusCode::UNAUTHORIZED => Status::unauthenticated(refusal.sentence),
        StatusCode::FORBIDDEN => Status::permission_denied(refusal.sentence),
        StatusCode::SERVICE_UNAVAILABLE => Status::unavailable(refusal.sentence),
        _ => Status::invalid_argument(refusal.sentence),
    }
}
