//! How long a call may wait.

use std::time::Duration;

use crate::names::Name;

/// The longest that a call waits.
const MOST: u64 = 600_000;

/// A timeout in milliseconds, not longer than the longest.
pub(super) fn milliseconds(given: u64) -> Duration {
    Duration::from_millis(given.min(MOST))
}

/// What to say if it was too long.
pub(super) fn lowered_note(field: Name<'_>, given: u64) -> Option<String> {
    (given > MOST).then(|| format!("{field} was lowered to {MOST}, the maximum"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timeout_is_lowered_and_that_is_said() {
        let field = Name::field("Bash", "timeout");
        assert_eq!(milliseconds(700_000), Duration::from_secs(600));
        assert_eq!(milliseconds(1_000), Duration::from_secs(1));
        assert!(lowered_note(field, 700_000).is_some() && lowered_note(field, 600_000).is_none());
    }
}
