//! Records the private paths of each server of a user, so that no server's tools access another server's files.

use std::path::{Path, PathBuf};

use toolcrib::{ReservedPaths, check_state_version};

use crate::output;
use toolcrib::user_machine;

/// Records the paths of a server that are not in the default directories.
pub(super) fn record(own: &[PathBuf]) {
    let usual: Vec<PathBuf> = user_machine::configuration_directory()
        .into_iter()
        .chain(user_machine::state_directory())
        .chain(user_machine::socket_directory())
        .collect();
    let is_usual = |path: &Path| usual.iter().any(|usual| path.starts_with(usual));
    let absolute = own.iter().filter_map(|path| std::path::absolute(path).ok());
    let elsewhere: Vec<PathBuf> = absolute.filter(|path| !is_usual(path)).collect();
    let Some(directory) = user_machine::registry_directory().filter(|_| !elsewhere.is_empty())
    else {
        return;
    };
    let checked = directory.parent().map_or(Ok(()), check_state_version);
    if let Err(error) = checked.and_then(|()| ReservedPaths::new(&directory).record(&elsewhere)) {
        output::warning(&format!(
            "the paths of this server are not hidden from other servers: {error}"
        ));
    }
}

/// The paths that servers have recorded, and the directory of the records. `None` if there are none.
pub(super) fn recorded() -> Option<(Vec<PathBuf>, PathBuf)> {
    let directory = user_machine::registry_directory()?;
    let paths = ReservedPaths::new(&directory).paths();
    (!paths.is_empty()).then(|| (paths.to_vec(), directory))
}
