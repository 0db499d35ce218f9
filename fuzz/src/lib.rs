//! Fuzz targets: each is a function that checks a property of arbitrary bytes and panics if it does not hold.
//!
//! Two drivers run them: `cargo xtask fuzz`, which needs only this repository, and libFuzzer, which measures code
//! coverage and needs a nightly compiler (`fuzz/libfuzzer`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "targets inspect the disk directly, and fail by panicking"
)]

#[allow(dead_code, reason = "the program uses the rest of it")]
#[path = "../../crates/cli/src/bounded_input.rs"]
mod bounded_input;
mod damage_bytes;
mod targets;
mod test_workspace;

/// A fuzz target.
pub struct Target {
    /// The name of the target and of its seed directory.
    pub name: &'static str,
    /// Runs the target on one input. Returns a short description of the outcome, which shows whether inputs get past
    /// the first checks.
    pub run: fn(&[u8]) -> String,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "backtrack", run: targets::backtrack },
    Target { name: "command", run: targets::command },
    Target { name: "edit", run: targets::edit },
    Target { name: "encoding", run: targets::encoding },
    Target { name: "git_config", run: targets::git_config },
    Target { name: "http", run: targets::http },
    Target { name: "hunks", run: targets::hunks },
    Target { name: "index", run: targets::index },
    Target { name: "journal", run: targets::journal },
    Target { name: "locate", run: targets::locate },
    Target { name: "lsp", run: targets::lsp },
    Target { name: "mcp", run: targets::mcp },
    Target { name: "monitor", run: targets::monitor },
    Target { name: "network", run: targets::network },
    Target { name: "notebook", run: targets::notebook },
    Target { name: "patch", run: targets::patch },
    Target { name: "pdf", run: targets::pdf },
    Target { name: "rules", run: targets::rules },
    Target { name: "run_line", run: targets::run_line },
    Target { name: "secrets", run: targets::secrets },
    Target { name: "syntax", run: targets::syntax },
    Target { name: "terminal", run: targets::terminal },
];

/// Finds a target by name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs a target on an input, for drivers with their own `main`. Panics if there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target `{name}`"));
    (target.run)(input);
}
