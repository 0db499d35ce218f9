//! Words that nobody guesses.

use std::fmt::Write as _;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Sixteen letters and digits.
pub(crate) fn random_word() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut word = String::with_capacity(2 * random.len());
    for byte in random {
        let _ = write!(word, "{byte:02x}");
    }
    Ok(word)
}
