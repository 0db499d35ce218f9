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

/// The directory with the sockets of the user's new servers: in the runtime directory of the login session, or in the
/// state directory if there is none.
pub fn socket_directory() -> Option<PathBuf> {
    socket_directories().into_iter().next()
}

/// The directories that can have sockets of the user's servers, the one for new servers first. A server that was started
/// without a login session has its socket in the state directory.
pub fn socket_directories() -> Vec<PathBuf> {
    let runtime = runtime_directory(std::env::var_os("XDG_RUNTIME_DIR"), Path::new("/run/user"));
    let runtime = runtime.map(|runtime| runtime.join("toolcrib"));
    runtime.into_iter().chain(state_directory().map(|state| state.join("run"))).collect()
}

/// The user's runtime directory. `variable` is its variable in the environment, which services and cron do not have.
fn runtime_directory(variable: Option<OsString>, usual: &Path) -> Option<PathBuf> {
    let directory = match variable {
        Some(variable) => PathBuf::from(variable),
        None => usual.join(std::fs::metadata("/proc/self").ok()?.uid().to_string()),
    };
    is_own_runtime_directory(&directory).then_some(directory)
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

    #[test]
    fn without_the_variable_the_usual_runtime_directory_is_used() {
        let usual = tempfile::tempdir().unwrap();
        assert_eq!(runtime_directory(None, usual.path()), None);
        let user = std::fs::metadata("/proc/self").unwrap().uid().to_string();
        let own = usual.path().join(user);
        std::fs::create_dir(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(runtime_directory(None, usual.path()), Some(own));
        assert_eq!(runtime_directory(Some("/none".into()), usual.path()), None);
    }
}
