//! The home directories of a machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PASSWD: &str = "/etc/passwd";

/// A larger user database is not read.
const MAX_BYTES: u64 = 4 << 20;

/// The maximum number of home directories: each costs every command some system calls.
const MAX_HOMES: usize = 256;

/// The home directories: first that of the environment, then accessible ones from the user database.
pub fn homes(own: Option<&Path>) -> Vec<PathBuf> {
    let small = std::fs::metadata(PASSWD).is_ok_and(|about| about.len() <= MAX_BYTES);
    let users = small.then(|| std::fs::read(PASSWD).ok()).flatten().unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let others = users.lines().filter_map(home_of).filter(|home| can_be_entered(home));
    let mut seen = BTreeSet::new();
    let all = own.map(Path::to_owned).into_iter().chain(others);
    all.filter(|home| seen.insert(home.clone())).take(MAX_HOMES).collect()
}

/// The home directory in a line of the user database, if it belongs to a person:
/// `name:x:uid:gid:comment:home:shell`.
fn home_of(line: &str) -> Option<PathBuf> {
    const PEOPLE: std::ops::Range<u32> = 1_000..60_000;
    let mut fields = line.split(':');
    let user: u32 = fields.nth(2)?.parse().ok()?;
    let home = Path::new(fields.nth(2)?);
    let is_place = home.is_absolute() && home.parent().is_some();
    ((user == 0 || PEOPLE.contains(&user)) && is_place).then(|| home.to_owned())
}

fn can_be_entered(home: &Path) -> bool {
    std::fs::metadata(home.join(".")).is_ok_and(|about| about.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_have_homes_and_services_do_not() {
        for (line, home) in [
            ("root:x:0:0:root:/root:/bin/bash", Some("/root")),
            ("me:x:1000:1000:Me,,,:/home/me:/bin/zsh", Some("/home/me")),
            ("daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin", None),
            ("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin", None),
            ("odd:x:1001:1001::/:/bin/sh", None),
            ("broken:x:1001", None),
        ] {
            assert_eq!(home_of(line).as_deref(), home.map(Path::new), "{line}");
        }
        assert_eq!(homes(Some(Path::new("/nowhere"))).first(), Some(&PathBuf::from("/nowhere")));
    }
}
