//! Matches that differ only in whitespace, quotes and the like.

use toolcrib_text::{
    Adaptation, Difference, EndingFinder, Endings, Equivalent, MAX_EQUIVALENTS, SoughtText,
    find_all, find_equivalents, from_visible, line_numbers, without_line_numbers,
};

use super::{Match, Replacement, several};
use crate::error::Error;
use crate::message_names::{NEAR_LINE, NEW_STRING, OLD_STRING, REPLACE_ALL};

/// How a text was matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Matched {
    #[default]
    Exact,
    /// Except for this difference.
    Except(Difference, Adaptation),
    /// Except for line numbers before each line, and for this difference.
    Numbered(Option<(Difference, Adaptation)>),
    /// With `\\xNN` read as bytes, as Read shows them.
    ShownBytes,
}

impl Matched {
    /// Name in the metadata.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Matched::Exact => "exact",
            Matched::Except(difference, _) => difference.name(),
            Matched::Numbered(_) => "line_numbers",
            Matched::ShownBytes => "shown_bytes",
        }
    }

    /// The note for the reply. `None` for an exact match.
    pub(crate) fn note(self) -> Option<String> {
        let numbers = "the line numbers in it, which were removed";
        Some(match self {
            Matched::Exact => return None,
            Matched::ShownBytes => format!(
                "`{OLD_STRING}` matched with each \\xNN read as a byte. `{NEW_STRING}` was read in the same way."
            ),
            Matched::Except(difference, adaptation) => format!(
                "`{OLD_STRING}` matched except for {}. {}",
                difference.words(),
                written(adaptation)
            ),
            Matched::Numbered(None) => format!("`{OLD_STRING}` matched except for {numbers}."),
            Matched::Numbered(Some((difference, adaptation))) => format!(
                "`{OLD_STRING}` matched except for {numbers}, and {}. {}",
                difference.words(),
                written(adaptation)
            ),
        })
    }
}

/// How the new text was written.
fn written(adaptation: Adaptation) -> String {
    match adaptation.words() {
        None => format!("`{NEW_STRING}` was written as given."),
        Some(parts) => format!("`{NEW_STRING}` was written with the {parts} of the file."),
    }
}

/// The unique inexact match, and its replacement.
pub(super) fn find(
    replacement: &Replacement<'_>,
    was: &[u8],
    endings: Endings,
    shown: &str,
) -> Result<Option<(Match, Matched)>, Error> {
    if let Some((spot, difference)) = at_level(replacement, was, endings, shown)? {
        let new = spot.new.as_deref().unwrap_or_default();
        let adaptation = Adaptation::between(replacement.new, new);
        return Ok(Some((spot, Matched::Except(difference, adaptation))));
    }
    if let Some(found) = without_numbers(replacement, was, endings, shown)? {
        return Ok(Some(found));
    }
    Ok(by_shown_bytes(replacement, was, endings))
}

/// Matches text with bytes that are not UTF-8, copied from the output of Read. The match must be unique.
fn by_shown_bytes(
    replacement: &Replacement<'_>,
    was: &[u8],
    endings: Endings,
) -> Option<(Match, Matched)> {
    let old = from_visible(&endings.adapt(replacement.old))?;
    let places = find_all(was, &old, 2);
    let [at] = places[..] else { return None };
    let new = endings.adapt(replacement.new);
    let new = from_visible(&new).unwrap_or_else(|| new.into_bytes());
    Some((Match { range: at..at + old.len(), new: Some(new) }, Matched::ShownBytes))
}

fn at_level(
    replacement: &Replacement<'_>,
    was: &[u8],
    endings: Endings,
    shown: &str,
) -> Result<Option<(Match, Difference)>, Error> {
    let (old, new) = (SoughtText::new(replacement.old), SoughtText::new(replacement.new));
    let places = find_equivalents(was, endings.terminator(), &old);
    let [place] = places.as_slice() else {
        return if places.is_empty() {
            Ok(None)
        } else {
            Err(ambiguous_inexact(was, endings, shown, &places))
        };
    };
    let range = place.range();
    let ending = EndingFinder::new(was).at(range.start);
    let new = place.rewrite(was, &old, &new, ending);
    Ok(new.map(|new| (Match { range, new: Some(new) }, place.difference())))
}

/// Matches text copied with the line numbers of Read. They must be those of the match: a table whose rows begin
/// with numbers has no line numbers.
fn without_numbers(
    replacement: &Replacement<'_>,
    was: &[u8],
    endings: Endings,
    shown: &str,
) -> Result<Option<(Match, Matched)>, Error> {
    let Some((first, old)) = without_line_numbers(replacement.old) else { return Ok(None) };
    let new = match without_line_numbers(replacement.new) {
        Some((_, new)) => new,
        // If only some lines have numbers, the intended text is unclear.
        None if replacement.new.lines().any(|line| without_line_numbers(line).is_some()) => {
            return Ok(None);
        }
        None => replacement.new.to_owned(),
    };
    let bare = Replacement { old: &old, new: &new, near_line: Some(first), ..*replacement };
    let Ok((spots, matched)) = bare.find(was, endings, shown) else { return Ok(None) };
    let difference = match matched {
        Matched::Except(difference, adaptation) => Some((difference, adaptation)),
        Matched::Exact => None,
        Matched::Numbered(_) | Matched::ShownBytes => return Ok(None),
    };
    let Ok([mut spot]) = <[Match; 1]>::try_from(spots) else { return Ok(None) };
    if line_numbers(was, &[spot.range.start], endings.terminator()) != [first] {
        return Ok(None);
    }
    if spot.new.is_none() {
        let ending = EndingFinder::new(was).at(spot.range.start);
        spot.new = Some(new.replace('\n', ending).into_bytes());
    }
    Ok(Some((spot, Matched::Numbered(difference))))
}

fn ambiguous_inexact(was: &[u8], endings: Endings, shown: &str, places: &[Equivalent]) -> Error {
    let starts: Vec<usize> = places.iter().map(|place| place.range().start).collect();
    let lines = line_numbers(was, &starts, endings.terminator());
    let but = places.first().map_or(String::new(), |place| place.difference().words());
    let total = lines.len();
    let at_least = if total == MAX_EQUIVALENTS { "at least " } else { "" };
    several(format!("`{OLD_STRING}` has no exact match in {shown}; except for {but} it matches {at_least}{total} times"), &lines)
        .hint(format!("Nothing was done. Copy the text exactly, with surrounding lines to make it unique; {NEAR_LINE} and {REPLACE_ALL} need an exact match."))
}
