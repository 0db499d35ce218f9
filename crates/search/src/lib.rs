//! Finding files by name and lines by pattern: exactly what is on disk now, in a stable order, bounded.
//!
//! [`walk()`] lists a tree through `toolcrib-fs`, which opens every directory from its root's handle and
//! follows no link; what ignore files prune is counted on the way. [`Glob`] and [`FileFilter`] choose
//! among names. [`Pattern`] is what to look for in a text, [`grep()`] looks for it in many files at once
//! and hands out what it finds in the order of the list, so that who has enough can say so.
//!
//! Nothing here knows tools or replies. In which encoding a text is, the caller knows ([`Letters`]).

mod backtrack;
mod basename_glob;
mod candidate;
mod content_class;
mod deadline;
mod filter;
mod glob;
mod grep;
mod ignore_lookup;
mod ignore_rules;
mod ignored_walk;
mod index;
mod index_self_check;
mod index_slot;
mod large_file_grep;
mod line_matches;
mod listing;
mod listing_cache;
mod mtime_cache;
mod parallel_ordered;
mod pattern;
mod prefilter;
mod rank;
mod trigram;
mod trigram_query;
mod walk;
mod watch_self_check;
mod watch_state;
mod watching;

pub use backtrack::{InThisProcess, Process, Processes, Unanswered, answer_questions};
pub use candidate::Candidate;
pub use deadline::Deadline;
pub use filter::{FileFilter, FilterError, type_names};
pub use glob::{Glob, GlobError, SplitGlob};
pub use grep::{
    ChunkDecoder, Decoded, Decoder, Grep, Outcome, Searched, Skipped, grep, grep_ignored,
};
pub use ignore_lookup::IgnoreLookup;
pub use ignored_walk::walk_ignored;
pub use index::{IndexSettings, IndexStatus};
pub use line_matches::{LineMatches, MatchOptions, ShownLine, Undecided};
pub use listing::{FileId, Listing, Pruned};
pub use listing_cache::ListingCaches;
pub use parallel_ordered::in_order;
pub use pattern::{LineReason, Pattern, PatternError, PatternOptions, PatternSyntax};
pub use rank::Rank;
pub use walk::{VERSION_CONTROL, Walk, walk};
