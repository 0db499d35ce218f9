//! A compiled search pattern, with the engine that can match it.
//!
//! The default engine runs in linear time. Patterns with look-around or backreferences use a backtracking
//! engine in a separate process. An invalid pattern is searched for as literal text, and the caller is
//! informed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::ErrorKind;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::backtrack::{Backtracker, CompileError, Found, Processes};
use crate::deadline::Deadline;
use crate::line_around::line_around;
use crate::matcher_cache::{MatcherCache, MatcherKey};
use crate::trigram_query::TrigramQuery;

/// A pattern and its options.
#[derive(Debug, Clone, Copy)]
pub struct PatternOptions<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// The pattern is literal text.
    pub literal: bool,
    /// Ignore case.
    pub ignore_case: bool,
    /// Matches may span lines.
    pub multiline: bool,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    pub(crate) engine: Engine,
    pub(crate) multiline: bool,
    /// Whether it matches ASCII only. Such a pattern can be searched for in the bytes of any encoding that
    /// extends ASCII.
    pub(crate) ascii: bool,
    /// The trigrams that a matching text must contain.
    pub(crate) trigram_query: TrigramQuery,
    source: PatternSource,
    understood: PatternSyntax,
}

#[derive(Debug)]
struct PatternSource {
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

/// How a pattern was interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternSyntax {
    /// As written.
    AsWritten,
    /// With the backtracking engine.
    WithLookAround,
    /// As literal text, since it is invalid.
    AsText {
        /// Why it is invalid.
        why: String,
        /// The column of the error, in characters from 1.
        column: usize,
    },
}

/// Why a line is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineReason {
    /// It matches.
    Matches,
    /// It is undecided: the pattern backtracks too much on it.
    Undecided,
}

/// Why a pattern cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(String);

/// The linear patterns of all roots and sessions.
static MATCHERS: MatcherCache = MatcherCache::new();

/// Longer than any useful pattern.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Memory limit of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// Memory limit of the engine's cache while it runs.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// Limit of nested groups.
const MAX_NESTING: u32 = 200;

impl Pattern {
    /// Compiles a pattern. A pattern with look-around runs in one of `processes`.
    pub fn new(
        options: PatternOptions<'_>,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Pattern, PatternError> {
        if options.pattern.len() > MAX_PATTERN_BYTES {
            let message = format!(
                "the pattern has {} bytes, more than the {MAX_PATTERN_BYTES} allowed",
                options.pattern.len()
            );
            return Err(PatternError(message));
        }
        if options.literal {
            return Pattern::text(options, PatternSyntax::AsWritten);
        }
        match parse(&options) {
            Ok(hir) => Pattern::linear(options, options.pattern, &hir, PatternSyntax::AsWritten),
            Err(ParseFailure::LookAround) => Pattern::backtracking(options, processes, stop),
            Err(ParseFailure::TooLarge) => Err(too_large()),
            Err(ParseFailure::Wrong { why, column }) => {
                Pattern::text(options, PatternSyntax::AsText { why, column })
            }
        }
    }

    /// Compiles the pattern again, for a background thread. `None` if it runs in a process.
    pub(crate) fn duplicate(&self) -> Option<Pattern> {
        let PatternSource { pattern, literal, ignore_case, multiline } = &self.source;
        let (literal, ignore_case, multiline) = (*literal, *ignore_case, *multiline);
        let options = PatternOptions { pattern, literal, ignore_case, multiline };
        if literal || matches!(self.understood, PatternSyntax::AsText { .. }) {
            return Pattern::text(options, self.understood.clone()).ok();
        }
        let hir = parse(&options).ok()?;
        Pattern::linear(options, pattern, &hir, PatternSyntax::AsWritten).ok()
    }

    /// How it was interpreted.
    pub fn understood(&self) -> &PatternSyntax {
        &self.understood
    }

