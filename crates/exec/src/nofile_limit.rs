//! The limit on open files (`RLIMIT_NOFILE`).

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// Enough for thousands of commands. With a limit of millions, programs that close all descriptor numbers
/// take a while.
const WANTED_LIMIT: u64 = 65_536;

/// The limit with which this process was started.
static ORIGINAL_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit on open files of this process. For a program that serves tools: a thousand commands at a
/// time need some thousands. Child processes get the original limit, since a higher one breaks some programs.
pub fn raise_nofile_limit() {
    let given = getrlimit(Resource::Nofile);
    let wanted = given.maximum.map_or(WANTED_LIMIT, |most| most.min(WANTED_LIMIT));
    if given.current.is_some_and(|current| current < wanted) {
        let more = Rlimit { current: Some(wanted), maximum: given.maximum };
        if setrlimit(Resource::Nofile, more).is_ok() {
            let _ = ORIGINAL_LIMIT.set(given);
        }
    }
}

/// Gives a child the limit with which this process was started, before it starts anything.
pub(crate) fn restore_limit_of(child: &std::process::Child) {
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some((given, child)) = ORIGINAL_LIMIT.get().zip(child) {
        // If the child has already ended, there is nothing to do.
        let _ = prlimit(Some(child), Resource::Nofile, *given);
    }
}
