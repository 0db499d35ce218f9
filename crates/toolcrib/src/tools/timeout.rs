//! Timeouts of calls.

use std::time::Duration;

use crate::names::Name;

/// The maximum in milliseconds.
const MOST: u64 = 600_000;

/// The timeout, at most the maximum.
pub(super) fn milliseconds(given: u64) -> Duration {
    Duration::from_millis(given.min(MOST))
}

/// The note if the given timeout exceeds the maximum.
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
