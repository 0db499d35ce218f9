//! A pseudo-random generator with a fixed seed, so that a run can be repeated.

/// SplitMix64: a few lines, and good enough for choosing times and contents.
pub struct Random(u64);

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// Lines of text that do not compress to much less than half.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 64);
        while text.len() < bytes {
            text.push_str(&format!("{:016x}{:016x}\n", self.number(), self.number()));
        }
        text.truncate(bytes.saturating_sub(1));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let row = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.number(), random.below(10)]
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
    }

    #[test]
    fn text_has_the_requested_length_and_ends_with_a_newline() {
        let text = Random::new(1).text(1_000);
        assert_eq!(text.len(), 1_000);
        assert!(text.ends_with('\n'));
    }
}
