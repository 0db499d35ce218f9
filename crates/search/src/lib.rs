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
mod gram;
mod grep;
mod hits;
mod hot;
mod ignored;
mod index;
mod last_name;
mod left_out;
mod listing;
mod narrowing;
mod nature;
mod net;
mod ordered;
mod pattern;
mod plan;
mod rank;
mod rules;
mod slot;
mod spots;
mod stop;
mod stream;
mod times;
mod walk;
mod watch_state;
mod watching;

pub use backtrack::{InThisProcess, Process, Processes, Unanswered, answer_questions};
pub use candidate::Candidate;
pub use filter::{FileFilter, FilterError, type_names};
pub use glob::{Glob, GlobError, SplitGlob};
pub use grep::{Grep, Letters, Looked, Outcome, Pieces, Reading, Skipped, grep, look_again};
pub use hits::{Hits, Keep, ShownLine, Undecided};
pub use hot::Tables;
pub use ignored::Ignored;
pub use index::{IndexSettings, IndexStatus};
pub use left_out::walk_left_out;
pub use listing::{FileId, Listing, Pruned};
pub use ordered::in_order;
pub use pattern::{Choice, Pattern, PatternError, Understood, Wanted};
pub use rank::Rank;
pub use stop::Stop;
pub use walk::{VERSION_CONTROL, Walk, walk};
