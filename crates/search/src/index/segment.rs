//! An immutable part of the index: files, their chunks, and a posting list for each trigram.

use std::ops::Range;
use std::sync::OnceLock;

use toolcrib_fs::{CachedFile, ContentHash, Stamp};

use super::posting_codec;
use super::posting_storage::PostingStorage;
use super::text_chunks::{chunks, with_overlap};
use crate::bit_set::BitSet;
use crate::content_class::ContentClass;
use crate::trigram::{self, PAIR_COUNT, TRIGRAM_COUNT, Trigram};

/// The index of some files.
#[derive(Debug)]
pub(super) struct Segment {
    /// Unique within the process.
    pub(super) serial: u32,
    pub(super) files: Vec<IndexedFile>,
    /// Offset of each chunk in its file.
    chunk_starts: Vec<u32>,
    /// For each pair of bytes, the position in `last_bytes` of the trigrams that begin with it.
    pair_offsets: Vec<u32>,
    /// The last byte of each trigram.
    last_bytes: Vec<u8>,
    /// The end of each trigram's list in `lists`.
    list_ends: Vec<u32>,
    lists: PostingStorage,
    /// The hash under which it is kept for later processes.
    pub(super) cache_hash: OnceLock<ContentHash>,
    /// The file of each chunk.
    pub(super) file_of_chunk: Vec<u16>,
    /// Files that are indexed by chunks: for every pattern, and for ASCII patterns only.
    pub(super) plain: BitSet,
    pub(super) not_utf8: BitSet,
    /// The size of the largest file.
    pub(super) largest: u64,
}

/// The components of a segment, without its files.
pub(super) struct Parts<'a> {
    pub(super) chunk_starts: &'a [u32],
    pub(super) pair_offsets: &'a [u32],
    pub(super) list_ends: &'a [u32],
    pub(super) last_bytes: &'a [u8],
    pub(super) lists: &'a PostingStorage,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexedFile {
    pub(super) stamp: Stamp,
    pub(super) class: ContentClass,
    first_chunk: u16,
    chunks: u16,
}

/// A segment has this many chunks, plus the remaining ones of its last file.
const SEGMENT_CHUNKS: usize = 4_096;

/// Limit of trigrams, each counted once in a chunk. Compressed or random content has a new one at each byte,
/// and they are held in memory until the segment is finished.
const SEGMENT_GRAMS: usize = 8 << 20;

/// Limit of files. Some have no chunks.
const SEGMENT_FILES: usize = 8_192;

/// A larger file is not indexed.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;

impl IndexedFile {
    pub(super) fn new(
        stamp: Stamp,
        class: ContentClass,
        first_chunk: u16,
        chunks: u16,
    ) -> IndexedFile {
        IndexedFile { stamp, class, first_chunk, chunks }
    }
}

impl Segment {
    /// Assembles a segment from consistent components: [`Parts`] in their order.
    pub(super) fn from_parts(
        serial: u32,
        files: Vec<IndexedFile>,
        [chunk_starts, pair_offsets, list_ends]: [Vec<u32>; 3],
        last_bytes: Vec<u8>,
        lists: PostingStorage,
    ) -> Segment {
        let mut file_of_chunk = vec![0; chunk_starts.len()];
        let (mut plain, mut not_utf8) = (BitSet::empty(files.len()), BitSet::empty(files.len()));
        for (at, file) in files.iter().enumerate() {
            let first = usize::from(file.first_chunk);
            let chunks = &mut file_of_chunk[first..first + usize::from(file.chunks)];
            chunks.fill(u16::try_from(at).unwrap_or(u16::MAX));
            match file.class {
                ContentClass::Plain => plain.set(at),
                ContentClass::NotUtf8 => not_utf8.set(at),
                ContentClass::NeedsDecoding | ContentClass::Binary => {}
            }
        }
        let largest = files.iter().map(|file| file.stamp.size).max().unwrap_or(0);
        let cache_hash = OnceLock::new();
        Segment {
            serial,
            files,
            chunk_starts,
            pair_offsets,
            last_bytes,
            list_ends,
            lists,
            cache_hash,
            file_of_chunk,
            plain,
            not_utf8,
            largest,
        }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        let Segment { chunk_starts, pair_offsets, last_bytes, list_ends, lists, .. } = self;
        Parts { chunk_starts, pair_offsets, list_ends, last_bytes, lists }
    }

