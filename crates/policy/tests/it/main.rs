//! Tests of decisions through the public interface.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start shells, inspect the disk directly, and fail by panicking"
)]

mod command_analysis;
mod command_steps;
mod decisions;
mod git_config;
mod read_only_commands;
mod requests;
mod shell_oracle;
mod system_damage;

use toolcrib_policy::ShellContext;

// Corpora of scripts for a workspace at /w/ws. `cargo xtask torture policy` runs them too.

/// Read-only commands: they run without approval even if every other command needs it.
const READS: &str = include_str!("../../corpus/reads.jsonl");

/// Ordinary work of agents.
const ORDINARY: &str = include_str!("../../corpus/ordinary.jsonl");

/// Commands that write, run programs, read outside or are unparsed, but look read-only.
const HOSTILE: &str = include_str!("../../corpus/hostile.jsonl");

/// Destructive commands.
const DESTRUCTIVE: &str = include_str!("../../corpus/dangerous.jsonl");

/// The scripts of a corpus, one JSON string per line.
fn corpus(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| !line.starts_with("//"));
    lines.map(|line| serde_json::from_str(line).unwrap())
}

/// A workspace at /w/ws and a home at /home/me.
fn context() -> ShellContext {
    ShellContext {
        directory: "/w/ws".into(),
        home: Some("/home/me".into()),
        roots: vec!["/w/ws".into()],
    }
}
