//! What to look for: a pattern made ready, by the engine that can match it.
//!
//! The engine is the one that takes linear time. What it does not have, look-around and references back, goes
//! to one that backtracks, in a process of its own. What is no pattern is taken as the text it is, and the
//! caller is told.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::ErrorKind;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::backtrack::{Backtracker, Found, Processes, Unready};
use crate::deadline::Deadline;
use crate::line_matches::line_around;
use crate::trigram_query::TrigramQuery;

/// What somebody wants to find.
#[derive(Debug, Clone, Copy)]
pub struct PatternOptions<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// It is plain text.
    pub literal: bool,
    /// Without regard to case.
    pub ignore_case: bool,
    /// It may match over the ends of lines.
    pub multiline: bool,
}

/// A pattern made ready.
#[derive(Debug)]
pub struct Pattern {
    pub(crate) engine: Engine,
    pub(crate) multiline: bool,
    /// Whether it matches ASCII only, so that it is found, or not, in the bytes of any encoding that
    /// extends ASCII.
    pub(crate) ascii: bool,
    /// What a text must have in it for this to match.
    pub(crate) plan: TrigramQuery,
    /// What it was made from.
    source: Source,
    understood: PatternSyntax,
}

#[derive(Debug)]
struct Source {
    pattern: String,
    literal: bool,
    ignore_case: bool,
    multiline: bool,
}

#[derive(Debug)]
pub(crate) enum Engine {
    Linear(RegexMatcher),
    Backtracking(Backtracker),
}

/// How a pattern was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternSyntax {
    /// As it was meant.
    AsWritten,
    /// With the engine that backtracks.
    WithLookAround,
    /// As plain text, since it is no pattern.
    AsText {
        /// What is wrong with it.
        why: String,
        /// Where, in characters from 1.
        column: usize,
    },
}

/// Why a line is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineReason {
    /// It matches.
    Matches,
    /// Nothing is known of it: the pattern backtracks too much there.
    Undecided,
}

/// Why nothing can be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(String);

/// Longer than any pattern that somebody means.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Memory that a pattern may take once it is made ready.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// Memory for what the engine remembers while it runs.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// How deep groups may be nested.
const MAX_NESTING: u32 = 200;

impl Pattern {
    /// Makes a pattern ready. One that has look-around runs in `processes`.
    pub fn new(
        wanted: PatternOptions<'_>,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Pattern, PatternError> {
        if wanted.pattern.len() > MAX_PATTERN_BYTES {
            let message = format!(
                "the pattern has {} bytes, more than the {MAX_PATTERN_BYTES} allowed",
                wanted.pattern.len()
            );
            return Err(PatternError(message));
        }
        if wanted.literal {
            return Pattern::text(wanted, PatternSyntax::AsWritten);
        }
        match parse(&wanted) {
            Ok(hir) => Pattern::linear(wanted, wanted.pattern, &hir, PatternSyntax::AsWritten),
            Err(Unparsed::LookAround) => Pattern::backtracking(wanted, processes, stop),
            Err(Unparsed::TooLarge) => Err(too_large()),
            Err(Unparsed::Wrong { why, column }) => {
                Pattern::text(wanted, PatternSyntax::AsText { why, column })
            }
        }
    }

    /// The same once more, for another thread that has time; nothing, if it runs in a process.
    pub(crate) fn again(&self) -> Option<Pattern> {
        let Source { pattern, literal, ignore_case, multiline } = &self.source;
        let (literal, ignore_case, multiline) = (*literal, *ignore_case, *multiline);
        let wanted = PatternOptions { pattern, literal, ignore_case, multiline };
        if literal || matches!(self.understood, PatternSyntax::AsText { .. }) {
            return Pattern::text(wanted, self.understood.clone()).ok();
        }
        let hir = parse(&wanted).ok()?;
        Pattern::linear(wanted, pattern, &hir, PatternSyntax::AsWritten).ok()
    }

    /// How it was understood.
    pub fn understood(&self) -> &PatternSyntax {
        &self.understood
    }

