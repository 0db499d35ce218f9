//! Evaluates a pattern against the index: which files cannot match.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use toolcrib_fs::in_parallel;

use super::segment::Segment;
use super::snapshot::Snapshot;
use crate::bit_set::BitSet;
use crate::content_class::ContentClass;
use crate::doc_id::DocId;
use crate::parallel_ordered::threads;
use crate::pattern::Pattern;
use crate::trigram::Trigram;
use crate::trigram_query::TrigramQuery;

/// The index as seen by one pattern.
#[derive(Debug)]
pub(crate) struct IndexQuery {
    snapshot: Arc<Snapshot>,
    query: TrigramQuery,
    /// One for each segment, computed on first use. A page of results is often full before all segments are
    /// needed.
    candidates: Vec<OnceLock<Candidates>>,
    /// Whether files that are not UTF-8 are searched by their bytes.
    ascii: bool,
    /// Whether a match is within one chunk.
    by_chunks: bool,
    /// Larger files are not searched, which the reply must say.
    max_bytes: u64,
}

#[derive(Debug)]
struct Candidates {
    files: BitSet,
    /// Empty if matches may span lines.
    chunks: BitSet,
    /// The files that have no match.
    no_match: BitSet,
}

/// Looks up many files in turn.
pub(crate) struct NoMatchLookup<'a> {
    query: &'a IndexQuery,
    /// The last segment, since the next file is most likely in it too.
    last: Option<(u32, Option<&'a BitSet>)>,
}

impl NoMatchLookup<'_> {
    /// Whether a file certainly has no match. `None` if its segment no longer exists.
    pub(crate) fn has_no_match(&mut self, position: DocId) -> Option<bool> {
        let no_match = match self.last {
            Some((serial, no_match)) if serial == position.serial => no_match,
            _ => self.query.files_without_match(position.serial),
        };
        self.last = Some((position.serial, no_match));
        no_match.map(|files| files.contains(position.file as usize))
    }
}

/// The verdict of the index on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileVerdict {
    /// Nothing. The file must be searched.
    Unknown,
    /// It has no match.
    NoMatch,
    /// It is not text.
    Binary,
    /// Any match is in one of these parts.
    Within(Vec<Range<u64>>),
}

/// A thread looks up at least this many segments. Starting it takes as long as looking up one.
const MIN_SEGMENTS_OF_THREAD: usize = 3;

/// The parts are read alone only if the file is at least this many times larger. Otherwise it is read whole.
const PARTIAL_READ_FACTOR: u64 = 2;

impl IndexQuery {
    /// Prepares a query for files of at most `max_bytes`. `None` if the pattern requires no trigram or the
    /// index is empty.
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        pattern: &Pattern,
        max_bytes: u64,
    ) -> Option<IndexQuery> {
        if pattern.trigram_query.is_all() || snapshot.segments.is_empty() {
            return None;
        }
        let candidates = snapshot.segments.iter().map(|_| OnceLock::new()).collect();
        let (query, by_chunks) = (pattern.trigram_query.clone(), !pattern.multiline);
        Some(IndexQuery { snapshot, query, candidates, ascii: pattern.ascii, by_chunks, max_bytes })
    }

    /// For looking up many files.
    pub(crate) fn no_match_lookup(&self) -> NoMatchLookup<'_> {
        NoMatchLookup { query: self, last: None }
    }

    /// The snapshot that is queried.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The verdict on a file.
    pub(crate) fn verdict(&self, position: DocId) -> FileVerdict {
        let Some(at) = self.snapshot.segment_index(position.serial) else {
            return FileVerdict::Unknown;
        };
        let (segment, candidates) = (&self.snapshot.segments[at], self.candidates(at));
        let Some(file) = segment.files.get(position.file as usize) else {
            return FileVerdict::Unknown;
        };
        if file.stamp.size > self.max_bytes {
            return FileVerdict::Unknown;
        }
        match file.class {
            ContentClass::NeedsDecoding => return FileVerdict::Unknown,
            ContentClass::Binary => return FileVerdict::Binary,
            ContentClass::NotUtf8 if !self.ascii => return FileVerdict::Unknown,
            ContentClass::NotUtf8 | ContentClass::Plain => {}
        }
        if !candidates.files.contains(position.file as usize) {
            return FileVerdict::NoMatch;
        }
        if !self.by_chunks {
            return FileVerdict::Unknown;
        }
        let wanted = segment.chunks_of(file).filter(|chunk| candidates.chunks.contains(*chunk));
        let parts: Vec<Range<u64>> = wanted.map(|chunk| segment.chunk_range(file, chunk)).collect();
        let bytes: u64 = parts.iter().map(|part| part.end.saturating_sub(part.start)).sum();
        if bytes.saturating_mul(PARTIAL_READ_FACTOR) <= file.stamp.size {
            FileVerdict::Within(parts)
        } else {
            FileVerdict::Unknown
        }
    }

    /// Looks up several segments at once, on all cores.
    pub(crate) fn look_up(&self, serials: impl Iterator<Item = u32>) {
        let segments = serials.filter_map(|serial| self.snapshot.segment_index(serial));
        let missing: Vec<usize> =
            segments.filter(|at| self.candidates[*at].get().is_none()).collect();
        let threads = threads().min(missing.len() / MIN_SEGMENTS_OF_THREAD);
        if threads > 1 {
            let Ok(()) = in_parallel(threads, &missing, |at| {
                self.candidates(*at);
                Ok::<(), Infallible>(())
            });
        }
    }

    /// Visits the files of a segment below `count` that may have a match. Returns false if the segment no longer
    /// exists.
    pub(crate) fn for_each_possible(
        &self,
        serial: u32,
        count: usize,
        take: impl FnMut(usize),
    ) -> bool {
        let no_match = self.files_without_match(serial);
        no_match.inspect(|no_match| no_match.for_each_missing(count, take)).is_some()
    }

    /// Whether a file is plain text, as it was indexed.
    pub(crate) fn is_plain(&self, id: DocId) -> bool {
        let segment = self.snapshot.segment_index(id.serial).map(|at| &self.snapshot.segments[at]);
        segment.is_some_and(|segment| segment.plain.contains(id.file as usize))
    }

    /// The files of a segment that have no match.
    fn files_without_match(&self, serial: u32) -> Option<&BitSet> {
        Some(&self.candidates(self.snapshot.segment_index(serial)?).no_match)
    }

    fn candidates(&self, at: usize) -> &Candidates {
        self.candidates[at].get_or_init(|| {
            let segment = &self.snapshot.segments[at];
            let mut evaluation =
                SegmentQuery { segment, by_chunks: self.by_chunks, grams: HashMap::new() };
            let accepted = evaluation.evaluate(&self.query);
            let (files, chunks) = if self.by_chunks {
                (files_of(segment, &accepted), accepted)
            } else {
                (accepted, BitSet::empty(0))
            };
            let mut no_match = segment.plain.clone();
            if self.ascii {
                no_match.union(&segment.not_utf8);
            }
            no_match.subtract(&files);
            if segment.largest > self.max_bytes {
                let files = segment.files.iter().enumerate();
                let large = files.filter(|(_, file)| file.stamp.size > self.max_bytes);
                large.for_each(|(at, _)| no_match.clear(at));
            }
            Candidates { files, chunks, no_match }
        })
    }
}

