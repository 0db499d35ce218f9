//! What must hold for any input at all: each target is a function that takes bytes, and panics if it
//! does not hold for them.
//!
//! Two drivers run them: `cargo xtask fuzz`, which needs nothing but this repository, and libFuzzer,
//! which sees what code an input reaches and needs a nightly compiler (`fuzz/libfuzzer`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "targets look at the disk from outside, and fail by panicking"
)]

mod targets;

/// One thing that must hold.
pub struct Target {
    /// Its name, and that of the directory of its seeds.
    pub name: &'static str,
    /// Tries it on one input, and says in a few words how far that got: if all inputs are refused at
    /// the door, nothing was tried.
    pub run: fn(&[u8]) -> String,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "backtrack", run: targets::backtrack },
    Target { name: "command", run: targets::command },
    Target { name: "decode", run: targets::decode },
    Target { name: "git_config", run: targets::git_config },
    Target { name: "http", run: targets::http },
    Target { name: "hunks", run: targets::hunks },
    Target { name: "index", run: targets::index },
    Target { name: "journal", run: targets::journal },
    Target { name: "locate", run: targets::locate },
    Target { name: "mcp", run: targets::mcp },
    Target { name: "notebook", run: targets::notebook },
    Target { name: "patch", run: targets::patch },
    Target { name: "pdf", run: targets::pdf },
    Target { name: "rules", run: targets::rules },
    Target { name: "run_line", run: targets::run_line },
    Target { name: "secrets", run: targets::secrets },
    Target { name: "splice", run: targets::splice },
    Target { name: "terminal", run: targets::terminal },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Tries the target of this name on an input: all that a driver needs which has its own `main`.
pub fn run(name: &str, input: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target `{name}`"));
    (target.run)(input);
}
