//! Times as the journal writes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    unix_ms(SystemTime::now())
}

/// A time in milliseconds since 1970.
pub fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
