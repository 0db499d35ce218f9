//! Finds bash.

use std::path::{Path, PathBuf};

/// Paths of bash. `PATH` is not searched: a program planted there would get every script.
const BASH_PATHS: [&str; 5] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
    "/opt/homebrew/bin/bash",
];

/// The path of the bash that runs commands. `None` if this system has none.
pub fn find_bash() -> Option<PathBuf> {
    BASH_PATHS.iter().map(Path::new).find(|path| path.is_file()).map(Path::to_owned)
}
