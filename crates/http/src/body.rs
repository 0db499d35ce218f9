//! Reads request bodies, and keeps resources alive with response bodies.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use crate::refusal::Refusal;

/// The largest body that a server reads.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit {
    /// Its size.
    pub bytes: usize,
    /// The body of the response to a larger one.
    pub sentence: &'static str,
}

/// Reads the body of a request.
pub async fn read_body(body: Incoming, limit: BodyLimit) -> Result<Bytes, Refusal> {
    match Limited::new(body, limit.bytes).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, sentence: limit.sentence })
        }
        Err(_) => Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            sentence: "The body could not be read: it ended early, or a chunk of it is malformed.",
        }),
    }
}

/// A body that keeps a value alive until it was sent or dropped.
pub struct BodyWith<B, T> {
    body: B,
    #[expect(dead_code, reason = "it is held, and dropped with the body")]
    held: T,
}

impl<B, T> BodyWith<B, T> {
    /// Holds the value together with the body.
    pub fn new(body: B, held: T) -> Self {
        BodyWith { body, held }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for BodyWith<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
