//! Damages bytes as described by an input.

/// The maximum number of damages of one input.
const MAX_DAMAGES: usize = 200;

/// Applies all damages. Four bytes of the input describe one: its kind, its offset and a value.
pub(crate) fn damaged(bytes: &[u8], input: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in input.chunks_exact(4).take(MAX_DAMAGES) {
        let [kind, low, high, value] = *damage else { continue };
        if bytes.is_empty() {
            break;
        }
        // Spreads the 16-bit offsets over the whole length.
        let offset = usize::from(u16::from_le_bytes([low, high])).wrapping_mul(0x9e37);
        let at = offset % bytes.len();
        match kind % 5 {
            0 => bytes[at] ^= 1 << (value % 8),
            1 => bytes[at] = value,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, value),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Applies only damages that preserve the length.
pub(crate) fn damaged_in_place(bytes: &[u8], input: &[u8]) -> Vec<u8> {
    let flips: Vec<u8> = input
        .chunks_exact(4)
        .flat_map(|damage| [damage[0] % 2, damage[1], damage[2], damage[3]])
        .collect();
    damaged(bytes, &flips)
}
