//! What an index makes of a pattern: which files cannot match.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use toolcrib_fs::Stamp;

use super::bits::Bits;
use super::segment::Segment;
use super::view::{Place, View};
use crate::gram::Gram;
use crate::nature::Nature;
use crate::pattern::Pattern;
use crate::plan::Plan;

/// The answer of an index to one pattern.
#[derive(Debug)]
pub(crate) struct Narrowed {
    view: Arc<View>,
    /// One for each segment.
    candidates: Vec<Candidates>,
    /// Whether files in other encodings are searched by their bytes.
    ascii: bool,
    /// Whether a match is within one chunk.
    by_chunks: bool,
}

#[derive(Debug)]
struct Candidates {
    files: Bits,
    /// Nothing to say, if matches go over lines.
    chunks: Bits,
}

/// The files of an index that have no match, for asking about many of them.
pub(crate) struct Sieve(Vec<(u32, Bits)>);

impl Sieve {
    /// Whether a file of the index has no match for sure.
    pub(crate) fn is_without(&self, place: Place) -> bool {
        match self.0.binary_search_by_key(&place.serial, |(serial, _)| *serial) {
            Ok(at) => self.0[at].1.has(place.file as usize),
            Err(_) => false,
        }
    }
}

/// What is known of a file without looking into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it must be searched.
    Unknown,
    /// There is no match in it.
    NoMatch,
    /// It is no text.
    Binary,
    /// If there is a match, there is one in these parts.
    Within(Vec<Range<u64>>),
}

/// More of a file than this part of it is as soon read whole.
const WORTH_PARTS: u64 = 2;

impl Narrowed {
    /// Nothing, if the pattern says nothing about what it needs.
    pub(super) fn new(view: Arc<View>, pattern: &Pattern) -> Option<Narrowed> {
        if pattern.plan.is_all() || view.segments.is_empty() {
            return None;
        }
        let by_chunks = !pattern.multiline;
        let of = |segment: &Arc<Segment>| Candidates::of(segment, &pattern.plan, by_chunks);
        let candidates = view.segments.iter().map(of).collect();
        Some(Narrowed { candidates, view, ascii: pattern.ascii, by_chunks })
    }

    /// What is known of all files that have no match, if they are searched up to so many bytes.
    pub(crate) fn sieve(&self, max_bytes: u64) -> Sieve {
        let of = |(segment, candidates): (&Arc<Segment>, &Candidates)| {
            let mut without = segment.plain.clone();
            if self.ascii {
                without.add(&segment.foreign);
            }
            without.remove(&candidates.files);
            // One that is too large is said to be.
            (segment.largest <= max_bytes).then_some((segment.serial, without))
        };
        Sieve(self.view.segments.iter().zip(&self.candidates).filter_map(of).collect())
    }

    /// Where a file with this stamp is, if its bytes are known.
    pub(crate) fn find(&self, stamp: &Stamp) -> Option<Place> {
        self.view.find(stamp)
    }

    /// Whether a file is still in the index.
    pub(crate) fn has(&self, place: Place) -> bool {
        self.view.file(place).is_some()
    }

    /// The stamp of a file of the index, if it is still in it.
    pub(crate) fn stamp(&self, place: Place) -> Option<Stamp> {
        Some(self.view.file(place)?.stamp)
    }

    /// What is known of a file of the index, if it is searched up to so many bytes.
    pub(crate) fn verdict(&self, place: Place, max_bytes: u64) -> Verdict {
        let Some(at) = self.view.position(place.serial) else { return Verdict::Unknown };
        let (segment, candidates) = (&self.view.segments[at], &self.candidates[at]);
        let Some(file) = segment.files.get(place.file as usize) else { return Verdict::Unknown };
        if file.stamp.size > max_bytes {
            return Verdict::Unknown;
        }
        match file.nature {
            Nature::Odd => return Verdict::Unknown,
            Nature::Binary => return Verdict::Binary,
            Nature::Foreign if !self.ascii => return Verdict::Unknown,
            Nature::Foreign | Nature::Plain => {}
        }
        if !candidates.files.has(place.file as usize) {
            return Verdict::NoMatch;
        }
        if !self.by_chunks {
            return Verdict::Unknown;
        }
        let wanted = segment.chunks_of(file).filter(|chunk| candidates.chunks.has(*chunk));
        let parts: Vec<Range<u64>> = wanted.map(|chunk| segment.place_of(file, chunk)).collect();
        let bytes: u64 = parts.iter().map(|part| part.end.saturating_sub(part.start)).sum();
        match bytes.saturating_mul(WORTH_PARTS) <= file.stamp.size {
            true => Verdict::Within(parts),
            false => Verdict::Unknown,
        }
    }
}

impl Candidates {
    fn of(segment: &Segment, plan: &Plan, by_chunks: bool) -> Candidates {
        let mut asking = Asking { segment, by_chunks, grams: HashMap::new() };
        let met = asking.meet(plan);
        match by_chunks {
            true => Candidates { files: files_of(segment, &met), chunks: met },
            false => Candidates { files: met, chunks: Bits::none(0) },
        }
    }
}

/// The files that have one of the chunks.
fn files_of(segment: &Segment, chunks: &Bits) -> Bits {
    let mut files = Bits::none(segment.files.len());
    chunks.each(|chunk| {
        if let Some(file) = segment.file_of.get(chunk) {
            files.set(usize::from(*file));
        }
    });
    files
}

/// One plan and one segment.
struct Asking<'a> {
    segment: &'a Segment,
    /// Whether all that the plan needs must be in one chunk, or in one file.
    by_chunks: bool,
    grams: HashMap<Gram, Bits>,
}

impl Asking<'_> {
    fn count(&self) -> usize {
        match self.by_chunks {
            true => self.segment.chunk_count(),
            false => self.segment.files.len(),
        }
    }

    fn meet(&mut self, plan: &Plan) -> Bits {
        match plan {
            Plan::All => Bits::all(self.count()),
            Plan::Gram(gram) => match self.grams.get(gram) {
                Some(known) => known.clone(),
                None => {
                    let found = self.leaf(|segment, into| segment.add_gram(*gram, into));
                    self.grams.insert(*gram, found.clone());
                    found
                }
            },
            Plan::Pair(pair) => self.leaf(|segment, into| segment.add_pair(*pair, into)),
            Plan::Every(plans) => {
                let mut met = Bits::all(self.count());
                for plan in plans {
                    met.keep(&self.meet(plan));
                    if met.is_empty() {
                        break;
                    }
                }
                met
            }
            Plan::Any(plans) => {
                let mut met = Bits::none(self.count());
                plans.iter().for_each(|plan| met.add(&self.meet(plan)));
                met
            }
        }
    }

    fn leaf(&self, add: impl FnOnce(&Segment, &mut Bits)) -> Bits {
        let mut chunks = Bits::none(self.segment.chunk_count());
        add(self.segment, &mut chunks);
        if self.by_chunks { chunks } else { files_of(self.segment, &chunks) }
    }
}
