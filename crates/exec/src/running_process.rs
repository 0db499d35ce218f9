//! Whether a process that made a call or a change still runs.

use std::fs::read_to_string;

/// Ticks per second in `/proc`, on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// The start of a process is known to about a second.
const TOLERANCE_MS: u64 = 2_000;

/// Whether the process with this id runs now and ran at this time, in milliseconds since 1970. Another process may
/// have the id of one that has ended.
pub fn is_running_since(process: u32, time_ms: u64) -> bool {
    started_ms(process).is_some_and(|started| started <= time_ms.saturating_add(TOLERANCE_MS))
}

/// When a process started. `None` if there is none.
fn started_ms(process: u32) -> Option<u64> {
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    let ticks: u64 = fields.nth(18)?.parse().ok()?;
    let machine = read_to_string("/proc/stat").ok()?;
    let boot = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: u64 = boot.trim().parse().ok()?;
    Some(boot.saturating_mul(1_000).saturating_add(ticks.saturating_mul(1_000) / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_id_and_its_start() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = u64::try_from(now.as_millis()).unwrap();
        let us = std::process::id();
        assert!(is_running_since(us, now));
        assert!(!is_running_since(us, now - 60 * 60 * 1_000), "another process had the id before");
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_running_since(child.id(), now));
    }
}
