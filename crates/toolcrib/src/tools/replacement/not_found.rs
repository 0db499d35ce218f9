//! Explains why a text was not found in a file.

use std::borrow::Cow;
use std::ops::Range;

use toolcrib_text::{
    Likeness, Line, NearestMatch, SoughtText, TextProperties, each_line, find_all,
    find_equivalents, line_numbers, masks, nearest_block, show_invisible, split_lines,
    truncate_line, visible, without_line_numbers,
};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, ErrorKind};
use crate::message_names::{NEW_STRING, OLD_STRING, READ};

/// Lines shown of the most similar block. The whole error stays under 40 lines.
const MAX_BLOCK_LINES: usize = 20;
/// Characters shown of a line.
const MAX_CHARS: usize = 200;
/// Characters shown before the first difference, in a longer line.
const CHARS_BEFORE: usize = 60;
/// Limit of comparisons for finding out whether only blank lines differ.
const MAX_COMPARED_LINES: usize = 1_000_000;
/// A shorter text may occur in many files by chance.
const MIN_CONCLUSIVE_CHARS: usize = 16;

/// Limit of occurrences of `new_string` that are checked for word boundaries.
const MAX_TRIED_PLACES: usize = 1_000;

/// A shorter `new_string` is not reported as present.
const MIN_WORD_CHARS: usize = 4;

/// The error for an `old` that does not occur in the file.
pub(super) fn explain(shown: &str, text: &[u8], old: &str, new: &str) -> Error {
    if text.is_empty() {
        return Error::new(ErrorKind::NoMatch, format!("{shown} is empty"))
            .hint(format!("Nothing was done. Use an empty {OLD_STRING} to fill an empty file."));
    }
    let survey = &TextProperties::of(text);
    let likeness = nearest_block(text, old.as_bytes(), survey.terminator());
    let nearest = match &likeness {
        Likeness::Block(nearest) => Some(nearest),
        Likeness::Nothing | Likeness::NoLine => None,
    };
    let applied = applied(text, survey, new);
    let is_conclusive = new.contains('\n') || new.trim().chars().count() >= MIN_CONCLUSIVE_CHARS;
    match applied {
        Some((line, but)) if is_conclusive => {
            let message = format!(
                "`{OLD_STRING}` is not in {shown}, and `{NEW_STRING}` already is{but}, at line {line}"
            );
            Error::new(ErrorKind::AlreadyApplied, message)
                .detail(nearest.map(describe).unwrap_or_default())
                .hint("Nothing was done. If that line is your change, it is already made: go on.")
                .with("line", line)
        }
        applied => {
            // A single letter or bracket occurs in every file.
            let is_word = new.trim().chars().count() >= MIN_WORD_CHARS;
            let there = applied.filter(|_| is_word).map_or(String::new(), |(line, but)| {
                format!(" (`{NEW_STRING}` occurs{but} at line {line})")
            });
            let message = format!("`{OLD_STRING}` is not in {shown}{there}");
            let detail = match &likeness {
                Likeness::Block(nearest) => describe(nearest),
                Likeness::Nothing => "No similar text was found in the file.".to_owned(),
                Likeness::NoLine => {
                    "None of its lines is in the file. The file is too large for a closer comparison."
                        .to_owned()
                }
            };
            Error::new(ErrorKind::NoMatch, message)
                .detail(detail)
                .hint(hint(text, old, survey, nearest))
        }
    }
}

/// The line of the new text, if the file has it, and the difference if it is not exact.
fn applied(text: &[u8], survey: &TextProperties, new: &str) -> Option<(u64, String)> {
    if new.trim().is_empty() {
        return None;
    }
    let terminator = survey.terminator();
    let line = |place| line_numbers(text, &[place], terminator).first().copied();
    let adapted = survey.endings().adapt(new);
    let places = find_all(text, adapted.as_bytes(), MAX_TRIED_PLACES);
    let is_whole = |place: &&usize| has_word_boundaries(text, &(**place..**place + adapted.len()));
    if let Some(&place) = places.iter().find(is_whole) {
        return Some((line(place)?, String::new()));
    }
    let places = find_equivalents(text, terminator, &SoughtText::new(new));
    let place = places.iter().find(|place| has_word_boundaries(text, &place.range()))?;
    Some((line(place.range().start)?, format!(" except for {}", place.difference().words())))
}

/// Whether a range neither begins nor ends within a word or number.
fn has_word_boundaries(text: &[u8], range: &Range<usize>) -> bool {
    let in_word = |at: Option<usize>| {
        let byte = at.and_then(|at| text.get(at));
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
    };
    let splits_word = |at: usize| in_word(at.checked_sub(1)) && in_word(Some(at));
    !splits_word(range.start) && !splits_word(range.end)
}

