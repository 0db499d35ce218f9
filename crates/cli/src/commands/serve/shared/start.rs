//! Starts a shared server, which is no child of its first client and has no terminal.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::client_variables;
use super::place::{Place, PlaceLock};
use crate::args::SharedPart;
use crate::commands::OWN_EXECUTABLE;

/// What the server writes to its standard output when it listens.
const READY: u8 = b'+';

/// The time in which a server must start. Other clients of the same key wait meanwhile.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The flag of clients.
const SHARED: &str = "--shared";

/// Starts the server of this client, and waits until it listens. Returns whether it does. If not, its messages say why.
pub(super) fn start(place: &Place, _: &PlaceLock) -> Result<bool, String> {
    let failed = |error: io::Error| format!("the shared server does not start: {error}");
    let mut launcher = own_command(SharedPart::Launch);
    for (name, _) in std::env::vars_os().filter(|(name, _)| client_variables::is_removed(name)) {
        launcher.env_remove(name);
    }
    let launcher = launcher.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(place.new_log()?);
    let mut launcher = launcher.spawn().map_err(failed)?;
    let ready = launcher.stdout.take().map(is_ready);
    launcher.wait().map_err(failed)?;
    match ready.map(|ready| ready.recv_timeout(START_TIMEOUT)) {
        Some(Ok(is_ready)) => Ok(is_ready),
        None => Ok(false),
        Some(Err(_)) => Err(format!(
            "the shared server has not started within {} seconds",
            START_TIMEOUT.as_secs()
        )),
    }
}

/// Whether the server listens, once that is known.
fn is_ready(mut output: ChildStdout) -> mpsc::Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut first = [0];
        let read = output.read_exact(&mut first);
        // The receiver may have given up.
        let _ = sender.send(read.is_ok() && first == [READY]);
    });
    receiver
}

/// Starts the server in a session of its own. Its parent ends at once, so that programs that end the descendants of a client
/// do not end the server.
pub(super) fn launch() -> Result<ExitCode, String> {
    let failed = |error: io::Error| format!("the shared server does not start: {error}");
    toolcrib::close_inherited();
    nix::unistd::setsid().map_err(|errno| failed(errno.into()))?;
    own_command(SharedPart::Serve).stdin(Stdio::null()).spawn().map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Tells the client that the server listens.
pub(super) fn tell_ready() -> io::Result<()> {
    let mut output = io::stdout();
    output.write_all(&[READY])?;
    output.flush()
}

/// This program with the arguments of the client.
fn own_command(part: SharedPart) -> Command {
    let mut command = Command::new(OWN_EXECUTABLE);
    let words = std::env::args_os().skip(1).map(|word| word_for(part, word));
    command.arg0(env!("CARGO_BIN_NAME")).args(words);
    command
}

fn word_for(part: SharedPart, word: OsString) -> OsString {
    let is_flag = word == SHARED || word == SharedPart::Launch.flag();
    if is_flag { part.flag().into() } else { word }
}
