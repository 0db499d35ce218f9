//! Measures the memory of running commands and the size of their `/tmp`, and kills commands above a limit.
//!
//! The kernel cannot limit the memory of a group of processes without a cgroup, and a limit on each process breaks
//! programs that reserve memory (see `docs/design/command-limits.md`). So one thread measures, as long as there are
//! commands.

mod measure;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::measure::{DirectorySize, memory_of};
use crate::job::Job;
use crate::limits::{ExceededLimit, Limits, MeasuredLimit};
use crate::machine_memory::{machine_memory, memory_in_use};

/// The pause between two measurements. A program can fill some hundred megabytes in that time.
const INTERVAL: Duration = Duration::from_millis(200);

/// The pause between two measurements of a directory.
const TMP_INTERVAL: Duration = Duration::from_secs(1);

/// A pause is at least this many times as long as the measurement before it.
const PAUSE_FACTOR: u32 = 20;

/// The longest pause between two measurements of memory.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Watches the commands of all sessions.
#[derive(Debug, Default)]
pub(crate) struct LimitWatch {
    state: Mutex<State>,
    /// The last sizes of temporary directories.
    tmp_sizes: Mutex<BTreeMap<PathBuf, u64>>,
    /// The memory of this machine, when the first command was started.
    machine_memory: OnceLock<u64>,
}

#[derive(Debug, Default)]
struct State {
    jobs: Vec<WatchedJob>,
    /// Whether the thread runs. It ends with the last command.
    runs: bool,
}

/// A command with limits.
#[derive(Debug, Clone)]
struct WatchedJob {
    job: Weak<Job>,
    memory: Option<u64>,
    tmp: PathBuf,
    tmp_size: Option<u64>,
}

impl LimitWatch {
    /// Watches a command until all its processes have exited. `free` is the space that a percentage of
    /// [`Limits::tmp_size`] refers to.
    pub(crate) fn watch(
        self: &Arc<LimitWatch>,
        job: &Arc<Job>,
        limits: &Limits,
        tmp: (PathBuf, u64),
    ) {
        let (tmp, free) = tmp;
        let total = || *self.machine_memory.get_or_init(machine_memory);
        let memory = limits.memory.of(total).filter(|bytes| *bytes > 0);
        let watched = WatchedJob {
            job: Arc::downgrade(job),
            memory,
            tmp,
            tmp_size: limits.tmp_size.of(|| free),
        };
        if watched.memory.is_none() && watched.tmp_size.is_none() {
            return;
        }
        let mut state = self.state.lock();
        state.jobs.push(watched);
        if state.runs {
            return;
        }
        let watch = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("toolcrib-limits".to_owned());
        // Without a thread, only the kernel limits memory.
        state.runs = thread.spawn(move || run(&watch)).is_ok();
    }

    /// The commands that still run. `None` if there are none, and the thread may end.
    fn running(&self) -> Option<Vec<(Arc<Job>, WatchedJob)>> {
        let mut state = self.state.lock();
        let alive = |watched: &WatchedJob| {
            let job = watched.job.upgrade().filter(|job| !job.snapshot().all_exited)?;
            Some((job, watched.clone()))
        };
        let running: Vec<_> = state.jobs.iter().filter_map(alive).collect();
        state.jobs = running.iter().map(|(_, watched)| watched.clone()).collect();
        state.runs = !running.is_empty();
        state.runs.then_some(running)
    }
}

/// Measures until no command is left.
fn run(watch: &Weak<LimitWatch>) {
    let mut next_tmp = Instant::now() + TMP_INTERVAL;
    let mut pause = INTERVAL;
    loop {
        std::thread::sleep(pause);
        let Some(watch) = watch.upgrade() else { return };
        let Some(running) = watch.running() else { return };
        let began = Instant::now();
        check_memory(&running);
        pause = INTERVAL.max(began.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
        let began = Instant::now();
        if began >= next_tmp {
            check_tmp(&running, &mut watch.tmp_sizes.lock());
            next_tmp = Instant::now() + TMP_INTERVAL.max(began.elapsed() * PAUSE_FACTOR);
        }
    }
}

/// Kills the commands that hold more memory than they may.
fn check_memory(running: &[(Arc<Job>, WatchedJob)]) {
    // Mostly all processes of the machine together have less than one command may have.
    let in_use = memory_in_use();
    for (job, watched) in running {
        let Some(allowed) = watched.memory.filter(|allowed| *allowed < in_use) else { continue };
        let used = memory_of(&job.processes(), allowed);
        if used > allowed {
            job.end_by_limit(ExceededLimit { limit: MeasuredLimit::Memory, used, allowed });
        }
    }
}

/// Kills the commands that write to a directory which is too large. `sizes` has the sizes at the last
/// check. A directory that has not grown since then has no writer.
fn check_tmp(running: &[(Arc<Job>, WatchedJob)], sizes: &mut BTreeMap<PathBuf, u64>) {
    sizes.retain(|directory, _| directory.exists());
    let mut directories: BTreeMap<&PathBuf, Vec<(&Arc<Job>, u64)>> = BTreeMap::new();
    for (job, watched) in running {
        if let Some(allowed) = watched.tmp_size {
            directories.entry(&watched.tmp).or_default().push((job, allowed));
        }
    }
    for (directory, mut jobs) in directories {
        let size = DirectorySize::measure(directory);
        let before = sizes.insert(directory.clone(), size.bytes);
        jobs.retain(|(_, allowed)| size.bytes > *allowed);
        if before.is_some_and(|before| size.bytes <= before) {
            continue;
        }
        if jobs.is_empty() {
            continue;
        }
        let writers = jobs.iter().filter(|(job, _)| size.is_written_by(&job.processes()));
        let mut writers: Vec<_> = writers.copied().collect();
        if writers.is_empty() {
            // It wrote many small files, for example.
            writers.extend(jobs.iter().copied().max_by_key(|(job, _)| job.created()));
        }
        for (job, allowed) in writers {
            let used = size.bytes;
            job.end_by_limit(ExceededLimit { limit: MeasuredLimit::TmpSize, used, allowed });
        }
    }
}
