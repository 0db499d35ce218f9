//! The processes beneath a process, and their end.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often it is looked whether all have ended.
const GLANCE: Duration = Duration::from_millis(5);

/// How long what a keeper left is killed for: the thread that does it has other commands to attend to.
const ORPHANS: Duration = Duration::from_millis(500);

/// A process, as the system lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The name of its program, as far as the system keeps it.
    pub name: String,
    parent: i32,
    session: i32,
    state: u8,
    /// When it was started, by the system's clock: with the number, this names it for sure.
    started: u64,
}

/// All processes beneath `ancestor` that have not ended, in no order that matters.
pub(crate) fn descendants(ancestor: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        // Removed, so that no loop in what was listed while it changed goes on for ever.
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
    let children = all().filter(|process| process.parent == parent.as_raw_pid());
    children.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

/// What is to be ended: everything beneath a keeper.
pub(crate) struct Doomed<'a> {
    /// The keeper.
    pub(crate) ancestor: i32,
    /// Processes of our own beneath it, which end by themselves with the last of the others; with them, where
    /// one is the first of a namespace, the kernel ends all others.
    pub(crate) between: &'a [Pid],
    /// How many were told. Counted up before they hear it: with the last of them, a keeper ends too.
    pub(crate) ended: &'a AtomicU64,
}

impl Doomed<'_> {
    /// Ends them: asks first, and waits for so long; then kills, until nothing is left that can be killed,
    /// or for `patience`. `pause` is called between two looks.
    pub(crate) fn end(&self, grace: Duration, patience: Duration, pause: &mut dyn FnMut(Duration)) {
        let began = Instant::now();
        let (mut told, mut asked) = (BTreeSet::new(), BTreeSet::new());
        while began.elapsed() < grace {
            // Again and again, for those that have come since; and for those that were about to become
            // another program when they were asked, and so may not have heard it.
            let left = self.tell(&mut told, |process| {
                let again = !asked.insert((process.pid, process.started, process.name.clone()));
                match again || self.is_between(process) {
                    true => &[],
                    // What is stopped hears nothing.
                    false => &[Signal::TERM, Signal::CONT],
                }
            });
            if left == 0 {
                break;
            }
            pause(GLANCE);
        }
        while self.tell(&mut told, |_| &[Signal::KILL]) > 0 && began.elapsed() < patience {
            pause(GLANCE);
        }
    }

    fn is_between(&self, process: &Process) -> bool {
        self.between.iter().any(|own| own.as_raw_pid() == process.pid)
    }

    /// Sends signals to everything; answers how many there were.
    fn tell(
        &self,
        told: &mut BTreeSet<(i32, u64)>,
        signals: impl FnMut(&Process) -> &'static [Signal],
    ) -> usize {
        let processes = descendants(self.ancestor);
        send(&processes, signals, |process| {
            if !self.is_between(process) {
                told.insert((process.pid, process.started));
            }
            self.ended.fetch_max(told.len() as u64, Ordering::Relaxed);
        });
        processes.len()
    }
}

/// Kills what is left of the session of a keeper that was itself killed. What had begun a session of its own
/// is not found: nothing ties it to the keeper any more.
pub(crate) fn kill_session(keeper: i32) {
    let until = Instant::now() + ORPHANS;
    loop {
        let left: Vec<Process> = all()
            .filter(|process| process.session == keeper && !matches!(process.state, b'Z' | b'X'))
            .collect();
        send(&left, |_| &[Signal::KILL], |_| {});
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(GLANCE);
    }
}

/// Sends signals to processes, if they are still those that were listed; `before` hears of each first.
fn send(
    processes: &[Process],
    mut signals: impl FnMut(&Process) -> &'static [Signal],
    mut before: impl FnMut(&Process),
) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The handle may be that of another that got the number since.
        if read(process.pid).is_none_or(|now| now.started != process.started) {
            continue;
        }
        before(process);
        for &signal in signals(process) {
            // One that may not be sent is not ours to end; one to a process that is gone is not needed.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

fn all() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
}

fn read(pid: i32) -> Option<Process> {
    // In one go: there may be thousands of them. No line is longer.
    let mut stat = [0; 1024];
    let count = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse(pid, &String::from_utf8_lossy(stat.get(..count)?))
}

/// `PID (NAME) STATE PPID …`, where the name may hold anything, parentheses too.
fn parse(pid: i32, stat: &str) -> Option<Process> {
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
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b) (c) S 3 7 5 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let process = parse(7, stat).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) b) (c", 3));
        assert_eq!((process.state, process.session, process.started), (b'S', 5, 4711));
    }
}