    /// Which lines of a text match, in their order, each without its end, and of which nothing is known.
    /// `most` matches are enough. Answers up to where the text was looked at: to its end, or as far as it was
    /// wanted, unless time was over before.
    pub fn choose_lines(
        &self,
        text: &str,
        most: u64,
        stop: &Deadline<'_>,
        mut take: impl FnMut(Range<usize>, LineReason),
    ) -> usize {
        let line = |at: usize| line_around(text.as_bytes(), at);
        match &self.engine {
            Engine::Backtracking(backtracker) => {
                backtracker.look(text.as_bytes(), false, most, stop, &mut |found| {
                    match found {
                        Found::Match(place) => take(line(place.start), LineReason::Matches),
                        Found::Undecided(line) => take(line, LineReason::Undecided),
                    }
                    true
                })
            }
            Engine::Linear(matcher) => {
                let (mut at, mut matches) = (0, 0);
                while at < text.len() && matches < most {
                    let line = line(at);
                    at = line.end + 1;
                    if matcher.is_match(text[line.clone()].as_bytes()).unwrap_or(false) {
                        matches += 1;
                        take(line, LineReason::Matches);
                    }
                }
                text.len()
            }
        }
    }

    /// Whether it is matched over the ends of lines: because it was asked for, or because the pattern has
    /// one in it.
    pub fn multiline(&self) -> bool {
        self.multiline
    }

    fn text(
        wanted: PatternOptions<'_>,
        understood: PatternSyntax,
    ) -> Result<Pattern, PatternError> {
        let escaped = regex_syntax::escape(wanted.pattern);
        let hir =
            parse(&PatternOptions { pattern: &escaped, ..wanted }).map_err(|_| too_large())?;
        Pattern::linear(wanted, &escaped, &hir, understood)
    }

    fn linear(
        wanted: PatternOptions<'_>,
        pattern: &str,
        hir: &Hir,
        understood: PatternSyntax,
    ) -> Result<Pattern, PatternError> {
        let multiline = wanted.multiline || crosses_lines(hir);
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(wanted.ignore_case)
            .multi_line(true)
            .unicode(true)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_CACHE_BYTES)
            .nest_limit(MAX_NESTING)
            .crlf(true);
        if multiline {
            builder.line_terminator(None).dot_matches_new_line(wanted.multiline);
        }
        let matcher = builder.build(pattern).map_err(|_| too_large())?;
        let (ascii, plan) = (is_ascii(hir), TrigramQuery::of(hir));
        let (engine, source) = (Engine::Linear(matcher), wanted.into());
        Ok(Pattern { engine, multiline, ascii, plan, source, understood })
    }

    fn backtracking(
        wanted: PatternOptions<'_>,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Pattern, PatternError> {
        let case = if wanted.ignore_case { "i" } else { "" };
        let lines = if wanted.multiline { "ms" } else { "m" };
        let pattern = format!("(?{case}{lines}:{})", wanted.pattern);
        match Backtracker::new(pattern, processes, stop) {
            Ok(backtracker) => Ok(Pattern {
                engine: Engine::Backtracking(backtracker),
                multiline: wanted.multiline,
                ascii: false,
                plan: TrigramQuery::All,
                source: wanted.into(),
                understood: PatternSyntax::WithLookAround,
            }),
            Err(Unready::Wrong(why)) => {
                Pattern::text(wanted, PatternSyntax::AsText { why, column: 1 })
            }
            Err(Unready::TooLarge) => Err(too_large()),
            Err(Unready::NoProcess(why)) => Err(PatternError(format!(
                "a pattern with look-around cannot be searched for: {why}"
            ))),
        }
    }
}

impl From<PatternOptions<'_>> for Source {
    fn from(wanted: PatternOptions<'_>) -> Self {
        let PatternOptions { pattern, literal, ignore_case, multiline } = wanted;
        Source { pattern: pattern.to_owned(), literal, ignore_case, multiline }
    }
}

