//! Parsers of values that several commands have.

use std::str::FromStr;

/// Parses the id of a change or a number of entries.
pub(super) fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "not a number")
}

/// Parses a port. 0 is any free one.
pub(super) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "not a port, which is a number from 0 to 65535")
}

/// Parses a limit that cannot be zero.
pub(super) fn at_least_one(text: &str) -> Result<usize, &'static str> {
    match number(text)? {
        0 => Err("it must be at least 1"),
        count => Ok(count),
    }
}
