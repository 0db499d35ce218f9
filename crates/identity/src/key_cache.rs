//! Keeps the keys of an issuer, and reads them again on a thread of its own.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::key_source::KeySource;
use crate::verification_keys::VerificationKey;

/// When keys are read again.
#[derive(Debug, Clone, Copy)]
pub struct KeyTimes {
    /// After this age they are read again, and a request waits for it: a key that the issuer removed is not used any more.
    pub refresh: Duration,
    /// After this age they are not used any more, for example because the issuer cannot be reached.
    pub max_age: Duration,
    /// The least time between two attempts, so that tokens with unknown keys cannot cause many.
    pub least_interval: Duration,
    /// How long a request waits for keys. If known keys are read again, an attempt that takes longer counts as failed.
    pub max_wait: Duration,
}

impl Default for KeyTimes {
    fn default() -> Self {
        KeyTimes {
            refresh: Duration::from_secs(5 * 60),
            max_age: Duration::from_secs(60 * 60),
            least_interval: Duration::from_secs(10),
            // Less than the time after which a connection without a valid token is closed.
            max_wait: Duration::from_secs(4),
        }
    }
}

impl KeyTimes {
    /// A file is read again soon: it costs nothing, and its keys can be removed.
    fn of(self, source: &KeySource) -> KeyTimes {
        let refresh =
            if source.is_local() { self.refresh.min(self.least_interval) } else { self.refresh };
        KeyTimes { refresh, ..self }
    }
}

/// What is done with a problem of reading keys.
pub(crate) type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// There are no keys that may be used, and the token can be valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unavailable;

const NO_KEY: &str = "the key set has no key for signatures";

/// The keys of an issuer.
pub(crate) struct KeyCache {
    inner: Arc<Inner>,
}

struct Inner {
    issuer: String,
    source: KeySource,
    times: KeyTimes,
    report: Report,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Option<KnownKeys>,
    last_attempt: Option<Instant>,
    /// The last attempt failed.
    has_failed: bool,
    /// The problem of the last attempt was reported.
    is_reported: bool,
    running: Option<Attempt>,
}

/// An attempt that is under way.
#[derive(Clone)]
struct Attempt {
    begun: Instant,
    /// It is closed when the attempt ends. Nothing is sent.
    ended: watch::Receiver<()>,
}

impl Attempt {
    async fn wait(mut self, longest: Duration) {
        let ended = async move { while self.ended.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(longest, ended).await;
    }
}

#[derive(Clone)]
struct KnownKeys {
    keys: Arc<[VerificationKey]>,
    read: Instant,
}

impl KeyCache {
    pub(crate) fn new(issuer: &str, source: KeySource, times: KeyTimes, report: Report) -> Self {
        let times = times.of(&source);
        let (issuer, state) = (issuer.to_owned(), Mutex::default());
        KeyCache { inner: Arc::new(Inner { issuer, source, times, report, state }) }
    }

    /// Reads the keys for the first time, so that the first request need not wait.
    pub(crate) fn begin(&self) {
        self.inner.attempt();
    }

    /// The key that `select` finds. If it finds none, the keys are read again, but not too often. `None` if there is no
    /// such key.
    pub(crate) async fn find(
        &self,
        select: impl Fn(&[VerificationKey]) -> Option<VerificationKey> + Send,
    ) -> Result<Option<VerificationKey>, Unavailable> {
        let inner = &self.inner;
        if inner.usable().is_some_and(|known| known.read.elapsed() >= inner.times.refresh)
            && let Some(running) = inner.attempt()
        {
            // All requests wait for the same attempt, so that a slow issuer delays only the first ones.
            let left = inner.times.max_wait.saturating_sub(running.begun.elapsed());
            running.wait(left).await;
        }
        // If the attempt failed, these are the old ones.
        if let Some(key) = inner.usable().and_then(|known| select(&known.keys)) {
            return Ok(Some(key));
        }
        if let Some(running) = inner.attempt() {
            running.wait(inner.times.max_wait).await;
        }
        let known = inner.usable().ok_or(Unavailable)?;
        match select(&known.keys) {
            Some(key) => Ok(Some(key)),
            None if inner.is_current() => Ok(None),
            None => Err(Unavailable),
        }
    }
}

impl Inner {
    fn usable(&self) -> Option<KnownKeys> {
        let known = self.state.lock().keys.clone();
        known.filter(|known| known.read.elapsed() < self.times.max_age)
    }

    /// Whether a key that is not known does not exist: the last attempt has succeeded, and none is under way.
    fn is_current(&self) -> bool {
        let state = self.state.lock();
        !state.has_failed && state.running.is_none()
    }

    /// Begins to read the keys on a thread, unless that is under way. `None` if the last attempt was just made.
    fn attempt(self: &Arc<Self>) -> Option<Attempt> {
        let mut state = self.state.lock();
        if let Some(running) = &state.running {
            return Some(running.clone());
        }
        let is_early = |last: Instant| last.elapsed() < self.times.least_interval;
        if state.last_attempt.is_some_and(is_early) {
            return None;
        }
        let (done, ended) = watch::channel(());
        let running = Attempt { begun: Instant::now(), ended };
        state.last_attempt = Some(running.begun);
        let inner = self.clone();
        let started = thread::Builder::new().name("identity-keys".to_owned()).spawn(move || {
            inner.read();
            drop(done);
        });
        // Without a thread the next request tries again.
        started.ok()?;
        state.running = Some(running.clone());
        Some(running)
    }

    fn read(&self) {
        let read = self.source.read();
        let mut state = self.state.lock();
        state.running = None;
        state.has_failed = read.is_err();
        let problem = match read {
            Ok(keys) => {
                // Without keys no token is valid. The issuer may mean it, and the operator should know.
                let problem = keys.is_empty().then(|| NO_KEY.to_owned());
                state.keys = Some(KnownKeys { keys: keys.into(), read: Instant::now() });
                problem
            }
            Err(problem) => Some(problem),
        };
        let was_reported = std::mem::replace(&mut state.is_reported, problem.is_some());
        drop(state);
        // Once until it succeeds again.
        if let Some(problem) = problem.filter(|_| !was_reported) {
            (self.report)(&format!("the keys of {}: {problem}", self.issuer));
        }
    }
}
