//! Where tests of commands make their directories: in a place that a sandbox shows to commands as it is.
//!
//! `toolcrib-exec` and `xtask` may not use this crate, and compile this file by its path.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Commands have directories of their own in these places. A checkout may lie in one of them.
const REPLACED: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// Directories for data of programs that root can write.
const OF_SYSTEM: [&str; 3] = ["/var/cache", "/var/lib", "/srv"];

/// The directory of an ordinary user for data of programs.
const OF_USER: &str = ".cache";

/// The preferred directory, if a sandbox shows it as it is; else another one that can be written.
pub fn command_directory(preferred: impl AsRef<Path>) -> io::Result<PathBuf> {
    let preferred = preferred.as_ref().to_owned();
    let of_user = env::var_os("HOME").map(|home| PathBuf::from(home).join(OF_USER));
    let others = OF_SYSTEM.into_iter().map(PathBuf::from).chain(of_user);
    let usable = |path: PathBuf| {
        let real = fs::canonicalize(path).ok()?;
        let is_shown = !REPLACED.iter().any(|replaced| real.starts_with(replaced));
        // A directory in it is removed at once.
        (is_shown && tempfile::tempdir_in(&real).is_ok()).then_some(real)
    };
    let none = || {
        let places = REPLACED.join(", ");
        io::Error::other(format!("no directory outside {places} can be written"))
    };
    std::iter::once(preferred).chain(others).find_map(usable).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_directory_is_never_chosen() {
        for replaced in REPLACED.into_iter().filter(|path| Path::new(path).is_dir()) {
            let chosen = command_directory(replaced).expect("a writable directory");
            assert!(!REPLACED.iter().any(|replaced| chosen.starts_with(replaced)), "{chosen:?}");
        }
    }
}
