//! One page per user: a lock, and a socket on which the page gives new addresses.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lock, which the page holds while it runs. It contains the process id of the page.
const LOCK: &str = "page.lock";

/// The socket. Its name differs from those of servers.
const CONTROL: &str = "page.control";

/// The time that a page takes to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Longer than any address.
const MAX_ADDRESS_BYTES: u64 = 1_000;

/// The page of the user.
pub(super) enum Instance {
    /// It runs already.
    Other {
        /// A new address of it.
        address: String,
        /// Its process id, if it is known.
        process: Option<u32>,
    },
    /// This process is to be the page.
    First(Claimed),
}

/// The right to be the page.
pub(super) struct Claimed {
    lock: File,
    socket: PathBuf,
}

/// Claims the right to be the page, in a directory that only the user can access.
pub(super) fn claim(directory: &Path) -> Result<Instance, String> {
    let path = directory.join(LOCK);
    let at = |error: io::Error| format!("{}: {error}", path.display());
    let mut options = OpenOptions::new();
    let lock = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = lock.map_err(at)?;
    let socket = directory.join(CONTROL);
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => {
                // Only for a message about this page.
                let _ = lock.set_len(0);
                let _ = (&lock).write_all(std::process::id().to_string().as_bytes());
                return Ok(Instance::First(Claimed { lock, socket }));
            }
            Err(TryLockError::Error(error)) => return Err(at(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        match address_from(&socket) {
            Ok(address) => {
                let process = std::fs::read_to_string(&path).ok();
                let process = process.and_then(|process| process.trim().parse().ok());
                return Ok(Instance::Other { address, process });
            }
            Err(error) if began.elapsed() > START_TIMEOUT => {
                return Err(format!("the page runs, but gives no address: {error}"));
            }
            // It is just starting or ending.
            Err(_) => std::thread::sleep(RETRY_INTERVAL),
        }
    }
}

fn address_from(socket: &Path) -> io::Result<String> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ADDRESS_BYTES)).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(address) => Ok(address.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Claimed {
    /// Gives a new address to each connection, while the process runs.
    pub(super) fn give_addresses(
        self,
        make: impl Fn() -> io::Result<String> + Send + 'static,
    ) -> io::Result<()> {
        // An earlier page may have been killed. The lock says that none runs.
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket)?;
        // The directory protects it until then.
        std::fs::set_permissions(&self.socket, std::fs::Permissions::from_mode(0o600))?;
        let thread = std::thread::Builder::new().name("page addresses".to_owned());
        thread.spawn(move || {
            let _lock = self.lock;
            for stream in listener.incoming().flatten() {
                let _ = stream.set_write_timeout(Some(START_TIMEOUT));
                if let Ok(address) = make() {
                    let _ = (&stream).write_all(format!("{address}\n").as_bytes());
                }
            }
        })?;
        Ok(())
    }
}
