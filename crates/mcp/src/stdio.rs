//! The server on standard input and output: as long as somebody is at the other end.

use std::fmt;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::io::stdio_pipes;
use toolcrib::Runtime;

use crate::handler::{Handler, ServeOptions};
use crate::lines::Lines;
use crate::turns::Turns;

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
    let failed = ServeError::new;
    let threads = Handler::threads().map_err(|error| failed(&error))?;
    let (turns, crew) = Turns::new(threads);
    let handler = Handler::new(runtime, options)?.taking(turns);
    let (calls, client) = (handler.calls(), handler.sole_client());
    let served = crew.serve(async move {
        let (input, output) = stdio_pipes();
        let service = match serve_server(handler, Lines::new(input, output)).await {
            // Who only asked what we are has gone again.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            service => service.map_err(|error| failed(&error))?,
        };
        match service.waiting().await {
            Ok(QuitReason::JoinError(error)) => Err(failed(&error)),
            Ok(_) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    });
    calls.cancel_all();
    calls.wait(GRACE);
    // On this thread, so that the session has ended its commands before the process exits.
    drop(client);
    served.map_err(|error| failed(&error))?
}
