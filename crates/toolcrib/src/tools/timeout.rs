//! Timeouts of calls.

use std::time::Duration;

use crate::dialect_names::Name;

/// The maximum in milliseconds.
const MAX_MILLISECONDS: u64 = 600_000;

/// The timeout, at most the maximum.
pub(super) fn milliseconds(given: u64) -> Duration {
    Duration::from_millis(given.min(MAX_MILLISECONDS))
}

/// The note if the given timeout exceeds the maximum.
pub(super) fn lowered_note(field: Name<'_>, given: u64) -> Option<String> {
    (given > MAX_MILLISECONDS)
        .then(|| format!("{field} was lowered to {MAX_MILLISECONDS}, the maximum"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timeout_is_lowered_with_a_note() {
        let field = Name::field("Bash", "timeout");
        assert_eq!(milliseconds(700_000), Duration::from_secs(600));
        assert_eq!(milliseconds(1_000), Duration::from_secs(1));
        assert!(lowered_note(field, 700_000).is_some() && lowered_note(field, 600_000).is_none());
    }
}
