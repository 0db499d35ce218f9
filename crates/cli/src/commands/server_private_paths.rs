//! Records the private paths of each server of a user, so that no server's tools access another server's files.

use std::path::{Path, PathBuf};

use toolcrib::{ReservedPaths, check_state_version};

use crate::{config, output};

/// The directory of the records, always in the default state directory.
pub(super) fn directory() -> Option<PathBuf> {
    Some(config::state_directory()?.join("servers"))
}

/// Records the paths of a server that are not in the default directories.
pub(super) fn record(own: &[PathBuf]) {
    let usual: Vec<PathBuf> =
        config::directory().into_iter().chain(config::state_directory()).collect();
    let is_usual = |path: &Path| usual.iter().any(|usual| path.starts_with(usual));
    let absolute = own.iter().filter_map(|path| std::path::absolute(path).ok());
    let elsewhere: Vec<PathBuf> = absolute.filter(|path| !is_usual(path)).collect();
    let Some(directory) = directory().filter(|_| !elsewhere.is_empty()) else { return };
    let checked = directory.parent().map_or(Ok(()), check_state_version);
    if let Err(error) = checked.and_then(|()| ReservedPaths::new(&directory).record(&elsewhere)) {
        output::warning(&format!(
            "the paths of this server are not hidden from other servers: {error}"
        ));
    }
}
