//! Where bash is.

use std::path::{Path, PathBuf};

/// Where systems have it. Not looked up in `PATH`: a program planted there would get every script.
const PLACES: [&str; 5] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
    "/opt/homebrew/bin/bash",
];

/// The shell that commands are run by, if this system has it.
pub fn find_bash() -> Option<PathBuf> {
    PLACES.iter().map(Path::new).find(|path| path.is_file()).map(Path::to_owned)
}
