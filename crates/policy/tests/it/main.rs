//! Deciding, through its public door.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start shells, look at the disk from outside, and fail by panicking"
)]

mod danger;
mod deciding;
mod git_config;
mod oracle;
mod readers;
mod understanding;

use toolcrib_policy::Surroundings;

// Scripts as data, for a workspace at /w/ws: `cargo xtask torture policy` runs them too.

/// Commands that only read: they run unasked where every other command is asked about.
const READS: &str = include_str!("../../corpus/reads.jsonl");

/// What agents do all day.
const ORDINARY: &str = include_str!("../../corpus/ordinary.jsonl");

/// They write, run others, look outside, or are not understood, and look as if they did not.
const HOSTILE: &str = include_str!("../../corpus/hostile.jsonl");

/// What nobody means.
const DANGEROUS: &str = include_str!("../../corpus/dangerous.jsonl");

/// The scripts of a corpus: a JSON string a line.
fn corpus(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| !line.starts_with("//"));
    lines.map(|line| serde_json::from_str(line).unwrap())
}

/// A workspace at /w/ws, and somebody at home in /home/me.
fn around() -> Surroundings {
    Surroundings {
        directory: "/w/ws".into(),
        home: Some("/home/me".into()),
        roots: vec!["/w/ws".into()],
    }
}
