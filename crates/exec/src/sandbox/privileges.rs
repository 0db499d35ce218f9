//! Drops privileges and sets limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::level::has_own_process_limit;
use crate::limits::Limits;
use crate::machine_memory::machine_memory;
use crate::setup_error::{SetupError, context};

/// The process limit of a PID namespace since Linux 6.14; of the whole system before.
const PID_MAX: &str = "/proc/sys/kernel/pid_max";

/// The process id that was used last in a PID namespace.
const NS_LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// The smallest value that the kernel accepts.
const MIN_PID_MAX: u32 = 301;

/// Limits the number of processes and threads in this PID namespace.
pub(super) fn limit_processes(processes: u32) -> Result<(), SetupError> {
    set_nproc_limit(processes)?;
    // This one also applies to root. If it cannot be set, `SandboxSupport::missing` says so.
    if has_own_process_limit() {
        let _ = std::fs::write(PID_MAX, processes.max(MIN_PID_MAX).to_string());
    }
    Ok(())
}

/// Numbers the processes of this PID namespace from a random number on. Otherwise the shells of all commands would
/// have the same process id, and `kill` with the id of an earlier command would end a process of this one. Best effort:
/// a kernel may be built without it.
pub(super) fn start_pids_at_random(processes: u32) {
    // Process ids up to this one are not used again when the numbers start over.
    let first = MIN_PID_MAX;
    let mut random = [0; 4];
    if processes > 2 * first && getrandom(&mut random, GetRandomFlags::INSECURE).is_ok() {
        let last = first + u32::from_ne_bytes(random) % (processes - first);
        let _ = std::fs::write(NS_LAST_PID, last.to_string());
    }
}

/// Limits the number of processes of a user other than root, counted in the user namespace.
pub(super) fn set_nproc_limit(processes: u32) -> Result<(), SetupError> {
    let most = Rlimit { current: Some(u64::from(processes)), maximum: Some(u64::from(processes)) };
    context("limit the number of processes", setrlimit(Resource::Nproc, most))
}

/// Limits the memory of each process, and the size of each file that it writes.
pub(super) fn limit_memory_and_files(limits: &Limits) -> Result<(), SetupError> {
    let memory = limits.process_memory.of(machine_memory);
    let file = limits.file_size.of(|| u64::MAX).map(|bytes| bytes.max(Limits::LEAST_FILE_SIZE));
    for (resource, bytes) in [(Resource::Data, memory), (Resource::Fsize, file)] {
        let Some(bytes) = bytes else { continue };
        // The limit that this process was started with may be lower, and cannot be raised.
        let bytes = getrlimit(resource).maximum.map_or(bytes, |most| most.min(bytes));
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        context("limit memory and files", setrlimit(resource, limit))?;
    }
    Ok(())
}

/// Makes the OOM killer prefer commands. Best effort.
pub(super) fn raise_oom_score() {
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
}

/// The maximum is 1000.
const OOM_SCORE_ADJ: &str = "800";

/// Makes no program gain privileges by its owner or its capabilities.
pub(super) fn forbid_core_files_and_new_privileges() -> Result<(), SetupError> {
    // A core file is a copy of a program's memory in the workspace.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    context("disable core files", setrlimit(Resource::Core, none))?;
    context("set no_new_privs", set_no_new_privs(true))
}

/// Drops all capabilities for good: no program regains any, whatever its owner.
pub(super) fn drop_privileges() -> Result<(), SetupError> {
    context("drop inherited capabilities", clear_ambient_capability_set())?;
    for capability in CapabilitySet::all().iter() {
        // Fails without the capability to do so, when there are none to drop, and for capabilities that this
        // kernel does not know.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    context("drop capabilities", set_capabilities(None, none))?;
    forbid_core_files_and_new_privileges()
}
