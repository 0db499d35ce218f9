//! Serves one client on stdin and stdout or on a socket, until the client closes its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib::Runtime;

use crate::handler::{Handler, ServeOptions};
use crate::leader_follower::CallSubmitter;
use crate::ndjson::NdjsonTransport;
use crate::serve_error::ServeError;

/// The time that running calls have to end after the end of the input. Then they are abandoned.
const GRACE: Duration = Duration::from_millis(500);

/// Serves MCP on standard input and output until the input ends.
pub fn serve_stdio(runtime: Runtime, options: ServeOptions) -> Result<(), ServeError> {
    serve_lines(runtime.into(), options, || Ok(stdio_pipes()))
}

/// Serves MCP to one client on a connected socket, with a session of its own. Other clients may share the runtime.
#[allow(clippy::disallowed_types, reason = "the transport receives its streams")]
pub fn serve_socket(
    runtime: impl Into<Arc<Runtime>>,
    options: ServeOptions,
    socket: std::os::unix::net::UnixStream,
) -> Result<(), ServeError> {
    serve_lines(runtime.into(), options, || {
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket).map(tokio::net::UnixStream::into_split)
    })
}

/// Serves messages as lines. The streams are created inside the async runtime.
fn serve_lines<R, W>(
    runtime: Arc<Runtime>,
    options: ServeOptions,
    streams: impl FnOnce() -> io::Result<(R, W)> + Send + 'static,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let failed = ServeError::new;
    let threads = Handler::threads(Handler::THREADS).map_err(|error| failed(&error))?;
    let (submitter, message_threads) = CallSubmitter::new(threads);
    let handler = Handler::new(runtime, options)?.with_submitter(submitter);
    let client = handler.sole_client();
    let served = message_threads.serve(async move {
        let (input, output) = streams().map_err(|error| failed(&error))?;
        let service = match serve_server(handler, NdjsonTransport::new(input, output)).await {
            // The client disconnected before `initialize`, for example after a discovery request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            service => service.map_err(|error| failed(&error))?,
        };
        match service.waiting().await {
            Ok(QuitReason::JoinError(error)) => Err(failed(&error)),
            Ok(_) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    });
    client.calls().end();
    client.calls().wait(GRACE);
    // On this thread, so that the session has ended its commands before the process exits.
    drop(client);
    served.map_err(|error| failed(&error))?
}
