//! Text functions that all tools share: lines, exact and equivalent matches, diffs, patches, encodings,
//! truncation.
//!
//! All functions are pure. There is no I/O, no path, and no clock that affects a result (a diff takes a
//! deadline, so that hostile input cannot block a call). There is one line splitter, one way to make bytes
//! visible and one rule for truncation, so that line N is the same line in every tool's reply.

mod diff;
mod encoding;
mod endings;
mod equivalent;
mod error_lines;
mod invisible;
mod line_window;
mod locate;
mod merge;
mod nearest_match;
mod output_encoding;
mod output_excerpt;
mod patch;
mod repeated_lines;
mod secrets;
mod strip_line_numbers;
mod terminal;
mod text_properties;
mod truncate;
mod visible;

pub use diff::{
    Diff, LineHunk, NumberedLine, ShortenedDiff, changed_lines, line_hunks, renamed_diff,
    shortened_diff, unified_diff, without_hunk,
};
pub use encoding::{Detector, Encoding, Transcoder};
pub use endings::{EndingFinder, Endings};
pub use equivalent::{
    Adaptation, Difference, Equivalent, MAX_EQUIVALENTS, MatchLevel, SoughtText, find_equivalents,
};
pub use invisible::{hidden_in, invisible_name};
pub use line_window::{Line, LineCount, LineWindow, Window, each_line, split_lines};
pub use locate::{find_all, find_another, line_numbers};
pub use merge::{Conflict, merge};
pub use nearest_match::{Likeness, NearestMatch, nearest_block};
pub use output_encoding::output_encoding;
pub use output_excerpt::{Excerpt, ExcerptOptions, ExcerptShown};
pub use patch::{
    Applied, Divergence, FileAction, FilePatch, Hunk, HunkFate, HunkLine, Misfit, Patch,
    PatchError, PatchErrorKind, Sign, Why,
};
pub use secrets::{Masker, Secrets, masks};
pub use strip_line_numbers::without_line_numbers;
pub use terminal::{Terminal, as_seen};
pub use text_properties::TextProperties;
pub use truncate::{Truncated, truncate_line, truncate_lines, truncate_middle};
pub use visible::{
    from_visible, show_invisible, visible, visible_content, visible_lines, visible_name,
};
