//! Damage to bytes, as an input describes it.

/// So many single damages an input has at most.
const MOST: usize = 200;

/// The bytes after all damages: four bytes of the input are one, its kind, its place and a value.
pub(super) fn damaged(bytes: &[u8], input: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in input.chunks_exact(4).take(MOST) {
        let [kind, low, high, value] = *damage else { continue };
        if bytes.is_empty() {
            break;
        }
        // Places are few, and spread over all that there is.
        let place = usize::from(u16::from_le_bytes([low, high])).wrapping_mul(0x9e37);
        let at = place % bytes.len();
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

/// The same with damages that leave the length as it is.
pub(super) fn damaged_in_place(bytes: &[u8], input: &[u8]) -> Vec<u8> {
    let flips: Vec<u8> = input
        .chunks_exact(4)
        .flat_map(|damage| [damage[0] % 2, damage[1], damage[2], damage[3]])
        .collect();
    damaged(bytes, &flips)
}
