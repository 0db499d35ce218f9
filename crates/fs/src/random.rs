//! Random bytes and names that cannot be guessed.

use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// Random bytes from the kernel. Fails if the kernel has none.
pub fn random_bytes<const BYTES: usize>() -> std::io::Result<[u8; BYTES]> {
    Ok(bytes()?)
}

/// Random bytes as hexadecimal digits, two per byte.
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
