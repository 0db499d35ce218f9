//! What each server of a user tells the others: which files are its own, so that their tools touch those as
//! little as their own.

use std::path::{Path, PathBuf};

use toolcrib::{Registry, check_state_version};

use crate::{config, output};

/// Where the records are: in the usual state directory, whichever others are named.
pub(super) fn directory() -> Option<PathBuf> {
    Some(config::state_directory()?.join("servers"))
}

/// Records the paths of a server that lie elsewhere than every server's do.
pub(super) fn record(own: &[PathBuf]) {
    let usual: Vec<PathBuf> =
        config::directory().into_iter().chain(config::state_directory()).collect();
    let is_usual = |path: &Path| usual.iter().any(|usual| path.starts_with(usual));
    let absolute = own.iter().filter_map(|path| std::path::absolute(path).ok());
    let elsewhere: Vec<PathBuf> = absolute.filter(|path| !is_usual(path)).collect();
    let Some(directory) = directory().filter(|_| !elsewhere.is_empty()) else { return };
    let checked = directory.parent().map_or(Ok(()), check_state_version);
    if let Err(error) = checked.and_then(|()| Registry::new(&directory).record(&elsewhere)) {
        output::warning(&format!("other servers are not told what is this one's own: {error}"));
    }
}
