//! Tests of the program as a process.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests look at the disk from outside, start programs, and fail by panicking"
)]

mod approvals;
mod audit;
mod changing_rules;
mod dialects;
mod doctor;
mod documentation;
mod dry_run;
mod hidden;
mod hints;
mod hostile_input;
mod http;
#[cfg(feature = "identity")]
mod http_identity;
mod http_sessions;
mod http_workspaces;
mod index;
mod inherited_signals;
mod install;
mod low_nofile_limit;
mod mcp;
mod monitor;
mod other_user;
mod page;
mod pages;
mod people;
mod policy;
mod raw_operations;
mod remote;
#[cfg(feature = "sandboxd")]
mod sandboxd;
mod session_tmp;
mod shared;
mod state;
#[cfg(feature = "postgres")]
mod store;
#[cfg(feature = "postgres")]
mod store_approvals;
#[cfg(feature = "postgres")]
mod store_quota;
mod tool_selection;
mod undo;
mod upgrade;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program under test: the one that `cargo xtask dist --test` names, or else the one built with the tests.
const PROGRAM: &str = match option_env!("TOOLCRIB_TEST_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_toolcrib"),
};

/// Runs the program in a directory with this input, and returns its output.
fn toolcrib(directory: &Path, words: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(words)
        .current_dir(directory)
        .envs(isolated_home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The program may close its input early.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    })
}

/// Waits until a server says on its stderr that it serves.
#[cfg(feature = "postgres")]
fn wait_until_serving(server: &mut std::process::Child) {
    use std::io::{BufRead as _, BufReader};
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving MCP") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the server has ended");
    }
    // Later messages are not read, and must not fill the pipe.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
}

/// A directory that commands see at the same path.
fn command_directory() -> tempfile::TempDir {
    let place = toolcrib_testkit::sandbox_visible_directory(env!("CARGO_TARGET_TMPDIR")).unwrap();
    tempfile::tempdir_in(place).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Keeps the tests away from the configuration and journal of the user who runs them.
fn isolated_home() -> [(&'static str, std::path::PathBuf); 2] {
    static HOME: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let home = HOME.get_or_init(|| tempfile::tempdir().unwrap()).path();
    [("XDG_CONFIG_HOME", home.join("config")), ("XDG_STATE_HOME", home.join("state"))]
}
