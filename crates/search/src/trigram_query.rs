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

mod string_set;
#[cfg(test)]
mod tests;

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use self::string_set::StringSet;
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
    And(Vec<TrigramQuery>),
    /// One of these accepts the text.
    Or(Vec<TrigramQuery>),
}

/// Limit of terms. Further terms of a conjunction are dropped.
const MAX_TERMS: usize = 256;

/// Limit of trigrams for one string. More are hardly more selective.
const MAX_GRAMS: usize = 24;

/// Limit of copies of a repeated part.
const MAX_COPIES: u32 = 8;

/// Length of the kept prefixes and suffixes: a trigram without one byte.
const EDGE_BYTES: usize = 2;

impl TrigramQuery {
    /// A query that accepts every text in which the pattern matches.
    pub(crate) fn of(hir: &Hir) -> TrigramQuery {
        regex_info(hir).into_query()
    }

    /// Whether it accepts every text.
    pub(crate) fn is_all(&self) -> bool {
        *self == TrigramQuery::All
    }

    fn and(self, other: TrigramQuery) -> TrigramQuery {
        let mut terms = match (self, other) {
            (TrigramQuery::All, one) | (one, TrigramQuery::All) => return one,
            (TrigramQuery::And(some), _) if some.len() >= MAX_TERMS => {
                return TrigramQuery::And(some);
            }
            (TrigramQuery::And(mut some), TrigramQuery::And(more)) => {
                some.extend(more);
                some
            }
            (TrigramQuery::And(mut some), one) | (one, TrigramQuery::And(mut some)) => {
                some.push(one);
                some
            }
            (one, two) => vec![one, two],
        };
        terms.sort_unstable();
        terms.dedup();
        terms.truncate(MAX_TERMS);
        single_or(terms, TrigramQuery::And)
    }

    fn or(self, other: TrigramQuery) -> TrigramQuery {
        let mut terms = match (self, other) {
            (TrigramQuery::All, _) | (_, TrigramQuery::All) => return TrigramQuery::All,
            (TrigramQuery::Or(mut some), TrigramQuery::Or(more)) => {
                some.extend(more);
                some
            }
            (TrigramQuery::Or(mut some), one) | (one, TrigramQuery::Or(mut some)) => {
                some.push(one);
                some
            }
            (one, two) => vec![one, two],
        };
        terms.sort_unstable();
        terms.dedup();
        if terms.len() > MAX_TERMS { TrigramQuery::All } else { single_or(terms, TrigramQuery::Or) }
    }

    /// The text contains one of these strings.
    fn strings(strings: &StringSet) -> TrigramQuery {
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
                single_or(terms, TrigramQuery::And)
            }
        }
    }
}

