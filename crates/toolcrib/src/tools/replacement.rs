//! Replaces text in a file and changes no other byte, for Edit and MultiEdit.

mod equivalent;
mod not_found;

use std::ops::Range;

use toolcrib_media::{Kind, kind_of};
use toolcrib_text::{
    Encoding, EndingFinder, Endings, TextProperties, find_all, find_another, line_numbers,
};

pub(super) use self::equivalent::Matched;

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::message_names::{NEAR_LINE, NEW_STRING, OLD_STRING, REPLACE_ALL, WRITE};
use crate::metadata_fields::MetadataField;

/// Number of match lines to list.
const LISTED_LINES: usize = 20;

/// Bytes from which the type of a file is detected, and whether it is text.
const HEAD_BYTES: usize = 8 << 10;
const TEXT_SAMPLE_BYTES: usize = 16 << 20;

/// Limit of matches: storing more positions would take more memory than the file.
const MAX_MATCHES: usize = 4_000_000;

/// Other names of the fields of an edit.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("path", "file_path"),
    ("old_str", "old_string"),
    ("old_text", "old_string"),
    ("new_str", "new_string"),
    ("new_text", "new_string"),
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// Replace every match.
    pub(super) all: bool,
    /// Of several matches, replace the one nearest to this line.
    pub(super) near_line: Option<u64>,
}

/// The result of a replacement.
pub(super) struct Replaced {
    /// The new content.
    pub(super) now: Vec<u8>,
    pub(super) made: EditResult,
}

/// The number of replacements, and how the text was matched.
#[derive(Default)]
pub(super) struct EditResult {
    /// Number of matches. Zero for a new file.
    pub(super) count: usize,
    /// Lines of the first matches, before the replacement.
    pub(super) lines: Vec<u64>,
    pub(super) matched: Matched,
    /// Number of lines by which each replacement lengthens the file.
    growth: i64,
}

impl EditResult {
    /// The lines of the new text, in words.
    pub(super) fn places(&self) -> String {
        let now =
            |(at, line): (i64, &u64)| line.saturating_add_signed(at * self.growth).to_string();
        let lines: Vec<String> = (0..).zip(&self.lines).map(now).collect();
        match (self.count - lines.len().min(self.count), lines.len()) {
            (0, 1) => format!("line {}", lines.join("")),
            (0, _) => format!("lines {}", lines.join(", ")),
            (more, _) => format!("lines {} and {more} more", lines.join(", ")),
        }
    }
}

/// A match and its replacement.
struct Match {
    range: Range<usize>,
    /// `None`: the new text as given, with the line endings at the match.
    new: Option<Vec<u8>>,
}

