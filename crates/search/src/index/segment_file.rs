//! Serialization of a segment, kept for later processes.
//!
//! The input is validated as untrusted. An inconsistent segment is rejected. The header has the format and the
//! version of the program: another version may classify texts or compute trigrams differently, so its segments
//! are not used. Those of an older version are deleted, those of a newer one are left to it.

use std::cmp::Ordering;
use std::ops::Range;

use toolcrib_fs::{CachedFile, Stamp};

use super::posting_storage::PostingStorage;
use super::segment::{IndexedFile, Segment};
use crate::content_class::ContentClass;
use crate::trigram::PAIR_COUNT;

/// The header. Raise the format if segments get another layout or meaning within one version of the program.
const HEADER: &[u8] = concat!("toolcrib index 2 of ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();

/// The header is shorter, and a segment is longer.
const MAX_HEADER_BYTES: usize = 100;

/// The version of a segment, compared with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentVersion {
    /// The same, or the header is damaged.
    Same,
    Older,
    Newer,
}

impl SegmentVersion {
    pub(super) fn of(file: &CachedFile) -> SegmentVersion {
        let mut bytes = [0; MAX_HEADER_BYTES];
        if file.read_at(0, &mut bytes) { Self::of_header(&bytes) } else { SegmentVersion::Same }
    }

    fn of_header(bytes: &[u8]) -> SegmentVersion {
        let Some(found) = version_numbers(bytes) else { return SegmentVersion::Same };
        match Some(found).cmp(&version_numbers(HEADER)) {
            Ordering::Less => SegmentVersion::Older,
            Ordering::Equal => SegmentVersion::Same,
            Ordering::Greater => SegmentVersion::Newer,
        }
    }
}

