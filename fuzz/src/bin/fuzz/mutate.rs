//! Mutates inputs with a few kinds of changes that often break programs.

use toolcrib_devtools::random::Random;

/// The maximum size of an input. Most bugs need less, and small inputs run faster.
const MAX_BYTES: usize = 32 << 10;

/// The maximum number of changes at once.
const MAX_CHANGES: u64 = 6;

/// The maximum length of a piece that is removed, inserted or repeated.
const MAX_PIECE_BYTES: u64 = 64;

/// Tokens of text, JSON and PDF that often break programs.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b"    ",
    b" \n",
    b"\0",
    b"\xff",
    b"\xfe",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x9a\x80",
    b"\xe2\x80\x9c",
    b"\xc2\xa0",
    b"\x1b$B",
    b"1\t",
    b"\"",
    b"\\",
    b"\\ud800",
    b"[]",
    b"{}",
    b",",
    b"null",
    b"\"source\": ",
    b"\"cells\": ",
    b"0",
    b"-1",
    b"4294967296",
    b"1e999",
    b"<<",
    b">>",
    b" 0 R",
    b"stream\n",
    b"endobj\n",
];

/// Generates an endless sequence of inputs.
pub(super) struct Mutator {
    random: Random,
}

impl Mutator {
    pub(super) fn new(seed: u64) -> Mutator {
        Mutator { random: Random::new(seed) }
    }

    /// The next input, made from one or two inputs of the pool.
    pub(super) fn next(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.pick(pool).cloned().unwrap_or_default();
        // Mostly one or two changes: a heavily changed input is rejected early.
        let most = 1 + self.random.below(MAX_CHANGES);
        for _ in 0..=self.random.below(most) {
            self.change(&mut input, pool);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.offset(input.len());
        let piece = self.offset(MAX_PIECE_BYTES as usize);
        let end = (at + piece).min(input.len());
        match self.random.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.byte();
                }
            }
            2 => drop(input.drain(at..end)),
            3 => {
                let doubled = input[at..end].to_vec();
                let to = self.offset(input.len());
                input.splice(to..to, doubled);
            }
            4 => {
                let other = self.pick(pool).map_or(&[][..], Vec::as_slice);
                let from = self.offset(other.len());
                let piece = &other[from..(from + piece).min(other.len())];
                input.splice(at..at, piece.iter().copied());
            }
            5 => {
                let bytes: Vec<u8> = (0..piece % 8).map(|_| self.byte()).collect();
                input.splice(at..at, bytes);
            }
            6 => {
                let token = self.pick(TOKENS).copied().unwrap_or_default();
                input.splice(at..end.min(at + token.len()), token.iter().copied());
            }
            _ => {
                let token = self.pick(TOKENS).copied().unwrap_or_default();
                input.splice(at..at, token.iter().copied());
            }
        }
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.random.below(from.len() as u64) as usize)
    }

    /// A random offset up to `length`, inclusive.
    fn offset(&mut self, length: usize) -> usize {
        self.random.below(length as u64 + 1) as usize
    }

    fn byte(&mut self) -> u8 {
        self.random.below(256) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let pool = [b"one\n".to_vec(), Vec::new()];
        let mut mutator = Mutator::new(seed);
        (0..200).map(|_| mutator.next(&pool)).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn accepts_an_empty_pool() {
        let mut mutator = Mutator::new(1);
        assert!((0..200).any(|_| !mutator.next(&[]).is_empty()));
    }
}
