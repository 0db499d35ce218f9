//! The server for one client, on standard input and output or on a socket: until the client closes its end.

use std::time::Duration;
use std::{fmt, io};

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib::Runtime;

use crate::handler::{Handler, ServeOptions};
use crate::leader_follower::Turns;
use crate::ndjson::Lines;

/// Calls that still run when the input ends are told to; after this they are left behind.
const GRACE: Duration = Duration::from_millis(500);

/// Why serving ended badly.
#[derive(Debug)]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(error: &dyn fmt::Display) -> Self {
        ServeError(format!("cannot serve: {error}"))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// Serves MCP on standard input and output until the input ends.
pub fn serve_stdio(runtime: Runtime, options: ServeOptions) -> Result<(), ServeError> {
    serve_lines(runtime, options, || Ok(stdio_pipes()))
}

/// The same on a connected socket, for one client.
#[allow(clippy::disallowed_types, reason = "the transport receives its streams")]
pub fn serve_socket(
    runtime: Runtime,
    options: ServeOptions,
    socket: std::os::unix::net::UnixStream,
) -> Result<(), ServeError> {
    serve_lines(runtime, options, || {
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket).map(tokio::net::UnixStream::into_split)
    })
}

/// Serves messages that come and go as lines. The streams are made where they can be waited for.
fn serve_lines<R, W>(
    runtime: Runtime,
    options: ServeOptions,
    streams: impl FnOnce() -> io::Result<(R, W)> + Send + 'static,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let failed = ServeError::new;
    let threads = Handler::threads().map_err(|error| failed(&error))?;
    let (turns, crew) = Turns::new(threads);
    let handler = Handler::new(runtime, options)?.taking(turns);
    let client = handler.sole_client();
    let served = crew.serve(async move {
        let (input, output) = streams().map_err(|error| failed(&error))?;
        let service = match serve_server(handler, Lines::new(input, output)).await {
            // A client that only asked what this server is has gone again.
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
