//! Reads request bodies, and keeps resources alive with response bodies.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::guard::Refusal;
use crate::ndjson::MAX_MESSAGE_BYTES;

/// Reads the body of a request.
pub(super) async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    match Limited::new(body, MAX_MESSAGE_BYTES).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            sentence: "The body is too large: a message has at most 64 MiB.",
        }),
        Err(_) => Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            sentence: "The body could not be read: it ended early, or a chunk of it is malformed.",
        }),
    }
}

/// A body that keeps a value alive until it was sent or dropped.
pub(super) struct BodyWith<B, T> {
    body: B,
    #[expect(dead_code, reason = "it is held, and dropped with the body")]
    held: T,
}

impl<B, T> BodyWith<B, T> {
    pub(super) fn new(body: B, held: T) -> Self {
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
