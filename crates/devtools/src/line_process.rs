//! A child process that answers lines of input, such as `toolcrib run`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};

use crate::error::Result;
use crate::watchdog::Watchdog;

/// No call takes this long: the slowest one waits ten seconds for a lock.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that answers calls. It is killed when dropped.
pub struct LineProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    watchdog: Watchdog,
    /// Whether it was reaped. Its process id may then belong to another process.
    is_over: bool,
}

/// The end of a process.
pub struct Ending {
    /// Replies that were not read before.
    pub rest: Vec<String>,
    /// Its exit status.
    pub status: ExitStatus,
    /// Whether it stopped responding and was killed.
    pub hung: bool,
}

impl LineProcess {
    /// Starts a process. `command` runs `toolcrib run`, or another program that answers lines.
    pub fn start(mut command: Command) -> Result<LineProcess> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the process has no output")?;
        let watchdog = Watchdog::new(Pid::from_child(&child), REPLY_TIMEOUT, Signal::KILL);
        let output = BufReader::new(output);
        Ok(LineProcess { child, input, output, watchdog, is_over: false })
    }

    /// Takes the input, for a thread that does not wait for replies. [`LineProcess::say`] fails afterwards.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Sends a line.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("the input is closed")?;
        input.write_all(line.as_bytes())?;
        Ok(())
    }

    /// The next reply, unparsed; `None` at the end of the output.
    pub fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line)?;
        self.watchdog.sign_of_life();
        Ok((length > 0).then_some(line))
    }

    /// Sends a line and waits for its reply.
    pub fn ask(&mut self, line: &str) -> Result<Value> {
        self.say(line)?;
        let reply = self.line()?.ok_or("the process ended without a reply")?;
        Ok(serde_json::from_str(&reply)?)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The peak memory so far, in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(1024 * kilobytes.ok_or("the system does not tell how much memory a process has had")?)
    }

    /// Kills the process.
    pub fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Closes the input, reads the remaining output and reaps the process.
    pub fn end(mut self) -> Result<Ending> {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(line) = self.line()? {
            rest.push(line);
        }
        // Wait without reaping while the watchdog is active, then reap.
        let id = WaitId::Pid(Pid::from_child(&self.child));
        waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let hung = self.watchdog.stop();
        let status = self.child.wait()?;
        self.is_over = true;
        Ok(Ending { rest, status, hung })
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        if !self.is_over {
            self.watchdog.stop();
            // It may have exited by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A call as a line. With `wait`, it is answered before later lines are read.
pub fn call_line(id: usize, tool: &str, arguments: &Value, wait: bool) -> String {
    format!("{}\n", json!({"id": id, "tool": tool, "args": arguments, "wait": wait}))
}
