//! Bytes and names that nobody can guess and nobody else has.

use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// So many bytes from the system's own source.
pub fn random_bytes<const BYTES: usize>() -> std::io::Result<[u8; BYTES]> {
    Ok(bytes()?)
}

/// So many random bytes as hex digits, two each.
pub(crate) fn hex<const BYTES: usize>() -> Result<String, Errno> {
    Ok(bytes::<BYTES>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn bytes<const BYTES: usize>() -> Result<[u8; BYTES], Errno> {
    let mut bytes = [0; BYTES];
    match rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())? {
        filled if filled == BYTES => Ok(bytes),
        _ => Err(Errno::AGAIN),
    }
}