/// The numbers of a header: the format, then the version of the program.
fn version_numbers(header: &[u8]) -> Option<Vec<u64>> {
    let line = header.split(|&byte| byte == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?.strip_prefix("toolcrib index ")?;
    let (format, version) = text.split_once(" of ")?;
    let numbers = std::iter::once(format).chain(version.split(['.', '-', '+']).take(3));
    numbers.map(|number| number.parse().ok()).collect()
}

/// Writes the header, the chunk size, the counts, and then all components, with the posting lists at the end.
/// `None` if the lists cannot be read.
pub(super) fn to_bytes(segment: &Segment, chunk_bytes: usize) -> Option<Vec<u8>> {
    let mut bytes = HEADER.to_vec();
    push_number(&mut bytes, chunk_bytes as u64);
    let parts = segment.parts();
    let counts =
        [segment.files.len(), parts.chunk_starts.len(), parts.last_bytes.len(), parts.lists.len()];
    counts.iter().for_each(|count| push_number(&mut bytes, *count as u64));
    for file in &segment.files {
        let Stamp { identity, size, modified, changed, is_shared } = file.stamp;
        [identity.0, identity.1, size].iter().for_each(|number| push_number(&mut bytes, *number));
        let times = [modified.0, modified.1, changed.0, changed.1];
        times.iter().for_each(|time| push_number(&mut bytes, time.cast_unsigned()));
        let Range { start, end } = segment.chunks_of(file);
        let rest = [u64::from(is_shared), class_number(file.class), start as u64, end as u64];
        rest.iter().for_each(|number| push_number(&mut bytes, *number));
    }
    for list in [parts.chunk_starts, parts.pair_offsets, parts.list_ends] {
        list.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
    bytes.extend_from_slice(parts.last_bytes);
    parts.lists.with(0..parts.lists.len(), |lists| bytes.extend_from_slice(lists))?;
    Some(bytes)
}

/// Parses a segment. `None` if the bytes are invalid or have another chunk size.
pub(super) fn from_bytes(bytes: &[u8], chunk_bytes: usize, serial: u32) -> Option<Segment> {
    let mut rest = ByteReader(bytes.strip_prefix(HEADER)?);
    if rest.number()? != chunk_bytes as u64 {
        return None;
    }
    let counts = [rest.number()?, rest.number()?, rest.number()?, rest.number()?];
    let [files, chunk_starts, grams, lists] = counts.map(|count| usize::try_from(count).ok());
    let (files, chunk_starts, grams, lists) = (files?, chunk_starts?, grams?, lists?);
    // Never allocates more than the input can fill.
    if [files, chunk_starts, grams, lists].iter().any(|count| *count > bytes.len()) {
        return None;
    }
    let mut all = Vec::with_capacity(files);
    for _ in 0..files {
        all.push(read_file_entry(&mut rest, chunk_starts)?);
    }
    let chunk_starts = rest.numbers(chunk_starts)?;
    let pair_offsets = rest.numbers(PAIR_COUNT + 1)?;
    let list_ends = rest.numbers(grams)?;
    let last_bytes = rest.take(grams)?.to_vec();
    let lists = PostingStorage::InMemory(rest.take(lists)?.to_vec());
    let is_ascending = |list: &[u32]| list.is_sorted();
    let is_consistent = rest.0.is_empty()
        && is_ascending(&pair_offsets)
        && pair_offsets.first() == Some(&0)
        && pair_offsets.last().map(|last| *last as usize) == Some(last_bytes.len())
        && is_ascending(&list_ends)
        && list_ends.last().map_or(0, |last| *last as usize) == lists.len();
    is_consistent.then(|| {
        Segment::from_parts(serial, all, [chunk_starts, pair_offsets, list_ends], last_bytes, lists)
    })
}

fn read_file_entry(rest: &mut ByteReader<'_>, chunks: usize) -> Option<IndexedFile> {
    let identity = (rest.number()?, rest.number()?);
    let size = rest.number()?;
    let modified = (rest.number()?.cast_signed(), rest.number()?.cast_signed());
    let changed = (rest.number()?.cast_signed(), rest.number()?.cast_signed());
    let is_shared = rest.number()? != 0;
    let stamp = Stamp { identity, size, modified, changed, is_shared };
    let class = CLASSES.get(usize::try_from(rest.number()?).ok()?)?;
    let (start, end) = (u16::try_from(rest.number()?).ok()?, u16::try_from(rest.number()?).ok()?);
    let is_consistent = start <= end && usize::from(end) <= chunks;
    is_consistent.then(|| IndexedFile::new(stamp, *class, start, end - start))
}

const CLASSES: [ContentClass; 4] =
    [ContentClass::Plain, ContentClass::NotUtf8, ContentClass::NeedsDecoding, ContentClass::Binary];

fn class_number(class: ContentClass) -> u64 {
    CLASSES.iter().position(|known| *known == class).unwrap_or(2) as u64
}

fn push_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<u32>> {
        let bytes = self.take(count.checked_mul(4)?)?;
        let number = |four: &[u8]| Some(u32::from_le_bytes(four.try_into().ok()?));
        bytes.chunks_exact(4).map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::super::segment::SegmentBuilder;
    use super::*;
    use crate::bit_set::BitSet;

    fn segment() -> Segment {
        let mut builder = SegmentBuilder::new(64);
        for at in 0..40 {
            let stamp = Stamp {
                identity: (1, at),
                size: at,
                modified: (5, -7),
                changed: (at.cast_signed(), 9),
                is_shared: at % 2 == 0,
            };
            let text = format!("line {at}\n").repeat(20);
            let class = CLASSES[usize::try_from(at).unwrap() % 4];
            builder.add(stamp, class, text.as_bytes());
        }
        builder.finish(7)
    }

    #[test]
    fn versions_are_compared_by_number() {
        let header =
            |format: u64, version: &str| format!("toolcrib index {format} of {version}\nrest");
        let own = std::str::from_utf8(HEADER).unwrap().trim_end().rsplit(' ').next().unwrap();
        for (header, expected) in [
            (header(2, own), SegmentVersion::Same),
            (header(1, own), SegmentVersion::Older),
            (header(2, "0.0.9"), SegmentVersion::Older),
            (header(3, own), SegmentVersion::Newer),
            (header(10, "0.0.9"), SegmentVersion::Newer),
            (header(2, "1000.0.0-rc.1"), SegmentVersion::Newer),
            ("toolcrib index".to_owned(), SegmentVersion::Same),
            (header(2, "x.y"), SegmentVersion::Same),
        ] {
            assert_eq!(SegmentVersion::of_header(header.as_bytes()), expected, "{header}");
        }
    }

    #[test]
    fn a_segment_is_read_as_written() {
        let (one, gram) = (segment(), crate::trigram::trigram(*b"ine"));
        let bytes = to_bytes(&one, 64).unwrap();
        let two = from_bytes(&bytes, 64, 9).unwrap();
        let chunks = |segment: &Segment| {
            let mut bits = BitSet::empty(segment.chunk_count());
            segment.add_gram(gram, &mut bits);
            bits
        };
        assert_eq!((chunks(&one), one.files.len()), (chunks(&two), two.files.len()));
        assert_eq!((one.files[3].stamp, two.serial), (two.files[3].stamp, 9));
        assert_eq!(to_bytes(&two, 64).unwrap(), bytes);
        assert!(from_bytes(&bytes, 65, 9).is_none());
    }

    proptest! {
        #[test]
        fn a_damaged_segment_is_rejected_or_harmless(at: usize, byte: u8, cut: usize) {
            static STORED: OnceLock<Vec<u8>> = OnceLock::new();
            let mut bytes = STORED.get_or_init(|| to_bytes(&segment(), 64).unwrap()).clone();
            let at = at % bytes.len();
            bytes[at] = byte;
            if cut % 3 == 0 {
                bytes.truncate(cut % bytes.len());
            }
            if let Some(read) = from_bytes(&bytes, 64, 1) {
                let mut bits = BitSet::empty(read.chunk_count());
                (0..PAIR_COUNT).for_each(|pair| read.add_pair(pair as u32, &mut bits));
            }
        }
    }
}
