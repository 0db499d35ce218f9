//! Trigrams: three consecutive bytes, as a number.
//!
//! Case is kept: folding it costs far more in files that are read in vain than it saves in memory. Seven bits
//! of each byte are kept, which distinguishes all ASCII characters and costs nothing measurable.

/// Three bytes in 21 bits.
pub(crate) type Trigram = u32;

/// The number of trigrams.
pub(crate) const TRIGRAM_COUNT: usize = 1 << 21;

/// The number of pairs. A pair is a trigram without its last byte.
pub(crate) const PAIR_COUNT: usize = 1 << 14;

const SEVEN_BITS: u8 = 0x7f;

/// The trigram of three bytes.
pub(crate) fn trigram(bytes: [u8; 3]) -> Trigram {
    let [one, two, three] = bytes.map(|byte| u32::from(byte & SEVEN_BITS));
    one << 14 | two << 7 | three
}

/// Visits the trigram at each byte but the last two, including repeated ones.
pub(crate) fn for_each_trigram(text: &[u8], mut take: impl FnMut(Trigram)) {
    let mut key = 0;
    for (at, byte) in text.iter().enumerate() {
        key = (key << 7 | u32::from(byte & SEVEN_BITS)) & (TRIGRAM_COUNT as u32 - 1);
        if at >= 2 {
            take(key);
        }
    }
}
