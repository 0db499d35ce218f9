//! How many files a process may have open: systems give few to begin with, and more to who asks.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// Enough for thousands of commands; where the system would give millions, programs that go through all
/// numbers take a while.
const WANTED: u64 = 65_536;

/// What this process was given to begin with.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Asks for more open files than a program is given to begin with. For a program that lives on tools: a
/// thousand commands at a time take some thousands. What it starts gets what it was given itself, since
/// there are programs that more would break.
pub fn raise_nofile_limit() {
    let given = getrlimit(Resource::Nofile);
    let wanted = given.maximum.map_or(WANTED, |most| most.min(WANTED));
    if given.current.is_some_and(|current| current < wanted) {
        let more = Rlimit { current: Some(wanted), maximum: given.maximum };
        if setrlimit(Resource::Nofile, more).is_ok() {
            let _ = GIVEN.set(given);
        }
    }
}

/// Gives a child what this process was given, before it starts anything.
pub(crate) fn give_as_given(child: &std::process::Child) {
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some((given, child)) = GIVEN.get().zip(child) {
        // It has ended already, or keeps more than it needs.
        let _ = prlimit(Some(child), Resource::Nofile, *given);
    }
}
