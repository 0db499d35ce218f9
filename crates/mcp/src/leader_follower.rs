//! Runs short calls on the thread that read them. Waking another thread and being woken by it takes longer than
//! reading a small file.
//!
//! One thread is the leader: it processes messages. It runs a call itself, and then continues with messages. A
//! follower thread watches it. If a call takes longer than [`TAKEOVER_TIMEOUT`], the follower becomes the leader and
//! starts a new follower, and the previous leader exits after its call. So no message waits longer than that for a
//! slow call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Reading most files takes a hundredth of this. A person does not notice such a delay.
const TAKEOVER_TIMEOUT: Duration = Duration::from_millis(2);

/// After a call the follower keeps watching for this number of timeouts, because more calls may follow. Then it need
/// not be woken for them.
const MAX_IDLE_CHECKS: u32 = 25;

/// A call to run.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Submits calls to the leader.
pub(crate) struct CallSubmitter {
    /// `None` ends the loop.
    jobs: UnboundedSender<Option<Job>>,
    watch: Arc<Watch>,
}

/// The state that leader and follower share.
pub(crate) struct MessageThreads {
    runtime: Runtime,
    /// Locked by the leader.
    jobs: Mutex<UnboundedReceiver<Option<Job>>>,
    shutdown: UnboundedSender<Option<Job>>,
    watch: Arc<Watch>,
}

/// Shared by the leader and the follower that watches it.
#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the current leader. A thread with another number leads no longer.
    leader: u64,
    /// The number of calls.
    calls: u64,
    /// The call that the leader is running.
    running_call: Option<u64>,
    /// Whether the follower is watching, so that it need not be woken.
    has_active_viewer: bool,
    has_follower: bool,
    has_ended: bool,
}

impl CallSubmitter {
    /// Creates the threads' shared state, for a runtime that processes messages on the thread that drives it.
    pub(crate) fn new(runtime: Runtime) -> (CallSubmitter, MessageThreads) {
        let (sender, jobs) = unbounded_channel();
        let watch = Arc::new(Watch::default());
        let threads = MessageThreads {
            runtime,
            jobs: Mutex::new(jobs),
            shutdown: sender.clone(),
            watch: watch.clone(),
        };
        (CallSubmitter { jobs: sender, watch }, threads)
    }

    /// Submits a call to the leader. Returns it if no follower could take over.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Job> {
        if self.watch.state.lock().has_follower {
            self.jobs.send(Some(job)).map_err(|unsent| unsent.0.unwrap_or(Box::new(|| {})))
        } else {
            Err(job)
        }
    }
}

impl MessageThreads {
    /// Processes messages until `served` completes, and returns its result. Calls may continue after that.
    pub(crate) fn serve<T: Send + 'static>(
        self,
        served: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let threads = Arc::new(self);
        let (result_sender, result_receiver) = mpsc::channel();
        let shutdown = threads.shutdown.clone();
        threads.runtime.spawn(async move {
            // The receiver is dropped only at the end.
            let _ = result_sender.send(served.await);
            let _ = shutdown.send(None);
        });
        threads.clone().start_follower();
        // A separate thread, so that this one can return while a call still runs.
        thread::Builder::new().name("messages".to_owned()).spawn(move || threads.lead(0))?;
        result_receiver.recv().map_err(io::Error::other)
    }

    /// Processes messages and runs calls, until the end or until another thread leads.
    fn lead(self: Arc<Self>, own_number: u64) {
        while let Some(job) = self.next_job() {
            self.watch.begin_call();
            // Calls catch their own panics. After any other panic, the closed channel tells the client.
            let _ = catch_unwind(AssertUnwindSafe(job));
            if !self.watch.end_call(own_number) {
                return;
            }
        }
        self.watch.end();
    }

    fn next_job(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        self.runtime.block_on(jobs.recv()).flatten()
    }

    /// Calls behind a slow one may be slow too. Each runs on its own thread, so that they do not wait for each
    /// other.
    fn run_queued_jobs(&self) {
        let mut jobs = self.jobs.lock();
        while let Ok(job) = jobs.try_recv() {
            match job {
                Some(job) => drop(self.runtime.spawn_blocking(job)),
                // The leader must see it too.
                None => return drop(self.shutdown.send(None)),
            }
        }
    }

    /// Starts a follower. Without one, calls run on other threads.
    fn start_follower(self: Arc<Self>) {
        let watch = self.watch.clone();
        let follower = move || {
            if let Some(own_number) = self.watch.wait_for_takeover() {
                self.clone().start_follower();
                self.run_queued_jobs();
                self.lead(own_number);
            }
        };
        let called = thread::Builder::new().name("follower".to_owned()).spawn(follower);
        watch.state.lock().has_follower = called.is_ok();
    }
}

