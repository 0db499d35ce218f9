//! Trigrams: three consecutive bytes, as a number.
//!
//! Case is kept: folding it costs far more in files that are read in vain than it saves in memory. Seven bits
//! of each byte are kept, which distinguishes all ASCII characters and costs nothing measurable.

/// Three bytes in 21 bits.
pub(crate) type Trigram = u32;

/// The number of trigrams.
pub(crate) const GRAMS: usize = 1 << 21;

/// The number of pairs. A pair is a trigram without its last byte.
pub(crate) const PAIRS: usize = 1 << 14;

const SEVEN: u8 = 0x7f;

/// The trigram of three bytes.
pub(crate) fn trigram(bytes: [u8; 3]) -> Trigram {
    let [one, two, three] = bytes.map(|byte| u32::from(byte & SEVEN));
    one << 14 | two << 7 | three
}

/// Visits the trigram at each byte but the last two, including repeated ones.
pub(crate) fn each(text: &[u8], mut take: impl FnMut(Trigram)) {
    let mut key = 0;
    for (at, byte) in text.iter().enumerate() {
        key = (key << 7 | u32::from(byte & SEVEN)) & (GRAMS as u32 - 1);
        if at >= 2 {
            take(key);
        }
    }
}
