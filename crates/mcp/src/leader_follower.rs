//! Who makes a call: the thread that read it, where the call is likely short. To wake another thread, and to be
//! woken by it, takes longer than to read a small file.
//!
//! One thread leads: it moves the messages. For a call it leaves them alone, and comes back with the answer. Another,
//! the relief, looks at whether it does come back; if not soon, the relief leads from then on, with a relief of its
//! own, and who was late ends when the call does. So no message waits for a slow call for longer than
//! [`PATIENCE`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Most files are read in a hundredth of this. Who waits for longer is a person, and does not notice.
const PATIENCE: Duration = Duration::from_millis(2);

/// The relief looks on for so many times [`PATIENCE`] after a call, since others may follow: it need not be woken
/// for them.
const LOOKS: u32 = 25;

/// A call to be made.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Where calls are handed in.
pub(crate) struct Turns {
    /// Nothing, when all is over.
    jobs: UnboundedSender<Option<Job>>,
    watch: Arc<Watch>,
}

/// The threads that take turns, and what they share.
pub(crate) struct Crew {
    runtime: Runtime,
    /// Locked by who leads.
    jobs: Mutex<UnboundedReceiver<Option<Job>>>,
    over: UnboundedSender<Option<Job>>,
    watch: Arc<Watch>,
}

/// Who leads, and what the relief is to look at.
#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts those who have led: a leader is still one if this is its number.
    leader: u64,
    /// Counts calls.
    calls: u64,
    /// The call that the leader is away for.
    away: Option<u64>,
    /// Whether the relief is looking: then it need not be woken.
    is_watched: bool,
    has_relief: bool,
    is_over: bool,
}

impl Turns {
    /// A crew for a runtime that moves messages on whichever thread drives it, and where to hand calls in.
    pub(crate) fn new(runtime: Runtime) -> (Turns, Crew) {
        let (sender, jobs) = unbounded_channel();
        let watch = Arc::new(Watch::default());
        let crew =
            Crew { runtime, jobs: Mutex::new(jobs), over: sender.clone(), watch: watch.clone() };
        (Turns { jobs: sender, watch }, crew)
    }

    /// Has a call made by who leads; or gives it back, if nobody would read on meanwhile.
    pub(crate) fn hand_in(&self, job: Job) -> Result<(), Job> {
        match self.watch.lock().has_relief {
            true => self.jobs.send(Some(job)).map_err(|unsent| unsent.0.unwrap_or(Box::new(|| {}))),
            false => Err(job),
        }
    }
}

impl Crew {
    /// Moves messages until `served` is over, and says how it ended. Calls may go on behind it.
    pub(crate) fn serve<T: Send + 'static>(
        self,
        served: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let crew = Arc::new(self);
        let (tell, told) = mpsc::channel();
        let over = crew.over.clone();
        crew.runtime.spawn(async move {
            // Nobody waits for it only if there is nobody any more.
            let _ = tell.send(served.await);
            let _ = over.send(None);
        });
        crew.clone().call_relief();
        // Not by this thread: it is to get away whatever a call does.
        thread::Builder::new().name("messages".to_owned()).spawn(move || crew.lead(0))?;
        told.recv().map_err(io::Error::other)
    }

    /// Moves messages, and makes calls, until all is over or somebody else leads.
    fn lead(self: Arc<Self>, own: u64) {
        while let Some(job) = self.next_job() {
            self.watch.leave();
            // Calls answer for their panics; should one get here, its client is told by the end of its channel.
            let _ = catch_unwind(AssertUnwindSafe(job));
            if !self.watch.come_back(own) {
                return;
            }
        }
        self.watch.end();
    }

    fn next_job(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        self.runtime.block_on(jobs.recv()).flatten()
    }

    /// Calls that came behind a slow one may be slow too: each is made on a thread of its own, so that they do not wait
    /// for each other.
    fn spread(&self) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(job) = jobs.try_recv() {
            match job {
                Some(job) => drop(self.runtime.spawn_blocking(job)),
                // Whoever leads is to see it too.
                None => return drop(self.over.send(None)),
            }
        }
    }

    /// Has somebody look at whether who leads comes back. Without it, calls are made elsewhere.
    fn call_relief(self: Arc<Self>) {
        let watch = self.watch.clone();
        let relief = move || {
            if let Some(own) = self.watch.until_late() {
                self.clone().call_relief();
                self.spread();
                self.lead(own);
            }
        };
        let called = thread::Builder::new().name("relief".to_owned()).spawn(relief);
        watch.lock().has_relief = called.is_ok();
    }
}