impl Replacement<'_> {
    /// Applies the replacement to the content of a file, which is `None` for a missing file. `path` is the path as
    /// given, `shown` as replies show it.
    pub(super) fn apply(
        &self,
        cx: &Cx<'_>,
        was: Option<&[u8]>,
        path: &str,
        shown: &str,
    ) -> Result<Replaced, Error> {
        if self.old == self.new {
            return Err(same_strings());
        }
        let was = match was {
            Some(was) if !self.old.is_empty() => was,
            None if !self.old.is_empty() => return Err(missing(cx, path)),
            was => {
                let now = self.create(was, shown)?;
                return Ok(Replaced { now, made: EditResult::default() });
            }
        };
        let encoding = cx.encoding(&cx.real_path(path)?, was);
        require_text(was, encoding, shown)?;
        let Some(text) = encoding.decode(was) else { return Err(unreadable(shown, encoding)) };
        let mut replaced = self.in_text(cx, &text, shown)?;
        if !encoding.is_utf8() {
            // Decoded text is encoded to the same bytes, so only the replaced text differs.
            let now = String::from_utf8_lossy(&replaced.now);
            replaced.now = encoding.encode(&now).map_err(|c| unencodable(shown, encoding, c))?;
        }
        Ok(replaced)
    }

    /// Applies the replacement in UTF-8, which may have invalid bytes.
    fn in_text(&self, cx: &Cx<'_>, was: &[u8], shown: &str) -> Result<Replaced, Error> {
        let endings = Endings::of(was);
        let (spots, matched) = self.find(was, endings, shown)?;
        if let [only] = &spots[..]
            && let Some(line) = self.already_made(was, only, endings)
        {
            return Err(already_made(shown, line));
        }
        let now = self.splice(cx, was, &spots, shown)?;
        if now == was {
            return Err(no_effect(shown));
        }
        let listed: Vec<usize> = starts(&spots).take(LISTED_LINES).collect();
        let lines = line_numbers(was, &listed, endings.terminator());
        let growth = self.line_growth();
        Ok(Replaced { now, made: EditResult { count: spots.len(), lines, matched, growth } })
    }

    fn line_growth(&self) -> i64 {
        let lines = |text: &str| i64::try_from(text.matches('\n').count()).unwrap_or(0);
        lines(self.new) - lines(self.old)
    }

    /// The matches: exact ones, or those of the first match level that has a unique one.
    fn find(
        &self,
        was: &[u8],
        endings: Endings,
        shown: &str,
    ) -> Result<(Vec<Match>, Matched), Error> {
        let old = endings.adapt(self.old);
        let places = find_all(was, old.as_bytes(), MAX_MATCHES + 1);
        if places.len() > MAX_MATCHES {
            return Err(too_many(shown));
        }
        if !places.is_empty() {
            let places = self.choose(was, endings, &old, places, shown)?;
            let spot = |at| Match { range: at..at + old.len(), new: None };
            return Ok((places.into_iter().map(spot).collect(), Matched::Exact));
        }
        match equivalent::find(self, was, endings, shown)? {
            Some((spot, matched)) => Ok((vec![spot], matched)),
            None => Err(not_found::explain(shown, was, self.old, self.new)),
        }
    }

    /// Selects the matches to replace.
    fn choose(
        &self,
        was: &[u8],
        endings: Endings,
        old: &str,
        mut places: Vec<usize>,
        shown: &str,
    ) -> Result<Vec<usize>, Error> {
        if self.all {
            return Ok(places);
        }
        if let [only] = places[..] {
            match find_another(was, old.as_bytes(), only) {
                None => return Ok(places),
                Some(overlapping) => places.push(overlapping),
            }
        }
        let lines = line_numbers(was, &places, endings.terminator());
        let Some(near) = self.near_line else { return Err(ambiguous(shown, &lines)) };
        let distance = |at: &usize| lines[*at].abs_diff(near);
        let nearest = (0..places.len()).min_by_key(distance).unwrap_or(0);
        match (0..places.len()).filter(|at| distance(at) == distance(&nearest)).count() {
            1 => Ok(vec![places[nearest]]),
            _ => Err(ambiguous(shown, &lines).hint(format!(
                "Nothing was done. Two matches are equally near to line {near}: give the line of one."
            ))),
        }
    }

    /// The line of the new text, if it already surrounds the old text at this match: the edit was already made and
    /// would be applied to its own result.
    fn already_made(&self, was: &[u8], spot: &Match, endings: Endings) -> Option<u64> {
        if spot.new.is_some() {
            return None;
        }
        let (old, new) = (endings.adapt(self.old), endings.adapt(self.new));
        let mut starts = find_all(new.as_bytes(), old.as_bytes(), MAX_MATCHES).into_iter();
        let stands = starts.find_map(|within| {
            let start = spot.range.start.checked_sub(within)?;
            was.get(start..start + new.len()).filter(|there| *there == new.as_bytes())?;
            Some(start)
        })?;
        line_numbers(was, &[stands], endings.terminator()).first().copied()
    }

    /// The content with all replacements.
    fn splice(
        &self,
        cx: &Cx<'_>,
        was: &[u8],
        spots: &[Match],
        shown: &str,
    ) -> Result<Vec<u8>, Error> {
        // Each newline may become two bytes.
        let longest_new = self.new.len() + self.new.matches('\n').count();
        let most = spots.len().saturating_mul(longest_new).saturating_add(was.len());
        if most as u64 > cx.limits().edit_bytes.saturating_mul(2) {
            let message = format!("{shown} would have up to {most} bytes after this");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .hint("Nothing was done. Replace fewer matches, or use a shorter replacement."));
        }
        let literal = self.old.contains('\r') || self.new.contains('\r');
        let mut finder = EndingFinder::new(was);
        let mut now = Vec::with_capacity(was.len() + self.new.len());
        let mut kept_to = 0;
        for Match { range, new } in spots {
            now.extend_from_slice(&was[kept_to..range.start]);
            match (new, finder.at(range.start)) {
                (Some(new), _) => now.extend_from_slice(new),
                (None, ending) if ending != "\n" && !literal => {
                    now.extend(self.new.replace('\n', ending).bytes());
                }
                (None, _) => now.extend_from_slice(self.new.as_bytes()),
            }
            kept_to = range.end;
        }
        now.extend_from_slice(&was[kept_to..]);
        Ok(now)
    }

    /// Handles an empty `old_string`: a new or empty file.
    fn create(&self, was: Option<&[u8]>, shown: &str) -> Result<Vec<u8>, Error> {
        if was.is_some_and(|was| !was.is_empty()) {
            return Err(Error::invalid(format!("`{OLD_STRING}` is empty, and {shown} is not"))
                .hint(format!("Give the text to replace as `{OLD_STRING}`.")));
        }
        Ok(self.new.as_bytes().to_vec())
    }
}

