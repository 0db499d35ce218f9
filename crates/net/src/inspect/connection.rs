//! Serves one inspected connection, from its first byte to its end.

use std::io;
use std::net::TcpStream as BlockingStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::client::conn::{http1 as client_http1, http2 as client_http2};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use super::Inspector;
use super::byte_counts::{ByteCounts, Counted};
use super::check_request::Expected;
use super::forward::{Forwarder, Sender};
use super::upstream::socket;
use crate::connection_policy::{Attempt, ConnectionPolicy, Outcome};
use crate::host::Host;
use crate::job_connections::JobConnections;
use crate::relay::{Copied, Lifetime};

/// The stack of the thread of a connection: TLS and HTTP/2 need more than copying bytes.
const STACK_BYTES: usize = 2 << 20;

/// How long a handshake of TLS may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the end of the session and of the job is checked.
const STOP_INTERVAL: Duration = Duration::from_millis(500);

/// How long a connection of a job that has ended stays, without progress and in total.
const ENDED_JOB_PAUSE: Duration = Duration::from_secs(5);
const ENDED_JOB_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest head of a request, and of a response.
const MAX_REQUEST_HEAD: usize = 64 << 10;
const MAX_RESPONSE_HEAD: usize = 256 << 10;

/// Headers of a message.
const MAX_HEADERS: usize = 200;

/// Requests of an HTTP/2 connection at a time.
const MAX_STREAMS: u32 = 100;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// A fatal alert: `access_denied`.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// A connection whose requests are decided on.
pub(crate) struct InspectedConnection<'a> {
    pub(crate) inspector: Arc<Inspector>,
    pub(crate) policy: Arc<dyn ConnectionPolicy>,
    pub(crate) attempt: &'a Attempt,
}

impl InspectedConnection<'_> {
    /// Serves the connection of a command to a host that is connected to.
    pub(crate) fn serve(
        &self,
        client: BlockingStream,
        server: BlockingStream,
        lifetime: &Lifetime<'_>,
        copied: &mut Copied,
    ) -> Outcome {
        let counts = ByteCounts::default();
        let run = || self.run(client, server, lifetime, &counts);
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("toolcrib-inspect".to_owned());
            let started = thread.stack_size(STACK_BYTES).spawn_scoped(scope, run);
            let joined = started.map(|thread| thread.join());
            joined.map_or_else(
                |error| Err(error.to_string()),
                |joined| joined.unwrap_or_else(|_| Err("a bug ended it".to_owned())),
            )
        });
        *copied = counts.copied();
        outcome.unwrap_or_else(|reason| {
            let reason = format!("{} {reason}", self.attempt.target());
            self.policy.refused(self.attempt, &reason);
            Outcome::Failed(reason)
        })
    }

    /// Fails with a sentence about the host.
    fn run(
        &self,
        client: BlockingStream,
        server: BlockingStream,
        lifetime: &Lifetime<'_>,
        counts: &ByteCounts,
    ) -> Result<Outcome, String> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| format!("cannot be inspected: {error}"))?;
        runtime.block_on(async {
            let broken = |error: io::Error| format!("cannot be inspected: {error}");
            let client = socket(client).map_err(broken)?;
            let server =
                Counted { socket: socket(server).map_err(broken)?, counts: counts.clone() };
            tokio::select! {
                served = self.serve_client(client, server) => served,
                () = end_of(lifetime, counts) => Ok(Outcome::Connected),
            }
        })
    }

    async fn serve_client(
        &self,
        client: TcpStream,
        server: Counted<TcpStream>,
    ) -> Result<Outcome, String> {
        let mut first = [0];
        match client.peek(&mut first).await {
            Ok(1) if first == [TLS_HANDSHAKE] => self.serve_tls(client, server).await,
            Ok(1) if first.iter().all(u8::is_ascii_alphabetic) => {
                self.serve_http(client, Ok(server), (false, None)).await;
                Ok(Outcome::Connected)
            }
            Ok(1) => {
                let reason = "is inspected, and the connection does not begin with TLS or HTTP";
                Ok(self.refused(reason))
            }
            // The command has closed the connection without a word.
            _ => Ok(Outcome::Connected),
        }
    }

    async fn serve_tls(
        &self,
        client: TcpStream,
        server: Counted<TcpStream>,
    ) -> Result<Outcome, String> {
        let hello =
            timeout(HANDSHAKE_TIMEOUT, LazyConfigAcceptor::new(Acceptor::default(), client));
        let mut start = match hello.await {
            Ok(Ok(start)) => start,
            Ok(Err(error)) => {
                return Ok(self.refused(&format!("got an invalid TLS message: {error}")));
            }
            Err(_) => return Ok(self.refused("got no complete TLS message in time")),
        };
        let host = &self.attempt.host;
        let other = start.client_hello().server_name().map(str::to_owned);
        if let Some(other) = other.filter(|name| Host::parse(name).as_ref() != Some(host)) {
            let _ = start.io.write_all(&ACCESS_DENIED).await;
            let _ = start.io.shutdown().await;
            return Ok(self.refused(&format!("was asked for the TLS server name {other}")));
        }
        let protocols = common_protocols(&start);
        let connecting = self.inspector.upstream.connect(host, server, protocols.clone());
        let upstream = match timeout(HANDSHAKE_TIMEOUT, connecting).await {
            Ok(connected) => connected.map_err(|error| format!("TLS failed: {error}")),
            Err(_) => Err("TLS failed: no answer in time".to_owned()),
        };
        let protocol = match &upstream {
            Ok(stream) => stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
            Err(_) => protocols.last().cloned(),
        };
        let config = self.inspector.authority.server_config(host, protocol.as_deref())?;
        let client = match timeout(HANDSHAKE_TIMEOUT, start.into_stream(config)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                return Err(format!("is inspected, and the program did not accept that: {error}"));
            }
            Err(_) => {
                return Err("is inspected, and the program did not complete TLS in time".to_owned());
            }
        };
        let failure =
            upstream.as_ref().err().map(|error| format!("{} {error}", self.attempt.target()));
        self.serve_http(client, upstream, (true, protocol)).await;
        match failure {
            Some(reason) => {
                self.policy.refused(self.attempt, &reason);
                Ok(Outcome::Failed(reason))
            }
            None => Ok(Outcome::Connected),
        }
    }

    /// Serves the requests of a client. `protocol` is the one that TLS has negotiated.
    async fn serve_http<C, S>(
        &self,
        client: C,
        server: Result<S, String>,
        (is_tls, protocol): (bool, Option<Vec<u8>>),
    ) where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let is_http2 = protocol.as_deref() == Some(HTTP2);
        let (sender, host_end) = match server {
            Ok(server) if is_http2 => http2_sender(server).await,
            Ok(server) => http1_sender(server).await,
            Err(reason) => (Sender::Failed(format!("{} {reason}", self.attempt.target())), None),
        };
        let forwarder = Arc::new(Forwarder {
            inspector: self.inspector.clone(),
            policy: self.policy.clone(),
            attempt: self.attempt.clone(),
            expected: Expected { host: self.attempt.host.clone(), port: self.attempt.port, is_tls },
            sender,
            upgraded: Mutex::default(),
        });
        let answering = forwarder.clone();
        let service = service_fn(move |request| answering.clone().answer(request));
        let client = TokioIo::new(client);
        if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .max_header_list_size(MAX_REQUEST_HEAD as u32)
                .max_concurrent_streams(MAX_STREAMS);
            let mut connection = std::pin::pin!(builder.serve_connection(client, service));
            tokio::select! {
                _ = connection.as_mut() => return,
                () = ended(host_end) => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
            return;
        }
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_REQUEST_HEAD).max_headers(MAX_HEADERS);
        let serving = builder.serve_connection(client, service).with_upgrades();
        let mut connection = std::pin::pin!(serving);
        tokio::select! {
            _ = connection.as_mut() => {}
            () = ended(host_end) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
        let upgraded = forwarder.upgraded.lock().take();
        if let Some(upgraded) = upgraded {
            let _ = upgraded.await;
        }
    }

    fn refused(&self, reason: &str) -> Outcome {
        let reason = format!("{} {reason}", self.attempt.target());
        self.policy.refused(self.attempt, &reason);
        Outcome::Refused(reason)
    }
}

