//! Recognizes version control programs by name. No protection depends on it.

use toolcrib_exec::Program;

/// Whether a program is git and applies patches. It closes a file and stats it at once, before a review is
/// done.
pub(super) fn applies_patches(program: &Program) -> bool {
    is_version_control_program(program)
        && program.arguments.iter().any(|one| one == "am" || one == "apply")
}

/// Whether a program is a version control program, by its file name.
pub(super) fn is_version_control_program(program: &Program) -> bool {
    const KNOWN: [&str; 4] = ["git", "jj", "hg", "svn"];
    let name = program.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    KNOWN.iter().any(|known| {
        name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}
