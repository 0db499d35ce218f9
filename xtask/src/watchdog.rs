//! Ends a process that has stopped answering, so that a hang is a result and not the end of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often it looks.
const GLANCE: Duration = Duration::from_millis(500);

/// Watches one process, from when it is made until it is stopped. It must be stopped before the process
/// is waited for: afterwards the number may be somebody else's.
pub(crate) struct Watchdog {
    signs_of_life: Arc<AtomicU64>,
    has_bitten: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Sends the process this signal once it has given no sign of life for so long.
    pub(crate) fn new(process: Pid, patience: Duration, signal: Signal) -> Watchdog {
        let signs_of_life = Arc::new(AtomicU64::new(0));
        let has_bitten = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = mpsc::channel();
        let (signs, bitten) = (signs_of_life.clone(), has_bitten.clone());
        let watch = move || {
            let mut last = (signs.load(Ordering::Relaxed), Instant::now());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(GLANCE) {
                let now = signs.load(Ordering::Relaxed);
                if now != last.0 {
                    last = (now, Instant::now());
                } else if last.1.elapsed() >= patience {
                    bitten.store(true, Ordering::Relaxed);
                    // Gone already: then it is no hang, and whoever waits for it will see how it ended.
                    let _ = kill_process(process, signal);
                    return;
                }
            }
        };
        let thread = Some(std::thread::spawn(watch));
        Watchdog { signs_of_life, has_bitten, stop: Some(stop), thread }
    }

    /// The process did something.
    pub(crate) fn sign_of_life(&self) {
        self.signs_of_life.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops watching; answers whether the process had to be ended.
    pub(crate) fn stop(&mut self) -> bool {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and if it did, it has not bitten.
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
