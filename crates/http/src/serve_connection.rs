//! Serves the requests of one connection.

use std::error::Error;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connections::Connection;

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