/// Fails for a file that is not text: replacing text in it would silently corrupt it.
pub(super) fn require_text(was: &[u8], encoding: Encoding, shown: &str) -> Result<(), Error> {
    let kind = kind_of(&was[..was.len().min(HEAD_BYTES)]);
    let looks_binary =
        || TextProperties::of(&was[..was.len().min(TEXT_SAMPLE_BYTES)]).looks_binary();
    // Only these types are certain from the first bytes: two bytes do not make a text a bitmap.
    let is_document = matches!(kind, Some(Kind::Picture(_) | Kind::Pdf));
    if !is_document && (encoding.is_utf16() || !looks_binary()) {
        return Ok(());
    }
    let what = kind.map_or(String::new(), |kind| format!("{}, ", kind.media_type()));
    let message = format!("{shown} is not text: {what}{} bytes", was.len());
    Err(Error::new(ErrorKind::Binary, message).hint(
        "Nothing was done. Change it with its own program, or with a command that writes bytes.",
    ))
}

/// The error for a character that the file's encoding lacks.
pub(super) fn unencodable(shown: &str, encoding: Encoding, letter: char) -> Error {
    let message = format!("{shown} is encoded in {}, which has no {letter:?}", encoding.name());
    Error::new(ErrorKind::Unsupported, message)
        .hint(format!("Nothing was written. Use characters that the encoding has, such as ASCII, or convert the file: {WRITE} with encoding \"utf-8\"."))
}

/// The error for a file that cannot be encoded to the same bytes.
pub(super) fn unreadable(shown: &str, encoding: Encoding) -> Error {
    let message =
        format!("{shown} looks like {}, but not all of it can be decoded", encoding.name());
    Error::new(ErrorKind::Unsupported, message)
        .hint("Nothing was written: other bytes of the file would have changed.")
}

fn starts(spots: &[Match]) -> impl Iterator<Item = usize> {
    spots.iter().map(|spot| spot.range.start)
}

/// Metadata of the errors of a replacement.
pub(super) const NO_REPLACEMENT: &[MetadataField] = &[
    MetadataField::new("line", "integer", "error `already_applied`", "Line of `new_string`."),
    MetadataField::new("matches", "integer", "error `ambiguous`", "Number of matches."),
];

fn same_strings() -> Error {
    Error::invalid(format!("`{OLD_STRING}` and `{NEW_STRING}` are the same"))
        .hint(format!("Nothing was done. Give the new text as `{NEW_STRING}`."))
}

fn no_effect(shown: &str) -> Error {
    Error::invalid(format!("{shown} already has this content: nothing would change"))
        .hint("Nothing was done. The difference between the two strings has no effect here.")
}

fn already_made(shown: &str, line: u64) -> Error {
    let message = format!("{shown} already has `{NEW_STRING}` there, at line {line}");
    Error::new(ErrorKind::AlreadyApplied, message)
        .hint(format!(
            "Nothing was done. To insert it twice, add surrounding lines to `{OLD_STRING}`."
        ))
        .with("line", line)
}

/// The error for a missing file, with suggestions.
pub(super) fn missing(cx: &Cx<'_>, path: &str) -> Error {
    match cx.open(path) {
        Err(error) => error,
        Ok(_) => Error::new(ErrorKind::Stale, format!("{path} was created meanwhile"))
            .hint("Nothing was done. Try again."),
    }
}

fn ambiguous(shown: &str, lines: &[u64]) -> Error {
    let total = lines.len();
    // A line does not tell its own matches apart.
    let is_one_line = lines.first() == lines.last();
    let near = if is_one_line { String::new() } else { format!(" give {NEAR_LINE},") };
    several(format!("`{OLD_STRING}` occurs {total} times in {shown}"), lines).hint(format!(
        "Nothing was done. Add surrounding text to make it unique,{near} or set {REPLACE_ALL} to replace all {total}."
    ))
}

fn too_many(shown: &str) -> Error {
    let message = format!("`{OLD_STRING}` occurs more than {MAX_MATCHES} times in {shown}");
    Error::new(ErrorKind::TooLarge, message)
        .hint("Nothing was done. Replace a longer text, or use a command such as sed.")
}

/// The error for a text with several matches.
fn several(message: String, lines: &[u64]) -> Error {
    let total = lines.len();
    let mut different = lines.to_vec();
    different.dedup();
    let listed = &different[..different.len().min(LISTED_LINES)];
    let mut words: Vec<String> = listed.iter().map(u64::to_string).collect();
    if let Some(more) = different.len().checked_sub(LISTED_LINES).filter(|more| *more > 0) {
        words.push(format!("and {more} more"));
    }
    let noun = if different.len() == 1 { "line" } else { "lines" };
    Error::new(ErrorKind::Ambiguous, format!("{message}, at {noun} {}", words.join(", ")))
        .with("lines", listed)
        .with("matches", total)
}
