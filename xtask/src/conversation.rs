//! A `toolcrib run` process: calls go in, replies come out.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};

use crate::error::Result;
use crate::watchdog::Watchdog;

/// No call takes as long: the longest waits for a lock for ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that answers calls. Dropped, it is killed.
pub(crate) struct Conversation {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    watchdog: Watchdog,
    /// It was waited for: its number is not its own any more.
    is_over: bool,
}

/// How a conversation ended.
pub(crate) struct Ending {
    /// Replies that nobody had asked for yet.
    pub(crate) rest: Vec<String>,
    pub(crate) status: ExitStatus,
    /// It had stopped answering, and was killed for it.
    pub(crate) hung: bool,
}

impl Conversation {
    /// Starts a process; `command` is that of a sandbox with the word `run`.
    pub(crate) fn start(mut command: Command) -> Result<Conversation> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the process has no output")?;
        let watchdog = Watchdog::new(Pid::from_child(&child), PATIENCE, Signal::KILL);
        let output = BufReader::new(output);
        Ok(Conversation { child, input, output, watchdog, is_over: false })
    }

    /// The input, for a thread that does not wait for replies. Without it, nothing can be said here.
    pub(crate) fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("the input is closed")?;
        input.write_all(line.as_bytes())?;
        Ok(())
    }

    /// The next reply as it stands; nothing, if there will be none.
    pub(crate) fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line)?;
        self.watchdog.sign_of_life();
        Ok((length > 0).then_some(line))
    }

    /// Says a line and waits for its reply.
    pub(crate) fn ask(&mut self, line: &str) -> Result<Value> {
        self.say(line)?;
        let reply = self.line()?.ok_or("the process ended without a reply")?;
        Ok(serde_json::from_str(&reply)?)
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has had so far, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(1024 * kilobytes.ok_or("the system does not tell how much memory a process has had")?)
    }

    /// Kills it, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Closes the input, reads what is left to read, and waits for the end.
    pub(crate) fn end(mut self) -> Result<Ending> {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(line) = self.line()? {
            rest.push(line);
        }
        // First until it has ended, the watchdog still there; then its number is given back.
        let id = WaitId::Pid(Pid::from_child(&self.child));
        waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let hung = self.watchdog.stop();
        let status = self.child.wait()?;
        self.is_over = true;
        Ok(Ending { rest, status, hung })
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if !self.is_over {
            self.watchdog.stop();
            // It may have ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A call as a line. One that is to `wait` is answered before the lines after it are looked at.
pub(crate) fn call_line(id: usize, tool: &str, arguments: &Value, wait: bool) -> String {
    format!("{}\n", json!({"id": id, "tool": tool, "args": arguments, "wait": wait}))
}
