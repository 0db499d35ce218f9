//! Evaluates a pattern against the index: which files cannot match.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::bits::Bits;
use super::segment::Segment;
use super::snapshot::{IndexPosition, View};
use crate::content_class::Nature;
use crate::pattern::Pattern;
use crate::trigram::Trigram;
use crate::trigram_query::TrigramQuery;

/// The index as seen by one pattern.
#[derive(Debug)]
pub(crate) struct Narrowed {
    view: Arc<View>,
    plan: TrigramQuery,
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
    files: Bits,
    /// Empty if matches may span lines.
    chunks: Bits,
    /// The files that have no match.
    without: Bits,
}

/// Looks up many files in turn.
pub(crate) struct Sieve<'a> {
    narrowed: &'a Narrowed,
    /// The last segment, since the next file is most likely in it too.
    last: Option<(u32, Option<&'a Bits>)>,
}

impl Sieve<'_> {
    /// Whether a file certainly has no match.
    pub(crate) fn is_without(&mut self, place: IndexPosition) -> bool {
        let without = match self.last {
            Some((serial, without)) if serial == place.serial => without,
            _ => self.narrowed.without(place.serial),
        };
        self.last = Some((place.serial, without));
        without.is_some_and(|files| files.has(place.file as usize))
    }
}

/// What the index knows about a file.
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

/// The parts are read alone only if the file is at least this many times larger. Otherwise it is read whole.
const WORTH_PARTS: u64 = 2;

impl Narrowed {
    /// Prepares a query for files of at most `max_bytes`. `None` if the pattern requires no trigram or the
    /// index is empty.
    pub(super) fn new(view: Arc<View>, pattern: &Pattern, max_bytes: u64) -> Option<Narrowed> {
        if pattern.plan.is_all() || view.segments.is_empty() {
            return None;
        }
        let candidates = view.segments.iter().map(|_| OnceLock::new()).collect();
        let (plan, by_chunks) = (pattern.plan.clone(), !pattern.multiline);
        Some(Narrowed { view, plan, candidates, ascii: pattern.ascii, by_chunks, max_bytes })
    }

    /// For looking up many files.
    pub(crate) fn sieve(&self) -> Sieve<'_> {
        Sieve { narrowed: self, last: None }
    }

    /// The snapshot that is queried.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// What the index knows about a file.
    pub(crate) fn verdict(&self, place: IndexPosition) -> FileVerdict {
        let Some(at) = self.view.position(place.serial) else { return FileVerdict::Unknown };
        let (segment, candidates) = (&self.view.segments[at], self.candidates(at));
        let Some(file) = segment.files.get(place.file as usize) else {
            return FileVerdict::Unknown;
        };
        if file.stamp.size > self.max_bytes {
            return FileVerdict::Unknown;
        }
        match file.nature {
            Nature::Odd => return FileVerdict::Unknown,
            Nature::Binary => return FileVerdict::Binary,
            Nature::Foreign if !self.ascii => return FileVerdict::Unknown,
            Nature::Foreign | Nature::Plain => {}
        }
        if !candidates.files.has(place.file as usize) {
            return FileVerdict::NoMatch;
        }
        if !self.by_chunks {
            return FileVerdict::Unknown;
        }
        let wanted = segment.chunks_of(file).filter(|chunk| candidates.chunks.has(*chunk));
        let parts: Vec<Range<u64>> = wanted.map(|chunk| segment.place_of(file, chunk)).collect();
        let bytes: u64 = parts.iter().map(|part| part.end.saturating_sub(part.start)).sum();
        match bytes.saturating_mul(WORTH_PARTS) <= file.stamp.size {
            true => FileVerdict::Within(parts),
            false => FileVerdict::Unknown,
        }
    }
    /// The files of a segment that have no match.
    fn without(&self, serial: u32) -> Option<&Bits> {
        Some(&self.candidates(self.view.position(serial)?).without)
    }

    fn candidates(&self, at: usize) -> &Candidates {
        self.candidates[at].get_or_init(|| {
            let segment = &self.view.segments[at];
            let mut asking = Asking { segment, by_chunks: self.by_chunks, grams: HashMap::new() };
            let met = asking.meet(&self.plan);
            let (files, chunks) = match self.by_chunks {
                true => (files_of(segment, &met), met),
                false => (met, Bits::none(0)),
            };
            let mut without = segment.plain.clone();
            if self.ascii {
                without.add(&segment.foreign);
            }
            without.remove(&files);
            if segment.largest > self.max_bytes {
                let files = segment.files.iter().enumerate();
                let large = files.filter(|(_, file)| file.stamp.size > self.max_bytes);
                large.for_each(|(at, _)| without.unset(at));
            }
            Candidates { files, chunks, without }
        })
    }
}

/// The files that contain one of the chunks.
fn files_of(segment: &Segment, chunks: &Bits) -> Bits {
    let mut files = Bits::none(segment.files.len());
    chunks.each(|chunk| {
        if let Some(file) = segment.file_of.get(chunk) {
            files.set(usize::from(*file));
        }
    });
    files
}

/// The evaluation of one query on one segment.
struct Asking<'a> {
    segment: &'a Segment,
    /// Whether all required trigrams must be in one chunk. Otherwise they must be in one file.
    by_chunks: bool,
    grams: HashMap<Trigram, Bits>,
}

impl Asking<'_> {
    fn count(&self) -> usize {
        match self.by_chunks {
            true => self.segment.chunk_count(),
            false => self.segment.files.len(),
        }
    }

    fn meet(&mut self, plan: &TrigramQuery) -> Bits {
        match plan {
            TrigramQuery::All => Bits::all(self.count()),
            TrigramQuery::Gram(gram) => match self.grams.get(gram) {
                Some(known) => known.clone(),
                None => {
                    let found = self.leaf(|segment, into| segment.add_gram(*gram, into));
                    self.grams.insert(*gram, found.clone());
                    found
                }
            },
            TrigramQuery::Pair(pair) => self.leaf(|segment, into| segment.add_pair(*pair, into)),
            TrigramQuery::Every(plans) => {
                let mut met = Bits::all(self.count());
                // The rarest first: often nothing is left then.
                let mut plans: Vec<&TrigramQuery> = plans.iter().collect();
                plans.sort_by_cached_key(|plan| self.weight(plan));
                for plan in plans {
                    met.keep(&self.meet(plan));
                    if met.is_empty() {
                        break;
                    }
                }
                met
            }
            TrigramQuery::Any(plans) => {
                let mut met = Bits::none(self.count());
                plans.iter().for_each(|plan| met.add(&self.meet(plan)));
                met
            }
        }
    }

    /// An estimate of the number of chunks that contain it.
    fn weight(&self, plan: &TrigramQuery) -> usize {
        match plan {
            TrigramQuery::Gram(gram) => self.segment.gram_bytes(*gram),
            _ => usize::MAX,
        }
    }

    fn leaf(&self, add: impl FnOnce(&Segment, &mut Bits)) -> Bits {
        let mut chunks = Bits::none(self.segment.chunk_count());
        add(self.segment, &mut chunks);
        if self.by_chunks { chunks } else { files_of(self.segment, &chunks) }
    }
}
