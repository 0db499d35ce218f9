//! Serves the requests of one connection.

use std::error::Error;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connections::Connection;

/// How much a client of HTTP/2 may use at the same time.
#[cfg(feature = "http2")]
#[derive(Debug, Clone, Copy)]
pub struct Http2Limits {
    /// Requests on one connection.
    pub streams: u32,
    /// Bytes of a request head.
    pub head_bytes: u32,
    /// A client that does not answer a ping for this time is gone.
    pub ping_timeout: std::time::Duration,
}

/// Serves requests until the client or the server closes the connection. Errors of a connection concern only its
/// client.
pub async fn serve_connection<S, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    max_head_bytes: usize,
    service: S,
    connection: &Connection,
) where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let served = http1::Builder::new()
        .max_buf_size(max_head_bytes)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = served => {}
        () = connection.wait_for_close() => {}
    }
}

/// Serves requests of HTTP/2, without an upgrade from HTTP/1, until the client or the server closes the connection.
#[cfg(feature = "http2")]
pub async fn serve_http2_connection<S, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    limits: Http2Limits,
    service: S,
    connection: &Connection,
) where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    use hyper_util::rt::{TokioExecutor, TokioTimer};

    let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head_bytes)
        .keep_alive_interval(limits.ping_timeout)
        .keep_alive_timeout(limits.ping_timeout)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = served => {}
        () = connection.wait_for_close() => {}
    }
}