enum Unparsed {
    /// What the linear engine does not have.
    LookAround,
    TooLarge,
    Wrong {
        why: String,
        column: usize,
    },
}

fn parse(wanted: &PatternOptions<'_>) -> Result<Hir, Unparsed> {
    let mut parser = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .case_insensitive(wanted.ignore_case)
        .multi_line(true)
        .dot_matches_new_line(wanted.multiline)
        .utf8(false)
        .build();
    let at = |offset: usize| wanted.pattern[..offset].chars().count() + 1;
    parser.parse(wanted.pattern).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => match error.kind() {
            ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference => {
                Unparsed::LookAround
            }
            ErrorKind::NestLimitExceeded(_) => Unparsed::TooLarge,
            kind => {
                Unparsed::Wrong { why: kind.to_string(), column: at(error.span().start.offset) }
            }
        },
        regex_syntax::Error::Translate(error) => {
            Unparsed::Wrong { why: error.kind().to_string(), column: at(error.span().start.offset) }
        }
        _ => Unparsed::TooLarge,
    })
}

/// Whether a line's end is spelled out in it.
fn crosses_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Repetition(repetition) => crosses_lines(&repetition.sub),
        HirKind::Capture(capture) => crosses_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(crosses_lines),
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

/// Whether all that it can match is ASCII, wherever that stands.
fn is_ascii(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(literal) => literal.0.is_ascii(),
        HirKind::Class(Class::Unicode(class)) => class.is_ascii(),
        HirKind::Class(Class::Bytes(class)) => class.is_ascii(),
        HirKind::Look(look) => !matches!(
            look,
            regex_syntax::hir::Look::WordUnicode
                | regex_syntax::hir::Look::WordUnicodeNegate
                | regex_syntax::hir::Look::WordStartUnicode
                | regex_syntax::hir::Look::WordEndUnicode
                | regex_syntax::hir::Look::WordStartHalfUnicode
                | regex_syntax::hir::Look::WordEndHalfUnicode
        ),
        HirKind::Repetition(repetition) => is_ascii(&repetition.sub),
        HirKind::Capture(capture) => is_ascii(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(is_ascii),
    }
}

fn too_large() -> PatternError {
    PatternError("the pattern is too large once it is made ready".to_owned())
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::backtrack::InThisProcess;

    fn wanted(pattern: &str) -> PatternOptions<'_> {
        PatternOptions { pattern, literal: false, ignore_case: false, multiline: false }
    }

    fn ready(pattern: &str) -> Result<Pattern, PatternError> {
        let never = || false;
        let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
        Pattern::new(wanted(pattern), &InThisProcess::shared(), &stop)
    }

    #[test]
    fn each_pattern_finds_its_engine() {
        let understood = |pattern: &str| ready(pattern).unwrap().understood.clone();
        assert_eq!(understood(r"\bword\b"), PatternSyntax::AsWritten);
        assert_eq!(understood("(?<=x)y"), PatternSyntax::WithLookAround);
        assert_eq!(understood(r"(a)\1"), PatternSyntax::WithLookAround);
        assert!(matches!(understood("foo("), PatternSyntax::AsText { column: 4, .. }));
        assert!(matches!(understood("a{"), PatternSyntax::AsText { .. }));
    }

    #[test]
    fn what_would_take_all_memory_is_refused() {
        for bomb in ["(?:a{1000}){1000}", r"\p{L}{5000}", &"(".repeat(500), &"x".repeat(1 << 20)] {
            let built = ready(bomb).map(|pattern| pattern.understood);
            let as_text = matches!(built, Ok(PatternSyntax::AsText { .. }));
            assert!(built.is_err() || as_text, "{}", &bomb[..10]);
        }
    }

    #[test]
    fn ascii_is_told_from_the_rest() {
        let ascii = |pattern: &str| ready(pattern).unwrap().ascii;
        assert!(ascii("[A-Z]+_RESUME") && ascii("^struct x$"));
        assert!(!ascii("a.c") && !ascii(r"\w") && !ascii("é") && !ascii(r"\bx"));
    }
}