    /// Reads the lists from the end of the segment's file, which has `bytes` bytes.
    pub(super) fn with_lists_in(self, file: CachedFile, bytes: usize) -> Segment {
        let lists = self.lists.moved_to_file(file, bytes);
        Segment { lists, ..self }
    }

    /// Its size in memory and in its file.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.files[..])
            + size_of_val(&self.chunk_starts[..])
            + size_of_val(&self.file_of_chunk[..])
            + size_of_val(&self.pair_offsets[..])
            + size_of_val(&self.list_ends[..])
            + self.last_bytes.len()
            + self.lists.len()
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.chunk_starts.len()
    }

    /// The chunks of a file.
    pub(super) fn chunks_of(&self, file: &IndexedFile) -> Range<usize> {
        let first = usize::from(file.first_chunk);
        first..first + usize::from(file.chunks)
    }

    /// The range of a chunk in its file.
    pub(super) fn chunk_range(&self, file: &IndexedFile, chunk: usize) -> Range<u64> {
        let end = if chunk + 1 < self.chunks_of(file).end {
            u64::from(self.chunk_starts[chunk + 1])
        } else {
            file.stamp.size
        };
        u64::from(self.chunk_starts[chunk])..end
    }

    /// Adds the chunks that contain a trigram.
    pub(super) fn add_gram(&self, gram: Trigram, into: &mut BitSet) {
        if let Some(at) = self.list_position(gram) {
            self.add_lists(at..at + 1, into);
        }
    }

    /// The length of a trigram's list: the longer, the more chunks contain the trigram.
    pub(super) fn gram_bytes(&self, gram: Trigram) -> usize {
        self.list_position(gram).map_or(0, |at| self.lists_range(at..at + 1).len())
    }

    /// Adds the chunks that contain a pair of bytes.
    pub(super) fn add_pair(&self, pair: u32, into: &mut BitSet) {
        self.add_lists(self.lists_starting_with(pair as usize), into);
    }

    fn lists_starting_with(&self, pair: usize) -> Range<usize> {
        self.pair_offsets[pair] as usize..self.pair_offsets[pair + 1] as usize
    }

    fn list_position(&self, gram: Trigram) -> Option<usize> {
        let (pair, last) = ((gram >> 7) as usize, (gram & 0x7f) as u8);
        let range = self.lists_starting_with(pair);
        Some(range.start + self.last_bytes[range].binary_search(&last).ok()?)
    }

    /// Adds the chunks of consecutive lists. If the lists cannot be read or are damaged, adds every chunk.
    fn add_lists(&self, lists: Range<usize>, into: &mut BitSet) {
        let range = self.lists_range(lists.clone());
        let all = self.lists.with(range.clone(), |bytes| {
            for at in lists {
                let list = self.lists_range(at..at + 1);
                posting_codec::decode(
                    &bytes[list.start - range.start..list.end - range.start],
                    into,
                );
            }
        });
        if all.is_none() {
            into.union(&BitSet::full(self.chunk_count()));
        }
    }

    fn lists_range(&self, lists: Range<usize>) -> Range<usize> {
        let end_of = |at: usize| if at == 0 { 0 } else { self.list_ends[at - 1] as usize };
        end_of(lists.start)..end_of(lists.end)
    }
}

/// Builds a segment from files.
pub(super) struct SegmentBuilder {
    chunk_bytes: usize,
    files: Vec<IndexedFile>,
    chunk_starts: Vec<u32>,
    /// The trigrams of all chunks, concatenated, and the end of each chunk's trigrams.
    grams: Vec<Trigram>,
    gram_ends: Vec<u32>,
    /// The chunk that last contained each trigram, modulo 256. Reset when `round` wraps around.
    seen: Vec<u8>,
    round: u8,
}

