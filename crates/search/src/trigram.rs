//! Trigrams: three bytes that stand side by side, as a number.
//!
//! Case is kept: to fold it costs far more in files that are looked at for nothing than it saves in memory.
//! Of each byte seven bits are kept, which tells ASCII apart and costs nothing that can be measured.

/// Three bytes in 21 bits.
pub(crate) type Trigram = u32;

/// How many there are.
pub(crate) const GRAMS: usize = 1 << 21;

/// How many pairs there are: what a gram is without its last byte.
pub(crate) const PAIRS: usize = 1 << 14;

const SEVEN: u8 = 0x7f;

/// The gram of three bytes.
pub(crate) fn trigram(bytes: [u8; 3]) -> Trigram {
    let [one, two, three] = bytes.map(|byte| u32::from(byte & SEVEN));
    one << 14 | two << 7 | three
}

/// The grams of a text, one at each byte but the last two, again and again where they repeat.
pub(crate) fn each(text: &[u8], mut take: impl FnMut(Trigram)) {
    let mut key = 0;
    for (at, byte) in text.iter().enumerate() {
        key = (key << 7 | u32::from(byte & SEVEN)) & (GRAMS as u32 - 1);
        if at >= 2 {
            take(key);
        }
    }
}
