//! Waits for a command.

use std::time::{Duration, Instant};

use toolcrib_exec::{Ending, Job, Snapshot, Status};
use toolcrib_text::visible_name;

use crate::cancel_and_progress::Progress;
use crate::cx::Cx;
use crate::error::Error;
use crate::message_names::{EDIT, WRITE};
use crate::tools::shell_output::last_line;

/// Interval between checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Interval between progress reports, and between checks for programs that wait for the keyboard.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// After the shell has ended, its background processes may still write. The output is complete after this long
/// without output, or after the second limit.
pub(super) const QUIET_PERIOD: Duration = Duration::from_millis(200);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that a shim may take to report that all processes have exited.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(30);

/// Time to wait for processes that were told to end: half a second of grace, and more on a slow machine.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) enum WaitResult {
    Ended,
    TimedOut,
}

/// Waits until the shell has ended or the timeout is over. Cancellation ends the command. A program that waits for
/// the keyboard is killed, and a note says so. `ask_waiting` asks about the hosts that the command waits for.
pub(super) fn wait(
    cx: &Cx<'_>,
    job: &Job,
    timeout: Duration,
    ask_waiting: &dyn Fn(),
) -> Result<(WaitResult, Option<String>), Error> {
    let began = Instant::now();
    let mut last_progress = began;
    let (mut suspects, mut killed_program_note) = (Vec::new(), None);
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let now = job.wait(left.min(POLL_INTERVAL), |now| !now.status.is_running());
        if !now.status.is_running() {
            return Ok((WaitResult::Ended, killed_program_note));
        }
        ask_waiting();
        if let Err(cancelled) = cx.check_cancelled() {
            job.end(Ending::Prompt, Status::Killed);
            job.wait(KILL_TIMEOUT, |now| now.all_exited);
            return Err(cancelled);
        }
        if left.is_zero() {
            return Ok((WaitResult::TimedOut, killed_program_note));
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            // Only a process that also waited at the previous check.
            let waiting = job.waiting_for_keyboard();
            for process in waiting.iter().filter(|process| suspects.contains(*process)) {
                job.end_if_waiting_for_keyboard(process);
                killed_program_note = Some(keyboard_note(&process.name));
            }
            suspects = waiting;
            let line = last_line(job, &cx.secrets());
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
    }
}

fn keyboard_note(program: &str) -> String {
    format!(
        "{} waited for keyboard input and was killed: there is no terminal. Use {EDIT}, {WRITE} or sed -i to change files",
        visible_name(program.as_bytes())
    )
}

/// Waits for the last output after the shell has ended. Processes that it left running may keep the output open for
/// ever.
pub(super) fn drain(job: &Job) -> Snapshot {
    let began = Instant::now();
    let mut now = job.snapshot();
    while !now.closed && began.elapsed() < DRAIN_TIMEOUT {
        let written = now.written;
        now = job.wait(QUIET_PERIOD, |now| now.closed);
        if now.written == written {
            break;
        }
    }
    // The shim reports a moment later whether processes are left. Asking the system for them takes longer.
    job.wait(EXIT_REPORT_TIMEOUT, |now| now.all_exited)
}