/// The files that contain one of the chunks.
fn files_of(segment: &Segment, chunks: &BitSet) -> BitSet {
    let mut files = BitSet::empty(segment.files.len());
    chunks.for_each(|chunk| {
        if let Some(file) = segment.file_of_chunk.get(chunk) {
            files.set(usize::from(*file));
        }
    });
    files
}

/// The evaluation of one query on one segment.
struct SegmentQuery<'a> {
    segment: &'a Segment,
    /// Whether all required trigrams must be in one chunk. Otherwise they must be in one file.
    by_chunks: bool,
    grams: HashMap<Trigram, BitSet>,
}

impl SegmentQuery<'_> {
    fn count(&self) -> usize {
        if self.by_chunks { self.segment.chunk_count() } else { self.segment.files.len() }
    }

    fn evaluate(&mut self, query: &TrigramQuery) -> BitSet {
        match query {
            TrigramQuery::All => BitSet::full(self.count()),
            TrigramQuery::Gram(gram) => match self.grams.get(gram) {
                Some(known) => known.clone(),
                None => {
                    let found = self.lookup(|segment, into| segment.add_gram(*gram, into));
                    self.grams.insert(*gram, found.clone());
                    found
                }
            },
            TrigramQuery::Pair(pair) => self.lookup(|segment, into| segment.add_pair(*pair, into)),
            TrigramQuery::And(queries) => {
                let mut accepted = BitSet::full(self.count());
                // The rarest first: often nothing is left then.
                let mut queries: Vec<&TrigramQuery> = queries.iter().collect();
                queries.sort_by_cached_key(|query| self.cost(query));
                for query in queries {
                    accepted.intersect(&self.evaluate(query));
                    if accepted.is_empty() {
                        break;
                    }
                }
                accepted
            }
            TrigramQuery::Or(queries) => {
                let mut accepted = BitSet::empty(self.count());
                queries.iter().for_each(|query| accepted.union(&self.evaluate(query)));
                accepted
            }
        }
    }

    /// An estimate of the number of chunks that contain it.
    fn cost(&self, query: &TrigramQuery) -> usize {
        match query {
            TrigramQuery::Gram(gram) => self.segment.gram_bytes(*gram),
            _ => usize::MAX,
        }
    }

    fn lookup(&self, add: impl FnOnce(&Segment, &mut BitSet)) -> BitSet {
        let mut chunks = BitSet::empty(self.segment.chunk_count());
        add(self.segment, &mut chunks);
        if self.by_chunks { chunks } else { files_of(self.segment, &chunks) }
    }
}