/// The protocols that the client offers and that are inspected, best first.
fn common_protocols(start: &StartHandshake<TcpStream>) -> Vec<Vec<u8>> {
    let hello = start.client_hello();
    let offered: Vec<&[u8]> = hello.alpn().into_iter().flatten().collect();
    let common = [HTTP2, HTTP1].into_iter().filter(|protocol| offered.contains(protocol));
    common.map(<[u8]>::to_vec).collect()
}

/// What sends requests by HTTP/1.1, and the end of its connection.
async fn http1_sender<S>(server: S) -> (Sender, Option<JoinHandle<()>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = client_http1::Builder::new();
    builder.max_buf_size(MAX_RESPONSE_HEAD).max_headers(MAX_HEADERS);
    match builder.handshake::<_, Incoming>(TokioIo::new(server)).await {
        Ok((sender, connection)) => {
            let end = tokio::spawn(async {
                let _ = connection.with_upgrades().await;
            });
            (Sender::Http1(tokio::sync::Mutex::new(sender)), Some(end))
        }
        Err(error) => (Sender::Failed(error.to_string()), None),
    }
}

/// What sends requests by HTTP/2, and the end of its connection.
async fn http2_sender<S>(server: S) -> (Sender, Option<JoinHandle<()>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = client_http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(MAX_RESPONSE_HEAD as u32);
    match builder.handshake::<_, Incoming>(TokioIo::new(server)).await {
        Ok((sender, connection)) => {
            let end = tokio::spawn(async {
                let _ = connection.await;
            });
            (Sender::Http2(sender), Some(end))
        }
        Err(error) => (Sender::Failed(error.to_string()), None),
    }
}

/// Waits for the end of the connection to the host. Without one, waits for ever.
async fn ended(connection: Option<JoinHandle<()>>) {
    match connection {
        Some(connection) => {
            let _ = connection.await;
        }
        None => std::future::pending().await,
    }
}

/// Waits until a connection must end: with its session, and soon after its job.
async fn end_of(lifetime: &Lifetime<'_>, counts: &ByteCounts) {
    let mut last = (Instant::now(), counts.copied());
    loop {
        sleep(STOP_INTERVAL).await;
        if lifetime.stop.load(Ordering::Relaxed) {
            return;
        }
        let now = counts.copied();
        if (now.sent, now.received) != (last.1.sent, last.1.received) {
            last = (Instant::now(), now);
        }
        if let Some(ended) = lifetime.job.and_then(JobConnections::ended)
            && (last.0.elapsed() > ENDED_JOB_PAUSE || ended.elapsed() > ENDED_JOB_TIMEOUT)
        {
            return;
        }
    }
}
