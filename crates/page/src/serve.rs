//! Starts the page.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::OperatorLogs;

use crate::live::Live;
use crate::monitors::Monitors;
use crate::notify::notify;
use crate::operator::Operator;
use crate::routes::Api;
use crate::server;
use crate::sign_in::SignIn;

/// Threads for requests that read logs or undo changes.
const THREADS: usize = 16;

/// Settings of the page.
pub struct PageOptions {
    /// A listening socket on 127.0.0.1.
    pub listener: std::net::TcpListener,
    /// The directories with the sockets of servers.
    pub sockets: Vec<PathBuf>,
    /// The logs of the user.
    pub logs: OperatorLogs,
    /// The settings of the operator.
    pub operator: Box<dyn Operator>,
    /// The command that gets questions that nobody answers at once. None if it is empty.
    pub notify: Vec<String>,
}

/// The page, before and while it serves.
pub struct Page {
    port: u16,
    listener: std::net::TcpListener,
    api: Arc<Api>,
    notify: Vec<String>,
}

/// Makes addresses of a page, each of which can be opened once.
#[derive(Clone)]
pub struct Addresses {
    port: u16,
    api: Arc<Api>,
}

impl Addresses {
    /// A new address.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn make(&self) -> io::Result<String> {
        let ticket = self.api.sign_in.new_ticket()?;
        Ok(format!("http://127.0.0.1:{}/#{ticket}", self.port))
    }
}

impl Page {
    /// Prepares the page.
    ///
    /// # Errors
    ///
    /// Fails if the socket can be reached from other machines.
    pub fn new(options: PageOptions) -> io::Result<Page> {
        let address = options.listener.local_addr()?;
        if !address.ip().is_loopback() {
            let problem = format!("{address} can be reached from other machines");
            return Err(io::Error::other(problem));
        }
        let live = Arc::new(Live::new());
        let api = Api {
            sign_in: SignIn::default(),
            monitors: Monitors::join(&options.sockets, live.clone())?,
            live,
            logs: options.logs,
            operator: options.operator,
        };
        Ok(Page {
            port: address.port(),
            listener: options.listener,
            api: Arc::new(api),
            notify: options.notify,
        })
    }

    /// Makes addresses of the page.
    pub fn addresses(&self) -> Addresses {
        Addresses { port: self.port, api: self.api.clone() }
    }

    /// Serves until the process is ended.
    ///
    /// # Errors
    ///
    /// Fails if the system has no threads left or the socket fails.
    pub fn serve(self) -> io::Result<Infallible> {
        let threads = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()?;
        self.listener.set_nonblocking(true)?;
        threads.block_on(async {
            if !self.notify.is_empty() {
                tokio::spawn(notify(self.api.live.clone(), self.notify));
            }
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            server::accept(listener, self.api).await
        })
    }
}
