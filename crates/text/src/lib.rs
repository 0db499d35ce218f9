//! Text as every tool sees it: what a line is, where a string stands, what changed, what to leave out.
//!
//! Values in, values out. No I/O lives here, no path and no clock that matters to a result (a diff
//! takes a deadline so that a hostile input cannot hold a call). There is one line splitter, one way
//! to make bytes visible and one rule for leaving things out, so that line N is the same line in
//! every tool's reply.

mod diff;
mod encoding;
mod endings;
mod equivalent;
mod error_lines;
mod excerpt;
mod invisible;
mod lines;
mod locate;
mod merge;
mod nearest_match;
mod output_encoding;
mod patch;
mod secrets;
mod strip_line_numbers;
mod terminal;
mod text_properties;
mod truncate;
mod visible;

pub use diff::{Diff, ShortDiff, changed_lines, short_diff, unified_diff};
pub use encoding::{Detector, Encoding, Transcoder};
pub use endings::{EndingFinder, Endings};
pub use equivalent::{Equivalent, MAX_EQUIVALENTS, MatchLevel, SoughtText, find_equivalents};
pub use excerpt::{Excerpt, ExcerptOptions, ExcerptShown};
pub use invisible::{hidden_in, invisible_name};
pub use lines::{Line, LineCount, LineWindow, Window, each_line, split_lines};
pub use locate::{find_all, find_another, line_numbers};
pub use merge::{Conflict, merge};
pub use nearest_match::{Likeness, NearestMatch, nearest_block};
pub use output_encoding::output_encoding;
pub use patch::{
    Applied, Divergence, FileAction, FilePatch, Hunk, HunkFate, HunkLine, Misfit, Patch,
    PatchError, PatchErrorKind, Sign, Why,
};
pub use secrets::{Masker, Secrets};
pub use strip_line_numbers::without_line_numbers;
pub use terminal::{Terminal, as_seen};
pub use text_properties::TextProperties;
pub use truncate::{Truncated, truncate_line, truncate_lines, truncate_middle};
pub use visible::{
    from_visible, show_invisible, visible, visible_content, visible_lines, visible_name,
};
