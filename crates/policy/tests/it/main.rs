//! Deciding, through its public door.

mod danger;
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
