//! Giving up rights, and setting limits.

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::level::has_own_process_limit;
use crate::setup_error::{Failure, plainly};

/// The limit of a PID namespace, since Linux 6.14; the system's, before.
const PID_MAX: &str = "/proc/sys/kernel/pid_max";

/// How low that limit can be.
const PID_MAX_LEAST: u32 = 301;

/// Limits how many processes and threads there are at a time in this namespace of processes.
pub(super) fn limit_processes(processes: u32) -> Result<(), Failure> {
    limit_users_processes(processes)?;
    // For root too. Where it cannot be set, `Enforced::missing` has it.
    if has_own_process_limit() {
        let _ = std::fs::write(PID_MAX, processes.max(PID_MAX_LEAST).to_string());
    }
    Ok(())
}

/// The same for whoever is not root, counted in the namespace of users.
pub(super) fn limit_users_processes(processes: u32) -> Result<(), Failure> {
    let most = Rlimit { current: Some(u64::from(processes)), maximum: Some(u64::from(processes)) };
    plainly("limit the number of processes", setrlimit(Resource::Nproc, most))
}

/// Has the system end commands before others when it runs out of memory. Where it cannot be said, it is
/// not: nothing depends on it.
pub(super) fn go_first() {
    let _ = std::fs::write("/proc/self/oom_score_adj", GOES_FIRST);
}

/// Of at most 1000.
const GOES_FIRST: &str = "800";

/// Gives up every right over the system, for good: no program gets any back, whoever owns it.
pub(super) fn give_up() -> Result<(), Failure> {
    // A core file is a copy of a program's memory, in the workspace.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    plainly("leave out core files", setrlimit(Resource::Core, none))?;
    plainly("give up inherited rights", clear_ambient_capability_set())?;
    for capability in CapabilitySet::all().iter() {
        // Without the right to do so there is no right to give up; nor is one that this system does not know.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    plainly("give up rights", set_capabilities(None, none))?;
    plainly("give up new rights", set_no_new_privs(true))
}
