//! A server on loopback that runs for the duration of a test.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

/// A loaded machine may take as long to start a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that listens. Dropped, it is killed.
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts it, and waits until it accepts connections.
    pub(super) fn start(command: &mut Command, port: u16) -> Result<Server> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server { child: command.spawn()? };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let is_over = server.child.try_wait()?.is_some();
            if is_over || began.elapsed() > PATIENCE {
                return Err(format!("`{}` does not serve", process::describe(command)).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free now.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
