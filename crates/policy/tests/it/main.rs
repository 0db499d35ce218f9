//! Deciding, through its public door.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod danger;
mod deciding;
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
