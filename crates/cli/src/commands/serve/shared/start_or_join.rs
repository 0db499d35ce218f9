//! Finds the server of a key, or starts it.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use super::greeting::{Joined, connect};
use super::key::SharedKey;
use super::place::Place;
use super::start::start;

/// A server may end between being found and being used. That does not happen often in a row.
const ATTEMPTS: usize = 20;

/// Pause before the next attempt.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Connects to the server of a key, which is started if it does not run. `None` if it did not start, and its messages were
/// printed.
pub(super) fn start_or_join(key: &SharedKey, place: &Place) -> Result<Option<Joined>, String> {
    for _ in 0..ATTEMPTS {
        if let Some(joined) = connect(key, place)? {
            return Ok(Some(joined));
        }
        let lock = place.lock()?;
        // Another client may have started it since.
        if let Some(joined) = connect(key, place)? {
            return Ok(Some(joined));
        }
        place.remove_socket(&lock);
        let is_started = start(place, &lock)?;
        // With the lock, so that the server does not end.
        let joined = if is_started { connect(key, place)? } else { None };
        // What a server of its own would print: warnings, or why it did not start.
        let messages = place.messages();
        let _ = std::io::stderr().write_all(&messages);
        if !is_started {
            place.remove(&lock);
            let silent = || "the shared server ended while it started".to_owned();
            return if messages.is_empty() { Err(silent()) } else { Ok(None) };
        }
        if joined.is_some() {
            return Ok(joined);
        }
        drop(lock);
        thread::sleep(RETRY_DELAY);
    }
    Err("the shared server ends again and again, or the settings change all the time".to_owned())
}
