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
mod oracle;
mod understanding;

use toolcrib_policy::Surroundings;

/// A workspace at /w/ws, and somebody at home in /home/me.
fn around() -> Surroundings {
    Surroundings {
        directory: "/w/ws".into(),
        home: Some("/home/me".into()),
        roots: vec!["/w/ws".into()],
    }
}
