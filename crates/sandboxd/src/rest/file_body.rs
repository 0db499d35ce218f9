//! The content of a file as the body of a response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::task::JoinHandle;
use toolcrib::Error;
use toolcrib::backend::FileReader;

/// Large enough that the threads cost little, small enough for many slow clients.
const CHUNK_BYTES: usize = 256 << 10;

/// Reads a file in chunks, each on another thread when the client has taken the one before.
pub(super) struct FileBody {
    file: Arc<FileReader>,
    size: u64,
    offset: u64,
    reading: Option<JoinHandle<Result<Vec<u8>, Error>>>,
}

impl FileBody {
    pub(super) fn new(file: FileReader) -> FileBody {
        let size = file.size();
        FileBody { file: Arc::new(file), size, offset: 0, reading: None }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.offset >= this.size {
            return Poll::Ready(None);
        }
        let (file, offset) = (&this.file, this.offset);
        let limit = usize::try_from(this.size - offset).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let reading = this.reading.get_or_insert_with(|| {
            let file = file.clone();
            tokio::task::spawn_blocking(move || file.read(offset, limit))
        });
        let read = ready!(Pin::new(reading).poll(cx));
        this.reading = None;
        let bytes = match read {
            Ok(Ok(bytes)) if bytes.len() == limit => bytes,
            // The length was sent already, so the client sees that the content is not complete.
            Ok(Ok(_)) => return Poll::Ready(Some(Err(io::Error::other("the file was truncated")))),
            Ok(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
        };
        this.offset += bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.offset >= self.size
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size - self.offset)
    }
}
