//! A bit set: a set of small numbers.

/// One bit for each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    /// No number below `count`.
    pub(super) fn empty(count: usize) -> BitSet {
        BitSet(vec![0; count.div_ceil(64)])
    }

    /// All numbers below `count`, and perhaps a few more.
    pub(super) fn full(count: usize) -> BitSet {
        BitSet(vec![u64::MAX; count.div_ceil(64)])
    }

    pub(super) fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(super) fn clear(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn intersect(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word &= other);
    }

    pub(super) fn subtract(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word &= !other);
    }

    pub(super) fn union(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }

    /// Visits the numbers in ascending order.
    pub(super) fn for_each(&self, mut take: impl FnMut(usize)) {
        for (at, word) in self.0.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                take(at * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// Adds the numbers of a bitmap, eight to a byte.
    pub(super) fn union_bytes(&mut self, bytes: &[u8]) {
        for (word, bytes) in self.0.iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word |= u64::from_le_bytes(eight);
        }
    }
}
