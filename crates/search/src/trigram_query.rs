//! The trigrams that a text must contain for a pattern to match.
//!
//! The query is derived from the same syntax tree as the matcher. It must accept every text in which the
//! pattern matches. It may accept other texts too, since accepted texts are searched. So every step may drop
//! a condition, but none may add a wrong one. For unsupported parts the query is [`TrigramQuery::All`], which
//! accepts every text.
//!
//! Each part of the tree has the set of strings that it can match, as long as that is small. Otherwise it has
//! the bytes that it begins and ends with, and a query for the bytes between. Where two parts are
//! concatenated, the end of one and the beginning of the other are adjacent.

mod strings;
#[cfg(test)]
mod tests;

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use self::strings::Strings;
use crate::trigram::{Trigram, trigram};

/// A condition on the trigrams of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrigramQuery {
    /// Accepts every text.
    All,
    /// The text contains these three bytes.
    Gram(Trigram),
    /// The text contains these two bytes, seven bits of each.
    Pair(u32),
    /// All of these accept the text.
    Every(Vec<TrigramQuery>),
    /// One of these accepts the text.
    Any(Vec<TrigramQuery>),
}

/// Limit of terms. Further terms of a conjunction are dropped.
const MAX_TERMS: usize = 256;

/// Limit of trigrams for one string. More are hardly more selective.
const MAX_GRAMS: usize = 24;

/// Limit of copies of a repeated part.
const MAX_COPIES: u32 = 8;

/// Length of the kept prefixes and suffixes: a trigram without one byte.
const EDGE: usize = 2;

impl TrigramQuery {
    /// A query that accepts every text in which the pattern matches.
    pub(crate) fn of(hir: &Hir) -> TrigramQuery {
        known(hir).end()
    }

    /// Whether it accepts every text.
    pub(crate) fn is_all(&self) -> bool {
        *self == TrigramQuery::All
    }

    fn and(self, other: TrigramQuery) -> TrigramQuery {
        let mut terms = match (self, other) {
            (TrigramQuery::All, one) | (one, TrigramQuery::All) => return one,
            (TrigramQuery::Every(some), _) if some.len() >= MAX_TERMS => {
                return TrigramQuery::Every(some);
            }
            (TrigramQuery::Every(mut some), TrigramQuery::Every(more)) => {
                some.extend(more);
                some
            }
            (TrigramQuery::Every(mut some), one) | (one, TrigramQuery::Every(mut some)) => {
                some.push(one);
                some
            }
            (one, two) => vec![one, two],
        };
        terms.sort_unstable();
        terms.dedup();
        terms.truncate(MAX_TERMS);
        one_or(terms, TrigramQuery::Every)
    }

    fn or(self, other: TrigramQuery) -> TrigramQuery {
        let mut terms = match (self, other) {
            (TrigramQuery::All, _) | (_, TrigramQuery::All) => return TrigramQuery::All,
            (TrigramQuery::Any(mut some), TrigramQuery::Any(more)) => {
                some.extend(more);
                some
            }
            (TrigramQuery::Any(mut some), one) | (one, TrigramQuery::Any(mut some)) => {
                some.push(one);
                some
            }
            (one, two) => vec![one, two],
        };
        terms.sort_unstable();
        terms.dedup();
        if terms.len() > MAX_TERMS { TrigramQuery::All } else { one_or(terms, TrigramQuery::Any) }
    }

    /// The text contains one of these strings.
    fn strings(strings: &Strings) -> TrigramQuery {
        strings
            .iter()
            .map(TrigramQuery::string)
            .reduce(TrigramQuery::or)
            .unwrap_or(TrigramQuery::All)
    }

    fn string(string: &[u8]) -> TrigramQuery {
        match string {
            [] | [_] => TrigramQuery::All,
            [one, two] => TrigramQuery::Pair(trigram([0, *one, *two])),
            _ => {
                let windows: Vec<&[u8]> = string.windows(3).collect();
                let step = windows.len().div_ceil(MAX_GRAMS);
                let mut terms: Vec<TrigramQuery> = windows
                    .into_iter()
                    .step_by(step)
                    .map(|window| TrigramQuery::Gram(trigram([window[0], window[1], window[2]])))
                    .collect();
                terms.sort_unstable();
                terms.dedup();
                one_or(terms, TrigramQuery::Every)
            }
        }
    }
}

fn one_or(
    mut terms: Vec<TrigramQuery>,
    many: impl FnOnce(Vec<TrigramQuery>) -> TrigramQuery,
) -> TrigramQuery {
    match (terms.len(), terms.pop()) {
        (1, Some(one)) => one,
        (_, Some(last)) => {
            terms.push(last);
            many(terms)
        }
        (_, None) => TrigramQuery::All,
    }
}

/// Properties of every string that a part of the tree matches.
#[derive(Clone)]
struct Known {
    /// The string is one of these, if they are few.
    exact: Option<Strings>,
    /// The string begins with one of `starts` and ends with one of `ends`. Not used together with `exact`.
    starts: Strings,
    ends: Strings,
    /// Further conditions on the string.
    plan: TrigramQuery,
}