/// Shows the most similar block and the first line that differs.
fn describe(nearest: &NearestMatch<'_>) -> String {
    let mut detail = format!("The most similar text begins at line {}:\n", nearest.first_line);
    for (number, line) in
        (nearest.first_line.cast_signed()..).zip(&nearest.lines).take(MAX_BLOCK_LINES)
    {
        let text = truncate_line(&visible(line), MAX_CHARS);
        detail += &Line { number, text, left_out: 0 }.render();
    }
    if nearest.lines.len() > MAX_BLOCK_LINES {
        detail += &format!("[{} more lines]\n", nearest.lines.len() - MAX_BLOCK_LINES);
    }
    let (line, expected, found) = nearest.differs;
    let (expected, standing) = (show_invisible(expected), found.map(show_invisible));
    let same = standing.as_ref().map_or(0, |standing| {
        expected.chars().zip(standing.chars()).take_while(|(a, b)| a == b).count()
    });
    let standing =
        standing.map_or("(the file ends here)".to_owned(), |line| excerpt_around(&line, same));
    detail
        + &format!(
            "It differs first at line {line}:\n  {OLD_STRING}: {}\n  the file:   {standing}\n",
            excerpt_around(&expected, same)
        )
}

/// A part of a line, from a little before the position `at`.
fn excerpt_around(line: &str, at: usize) -> String {
    if line.is_empty() {
        return "(an empty line)".to_owned();
    }
    let skipped = if at < MAX_CHARS { 0 } else { at - CHARS_BEFORE };
    let shown: String = line.chars().skip(skipped).collect();
    let before = if skipped > 0 { format!("[{skipped} characters]…") } else { String::new() };
    before + &truncate_line(&shown, MAX_CHARS)
}

fn hint(
    text: &[u8],
    old: &str,
    survey: &TextProperties,
    nearest: Option<&NearestMatch<'_>>,
) -> String {
    let wanted = split_lines(old.as_bytes(), b'\n');
    let differ = |same: fn(&[u8], &[u8]) -> bool| {
        nearest.is_some_and(|nearest| {
            nearest.lines.len() == wanted.len()
                && nearest.lines.iter().zip(&wanted).all(|(have, want)| same(have, want))
        })
    };
    let hint: Cow<'_, str> = if without_line_numbers(old).is_some() {
        format!("`{OLD_STRING}` seems to contain the line numbers that {READ} shows: remove them, also from `{NEW_STRING}`.").into()
    } else if old.contains("\\n")
        && !find_all(text, old.replace("\\n", "\n").as_bytes(), 1).is_empty()
    {
        format!(
            "`\\n` in `{OLD_STRING}` is a backslash and an n; with real newlines it would match."
        )
        .into()
    } else if let Some(mask) = masks(old.as_bytes()).next() {
        format!("`{mask}` hides a secret in output of commands. {READ} shows the text of the file.")
            .into()
    } else if wanted.iter().any(|line| is_elision(line)) {
        format!("`{OLD_STRING}` omits lines (`...`): give all of them, or make several edits.")
            .into()
    } else if survey.nuls > 2 {
        "The file has NUL bytes; it may be UTF-16 or not text.".into()
    } else if differ(|have, want| without_blanks(have) == without_blanks(want)) {
        "Only whitespace differs (→ is a tab, · a trailing space): copy it from the file.".into()
    } else if same_but_for_blank_lines(text, old, survey.terminator()) {
        "Only blank lines differ: add or remove some.".into()
    } else if differ(|have, want| composed(have) == composed(want)) {
        "Only the Unicode composition differs (one character, or a letter and its accent): copy the text from the file.".into()
    } else {
        format!("{READ} the file and copy the text exactly.").into()
    };
    format!("Nothing was done. {hint}")
}

/// Whether a line is a placeholder for omitted lines.
fn is_elision(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let words = line.strip_prefix(b"//").or(line.strip_prefix(b"#")).unwrap_or(line).trim_ascii();
    matches!(words, b"..." | b"\xe2\x80\xa6") || (words != line && words.starts_with(b"..."))
}

/// Whether the non-blank lines of `old` occur in the file in order, with only blank lines between them.
fn same_but_for_blank_lines(text: &[u8], old: &str, terminator: u8) -> bool {
    fn non_blank_lines(text: &[u8], terminator: u8) -> impl Iterator<Item = &[u8]> + Clone {
        each_line(text, terminator).map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty())
    }
    let wanted: Vec<&[u8]> = non_blank_lines(old.as_bytes(), b'\n').collect();
    let Some((first, rest)) = wanted.split_first() else { return false };
    let (mut file, mut compared) = (non_blank_lines(text, terminator), 0);
    while let Some(line) = file.next() {
        let mut following = file.clone();
        let mut is_next = |wanted: &&[u8]| {
            compared += 1;
            following.next() == Some(wanted)
        };
        if line == *first && rest.iter().all(&mut is_next) {
            return true;
        }
        if compared > MAX_COMPARED_LINES {
            return false;
        }
    }
    false
}

fn without_blanks(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn composed(line: &[u8]) -> String {
    String::from_utf8_lossy(line).nfc().collect()
}
