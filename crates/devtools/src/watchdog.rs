//! Ends a process that has stopped responding, so that a hang is reported instead of blocking the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often the deadline is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Watches one process until [`Watchdog::stop`]. It must be stopped before the process is reaped, because
/// afterwards another process may have the same id.
pub struct Watchdog {
    signs_of_life: Arc<AtomicU64>,
    has_bitten: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Sends the process this signal after `timeout` without a sign of life.
    pub fn new(process: Pid, timeout: Duration, signal: Signal) -> Watchdog {
        let signs_of_life = Arc::new(AtomicU64::new(0));
        let has_bitten = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = mpsc::channel();
        let (signs, bitten) = (signs_of_life.clone(), has_bitten.clone());
        let watch = move || {
            let mut last = (signs.load(Ordering::Relaxed), Instant::now());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(POLL_INTERVAL) {
                let now = signs.load(Ordering::Relaxed);
                if now != last.0 {
                    last = (now, Instant::now());
                } else if last.1.elapsed() >= timeout {
                    bitten.store(true, Ordering::Relaxed);
                    // The process is gone already, so this is not a hang. The caller sees its exit status.
                    let _ = kill_process(process, signal);
                    return;
                }
            }
        };
        let thread = Some(std::thread::spawn(watch));
        Watchdog { signs_of_life, has_bitten, stop: Some(stop), thread }
    }

    /// Records activity of the process.
    pub fn sign_of_life(&self) {
        self.signs_of_life.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops watching. Returns whether the process was sent the signal.
    pub fn stop(&mut self) -> bool {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic. If it did, it sent no signal.
            let _ = thread.join();
        }
        self.has_bitten.load(Ordering::Relaxed)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop();
    }
}
