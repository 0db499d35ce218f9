//! A content as the difference from another one, its base.
//!
//! An edit of a large file mostly replaces a small part. Its new content is stored as that part alone: a line with
//! the base, its size and the replaced part of the base, and then the bytes that replace it, compressed.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::hash::ContentHash;

/// More than the line of any delta has.
const MAX_LINE_BYTES: u64 = 200;

/// The number of bytes that are compared at once.
const CHUNK: usize = 4 << 10;

/// How a content differs from its base: one part of the base is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) base: ContentHash,
    pub(super) base_size: u64,
    replaced: Range<u64>,
}

impl Delta {
    /// The delta from a base with this hash and content, and the new bytes. `None` unless most of both contents is
    /// equal.
    pub(super) fn between<'a>(
        base: ContentHash,
        was: &[u8],
        now: &'a [u8],
    ) -> Option<(Delta, &'a [u8])> {
        let prefix = common_prefix(was, now);
        let suffix = common_suffix(&was[prefix..], &now[prefix..]);
        let equal = prefix + suffix;
        let replaced = prefix as u64..(was.len() - suffix) as u64;
        let delta = Delta { base, base_size: was.len() as u64, replaced };
        let is_small = equal >= was.len().max(now.len()) / 2;
        is_small.then(|| (delta, &now[prefix..now.len() - suffix]))
    }

    /// The line that a stored delta begins with.
    pub(super) fn line(&self) -> String {
        let Delta { base, base_size, replaced: Range { start, end } } = self;
        format!("{base} {base_size} {start} {end}\n")
    }

    /// Reads the line. `None` if it is damaged.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Delta>> {
        let mut line = Vec::new();
        from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        Ok(Delta::parse(&line))
    }

    fn parse(line: &[u8]) -> Option<Delta> {
        let mut fields = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split(' ');
        let base = fields.next()?.parse().ok()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (base_size, start, end) = (number()?, number()?, number()?);
        let is_valid = fields.next().is_none() && start <= end && end <= base_size;
        is_valid.then_some(Delta { base, base_size, replaced: start..end })
    }

    /// Makes the content from its base and the new bytes. `None` if this is not the base.
    pub(super) fn apply(&self, mut base: Vec<u8>, new: Vec<u8>) -> Option<Vec<u8>> {
        if base.len() as u64 != self.base_size {
            return None;
        }
        let index = |at| usize::try_from(at).ok();
        base.splice(index(self.replaced.start)?..index(self.replaced.end)?, new);
        Some(base)
    }
}

/// The number of equal bytes at the beginning.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.chunks(CHUNK).zip(other.chunks(CHUNK));
    let whole = pairs.take_while(|(one, other)| one == other).map(|(chunk, _)| chunk.len());
    let at: usize = whole.sum();
    at + one[at..].iter().zip(&other[at..]).take_while(|(one, other)| one == other).count()
}

/// The number of equal bytes at the end.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.rchunks(CHUNK).zip(other.rchunks(CHUNK));
    let whole = pairs.take_while(|(one, other)| one == other).map(|(chunk, _)| chunk.len());
    let length: usize = whole.sum();
    let (one, other) = (&one[..one.len() - length], &other[..other.len() - length]);
    length
        + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash() -> ContentHash {
        ContentHash::of(b"base")
    }

    #[test]
    fn only_the_replaced_part_is_kept() {
        let was = b"line one\nline two\n".repeat(10_000);
        let mut now = was.clone();
        now.splice(90_000..90_009, *b"changed\n");
        let (delta, new) = Delta::between(hash(), &was, &now).unwrap();
        assert!(new.len() <= 9, "{new:?}");
        assert_eq!((delta.base, delta.base_size), (hash(), 180_000));
        assert_eq!(delta.apply(was.clone(), new.to_vec()).unwrap(), now);
        assert_eq!(delta.apply(was[1..].to_vec(), new.to_vec()), None);
        for other in [&b"something else"[..], &was[..70_000], &was.repeat(3)] {
            assert_eq!(Delta::between(hash(), &was, other), None);
        }
    }

    #[test]
    fn damaged_lines_are_refused() {
        let delta = Delta { base: hash(), base_size: 9, replaced: 3..5 };
        let line = delta.line();
        assert_eq!(Delta::read(&mut format!("{line}rest").as_bytes()).unwrap(), Some(delta));
        let base = hash();
        for damaged in [
            line[..line.len() - 1].to_owned(),
            format!("{base} 9 5 3\n"),
            format!("{base} 9 3 10\n"),
            format!("{base} 9 3\n"),
            format!("{base} 9 3 5 7\n"),
            format!("{base} 9 -3 5\n"),
            "x 9 3 5\n".to_owned(),
            " ".repeat(1_000),
            String::new(),
        ] {
            assert_eq!(Delta::read(&mut damaged.as_bytes()).unwrap(), None, "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_applied_or_refused(
            size in 8_u64..12,
            start in 0_u64..12,
            end in prop_oneof![0_u64..12, any::<u64>()],
        ) {
            let line = format!("{} {size} {start} {end}\n", hash());
            let delta = Delta::read(&mut line.as_bytes()).unwrap();
            prop_assert_eq!(delta.is_some(), start <= end && end <= size);
            let made = delta.and_then(|delta| delta.apply(vec![0; 10], vec![1; 3]));
            prop_assert_eq!(made.is_some(), start <= end && end <= size && size == 10);
        }

        #[test]
        fn every_delta_gives_the_content(
            was in proptest::collection::vec(0_u8..3, 0..30),
            now in proptest::collection::vec(0_u8..3, 0..30),
            padding in 0..3 * CHUNK,
        ) {
            let pad = vec![7; padding];
            let [was, now] = [was, now].map(|middle| [&pad[..], &middle, &pad].concat());
            if let Some((delta, new)) = Delta::between(hash(), &was, &now) {
                let read = Delta::read(&mut delta.line().as_bytes()).unwrap().unwrap();
                prop_assert_eq!(read.apply(was, new.to_vec()), Some(now));
            } else {
                prop_assert!(padding < 30);
            }
        }
    }
}
