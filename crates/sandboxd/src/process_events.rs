//! The events of one process, on their way to its client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc::Receiver;
use tonic::Status;
use toolcrib::Cancel;

use crate::messages::{Event, StartResponse};

/// Events of a process. If it is dropped before the last one, the process is killed: a client that has gone cannot end it.
pub(crate) struct ProcessEvents {
    /// The event that was awaited before the response began.
    first: Option<Event>,
    receiver: Receiver<Result<Event, Status>>,
    cancel: Arc<Cancel>,
}

impl ProcessEvents {
    pub(crate) fn new(receiver: Receiver<Result<Event, Status>>, cancel: Arc<Cancel>) -> Self {
        ProcessEvents { first: None, receiver, cancel }
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, Status>> {
        match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.receiver.recv().await,
        }
    }

    /// Waits until the process has started. Fails with the reason if it has not.
    pub(crate) async fn started(mut self) -> Result<ProcessEvents, Status> {
        match self.receiver.recv().await {
            Some(Ok(event)) => {
                self.first = Some(event);
                Ok(self)
            }
            Some(Err(status)) => Err(status),
            None => Err(Status::internal("the process ended by an error in this program")),
        }
    }
}

impl Stream for ProcessEvents {
    type Item = Result<StartResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let response = |event| StartResponse { event: Some(event) };
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(response(first))));
        }
        let next = this.receiver.poll_recv(cx);
        next.map(|event| event.map(|event| event.map(response)))
    }
}

impl Drop for ProcessEvents {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
