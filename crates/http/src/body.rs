//! Reads request bodies, and keeps resources alive with response bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::body_budget::ReservedBytes;
use crate::refusal::Refusal;

/// The largest body that a server reads.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit {
    /// Its size.
    pub bytes: usize,
    /// The time in which it must arrive.
    pub time: Duration,
    /// The body of the response to a larger one.
    pub sentence: &'static str,
}

const TOO_LATE: Refusal =
    Refusal { status: StatusCode::REQUEST_TIMEOUT, sentence: "The body did not arrive in time." };

const UNREADABLE: Refusal = Refusal {
    status: StatusCode::BAD_REQUEST,
    sentence: "The body could not be read: it ended early, or a chunk of it is malformed.",
};

/// Reads the body of a request, into memory that is reserved before.
pub async fn read_body<B>(
    body: B,
    limit: BodyLimit,
    reserved: &mut ReservedBytes,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let read = tokio::time::timeout(limit.time, read_within(body, limit, reserved));
    read.await.unwrap_or(Err(TOO_LATE))
}

async fn read_within<B>(
    mut body: B,
    limit: BodyLimit,
    reserved: &mut ReservedBytes,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut grow_to = |bytes: usize| {
        if bytes > limit.bytes {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Refusal { status, sentence: limit.sentence });
        }
        reserved.grow_to(bytes)
    };
    // A declared length is refused before the first byte.
    grow_to(usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX))?;
    let mut first: Option<Bytes> = None;
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| UNREADABLE)?.into_data() else { continue };
        let known = first.as_ref().map_or(whole.len(), Bytes::len);
        grow_to(known.saturating_add(data.len()))?;
        match first.take() {
            // Most bodies have one frame, which need not be copied.
            None if whole.is_empty() => first = Some(data),
            before => {
                whole.extend_from_slice(&before.unwrap_or_default());
                whole.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| whole.into()))
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use super::*;
    use crate::body_budget::BodyBudget;

    /// A body in these frames. It does not end if `ends` is false.
    struct Frames {
        frames: VecDeque<&'static [u8]>,
        ends: bool,
    }

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.frames.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(frame))))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn read(frames: &[&'static [u8]], ends: bool) -> Result<Bytes, u16> {
        let body = Frames { frames: frames.iter().copied().collect(), ends };
        let limit = BodyLimit { bytes: 10, time: Duration::from_millis(20), sentence: "large" };
        let mut reserved = BodyBudget::new(100, 100).begin("");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let read = runtime.block_on(read_body(body, limit, &mut reserved));
        read.map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn a_body_is_read_in_one_or_more_frames() {
        assert_eq!(read(&[], true).unwrap(), "");
        assert_eq!(read(&[b"abc"], true).unwrap(), "abc");
        assert_eq!(read(&[b"", b"abc", b"", b"de"], true).unwrap(), "abcde");
        assert_eq!(read(&[b"12345", b"67890"], true).unwrap(), "1234567890");
    }

    #[test]
    fn a_body_that_is_too_large_or_never_ends_is_refused() {
        assert_eq!(read(&[b"12345", b"67890", b"1"], true), Err(413));
        assert_eq!(read(&[b"abc"], false), Err(408));
    }
}