impl Watch {
    /// The leader is away for a call.
    fn leave(&self) {
        let mut state = self.lock();
        state.calls += 1;
        state.away = Some(state.calls);
        let was_watched = std::mem::replace(&mut state.is_watched, true);
        drop(state);
        if !was_watched {
            self.changed.notify_one();
        }
    }

    /// The leader is back; whether it still leads.
    fn come_back(&self, own: u64) -> bool {
        let mut state = self.lock();
        let leads = state.leader == own;
        if leads {
            state.away = None;
        }
        leads
    }

    /// Waits until a leader stays away. Then the caller leads, with this number; unless all is over before.
    fn until_late(&self) -> Option<u64> {
        let (mut state, mut looks) = (self.lock(), 0);
        while !state.is_over {
            if !state.is_watched {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (calls, away) = (state.calls, state.away);
            let waited = self.changed.wait_timeout(state, PATIENCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            looks = if state.calls == calls { looks + 1 } else { 0 };
            if state.away.is_some() && state.away == away && !state.is_over {
                state.leader += 1;
                (state.away, state.is_watched, state.has_relief) = (None, false, false);
                return Some(state.leader);
            }
            state.is_watched = state.away.is_some() || looks < LOOKS;
        }
        None
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn crew() -> (Turns, Crew) {
        Turns::new(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
    }

    impl Turns {
        /// Hands in a call, again if need be, and waits for what it answers.
        async fn have<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> T {
            let (tell, told) = oneshot::channel();
            let mut job: Job = Box::new(move || drop(tell.send(call())));
            while let Err(left) = self.hand_in(job) {
                job = left;
                tokio::time::sleep(PATIENCE).await;
            }
            told.await.unwrap()
        }
    }

    #[test]
    fn who_leads_makes_the_calls_itself() {
        let (turns, crew) = crew();
        let served = crew.serve(async move {
            let leader = thread::current().id();
            let mut own = 0;
            for _ in 0..200 {
                own += u32::from(turns.have(|| thread::current().id()).await == leader);
            }
            own
        });
        // All of them, but for those that a busy machine makes late.
        assert!(served.unwrap() > 0);
    }

    #[test]
    fn messages_are_moved_while_calls_are_slow() {
        let (turns, crew) = crew();
        let served = crew.serve(async move {
            let (mut slow, turns) = (Vec::new(), Arc::new(turns));
            for _ in 0..5 {
                let (release, released) = mpsc::channel::<()>();
                let turns = turns.clone();
                let call = async move { turns.have(move || released.recv()).await };
                slow.push((release, tokio::spawn(call)));
                // Comes back only if somebody reads on.
                tokio::time::sleep(PATIENCE).await;
            }
            let quick = turns.have(|| 7).await;
            for (release, call) in slow {
                release.send(()).unwrap();
                call.await.unwrap().unwrap();
            }
            quick + turns.have(|| 1).await
        });
        assert_eq!(served.unwrap(), 8);
    }

    #[test]
    fn a_call_that_panics_takes_nobody_with_it() {
        let (turns, crew) = crew();
        let served = crew.serve(async move {
            while turns.hand_in(Box::new(|| panic!("a call"))).is_err() {
                tokio::time::sleep(PATIENCE).await;
            }
            turns.have(|| 1).await
        });
        assert_eq!(served.unwrap(), 1);
    }

    #[test]
    fn the_end_does_not_wait_for_a_call() {
        let (turns, crew) = crew();
        let (release, released) = mpsc::channel::<()>();
        let served = crew.serve(async move {
            turns.have(|| ()).await;
            let slow = move || assert!(released.recv().is_err());
            assert!(turns.hand_in(Box::new(slow)).is_ok());
        });
        served.unwrap();
        drop(release);
    }
}
