//! Lists the descendants of a process, and ends them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often to check whether all processes have exited.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long to kill the processes of a dead shim. The thread that does it has other commands to handle.
const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_millis(500);

/// A process from `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The pid.
    pub pid: i32,
    /// The name of its program, as far as the kernel stores it.
    pub name: String,
    parent: i32,
    session: i32,
    state: u8,
    /// Its start time in clock ticks. With the pid, it identifies the process.
    started: u64,
}

/// All descendants of `ancestor` that have not exited, in any order.
pub(crate) fn descendants(ancestor: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all_processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        // Removed, so that a cycle in a listing that changed meanwhile cannot loop for ever.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found.retain(|process| !matches!(process.state, b'Z' | b'X'));
    found
}

/// The children of a process.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let children = all_processes().filter(|process| process.parent == parent.as_raw_pid());
    children.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

/// All descendants of a shim, which are to be ended.
pub(crate) struct ProcessTree<'a> {
    /// The pid of the shim.
    pub(crate) shim: i32,
    /// Our own processes among them, which exit by themselves after the others. If one is the first of a PID
    /// namespace, the kernel kills all others with it.
    pub(crate) intermediate: &'a [Pid],
    /// The number of signalled processes. Counted before the signal: the shim exits with the last of them.
    pub(crate) terminated: &'a AtomicU64,
    /// The number of those that got SIGKILL. Counted before the signal.
    pub(crate) force_killed: &'a AtomicU64,
}

impl ProcessTree<'_> {
    /// Ends them: sends SIGTERM and waits for `grace`, then SIGKILL until none is left that can be killed, or
    /// until the timeout. `pause` is called between two checks.
    pub(crate) fn end(&self, grace: Duration, timeout: Duration, pause: &mut dyn FnMut(Duration)) {
        let began = Instant::now();
        let mut asked_to_end = BTreeSet::new();
        let mut terminated = Counter { seen: BTreeSet::new(), count: self.terminated };
        let mut killed = Counter { seen: BTreeSet::new(), count: self.force_killed };
        while began.elapsed() < grace {
            // Repeated, for new processes, and for those that were about to `exec` when they were signalled
            // and may have lost the signal.
            let left = self.signal_all(&mut [&mut terminated], |process| {
                let again =
                    !asked_to_end.insert((process.pid, process.started, process.name.clone()));
                if again || self.is_intermediate(process) {
                    &[]
                } else {
                    // A stopped process does not handle SIGTERM.
                    &[Signal::TERM, Signal::CONT]
                }
            });
            if left == 0 {
                break;
            }
            pause(POLL_INTERVAL);
        }
        let mut counters = [&mut terminated, &mut killed];
        while self.signal_all(&mut counters, |_| &[Signal::KILL]) > 0 && began.elapsed() < timeout {
            pause(POLL_INTERVAL);
        }
    }

    fn is_intermediate(&self, process: &Process) -> bool {
        self.intermediate.iter().any(|own| own.as_raw_pid() == process.pid)
    }

    /// Sends signals to all of them, and counts those that are not our own. Returns their number.
    fn signal_all(
        &self,
        counters: &mut [&mut Counter<'_>],
        signals: impl FnMut(&Process) -> &'static [Signal],
    ) -> usize {
        let processes = descendants(self.shim);
        send(&processes, signals, |process| {
            if !self.is_intermediate(process) {
                counters.iter_mut().for_each(|counter| counter.add(process));
            }
        });
        processes.len()
    }
}

/// Counts processes, each of them once.
struct Counter<'a> {
    seen: BTreeSet<(i32, u64)>,
    count: &'a AtomicU64,
}

impl Counter<'_> {
    fn add(&mut self, process: &Process) {
        self.seen.insert((process.pid, process.started));
        self.count.fetch_max(self.seen.len() as u64, Ordering::Relaxed);
    }
}

/// Kills the session of a shim that was itself killed. Processes that started their own session are not
/// found: nothing connects them to the shim any more.
pub(crate) fn kill_session(shim: i32) {
    let until = Instant::now() + ORPHAN_KILL_TIMEOUT;
    loop {
        let left: Vec<Process> = all_processes()
            .filter(|process| process.session == shim && !matches!(process.state, b'Z' | b'X'))
            .collect();
        send(&left, |_| &[Signal::KILL], |_| {});
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal to processes, if they are still those that were listed.
pub(crate) fn signal_each(processes: &[Process], signal: Signal) {
    send(processes, |_| std::slice::from_ref(&signal), |_| {});
}

/// Sends signals to processes, if they are still those that were listed. `before` is called before each.
fn send<'a>(
    processes: &[Process],
    mut signals: impl FnMut(&Process) -> &'a [Signal],
    mut before: impl FnMut(&Process),
) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The pid may have been reused since.
        if read_process(process.pid).is_none_or(|now| now.started != process.started) {
            continue;
        }
        before(process);
        for &signal in signals(process) {
            // Fails for processes of other users, and for those that have exited.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

fn all_processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?))
}

fn read_process(pid: i32) -> Option<Process> {
    // In a single read: there may be thousands of processes. No line is longer.
    let mut stat = [0; 1024];
    let count = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(stat.get(..count)?))
}

/// Parses `PID (NAME) STATE PPID …`. The name may contain anything, even parentheses.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut fields = after.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    // The 22nd field of the line; the session was the sixth.
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process { pid, name, parent, session, state, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_contain_parentheses() {
        let stat = "7 (a) b) (c) S 3 7 5 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let process = parse_stat(7, stat).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) b) (c", 3));
        assert_eq!((process.state, process.session, process.started), (b'S', 5, 4711));
    }
}
