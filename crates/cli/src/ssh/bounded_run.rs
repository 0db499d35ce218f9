//! Runs a process with input, within limits of time and output. A process that exceeds them is ended.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The limits of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunLimits {
    /// How long it may run after it has taken the last part of its input.
    pub(super) time: Duration,
    /// The bytes of each of its streams that are kept.
    pub(super) kept_bytes: usize,
    /// The bytes of each of its streams after which it is ended.
    pub(super) bytes: usize,
}

/// The end of a process.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The beginning of its output, and of its messages.
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Why there is no end.
#[derive(Debug)]
pub(super) enum RunProblem {
    NotStarted(io::Error),
    TooLong(Duration),
    TooMuchOutput(usize),
    Io(io::Error),
}

/// How often the end of the process is looked for.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long the streams may stay open after the process has ended. A process that it left behind may keep them, such as
/// one that shares connections.
const STREAM_TIME: Duration = Duration::from_secs(2);

/// The bytes that are written and read at once.
const CHUNK: usize = 64 << 10;

/// What a thread reports.
enum Progress {
    Wrote,
    StreamEnded,
    TooMuchOutput,
}

pub(super) fn run(
    command: &mut Command,
    input: &[u8],
    limits: RunLimits,
) -> Result<Ended, RunProblem> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(RunProblem::NotStarted)?;
    let (sender, progress) = mpsc::channel();
    let stdout = child.stdout.take().map(|stream| read(stream, limits, sender.clone()));
    let stderr = child.stderr.take().map(|stream| read(stream, limits, sender.clone()));
    write(&mut child, input.to_vec(), sender);
    let (mut open, mut ended) = (2, None);
    let mut deadline = Instant::now() + limits.time;
    while open > 0 {
        match progress.recv_timeout(INTERVAL) {
            Ok(Progress::Wrote) if ended.is_none() => deadline = Instant::now() + limits.time,
            Ok(Progress::Wrote) => {}
            Ok(Progress::StreamEnded) => open -= 1,
            Ok(Progress::TooMuchOutput) => {
                end(&mut child);
                return Err(RunProblem::TooMuchOutput(limits.bytes));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ended.is_none() {
            ended = child.try_wait().map_err(RunProblem::Io)?;
            if ended.is_some() {
                deadline = Instant::now() + STREAM_TIME;
            }
        }
        if Instant::now() >= deadline {
            break;
        }
    }
    let status = match ended {
        Some(status) => status,
        None => wait(&mut child, deadline).map_err(RunProblem::Io)?.ok_or_else(|| {
            end(&mut child);
            RunProblem::TooLong(limits.time)
        })?,
    };
    let taken =
        |kept: Option<Arc<Mutex<Vec<u8>>>>| kept.map(|kept| std::mem::take(&mut *kept.lock()));
    let (stdout, stderr) = (taken(stdout).unwrap_or_default(), taken(stderr).unwrap_or_default());
    Ok(Ended { status, stdout, stderr })
}

/// Waits for the end of a process that has closed its streams.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => std::thread::sleep(INTERVAL),
            ended => return Ok(ended),
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Writes the input in a thread. The process may end before it has read everything, and says why.
fn write(child: &mut Child, input: Vec<u8>, progress: Sender<Progress>) {
    let Some(mut stdin) = child.stdin.take() else { return };
    std::thread::spawn(move || {
        for part in input.chunks(CHUNK) {
            if stdin.write_all(part).is_err() || progress.send(Progress::Wrote).is_err() {
                break;
            }
        }
    });
}

/// Reads a stream in a thread to its end, and keeps its beginning.
fn read(
    mut stream: impl Read + Send + 'static,
    limits: RunLimits,
    progress: Sender<Progress>,
) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let beginning = kept.clone();
    std::thread::spawn(move || {
        let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
        let last = loop {
            match stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break Progress::StreamEnded,
                Ok(length) => {
                    let mut beginning = beginning.lock();
                    let room = limits.kept_bytes.saturating_sub(beginning.len());
                    beginning.extend_from_slice(&buffer[..length.min(room)]);
                    bytes += length;
                    if bytes > limits.bytes {
                        break Progress::TooMuchOutput;
                    }
                }
            }
        };
        let _ = progress.send(last);
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RunLimits =
        RunLimits { time: Duration::from_secs(60), kept_bytes: 1_000, bytes: 1_000_000 };

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_beginning_of_the_output_is_kept_and_the_input_arrives() {
        let input = vec![b'x'; 300_000];
        let ended = run(&mut sh("wc -c; echo no >&2; exit 3"), &input, LIMITS).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(String::from_utf8(ended.stdout).unwrap().trim(), "300000");
        assert_eq!(ended.stderr, b"no\n");
        let ended = run(&mut sh("head -c 5000 /dev/zero"), &input, LIMITS).unwrap();
        assert_eq!(ended.stdout.len(), 1_000);
    }

    #[test]
    fn endless_output_and_silence_end() {
        let endless = run(&mut Command::new("yes"), b"", LIMITS);
        assert!(matches!(endless, Err(RunProblem::TooMuchOutput(_))));
        let endless = run(&mut sh("exec yes >&2"), b"", LIMITS);
        assert!(matches!(endless, Err(RunProblem::TooMuchOutput(_))));
        let limits = RunLimits { time: Duration::from_millis(50), ..LIMITS };
        let silent = run(Command::new("sleep").arg("1000"), b"x", limits);
        assert!(matches!(silent, Err(RunProblem::TooLong(_))));
        let closed = run(&mut sh("exec sleep 1000 >&- 2>&-"), b"", limits);
        assert!(matches!(closed, Err(RunProblem::TooLong(_))));
    }

    /// A process in the background that keeps the streams open is not waited for.
    #[test]
    fn a_process_that_is_left_behind_does_not_matter() {
        let ended = run(&mut sh("sleep 100 & echo $!"), b"", LIMITS).unwrap();
        assert!(ended.status.success());
        let left = String::from_utf8(ended.stdout).unwrap();
        assert!(sh(&format!("kill {left}")).status().unwrap().success());
    }
}
