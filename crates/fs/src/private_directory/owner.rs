//! Checks which users could replace a directory.

use std::path::Path;

use rustix::fs::Stat;

use super::PrivateDirectoryError;
use crate::error::{FsError, FsErrorKind};
use crate::open_beneath;

const ROOT: u32 = 0;
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The effective user id of this process.
pub(crate) fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Fails for a directory in which another user could rename our entries. In a sticky directory such as
/// `/tmp`, only the owner can. The user's own group is trusted: many systems give each user a group with
/// write access.
pub(super) fn check_parent(path: &Path, stat: &Stat) -> Result<(), PrivateDirectoryError> {
    let Some(why) = renamed_by_others(stat) else { return Ok(()) };
    let detail =
        format!("{why}, so Toolcrib does not store its files in it; give another directory");
    Err(PrivateDirectoryError::Unsafe(FsError::new(FsErrorKind::Permission, path, detail)))
}

/// Why another user could rename our entries in a directory. `None` if nobody can.
pub(crate) fn renamed_by_others(stat: &Stat) -> Option<String> {
    let owner = stat.st_uid;
    if owner != current_user() && owner != ROOT && !is_unmapped(owner) {
        return Some(format!("belongs to user {owner}, not to user {} or root", current_user()));
    }
    let mode = open_beneath::permissions(stat).as_raw_mode();
    let is_own_group = [ROOT, rustix::process::getegid().as_raw()].contains(&stat.st_gid);
    let others_write = mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !is_own_group);
    let is_open = others_write && mode & STICKY == 0;
    is_open.then(|| format!("can be written by other users (mode {mode:o})"))
}

/// Whether this is the number that a user namespace shows for unmapped users. Within one, system directories
/// have this owner.
fn is_unmapped(user: u32) -> bool {
    let number = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return false };
    let has_user = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(first)), _, Some(Ok(count))) => {
                (first..first.saturating_add(count)).contains(&u64::from(user))
            }
            _ => true,
        }
    };
    number("/proc/sys/kernel/overflowuid") == Some(user) && !map.lines().any(has_user)
}
