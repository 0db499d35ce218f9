//! What a text must have in it for a pattern to match: a condition on its trigrams.
//!
//! It is made from the same syntax tree as the matcher, and it is never wrong in one direction: a text in
//! which the pattern matches meets it. In the other direction it may be as weak as it likes, since what
//! meets it is searched. So every step here may forget something and none may invent something; what is
//! not understood is [`Plan::All`], which every text meets.
//!
//! For each part of the tree there are the strings that it can match, as long as they are few; beyond that
//! the bytes that it begins and ends with, and a condition on what is between. Where two parts meet, the end
//! of the one and the beginning of the other stand side by side.

mod strings;
#[cfg(test)]
mod tests;

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use self::strings::Strings;
use crate::trigram::{Trigram, trigram};

/// A condition on the trigrams of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrigramQuery {
    /// Every text meets it.
    All,
    /// These three bytes are in it.
    Gram(Trigram),
    /// These two bytes are in it, seven bits of each.
    Pair(u32),
    /// All of these hold.
    Every(Vec<TrigramQuery>),
    /// One of these holds.
    Any(Vec<TrigramQuery>),
}

/// So many conditions stand side by side; of more that must all hold, some are forgotten.
const MAX_TERMS: usize = 256;

/// So many trigrams of one string are asked for: more hardly narrow it.
const MAX_GRAMS: usize = 24;

/// So often a repetition is written out.
const MAX_COPIES: u32 = 8;

/// What is forgotten is forgotten at so many bytes: the rest of a trigram.
const EDGE: usize = 2;

impl TrigramQuery {
    /// What every text has in which the pattern matches.
    pub(crate) fn of(hir: &Hir) -> TrigramQuery {
        known(hir).end()
    }

    /// Whether it says nothing.
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

    /// One of these strings is in the text.
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

/// What is known of all that a part of the tree matches.
#[derive(Clone)]
struct Known {
    /// It is one of these, if they are few.
    exact: Option<Strings>,
    /// It begins with one of these, and ends with one of those. Not kept beside `exact`.
    starts: Strings,
    ends: Strings,
    /// What is in it besides.
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

    /// The same without the strings themselves: what they have in them, and their edges.
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
        // What is shorter than an edge goes on in its neighbour.
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

/// What is in a text where one of these stands right before one of those.
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

/// The characters of a class, each by its bytes, if they are few.
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
