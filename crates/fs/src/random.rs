//! Names that nobody can guess and nobody else has.

use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// So many random bytes as hex digits, two each.
pub(crate) fn hex<const BYTES: usize>() -> Result<String, Errno> {
    let mut bytes = [0; BYTES];
    let filled = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < BYTES {
        return Err(Errno::AGAIN);
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
