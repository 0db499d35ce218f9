//! The TCP ports that processes listen on, from `/proc`.

use std::collections::BTreeSet;

/// The state `LISTEN` in `/proc/net/tcp`.
const LISTEN_STATE: &str = "0A";

/// The ports that at least one of these processes listens on, sorted.
pub(crate) fn listening_ports(pids: &[i32]) -> Vec<u16> {
    let mut ports = BTreeSet::new();
    for &pid in pids {
        let sockets = sockets(pid);
        if sockets.is_empty() {
            continue;
        }
        // Read through the process itself: it may have its own network namespace.
        for table in ["tcp", "tcp6"] {
            let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"));
            let lines = table.unwrap_or_default();
            let found = lines.lines().skip(1).filter_map(listener);
            ports.extend(found.filter(|(inode, _)| sockets.contains(inode)).map(|(_, port)| port));
        }
    }
    ports.into_iter().collect()
}

/// The inodes of the sockets that a process has open.
fn sockets(pid: i32) -> BTreeSet<u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(socket).collect()
}

/// Parses a line of `/proc/net/tcp`. Returns the inode and the port if the socket listens.
fn listener(line: &str) -> Option<(u64, u16)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (*state == LISTEN_STATE).then_some((inode.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_recognised_by_its_state() {
        let line = "   0: 0100007F:1FBB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0 100 0 0 10 0";
        assert_eq!(listener(line), Some((4711, 8123)));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("nonsense"), None);
    }
}
