//! Finds the lines on which a pattern with look-around may match, with the linear engine. Most lines need no other
//! engine then.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

use crate::line_around::line_around;

/// Memory limit of the compiled pattern. A larger one would save little.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// Memory limit of the engine's cache while it runs, for each thread. The default is a gigabyte.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// Limit of nested groups. The other process limits them more strictly.
const MAX_NESTING: u32 = 200;

/// A relaxed pattern: it matches wherever the pattern itself matches.
#[derive(Debug)]
pub(crate) struct Prefilter {
    matcher: RegexMatcher,
    hir: Hir,
}

impl Prefilter {
    /// `None` if the pattern would exclude nothing.
    pub(super) fn new(relaxed: &str, multiline: bool) -> Option<Prefilter> {
        let hir = ParserBuilder::new()
            .nest_limit(MAX_NESTING)
            .utf8(false)
            .build()
            .parse(relaxed)
            .ok()
            .filter(|hir| hir.properties().minimum_len().is_some_and(|bytes| bytes > 0))?;
        let mut builder = RegexMatcherBuilder::new();
        builder
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_CACHE_BYTES)
            .nest_limit(MAX_NESTING);
        // A line may have a `\r` within, and the other engine sees it.
        builder.crlf(false).line_terminator((!multiline).then_some(b'\n'));
        Some(Prefilter { matcher: builder.build(relaxed).ok()?, hir })
    }

    /// The syntax tree of the relaxed pattern.
    pub(crate) fn hir(&self) -> &Hir {
        &self.hir
    }

    /// Whether a text may have a match.
    pub(super) fn may_match(&self, text: &[u8]) -> bool {
        self.matcher.is_match(text).unwrap_or(true)
    }

    /// The lines of a text that may have a match, without their ends. `None` if that is unknown.
    pub(super) fn candidate_lines(&self, text: &[u8]) -> Option<Vec<Range<usize>>> {
        let (mut lines, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let offset = match self.matcher.find_candidate_line(&text[at..]).ok()? {
                Some(LineMatchKind::Confirmed(offset) | LineMatchKind::Candidate(offset)) => offset,
                None => break,
            };
            let line = line_around(text, at + offset);
            if line.start >= text.len() {
                break;
            }
            at = line.end + 1;
            lines.push(line);
        }
        Some(lines)
    }
}
