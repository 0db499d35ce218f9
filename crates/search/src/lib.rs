//! Finds files by name and lines by pattern. Results are exact for the current disk content, in a stable
//! order, and bounded.
//!
//! [`walk()`] lists a tree through `toolcrib-fs`, which opens every directory from its root's descriptor and
//! follows no symlink; it counts the entries that ignore files prune. [`Glob`] and [`FileFilter`] select
//! paths. [`Pattern`] is a compiled search pattern. [`grep()`] searches many files in parallel and delivers
//! the results in the order of the listing, so that the caller can stop early.
//!
//! This crate knows nothing about tools or replies. The caller supplies the decoding of other encodings
//! ([`Decoder`]).

mod backtrack;
mod basename_glob;
mod bit_set;
mod cached_directory;
mod cached_doc_id;
mod cached_mtimes;
mod content_class;
mod deadline;
mod decoder;
mod doc_id;
mod doc_map;
mod file_id;
mod filter;
mod grep;
mod ignore_rules;
mod ignored_files;
mod index;
mod is_ignored;
mod line_around;
mod line_matches;
mod listing;
mod listing_cache;
mod listing_freshness;
mod matcher_cache;
mod mtimes;
mod parallel_ordered;
mod path_glob;
mod pattern;
mod rank;
mod trigram;
mod trigram_query;
mod walk;
mod watch_self_check;
mod watched_directories;

pub use backtrack::{InThisProcess, Process, Processes, Unanswered, answer_questions};
pub use deadline::Deadline;
pub use decoder::{ChunkDecoder, Decoded, Decoder};
pub use file_id::FileId;
pub use filter::{FileFilter, FilterError, type_names};
pub use grep::{Grep, Outcome, Searched, Skipped, grep, grep_ignored};
pub use ignored_files::walk_ignored;
pub use index::{IndexSettings, IndexStatus};
pub use is_ignored::IgnoreLookup;
pub use line_matches::{LineMatches, MatchOptions, ShownLine, Undecided};
pub use listing::{Candidate, Listing, Pruned};
pub use listing_cache::ListingCaches;
pub use mtimes::mtimes;
pub use parallel_ordered::map_in_order;
pub use path_glob::{Glob, GlobError, SplitGlob};
pub use pattern::{LineReason, Pattern, PatternError, PatternOptions, PatternSyntax};
pub use rank::Rank;
pub use walk::{VERSION_CONTROL, Walk, walk};
