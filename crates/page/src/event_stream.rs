//! The events as a response that does not end.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc;

use crate::live::{Event, Following, Live};

/// A comment is sent after this time without an event, so that both sides notice a broken connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events that are written at once.
const BATCH: usize = 64;

/// Writes that wait for a slow reader. Events wait in the ring, not here.
const PENDING_WRITES: usize = 2;

/// The body of a stream.
pub(crate) struct EventBody(mpsc::Receiver<Bytes>);

impl EventBody {
    /// Starts with the state, or after the last event that the client has seen.
    pub(crate) fn new(live: Arc<Live>, last: Option<u64>) -> EventBody {
        let (sender, receiver) = mpsc::channel(PENDING_WRITES);
        tokio::spawn(follow(live, last, sender));
        EventBody(receiver)
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let received = self.get_mut().0.poll_recv(cx);
        received.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Sends events until the client is gone.
async fn follow(live: Arc<Live>, last: Option<u64>, to: mpsc::Sender<Bytes>) {
    let mut changes = live.follow();
    let mut last = match last {
        Some(last) => last,
        None => {
            let state = live.snapshot(0);
            if to.send(encoded(&[&state])).await.is_err() {
                return;
            }
            state.id
        }
    };
    loop {
        changes.mark_unchanged();
        let bytes = match live.after(last, BATCH) {
            Following::Missed(missed) => {
                let state = live.snapshot(missed);
                last = state.id;
                encoded(&[&state])
            }
            Following::Events(events) if events.is_empty() => {
                tokio::select! {
                    changed = changes.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        continue;
                    }
                    () = to.closed() => return,
                    () = tokio::time::sleep(HEARTBEAT) => Bytes::from_static(b":\n\n"),
                }
            }
            Following::Events(events) => {
                last = events.last().map_or(last, |event| event.id);
                encoded(&events.iter().collect::<Vec<_>>())
            }
        };
        if to.send(bytes).await.is_err() {
            return;
        }
    }
}

fn encoded(events: &[&Event]) -> Bytes {
    let mut text = String::new();
    for Event { id, name, data } in events {
        // JSON has no line breaks.
        let _ = write!(text, "id: {id}\nevent: {name}\ndata: {data}\n\n");
    }
    text.into()
}
