//! Chooses a directory that the sandbox does not replace, for tests of commands.
//!
//! `toolcrib-exec` may not depend on this crate. It and `toolcrib-torture` include this file by its path.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The sandbox replaces these directories. A checkout may be inside one of them.
const REPLACED: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// Data directories that root can write.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/var/cache", "/var/lib", "/srv"];

/// The data directory of an ordinary user, below the home.
const USER_DIRECTORY: &str = ".cache";

/// Returns the preferred directory if the sandbox does not replace it, otherwise another writable one. Fails
/// if there is none.
pub fn sandbox_visible_directory(preferred: impl AsRef<Path>) -> io::Result<PathBuf> {
    let preferred = preferred.as_ref().to_owned();
    let user_directory = env::var_os("HOME").map(|home| PathBuf::from(home).join(USER_DIRECTORY));
    let others = SYSTEM_DIRECTORIES.into_iter().map(PathBuf::from).chain(user_directory);
    let usable = |path: PathBuf| {
        let real = fs::canonicalize(path).ok()?;
        let is_shown = !REPLACED.iter().any(|replaced| real.starts_with(replaced));
        // The directory is removed again at once.
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
            let chosen = sandbox_visible_directory(replaced).expect("a writable directory");
            assert!(!REPLACED.iter().any(|replaced| chosen.starts_with(replaced)), "{chosen:?}");
        }
    }
}
