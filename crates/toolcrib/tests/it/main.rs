//! Tests of the library through its public interface.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests look at the disk from outside, start programs, and fail by panicking"
)]

mod backend;
mod bounded;
mod change_notices;
mod changing_rules;
mod command_changes;
mod command_limits;
mod dialects;
mod dry_run;
mod edit_checks;
mod git_notes;
mod git_operations;
mod git_protection;
mod git_sequences;
mod hidden;
mod known_files;
mod large_files;
mod large_patches;
mod long_commands;
mod machine_scripts;
mod network;
mod no_print;
mod one_tmp;
mod outside;
mod own_tools;
mod permission;
mod properties;
mod protected_names;
mod protected_undo;
mod quota;
mod records;
mod reply_fields;
mod sandboxed;
mod sessions;
mod shells;
mod structure_model;
mod undo_attribution;
mod undo_parts;
mod undo_since;

use std::path::{Path, PathBuf};

/// A directory outside `/tmp`, which commands see as it is.
fn command_directory() -> tempfile::TempDir {
    let place = toolcrib_testkit::sandbox_visible_directory(env!("CARGO_TARGET_TMPDIR")).unwrap();
    tempfile::tempdir_in(place).unwrap()
}

/// A runtime for the directory `ws`, with a journal beside it, that runs commands in the sandbox.
fn workspace_runtime(top: &Path) -> toolcrib::Runtime {
    toolcrib::Runtime::builder()
        .root(top.join("ws"))
        .journal(top.join("state"), toolcrib::Caps::default())
        .profile(toolcrib::Profile::Workspace)
        .helper(helper())
        .build()
        .unwrap()
}

/// Waits until a condition holds.
fn eventually(holds: impl Fn() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < until, "it did not happen in time");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Path of a helper program.
fn helper() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().and_then(Path::parent).unwrap().join("examples/helper")
}
