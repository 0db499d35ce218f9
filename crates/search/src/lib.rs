//! Finding files by name and lines by pattern: exactly what is on disk now, in a stable order, bounded.
//!
//! [`walk()`] lists a tree through `toolcrib-fs`, which opens every directory from its root's handle and
//! follows no link; what ignore files prune is counted on the way. [`Glob`] and [`FileFilter`] choose
//! among names. [`Pattern`] is what to look for in a text, [`grep()`] looks for it in many files at once
//! and hands out what it finds in the order of the list, so that who has enough can say so.
//!
//! Nothing here knows tools or replies. In which encoding a text is, the caller knows ([`Letters`]).

mod backtrack;
mod candidate;
mod filter;
mod glob;
mod trigram;
mod grep;
mod line_matches;
mod listing_cache;
mod ignore_lookup;
mod index;
mod basename_glob;
mod ignored_walk;
mod listing;
mod prefilter;
mod content_class;
mod index_self_check;
mod parallel_ordered;
mod pattern;
mod trigram_query;
mod rank;
mod ignore_rules;
mod index_slot;
mod watch_self_check;
mod deadline;
mod stream;
mod mtime_cache;
mod walk;
mod watch_state;
mod watching;

pub use backtrack::{InThisProcess, Process, Processes, Unanswered, answer_questions};
pub use candidate::Candidate;
pub use filter::{FileFilter, FilterError, type_names};
pub use glob::{Glob, GlobError, SplitGlob};
pub use grep::{Grep, Letters, Looked, Outcome, Pieces, Reading, Skipped, grep, look_again};
pub use line_matches::{Hits, Keep, ShownLine, Undecided};
pub use listing_cache::Tables;
pub use ignore_lookup::Ignored;
pub use index::{IndexSettings, IndexStatus};
pub use ignored_walk::walk_left_out;
pub use listing::{FileId, Listing, Pruned};
pub use parallel_ordered::in_order;
pub use pattern::{Choice, Pattern, PatternError, Understood, Wanted};
pub use rank::Rank;
pub use deadline::Stop;
pub use walk::{VERSION_CONTROL, Walk, walk};