impl SegmentBuilder {
    pub(super) fn new(chunk_bytes: usize) -> SegmentBuilder {
        let (files, chunk_starts, grams, gram_ends) = Default::default();
        let seen = vec![0; TRIGRAM_COUNT];
        SegmentBuilder { chunk_bytes, files, chunk_starts, grams, gram_ends, seen, round: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.chunk_starts.len() >= SEGMENT_CHUNKS
            || self.grams.len() >= SEGMENT_GRAMS
            || self.files.len() >= SEGMENT_FILES
    }

    /// Adds a file. A file with too many chunks for a segment is treated as `NeedsDecoding`.
    pub(super) fn add(&mut self, stamp: Stamp, class: ContentClass, bytes: &[u8]) {
        let first_chunk = u16::try_from(self.chunk_starts.len()).unwrap_or(u16::MAX);
        let mut file = IndexedFile { stamp, class, first_chunk, chunks: 0 };
        if matches!(class, ContentClass::Plain | ContentClass::NotUtf8) {
            let count = chunks(bytes, self.chunk_bytes).count();
            if u16::try_from(self.chunk_starts.len() + count).is_ok() {
                chunks(bytes, self.chunk_bytes).for_each(|chunk| self.add_chunk(bytes, chunk));
            } else {
                file.class = ContentClass::NeedsDecoding;
            }
            file.chunks =
                u16::try_from(self.chunk_starts.len() - usize::from(first_chunk)).unwrap_or(0);
        }
        self.files.push(file);
    }

    fn add_chunk(&mut self, bytes: &[u8], chunk: Range<usize>) {
        self.chunk_starts.push(u32::try_from(chunk.start).unwrap_or(u32::MAX));
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.seen.fill(0);
            self.round = 1;
        }
        let SegmentBuilder { grams, seen, round, .. } = self;
        let mut take = |gram: Trigram| {
            let seen = &mut seen[gram as usize];
            if *seen != *round {
                *seen = *round;
                grams.push(gram);
            }
        };
        let text = &bytes[with_overlap(bytes, &chunk)];
        trigram::for_each_trigram(text, &mut take);
        // At the end of the file, the last two bytes begin a trigram as well.
        if chunk.end == bytes.len()
            && let [.., one, two] = text
        {
            take(trigram::trigram([*one, *two, b'\n']));
        }
        self.gram_ends.push(u32::try_from(self.grams.len()).unwrap_or(u32::MAX));
    }

    /// Returns the segment and leaves the builder empty.
    pub(super) fn finish(&mut self, serial: u32) -> Segment {
        let (files, chunk_starts) =
            (std::mem::take(&mut self.files), std::mem::take(&mut self.chunk_starts));
        let (grams, gram_ends) =
            (std::mem::take(&mut self.grams), std::mem::take(&mut self.gram_ends));
        let (starts_of, chunk_of) = sorted_by_gram(&grams, &gram_ends);
        drop(grams);
        let count = |list: &[u8]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let mut pair_offsets = Vec::with_capacity(PAIR_COUNT + 1);
        let (mut last_bytes, mut list_ends, mut postings) = (Vec::new(), Vec::new(), Vec::new());
        for gram in 0..TRIGRAM_COUNT {
            if gram & 0x7f == 0 {
                pair_offsets.push(count(&last_bytes));
            }
            let list = &chunk_of[starts_of[gram] as usize..starts_of[gram + 1] as usize];
            if !list.is_empty() {
                last_bytes.push((gram & 0x7f) as u8);
                posting_codec::encode(list, chunk_starts.len(), &mut postings);
                list_ends.push(count(&postings));
            }
        }
        pair_offsets.push(count(&last_bytes));
        last_bytes.shrink_to_fit();
        list_ends.shrink_to_fit();
        postings.shrink_to_fit();
        Segment::from_parts(
            serial,
            files,
            [chunk_starts, pair_offsets, list_ends],
            last_bytes,
            PostingStorage::InMemory(postings),
        )
    }
}

/// The chunks sorted by trigram, and the start of each trigram's chunks.
fn sorted_by_gram(grams: &[Trigram], gram_ends: &[u32]) -> (Vec<u32>, Vec<u16>) {
    let mut starts_of = vec![0_u32; TRIGRAM_COUNT + 1];
    grams.iter().for_each(|gram| starts_of[*gram as usize + 1] += 1);
    for at in 0..TRIGRAM_COUNT {
        starts_of[at + 1] += starts_of[at];
    }
    let mut next = starts_of.clone();
    let mut chunk_of = vec![0_u16; grams.len()];
    let mut start = 0;
    for (chunk, &end) in gram_ends.iter().enumerate() {
        let end = end as usize;
        for gram in &grams[start..end] {
            let next = &mut next[*gram as usize];
            chunk_of[*next as usize] = u16::try_from(chunk).unwrap_or(u16::MAX);
            *next += 1;
        }
        start = end;
    }
    (starts_of, chunk_of)
}
