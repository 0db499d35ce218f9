//! The memory of this machine, and of processes.

use std::fs;
use std::path::{Path, PathBuf};

/// The memory that programs of this machine can use: all of it, or the limit of the cgroup of this process. Zero
/// if it is unknown.
pub fn machine_memory() -> u64 {
    let total = meminfo(&read("/proc/meminfo"), &["MemTotal"]);
    cgroup_limits().into_iter().fold(total, u64::min)
}

/// The memory that all processes together hold, in RAM and in swap, without files that can be read again. The
/// processes of a command have at most that much.
pub(crate) fn memory_in_use() -> u64 {
    let text = read("/proc/meminfo");
    let swapped = meminfo(&text, &["SwapTotal"]).saturating_sub(meminfo(&text, &["SwapFree"]));
    meminfo(&text, &["AnonPages", "Shmem"]).saturating_add(swapped)
}

/// The memory of a process, in RAM and in swap, without files that can be read again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessMemory {
    /// Memory of its own, or shared with processes that were forked from it.
    pub(crate) anonymous: u64,
    /// Mapped files in memory.
    pub(crate) shared: u64,
}

impl ProcessMemory {
    /// Pages that it shares with other processes count in full.
    pub(crate) fn resident(pid: i32) -> ProcessMemory {
        let text = read(&format!("/proc/{pid}/status"));
        ProcessMemory {
            anonymous: meminfo(&text, &["RssAnon", "VmSwap"]),
            shared: meminfo(&text, &["RssShmem"]),
        }
    }

    /// A page that several processes share is divided among them. This takes longer.
    pub(crate) fn proportional(pid: i32) -> ProcessMemory {
        let text = read(&format!("/proc/{pid}/smaps_rollup"));
        // Without the right to read it, or on an old kernel.
        if !text.contains("Pss_Anon:") {
            return ProcessMemory::resident(pid);
        }
        ProcessMemory {
            anonymous: meminfo(&text, &["Pss_Anon", "SwapPss"]),
            shared: meminfo(&text, &["Pss_Shmem"]),
        }
    }
}

/// The sum of some lines `NAME: COUNT kB`, in bytes.
fn meminfo(text: &str, names: &[&str]) -> u64 {
    let value = |line: &str| -> Option<u64> {
        let (name, rest) = line.split_once(':')?;
        let count = rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        names.contains(&name).then_some(count)
    };
    text.lines().filter_map(value).fold(0_u64, u64::saturating_add).saturating_mul(1024)
}

/// The memory limits of the cgroups that this process is in.
fn cgroup_limits() -> Vec<u64> {
    let own = read("/proc/self/cgroup");
    let mut limits = Vec::new();
    for line in own.lines() {
        // NUMBER:CONTROLLERS:PATH
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (top, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = PathBuf::from(path.trim_start_matches('/'));
        // In a container, the path may be one of the machine, and the files are at the top.
        for part in path.ancestors() {
            let limit = read(&Path::new(top).join(part).join(file).to_string_lossy());
            limits.extend(limit.trim().parse::<u64>());
        }
    }
    limits
}

/// The content of a file of the kernel. Empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed() {
        let text = "AnonPages:  10 kB\nShmem: 2 kB\nShmemHugePages: 7 kB\nHugePages_Total: 3\n";
        assert_eq!(meminfo(text, &["AnonPages", "Shmem"]), 12 << 10);
        assert_eq!(meminfo(text, &["SwapTotal"]), 0);
    }

    #[test]
    fn this_process_has_less_memory_than_the_machine() {
        let own = i32::try_from(std::process::id()).unwrap();
        let held = vec![1_u8; 32 << 20];
        let resident = ProcessMemory::resident(own).anonymous;
        let proportional = ProcessMemory::proportional(own).anonymous;
        assert!(held.iter().all(|byte| *byte == 1));
        assert!(resident >= 32 << 20 && proportional >= 32 << 20, "{resident} {proportional}");
        assert!(memory_in_use() >= proportional);
        assert!(machine_memory() > resident);
    }
}
