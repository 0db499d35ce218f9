//! The UNIX sockets that programs outside listen on, as the system lists them.
//!
//! To connect to one is no writing, so a read-only mount does not hinder it; and behind one may be
//! somebody who does anything for whoever asks, such as the daemon of a container engine.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// More than a system has.
const MAX: usize = 2048;

/// Bytes of the list, which does not say how long it is: else it would be read in small pieces first.
const USUAL: usize = 64 << 10;

/// The sockets that have a name and are there, each under its real name.
pub(super) fn outside() -> Vec<PathBuf> {
    let mut table = Vec::with_capacity(USUAL);
    let read = fs::File::open("/proc/net/unix").and_then(|mut list| list.read_to_end(&mut table));
    if read.is_err() {
        table.clear();
    }
    let table = String::from_utf8_lossy(&table);
    let names: BTreeSet<&Path> = table.lines().filter_map(name).collect();
    names.into_iter().filter_map(|name| fs::canonicalize(name).ok()).take(MAX).collect()
}

/// The last of eight fields, if it is there and is no abstract name.
fn name(line: &str) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..7 {
        rest = rest.trim_start().split_once(' ')?.1;
    }
    Some(Path::new(rest)).filter(|name| name.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_its_name_last() {
        let line = "ffff8881: 00000002 00000000 00010000 0001 01 1234 /var/lib/my sql.sock";
        assert_eq!(name(line), Some(Path::new("/var/lib/my sql.sock")));
        assert_eq!(name("ffff8881: 00000002 00000000 00010000 0001 01 1234 @abstract"), None);
        assert_eq!(name("ffff8881: 00000002 00000000 00000000 0001 03 1234"), None);
        assert_eq!(name("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}
