//! Measures the memory of processes and the size of a directory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::statvfs;

use crate::machine_memory::ProcessMemory;
use crate::process_tree::Process;

/// Files of a directory that are counted. Counting more takes seconds.
const MAX_FILES: usize = 500_000;

/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// The memory of some processes together, with their files in memory. Exact only if it is more than `allowed`.
pub(super) fn memory_of(processes: &[Process], allowed: u64) -> u64 {
    let files = processes.first().map_or(0, |process| files_in_memory(process.pid));
    let sum = |of: fn(i32) -> ProcessMemory| {
        let mut all = ProcessMemory::default();
        for process in processes {
            let one = of(process.pid);
            all.anonymous = all.anonymous.saturating_add(one.anonymous);
            all.shared = all.shared.saturating_add(one.shared);
        }
        // Files in /dev/shm that are mapped are in both numbers.
        all.anonymous.saturating_add(all.shared.max(files))
    };
    let at_most = sum(ProcessMemory::resident);
    if at_most <= allowed { at_most } else { sum(ProcessMemory::proportional) }
}

/// The bytes in the `/dev/shm` of a process, unless it is that of this process.
fn files_in_memory(pid: i32) -> u64 {
    let theirs = format!("/proc/{pid}/root/dev/shm");
    let device = |path: &str| fs::metadata(path).map(|about| about.dev()).ok();
    if device(&theirs).is_none() || device(&theirs) == device("/dev/shm") {
        return 0;
    }
    statvfs(theirs.as_str()).map_or(0, |about| {
        about.f_blocks.saturating_sub(about.f_bfree).saturating_mul(about.f_frsize)
    })
}

/// The size of a directory, and its files.
pub(super) struct DirectorySize {
    pub(super) bytes: u64,
    /// The device and inode of each file.
    files: HashSet<(u64, u64)>,
}

impl DirectorySize {
    /// Counts the space that the files of a directory take. Symlinks are not followed.
    pub(super) fn measure(directory: &Path) -> DirectorySize {
        let mut size = DirectorySize { bytes: 0, files: HashSet::new() };
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                if size.files.len() >= MAX_FILES {
                    return size;
                }
                // Two names of one file count once.
                if size.files.insert((about.dev(), about.ino())) {
                    size.bytes = size.bytes.saturating_add(about.blocks().saturating_mul(BLOCK));
                }
                if about.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        size
    }

    /// Whether one of these processes has a file of the directory open for writing.
    pub(super) fn is_written_by(&self, processes: &[Process]) -> bool {
        processes.iter().any(|process| {
            let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid));
            descriptors.into_iter().flatten().flatten().any(|entry| {
                let about = fs::metadata(entry.path());
                about.is_ok_and(|about| {
                    about.is_file() && self.files.contains(&(about.dev(), about.ino()))
                }) && is_writable(process.pid, &entry.file_name().to_string_lossy())
            })
        })
    }
}

/// Whether a descriptor of a process is open for writing.
fn is_writable(pid: i32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("below/a"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(at("below/a"), at("b")).unwrap();
        std::os::unix::fs::symlink("/", at("c")).unwrap();
        let size = DirectorySize::measure(directory.path());
        assert!((1 << 20..2 << 20).contains(&size.bytes), "{}", size.bytes);
        assert_eq!(size.files.len(), 3);
    }
}
