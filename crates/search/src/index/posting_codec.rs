//! Encoding of one posting list: the chunks of a segment that contain a trigram.
//!
//! Gaps between chunks are Rice coded: the low bits of a gap are stored as they are, the high bits in unary,
//! as ones followed by a zero. A dense list is a bitmap instead. A list stores no length: it ends with its
//! bytes, padded with ones.

use crate::bit_set::BitSet;

/// First byte of a bitmap. Otherwise the first byte is the number of low bits of a gap.
const BITMAP: u8 = u8::MAX;

/// A gap has no more low bits. Otherwise the list is damaged.
const MAX_LOW_BITS: u32 = 16;

/// Appends a list of ascending numbers below `all`.
pub(super) fn encode(chunks: &[u16], all: usize, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    // For evenly distributed chunks, seven tenths of the mean gap is optimal.
    let mean = all * 7 / 10 / chunks.len().max(1);
    let low = mean.max(1).ilog2();
    bytes.push(u8::try_from(low).unwrap_or(0));
    let mut writer = Writer { bytes, waiting: 0, count: 0 };
    let mut next = 0;
    for &chunk in chunks {
        let gap = u32::from(chunk) - next;
        next = u32::from(chunk) + 1;
        writer.put_unary(gap >> low);
        writer.put(gap & ((1 << low) - 1), low);
    }
    writer.end();
    let map_bytes = all.div_ceil(8);
    if bytes.len() - start > map_bytes + 1 {
        bytes.truncate(start);
        bytes.push(BITMAP);
        bytes.resize(start + 1 + map_bytes, 0);
        for &chunk in chunks {
            bytes[start + 1 + usize::from(chunk / 8)] |= 1 << (chunk % 8);
        }
    }
}

/// Adds the numbers of a list to a set.
pub(super) fn decode(bytes: &[u8], into: &mut BitSet) {
    let Some((&low, bytes)) = bytes.split_first() else { return };
    if low == BITMAP {
        return into.union_bytes(bytes);
    }
    let low = u32::from(low);
    let mut reader = Reader { bytes, at: 0 };
    let mut next = 0_usize;
    let mut take = |gap: u32| {
        next += gap as usize;
        into.set(next);
        next += 1;
    };
    loop {
        reader.short_gaps(low, &mut take);
        // A long gap, or one of the last ones.
        match reader.gap(low) {
            Some(gap) => take(gap),
            None => return,
        }
    }
}

struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    waiting: u64,
    count: u32,
}

impl Writer<'_> {
    fn put(&mut self, value: u32, bits: u32) {
        self.waiting |= u64::from(value) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push((self.waiting & 0xff) as u8);
            self.waiting >>= 8;
            self.count -= 8;
        }
    }

    /// `many` ones and a zero.
    fn put_unary(&mut self, mut many: u32) {
        while many >= 16 {
            self.put(0xffff, 16);
            many -= 16;
        }
        self.put((1 << many) - 1, many + 1);
    }

    fn end(&mut self) {
        if self.count > 0 {
            self.put(0xff >> self.count, 8 - self.count);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Position of the next bit.
    at: usize,
}

impl Reader<'_> {
    /// Number of bits that `bits` has at least, at any position in a byte.
    const PEEK_BITS: u32 = 57;

    /// The next bits, the first one lowest, followed by ones after the end.
    fn bits(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let eight = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut eight = [u8::MAX; 8];
            eight[..rest.len()].copy_from_slice(rest);
            eight
        });
        u64::from_le_bytes(eight) >> (self.at % 8)
    }

    /// Reads gaps while each is within the peeked bits. Most lists have several gaps in so many bits, and decoding
    /// them one by one is what most of a lookup takes.
    fn short_gaps(&mut self, low: u32, mut take: impl FnMut(u32)) {
        if low > MAX_LOW_BITS {
            return;
        }
        let low_mask = (1 << low) - 1;
        loop {
            let Some(eight) = self.bytes.get(self.at / 8..).and_then(<[u8]>::first_chunk) else {
                return;
            };
            let mut bits = u64::from_le_bytes(*eight) >> (self.at % 8);
            let mut left = Reader::PEEK_BITS;
            loop {
                let ones = (!bits).trailing_zeros();
                let length = ones + 1 + low;
                if length > left {
                    break;
                }
                take(ones << low | (bits >> (ones + 1) & low_mask) as u32);
                bits >>= length;
                left -= length;
            }
            if left == Reader::PEEK_BITS {
                return;
            }
            self.at += (Reader::PEEK_BITS - left) as usize;
        }
    }

    fn gap(&mut self, low: u32) -> Option<u32> {
        let mut high = 0_u32;
        let mut bits = self.bits();
        let mut ones = (!bits).trailing_zeros();
        while ones >= Reader::PEEK_BITS {
            high += Reader::PEEK_BITS;
            self.at += Reader::PEEK_BITS as usize;
            if self.at >= self.bytes.len() * 8 {
                return None;
            }
            bits = self.bits();
            ones = (!bits).trailing_zeros();
        }
        high += ones;
        self.at += ones as usize + 1;
        let value =
            if ones + 1 + low <= Reader::PEEK_BITS { bits >> (ones + 1) } else { self.bits() };
        self.at += low as usize;
        if self.at > self.bytes.len() * 8 || low > MAX_LOW_BITS {
            return None;
        }
        Some(high << low | (value & ((1 << low) - 1)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_encoded_list_is_decoded_unchanged(
            chunks in prop::collection::btree_set(0_u16..5_000, 1..400),
            more in 1_usize..3_000,
        ) {
            let all = usize::from(*chunks.last().unwrap()) + more;
            let list: Vec<u16> = chunks.iter().copied().collect();
            let mut bytes = vec![7];
            encode(&list, all, &mut bytes);
            prop_assert!(bytes.len() <= all.div_ceil(8) + 2);
            let mut bits = BitSet::empty(all);
            decode(&bytes[1..], &mut bits);
            let read: BTreeSet<u16> =
                (0..u16::try_from(all).unwrap()).filter(|at| bits.contains(usize::from(*at))).collect();
            prop_assert_eq!(read, chunks);
        }

        #[test]
        fn invalid_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            decode(&bytes, &mut BitSet::empty(1_000));
        }
    }

    #[test]
    fn the_densest_and_the_sparsest_lists_are_small() {
        let size = |chunks: Vec<u16>| {
            let mut bytes = Vec::new();
            encode(&chunks, 4_096, &mut bytes);
            bytes.len()
        };
        assert_eq!(size((0..4_096).collect()), 513);
        assert!(size(vec![0]) <= 3 && size(vec![4_095]) <= 4);
    }
}
