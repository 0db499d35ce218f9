//! How long a call may wait.

use std::time::Duration;

use crate::error::Error;

/// The longest that a call waits.
const MOST: u64 = 600_000;

/// A timeout in milliseconds, not longer than the longest. A short one was meant in seconds, and is refused.
pub(super) fn milliseconds(given: Option<u64>, least: u64) -> Result<Option<Duration>, Error> {
    match given {
        Some(given) if given < least => Err(Error::invalid(format!(
            "`timeout` is in milliseconds: {given} is {} s, less than the {} s that it is at least",
            given as f64 / 1000.0,
            least as f64 / 1000.0
        ))
        .hint(format!("Nothing was run. {} is {given} s.", given * 1000))),
        given => Ok(given.map(|given| Duration::from_millis(given.min(MOST)))),
    }
}

/// What to say if it was too long.
pub(super) fn lowered_note(given: Option<u64>) -> Option<String> {
    let too_long = given.is_some_and(|given| given > MOST);
    too_long.then(|| format!("timeout was lowered to {MOST}, the maximum"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_refused_lowered_or_taken() {
        let message = milliseconds(Some(30), 1_000).unwrap_err();
        assert!(message.message().contains("30 is 0.03 s"), "{message}");
        assert!(message.hint_text().contains("30000 is 30 s"), "{message}");
        let lowered = milliseconds(Some(700_000), 1_000).unwrap();
        assert_eq!(lowered, Some(Duration::from_secs(600)));
        assert!(lowered_note(Some(700_000)).is_some() && lowered_note(Some(600_000)).is_none());
        assert_eq!(milliseconds(None, 1_000).unwrap(), None);
    }
}