fn single_or(
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
struct RegexInfo {
    /// The string is one of these, if they are few.
    exact: Option<StringSet>,
    /// The string begins with one of `starts` and ends with one of `ends`. Not used together with `exact`.
    starts: StringSet,
    ends: StringSet,
    /// Further conditions on the string.
    query: TrigramQuery,
}

impl RegexInfo {
    fn nothing() -> RegexInfo {
        RegexInfo {
            exact: None,
            starts: StringSet::empty(),
            ends: StringSet::empty(),
            query: TrigramQuery::All,
        }
    }

    fn exact(strings: StringSet) -> RegexInfo {
        RegexInfo { exact: Some(strings), ..RegexInfo::nothing() }
    }

    /// Replaces the exact strings by their query, prefixes and suffixes.
    fn without_exact(self) -> RegexInfo {
        let Some(exact) = self.exact else { return self };
        RegexInfo {
            query: self.query.and(TrigramQuery::strings(&exact)),
            starts: exact.prefixes(EDGE_BYTES),
            ends: exact.suffixes(EDGE_BYTES),
            exact: None,
        }
    }

    fn into_query(self) -> TrigramQuery {
        self.without_exact().query
    }

    fn head(&self) -> &StringSet {
        self.exact.as_ref().unwrap_or(&self.starts)
    }

    fn tail(&self) -> &StringSet {
        self.exact.as_ref().unwrap_or(&self.ends)
    }

    fn then(self, next: RegexInfo) -> RegexInfo {
        if let (Some(one), Some(two)) = (&self.exact, &next.exact)
            && let Some(exact) = one.cross_product(two)
        {
            return RegexInfo { query: self.query.and(next.query), ..RegexInfo::exact(exact) };
        }
        let adjacent = adjacent(self.tail(), next.head());
        // A string that is shorter than an edge continues in its neighbour.
        let starts = match &self.exact {
            Some(exact) => {
                exact.cross_product(next.head()).as_ref().unwrap_or(exact).prefixes(EDGE_BYTES)
            }
            None => self.starts.clone(),
        };
        let ends = match &next.exact {
            Some(exact) => {
                self.tail().cross_product(exact).as_ref().unwrap_or(exact).suffixes(EDGE_BYTES)
            }
            None => next.ends.clone(),
        };
        let query = self.without_exact().query.and(next.without_exact().query).and(adjacent);
        RegexInfo { exact: None, starts, ends, query }
    }

    fn or(self, other: RegexInfo) -> RegexInfo {
        if let (Some(one), Some(two)) = (&self.exact, &other.exact)
            && let Some(exact) = one.union(two)
        {
            return RegexInfo { query: self.query.or(other.query), ..RegexInfo::exact(exact) };
        }
        let (one, two) = (self.without_exact(), other.without_exact());
        RegexInfo {
            exact: None,
            starts: one.starts.union(&two.starts).unwrap_or_else(StringSet::empty),
            ends: one.ends.union(&two.ends).unwrap_or_else(StringSet::empty),
            query: one.query.or(two.query),
        }
    }
}

/// A query for a text in which one of `tails` is right before one of `heads`.
fn adjacent(tails: &StringSet, heads: &StringSet) -> TrigramQuery {
    let all = |tail: &StringSet, head: &StringSet| {
        tail.cross_product(head).map(|both| TrigramQuery::strings(&both))
    };
    let whole = all(tails, heads);
    if let Some(whole) =
        whole.or_else(|| all(&tails.suffixes(EDGE_BYTES), &heads.prefixes(EDGE_BYTES)))
    {
        return whole;
    }
    let halves = [(EDGE_BYTES, 1), (1, EDGE_BYTES)].map(|(tail, head)| {
        all(&tails.suffixes(tail), &heads.prefixes(head)).unwrap_or(TrigramQuery::All)
    });
    halves.into_iter().fold(TrigramQuery::All, TrigramQuery::and)
}

fn regex_info(hir: &Hir) -> RegexInfo {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => RegexInfo::exact(StringSet::empty()),
        HirKind::Literal(literal) => RegexInfo::exact(StringSet::one(&literal.0)),
        HirKind::Class(class) => {
            class_strings(class).map_or_else(RegexInfo::nothing, RegexInfo::exact)
        }
        HirKind::Capture(capture) => regex_info(&capture.sub),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Concat(parts) => {
            parts.iter().map(regex_info).reduce(RegexInfo::then).unwrap_or_else(RegexInfo::nothing)
        }
        HirKind::Alternation(parts) => {
            parts.iter().map(regex_info).reduce(RegexInfo::or).unwrap_or_else(RegexInfo::nothing)
        }
    }
}

fn repeated(repetition: &Repetition) -> RegexInfo {
    let empty = || RegexInfo::exact(StringSet::empty());
    match (repetition.min, repetition.max) {
        (_, Some(0)) => empty(),
        (0, Some(1)) => empty().or(regex_info(&repetition.sub)),
        (0, _) => RegexInfo::nothing(),
        (min, max) => {
            let copies = min.min(MAX_COPIES);
            let one = regex_info(&repetition.sub);
            let all = (1..copies).fold(one.clone(), |all, _| all.then(one.clone()));
            if max == Some(copies) { all } else { all.without_exact() }
        }
    }
}

/// The characters of a class in UTF-8, if they are few.
fn class_strings(class: &Class) -> Option<StringSet> {
    match class {
        Class::Unicode(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            let chars = || class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let bytes = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
            StringSet::if_few(count, || chars().map(bytes).collect())
        }
        Class::Bytes(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            let bytes = || class.ranges().iter().flat_map(|range| range.start()..=range.end());
            StringSet::if_few(count, || bytes().map(|byte| vec![byte]).collect())
        }
    }
}
