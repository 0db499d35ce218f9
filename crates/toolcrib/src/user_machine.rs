//! The user's machine as the environment describes it: directories, shell, paths with secrets. Only
//! [`RuntimeBuilder::standard`](crate::RuntimeBuilder::standard) and host programs that ask for it use it.

#![expect(
    clippy::disallowed_methods,
    reason = "this module looks at the machine before there is a workspace"
)]

mod homes;
pub mod secret_paths;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

pub use self::homes::homes;

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

/// The directory with the user's configuration of Toolcrib.
pub fn configuration_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("toolcrib"))
}

/// The directory with the state of Toolcrib: the journal, and records of running servers.
pub fn state_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.state_dir()?.join("toolcrib"))
}

/// The directory with the private paths of each server of the user.
pub fn registry_directory() -> Option<PathBuf> {
    Some(state_directory()?.join("servers"))
}

/// The directory with the sockets of the user's servers: in the runtime directory of the login session, or in the state
/// directory if there is none.
pub fn socket_directory() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|runtime| is_own_runtime_directory(runtime)) {
        Some(runtime) => Some(runtime.join("toolcrib")),
        None => Some(state_directory()?.join("run")),
    }
}

/// Whether a directory is a runtime directory of this user. After `su` or `sudo` the variable can name the one of another
/// user.
fn is_own_runtime_directory(directory: &Path) -> bool {
    let user = std::fs::metadata("/proc/self").map(|process| process.uid());
    let (Ok(found), Ok(user)) = (std::fs::metadata(directory), user) else { return false };
    directory.is_absolute() && found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0
}

/// The user's shell, if the environment names one.
pub fn login_shell() -> Option<PathBuf> {
    let shell = std::env::var_os("SHELL").map(PathBuf::from);
    shell.filter(|shell| shell.is_absolute())
}

/// The environment variables of this process.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_runtime_directory_is_used_only_if_it_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let set_mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.path(), mode).unwrap();
        };
        set_mode(0o700);
        assert!(is_own_runtime_directory(directory.path()));
        set_mode(0o755);
        assert!(!is_own_runtime_directory(directory.path()));
        assert!(!is_own_runtime_directory(&directory.path().join("none")));
        assert!(!is_own_runtime_directory(Path::new("")));
    }
}
