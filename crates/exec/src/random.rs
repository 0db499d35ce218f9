//! Random names that cannot be guessed.

use std::fmt::Write as _;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Sixteen hexadecimal digits.
pub(crate) fn random_hex() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut hex = String::with_capacity(2 * random.len());
    for byte in random {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}