impl Known {
    fn nothing() -> Known {
        Known {
            exact: None,
            starts: Strings::empty(),
            ends: Strings::empty(),
            plan: TrigramQuery::All,
        }
    }

    fn exact(strings: Strings) -> Known {
        Known { exact: Some(strings), ..Known::nothing() }
    }

    /// Replaces the exact strings by their query, prefixes and suffixes.
    fn loose(self) -> Known {
        let Some(exact) = self.exact else { return self };
        Known {
            plan: self.plan.and(TrigramQuery::strings(&exact)),
            starts: exact.firsts(EDGE),
            ends: exact.lasts(EDGE),
            exact: None,
        }
    }

    fn end(self) -> TrigramQuery {
        self.loose().plan
    }

    fn head(&self) -> &Strings {
        self.exact.as_ref().unwrap_or(&self.starts)
    }

    fn tail(&self) -> &Strings {
        self.exact.as_ref().unwrap_or(&self.ends)
    }

    fn then(self, next: Known) -> Known {
        if let (Some(one), Some(two)) = (&self.exact, &next.exact)
            && let Some(exact) = one.times(two)
        {
            return Known { plan: self.plan.and(next.plan), ..Known::exact(exact) };
        }
        let meeting = meeting(self.tail(), next.head());
        // A string that is shorter than an edge continues in its neighbour.
        let starts = match &self.exact {
            Some(exact) => exact.times(next.head()).as_ref().unwrap_or(exact).firsts(EDGE),
            None => self.starts.clone(),
        };
        let ends = match &next.exact {
            Some(exact) => self.tail().times(exact).as_ref().unwrap_or(exact).lasts(EDGE),
            None => next.ends.clone(),
        };
        let plan = self.loose().plan.and(next.loose().plan).and(meeting);
        Known { exact: None, starts, ends, plan }
    }

    fn or(self, other: Known) -> Known {
        if let (Some(one), Some(two)) = (&self.exact, &other.exact)
            && let Some(exact) = one.plus(two)
        {
            return Known { plan: self.plan.or(other.plan), ..Known::exact(exact) };
        }
        let (one, two) = (self.loose(), other.loose());
        Known {
            exact: None,
            starts: one.starts.plus(&two.starts).unwrap_or_else(Strings::empty),
            ends: one.ends.plus(&two.ends).unwrap_or_else(Strings::empty),
            plan: one.plan.or(two.plan),
        }
    }
}

/// A query for a text in which one of `tails` is right before one of `heads`.
fn meeting(tails: &Strings, heads: &Strings) -> TrigramQuery {
    let all =
        |tail: &Strings, head: &Strings| tail.times(head).map(|both| TrigramQuery::strings(&both));
    let whole = all(tails, heads);
    if let Some(whole) = whole.or_else(|| all(&tails.lasts(EDGE), &heads.firsts(EDGE))) {
        return whole;
    }
    let halves = [(EDGE, 1), (1, EDGE)].map(|(tail, head)| {
        all(&tails.lasts(tail), &heads.firsts(head)).unwrap_or(TrigramQuery::All)
    });
    halves.into_iter().fold(TrigramQuery::All, TrigramQuery::and)
}

fn known(hir: &Hir) -> Known {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Known::exact(Strings::empty()),
        HirKind::Literal(literal) => Known::exact(Strings::one(&literal.0)),
        HirKind::Class(class) => class_strings(class).map_or_else(Known::nothing, Known::exact),
        HirKind::Capture(capture) => known(&capture.sub),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Concat(parts) => {
            parts.iter().map(known).reduce(Known::then).unwrap_or_else(Known::nothing)
        }
        HirKind::Alternation(parts) => {
            parts.iter().map(known).reduce(Known::or).unwrap_or_else(Known::nothing)
        }
    }
}

fn repeated(repetition: &Repetition) -> Known {
    let empty = || Known::exact(Strings::empty());
    match (repetition.min, repetition.max) {
        (_, Some(0)) => empty(),
        (0, Some(1)) => empty().or(known(&repetition.sub)),
        (0, _) => Known::nothing(),
        (min, max) => {
            let copies = min.min(MAX_COPIES);
            let one = known(&repetition.sub);
            let all = (1..copies).fold(one.clone(), |all, _| all.then(one.clone()));
            if max == Some(copies) { all } else { all.loose() }
        }
    }
}

/// The characters of a class in UTF-8, if they are few.
fn class_strings(class: &Class) -> Option<Strings> {
    match class {
        Class::Unicode(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            let chars = || class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let bytes = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
            Strings::few(count, || chars().map(bytes).collect())
        }
        Class::Bytes(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            let bytes = || class.ranges().iter().flat_map(|range| range.start()..=range.end());
            Strings::few(count, || bytes().map(|byte| vec![byte]).collect())
        }
    }
}
