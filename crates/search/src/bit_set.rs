//! A bit set: a set of small numbers.

/// One bit for each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    /// No number below `count`.
    pub(crate) fn empty(count: usize) -> BitSet {
        BitSet(vec![0; count.div_ceil(64)])
    }

    /// All numbers below `count`, and perhaps a few more.
    pub(crate) fn full(count: usize) -> BitSet {
        BitSet(vec![u64::MAX; count.div_ceil(64)])
    }

    pub(crate) fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(crate) fn clear(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn intersect(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn subtract(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word &= !other);
    }

    pub(crate) fn union(&mut self, others: &BitSet) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }

    /// Visits the numbers in ascending order.
    pub(crate) fn for_each(&self, mut take: impl FnMut(usize)) {
        for (at, word) in self.0.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                take(at * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// Visits the numbers below `count` that are not in the set, in ascending order.
    pub(crate) fn for_each_missing(&self, count: usize, mut take: impl FnMut(usize)) {
        for word_at in 0..count.div_ceil(64) {
            let mut rest = !self.0.get(word_at).copied().unwrap_or(0);
            while rest != 0 {
                let at = word_at * 64 + rest.trailing_zeros() as usize;
                if at >= count {
                    return;
                }
                take(at);
                rest &= rest - 1;
            }
        }
    }

    /// Adds the numbers of a bitmap, eight to a byte.
    pub(crate) fn union_bytes(&mut self, bytes: &[u8]) {
        for (word, bytes) in self.0.iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word |= u64::from_le_bytes(eight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_the_set_and_missing_ones_are_visited_in_order() {
        let mut set = BitSet::empty(130);
        [3, 64, 129].into_iter().for_each(|at| set.set(at));
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        set.for_each(|at| found.push(at));
        // Numbers beyond the set are missing too.
        set.for_each_missing(200, |at| missing.push(at));
        assert_eq!(found, [3, 64, 129]);
        let expected: Vec<usize> = (0..200).filter(|at| !found.contains(at)).collect();
        assert_eq!(missing, expected);
    }
}