impl Watch {
    /// The leader starts a call.
    fn begin_call(&self) {
        let mut state = self.state.lock();
        state.calls += 1;
        state.running_call = Some(state.calls);
        let was_watched = std::mem::replace(&mut state.has_active_viewer, true);
        drop(state);
        if !was_watched {
            self.changed.notify_one();
        }
    }

    /// The leader has finished a call. Returns whether it still leads.
    fn end_call(&self, own_number: u64) -> bool {
        let mut state = self.state.lock();
        let leads = state.leader == own_number;
        if leads {
            state.running_call = None;
        }
        leads
    }

    /// Waits until a call takes too long. Returns the caller's number as the new leader, or `None` at the end.
    fn wait_for_takeover(&self) -> Option<u64> {
        let (mut state, mut idle_checks) = (self.state.lock(), 0);
        while !state.has_ended {
            if !state.has_active_viewer {
                self.changed.wait(&mut state);
                continue;
            }
            let (calls, running_call) = (state.calls, state.running_call);
            self.changed.wait_for(&mut state, TAKEOVER_TIMEOUT);
            idle_checks = if state.calls == calls { idle_checks + 1 } else { 0 };
            if state.running_call.is_some()
                && state.running_call == running_call
                && !state.has_ended
            {
                state.leader += 1;
                (state.running_call, state.has_active_viewer, state.has_follower) =
                    (None, false, false);
                return Some(state.leader);
            }
            state.has_active_viewer = state.running_call.is_some() || idle_checks < MAX_IDLE_CHECKS;
        }
        None
    }

    fn end(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn threads() -> (CallSubmitter, MessageThreads) {
        CallSubmitter::new(
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        )
    }

    impl CallSubmitter {
        /// Submits a call, retrying if needed, and waits for its result.
        async fn run<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> T {
            let (result_sender, result_receiver) = oneshot::channel();
            let mut job: Job = Box::new(move || drop(result_sender.send(call())));
            while let Err(left) = self.submit(job) {
                job = left;
                tokio::time::sleep(TAKEOVER_TIMEOUT).await;
            }
            result_receiver.await.unwrap()
        }
    }

    #[test]
    fn the_leader_runs_short_calls_itself() {
        let (submitter, threads) = threads();
        let served = threads.serve(async move {
            let leader = thread::current().id();
            let mut on_leader = 0;
            for _ in 0..200 {
                on_leader += u32::from(submitter.run(|| thread::current().id()).await == leader);
            }
            on_leader
        });
        // Usually all of them, but a busy machine may delay some.
        assert!(served.unwrap() > 0);
    }

    #[test]
    fn messages_are_processed_during_slow_calls() {
        let (submitter, threads) = threads();
        let served = threads.serve(async move {
            let (mut slow, submitter) = (Vec::new(), Arc::new(submitter));
            for _ in 0..5 {
                let (release, released) = mpsc::channel::<()>();
                let submitter = submitter.clone();
                let call = async move { submitter.run(move || released.recv()).await };
                slow.push((release, tokio::spawn(call)));
                // Completes only if another thread processes messages.
                tokio::time::sleep(TAKEOVER_TIMEOUT).await;
            }
            let quick = submitter.run(|| 7).await;
            for (release, call) in slow {
                release.send(()).unwrap();
                call.await.unwrap().unwrap();
            }
            quick + submitter.run(|| 1).await
        });
        assert_eq!(served.unwrap(), 8);
    }

    #[test]
    fn a_panic_in_a_call_does_not_stop_the_server() {
        let (submitter, threads) = threads();
        let served = threads.serve(async move {
            while submitter.submit(Box::new(|| panic!("a call"))).is_err() {
                tokio::time::sleep(TAKEOVER_TIMEOUT).await;
            }
            submitter.run(|| 1).await
        });
        assert_eq!(served.unwrap(), 1);
    }

    #[test]
    fn shutdown_does_not_wait_for_a_call() {
        let (submitter, threads) = threads();
        let (release, released) = mpsc::channel::<()>();
        let served = threads.serve(async move {
            submitter.run(|| ()).await;
            let slow = move || assert!(released.recv().is_err());
            assert!(submitter.submit(Box::new(slow)).is_ok());
        });
        served.unwrap();
        drop(release);
    }
}