    /// Passes the matching and the undecided lines of a text to `take`, in order, each without its line end,
    /// up to `most` matches. Returns how far the text was searched: `text.len()`, unless the deadline passed
    /// first.
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
                backtracker.search(text.as_bytes(), most, stop, &mut |found| {
                    match found {
                        Found::Match(range) => take(line(range.start), LineReason::Matches),
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

    /// Whether matches may span lines, because that was requested or because the pattern contains a line end.
    pub fn multiline(&self) -> bool {
        self.multiline
    }

    fn text(
        options: PatternOptions<'_>,
        understood: PatternSyntax,
    ) -> Result<Pattern, PatternError> {
        let escaped = regex_syntax::escape(options.pattern);
        let hir =
            parse(&PatternOptions { pattern: &escaped, ..options }).map_err(|_| too_large())?;
        Pattern::linear(options, &escaped, &hir, understood)
    }

    fn linear(
        options: PatternOptions<'_>,
        pattern: &str,
        hir: &Hir,
        understood: PatternSyntax,
    ) -> Result<Pattern, PatternError> {
        let multiline = options.multiline || crosses_lines(hir);
        let key = MatcherKey {
            pattern: pattern.to_owned(),
            ignore_case: options.ignore_case,
            crosses_lines: multiline,
            dot_matches_new_line: options.multiline,
        };
        let matcher = MATCHERS.get(key, compile)?;
        let (ascii, trigram_query) = (is_ascii(hir), TrigramQuery::of(hir));
        let (engine, source) = (Engine::Linear(matcher), options.into());
        Ok(Pattern { engine, multiline, ascii, trigram_query, source, understood })
    }

    fn backtracking(
        options: PatternOptions<'_>,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Pattern, PatternError> {
        let case = if options.ignore_case { "i" } else { "" };
        let lines = if options.multiline { "ms" } else { "m" };
        let pattern = format!("(?{case}{lines}:{})", options.pattern);
        match Backtracker::new(pattern, options.multiline, processes, stop) {
            Ok(backtracker) => Ok(Pattern {
                trigram_query: backtracker
                    .prefilter()
                    .map_or(TrigramQuery::All, |prefilter| TrigramQuery::of(prefilter.hir())),
                engine: Engine::Backtracking(backtracker),
                multiline: options.multiline,
                ascii: false,
                source: options.into(),
                understood: PatternSyntax::WithLookAround,
            }),
            Err(CompileError::Invalid(why)) => {
                Pattern::text(options, PatternSyntax::AsText { why, column: 1 })
            }
            Err(CompileError::TooLarge) => Err(too_large()),
            Err(CompileError::NoProcess(why)) => {
                Err(PatternError(format!("a pattern with look-around cannot be searched: {why}")))
            }
        }
    }
}

fn compile(key: &MatcherKey) -> Result<RegexMatcher, PatternError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(key.ignore_case)
        .multi_line(true)
        .unicode(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .nest_limit(MAX_NESTING)
        .crlf(true);
    if key.crosses_lines {
        builder.line_terminator(None).dot_matches_new_line(key.dot_matches_new_line);
    }
    builder.build(&key.pattern).map_err(|_| too_large())
}

impl From<PatternOptions<'_>> for PatternSource {
    fn from(options: PatternOptions<'_>) -> Self {
        let PatternOptions { pattern, literal, ignore_case, multiline } = options;
        PatternSource { pattern: pattern.to_owned(), literal, ignore_case, multiline }
    }
}

enum ParseFailure {
    /// The linear engine does not support it.
    LookAround,
    TooLarge,
    Wrong {
        why: String,
        column: usize,
    },
}

fn parse(options: &PatternOptions<'_>) -> Result<Hir, ParseFailure> {
    let mut parser = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .case_insensitive(options.ignore_case)
        .multi_line(true)
        .dot_matches_new_line(options.multiline)
        .utf8(false)
        .build();
    let at = |offset: usize| options.pattern[..offset].chars().count() + 1;
    parser.parse(options.pattern).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => match error.kind() {
            ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference => {
                ParseFailure::LookAround
            }
            ErrorKind::NestLimitExceeded(_) => ParseFailure::TooLarge,
            kind => {
                ParseFailure::Wrong { why: kind.to_string(), column: at(error.span().start.offset) }
            }
        },
        regex_syntax::Error::Translate(error) => ParseFailure::Wrong {
            why: error.kind().to_string(),
            column: at(error.span().start.offset),
        },
        _ => ParseFailure::TooLarge,
    })
}

/// Whether the pattern contains a literal line end.
fn crosses_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Repetition(repetition) => crosses_lines(&repetition.sub),
        HirKind::Capture(capture) => crosses_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(crosses_lines),
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

/// Whether everything that it can match is ASCII, in any context.
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
    PatternError("the compiled pattern is too large".to_owned())
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

    fn options(pattern: &str) -> PatternOptions<'_> {
        PatternOptions { pattern, literal: false, ignore_case: false, multiline: false }
    }

    fn ready(pattern: &str) -> Result<Pattern, PatternError> {
        let never = || false;
        let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
        Pattern::new(options(pattern), &InThisProcess::shared(), &stop)
    }

    #[test]
    fn each_pattern_gets_its_engine() {
        let understood = |pattern: &str| ready(pattern).unwrap().understood.clone();
        assert_eq!(understood(r"\bword\b"), PatternSyntax::AsWritten);
        assert_eq!(understood("(?<=x)y"), PatternSyntax::WithLookAround);
        assert_eq!(understood(r"(a)\1"), PatternSyntax::WithLookAround);
        assert!(matches!(understood("foo("), PatternSyntax::AsText { column: 4, .. }));
        assert!(matches!(understood("a{"), PatternSyntax::AsText { .. }));
    }

    #[test]
    fn a_pattern_that_needs_too_much_memory_is_rejected() {
        for bomb in ["(?:a{1000}){1000}", r"\p{L}{5000}", &"(".repeat(500), &"x".repeat(1 << 20)] {
            let built = ready(bomb).map(|pattern| pattern.understood);
            let as_text = matches!(built, Ok(PatternSyntax::AsText { .. }));
            assert!(built.is_err() || as_text, "{}", &bomb[..10]);
        }
    }

    #[test]
    fn patterns_that_match_only_ascii_are_recognized() {
        let ascii = |pattern: &str| ready(pattern).unwrap().ascii;
        assert!(ascii("[A-Z]+_RESUME") && ascii("^struct x$"));
        assert!(!ascii("a.c") && !ascii(r"\w") && !ascii("é") && !ascii(r"\bx"));
    }
}
