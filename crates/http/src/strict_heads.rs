//! Requires CR LF line endings in request heads. The HTTP library also accepts a lone LF, which a proxy may treat
//! as part of the line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that replaces a lone LF in a request head by an invalid byte, so that the HTTP library refuses the
/// request with 400.
pub struct StrictHeads<S> {
    stream: S,
    scan: Scan,
    next: NextHead,
}

/// Tells the stream that a request was read completely, so a head follows.
///
/// If a client sends its next request before the response, the head may already have been read without a check. No
/// client of ours does that.
#[derive(Clone)]
pub struct NextHead(Arc<AtomicBool>);

/// The position within a head.
#[derive(Clone, Copy)]
enum Scan {
    Head { last: u8, line_bytes: usize, lines: usize },
    Body,
}

const HEAD: Scan = Scan::Head { last: 0, line_bytes: 0, lines: 0 };

impl<S> StrictHeads<S> {
    /// Wraps a new connection.
    pub fn new(stream: S) -> (Self, NextHead) {
        let next = NextHead(Arc::default());
        (StrictHeads { stream, scan: HEAD, next: next.clone() }, next)
    }
}

impl NextHead {
    /// Reports that the body of the current request was read.
    pub fn follows(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Scan {
    /// Scans bytes that were read, and invalidates a lone LF in a head.
    fn look(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            let Scan::Head { last, line_bytes, lines } = self else { return };
            match *byte {
                b'\n' if *last != b'\r' => *byte = 0,
                // Empty lines before the head do not end it: the HTTP library skips them.
                b'\n' if *line_bytes == 1 && *lines > 0 => {
                    *self = Scan::Body;
                    return;
                }
                b'\n' => {
                    *lines += usize::from(*line_bytes > 1);
                    *line_bytes = 0;
                    *last = b'\n';
                    continue;
                }
                _ => {}
            }
            *last = *byte;
            *line_bytes += 1;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictHeads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if this.next.0.swap(false, Ordering::AcqRel) {
            this.scan = HEAD;
        }
        this.scan.look(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictHeads<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(text: &str, chunk: usize) -> String {
        let (mut bytes, mut scan) = (text.as_bytes().to_vec(), HEAD);
        bytes.chunks_mut(chunk).for_each(|chunk| scan.look(chunk));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_lone_line_feed_is_invalid_in_a_head_and_nowhere_else() {
        for (sent, expected) in [
            ("GET / HTTP/1.1\r\nA: b\r\n\r\nbody\nbody\n\n", None),
            ("\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nbody\n", None),
            ("GET / HTTP/1.1\nA: b\r\n\r\n", Some("GET / HTTP/1.1\0A: b\r\n\r\n")),
            ("GET / HTTP/1.1\r\nA: b\n\n", Some("GET / HTTP/1.1\r\nA: b\0\0")),
            ("GET / HTTP/1.1\r\nA: b\r\n\n", Some("GET / HTTP/1.1\r\nA: b\r\n\0")),
            ("\nGET / HTTP/1.1\r\n\r\n", Some("\0GET / HTTP/1.1\r\n\r\n")),
        ] {
            for chunk in [1, 2, 3, 1000] {
                assert_eq!(looked_at(sent, chunk), expected.unwrap_or(sent), "{sent:?}");
            }
        }
    }
}
