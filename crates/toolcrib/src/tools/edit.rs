//! Edit: one piece of text for another, and not a byte more.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::{EndingFinder, Survey, find_all, find_another, line_numbers, unified_diff};

use crate::cx::{Cx, Updated};
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::seen::Seen;
use crate::tool::{Category, Hints, Tool};
use crate::words::counted;

mod not_found;

/// Replaces one piece of text in a file with another. Every byte outside it stays as it is.
///
/// old_string must be in the file exactly once, letter for letter, with its indentation and without
/// the line numbers that Read shows. If it is there several times, add lines around it, or give
/// near_line, or set replace_all. An empty old_string creates a file that is not there yet. The reply
/// is the diff.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The file: relative to the workspace's directory, or absolute.
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// The text to put in its place; empty to delete. Taken letter for letter.
    new_string: String,
    /// Replace every occurrence. Default false.
    replace_all: Option<bool>,
    /// Of several occurrences, replace the one nearest to this line.
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
}

/// Lines of occurrences that a reply names; of more, the number.
const LISTED_LINES: usize = 20;

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("path", "file_path"),
        ("old_str", "old_string"),
        ("old_text", "old_string"),
        ("new_str", "new_string"),
        ("new_text", "new_string"),
    ];

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.file_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if self.old_string == self.new_string {
            return Err(the_same());
        }
        let shown = cx.show(&self.file_path)?;
        let seen = cx.session().seen(&cx.real_path(&self.file_path)?);
        let (mut lines, mut replacements) = (Vec::new(), 0);
        let updated = cx.update(&self.file_path, |was| {
            let was = match was {
                Some(was) if !self.old_string.is_empty() => was,
                None if !self.old_string.is_empty() => return Err(missing(cx, &self.file_path)),
                was => return self.create(was, &shown),
            };
            let survey = Survey::of(was);
            let old = survey.endings().adapt(&self.old_string);
            let places = self.choose(was, &survey, &old, &shown)?;
            replacements = places.len();
            let listed = &places[..places.len().min(LISTED_LINES)];
            lines = line_numbers(was, listed, survey.terminator());
            let now = self.splice(cx, was, &places, old.len(), &shown)?;
            if now == was { Err(the_same()) } else { Ok(now) }
        })?;
        let elsewhere = changed_elsewhere(seen, updated.was.as_deref());
        Ok(self.reply(cx, &shown, &updated, replacements, &lines, elsewhere))
    }
}

impl Edit {
    /// The places to replace, of those where the text stands.
    fn choose(
        &self,
        was: &[u8],
        survey: &Survey,
        old: &str,
        shown: &str,
    ) -> Result<Vec<usize>, Error> {
        let mut places = find_all(was, old.as_bytes());
        if self.replace_all == Some(true) && !places.is_empty() {
            return Ok(places);
        }
        match places.as_slice() {
            [] => {
                let (old, new) = (&self.old_string, &self.new_string);
                return Err(not_found::explain(shown, was, survey, old, new));
            }
            [only] => match find_another(was, old.as_bytes(), *only) {
                None => return Ok(places),
                Some(overlapping) => places.push(overlapping),
            },
            _ => {}
        }
        let lines = line_numbers(was, &places, survey.terminator());
        let Some(near) = self.near_line else { return Err(ambiguous(shown, &lines)) };
        let distance = |at: &usize| lines[*at].abs_diff(near);
        let nearest = (0..places.len()).min_by_key(distance).unwrap_or(0);
        match (0..places.len()).filter(|at| distance(at) == distance(&nearest)).count() {
            1 => Ok(vec![places[nearest]]),
            _ => Err(ambiguous(shown, &lines).hint(format!(
                "Nothing was done. Two of them are equally near to line {near}: give the line of one."
            ))),
        }
    }

    /// The file with the new text at each of the places.
    fn splice(
        &self,
        cx: &Cx<'_>,
        was: &[u8],
        places: &[usize],
        old_length: usize,
        shown: &str,
    ) -> Result<Vec<u8>, Error> {
        self.require_encodable(was, shown)?;
        // Each newline may become two bytes.
        let longest_new = self.new_string.len() + self.new_string.matches('\n').count();
        let most = places.len().saturating_mul(longest_new).saturating_add(was.len());
        if most as u64 > cx.limits().edit_bytes.saturating_mul(2) {
            let message = format!("{shown} would have up to {most} bytes after this");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .hint("Nothing was done. Replace fewer occurrences, or with less."));
        }
        let literal = self.old_string.contains('\r') || self.new_string.contains('\r');
        let mut endings = EndingFinder::new(was);
        let mut now = Vec::with_capacity(was.len() + self.new_string.len());
        let mut kept_to = 0;
        for &at in places {
            now.extend_from_slice(&was[kept_to..at]);
            match endings.at(at) {
                "\n" => now.extend(self.new_string.bytes()),
                _ if literal => now.extend(self.new_string.bytes()),
                ending => now.extend(self.new_string.replace('\n', ending).bytes()),
            }
            kept_to = at + old_length;
        }
        now.extend_from_slice(&was[kept_to..]);
        Ok(now)
    }

    /// Text in an encoding that is not known gets no letters that it may not have.
    fn require_encodable(&self, was: &[u8], shown: &str) -> Result<(), Error> {
        if self.new_string.is_ascii() || std::str::from_utf8(was).is_ok() {
            return Ok(());
        }
        let message = format!("{shown} is not UTF-8, and `new_string` is not plain ASCII");
        Err(Error::new(ErrorKind::Unsupported, message)
            .hint("Nothing was done. Its encoding is not known; only ASCII can be put into it."))
    }

    /// An empty `old_string`: a new file, or one that is there and empty.
    fn create(&self, was: Option<&[u8]>, shown: &str) -> Result<Vec<u8>, Error> {
        if was.is_some_and(|was| !was.is_empty()) {
            return Err(Error::invalid(format!("`old_string` is empty, and {shown} is not"))
                .hint("Say in `old_string` which text of the file to replace."));
        }
        Ok(self.new_string.clone().into_bytes())
    }

    fn reply(
        &self,
        cx: &Cx<'_>,
        shown: &str,
        updated: &Updated,
        replacements: usize,
        lines: &[u64],
        elsewhere: Option<String>,
    ) -> Reply {
        let Updated { was, now, changed } = updated;
        let diff = unified_diff(shown, was.as_deref(), Some(now), cx.limits().line_chars);
        let created = was.is_none();
        let did = match (cx.dry_run(), created) {
            (false, false) => "Edited",
            (false, true) => "Created",
            (true, false) => "Dry run, nothing written. Would edit",
            (true, true) => "Dry run, nothing written. Would create",
        };
        let mut says = match replacements {
            0 => format!("{did} {shown}."),
            _ => format!("{did} {shown}: {}.", counted(replacements as u64, "replacement")),
        };
        let link = cx.followed_link(&self.file_path).ok().flatten();
        let link = link.map(|link| format!("Through the link {link}."));
        for note in changed.notes.iter().chain(&link).chain(&elsewhere) {
            says += &format!(" {note}");
        }
        Reply::new(says)
            .diff(diff.text)
            .with("file_path", shown)
            .with("created", created)
            .with("replacements", replacements)
            .with("lines", lines)
            .with("added_lines", diff.added)
            .with("removed_lines", diff.removed)
            .with("hash", Seen::of(now).hash.short())
            .with_change(changed.id)
    }
}

/// What somebody else has changed since the session last saw the file; told once.
fn changed_elsewhere(seen: Option<Seen>, was: Option<&[u8]>) -> Option<String> {
    let (seen, now) = (seen?, Seen::of(was?));
    if seen.hash == now.hash {
        return None;
    }
    let at = seen.where_changed(&now).map_or(String::new(), |at| format!(": {at}"));
    Some(format!("Since this session last saw it, the file was changed by somebody else{at}."))
}

fn the_same() -> Error {
    Error::invalid("`old_string` and `new_string` are the same")
        .hint("Nothing was done. Say in `new_string` what is to stand there.")
}

/// There is no file: the error that reading it gives names those that are near.
fn missing(cx: &Cx<'_>, path: &str) -> Error {
    match cx.open(path) {
        Err(error) => error,
        Ok(_) => Error::new(ErrorKind::Stale, format!("{path} was created meanwhile"))
            .hint("Nothing was done. Try again."),
    }
}

fn ambiguous(shown: &str, lines: &[u64]) -> Error {
    let total = lines.len();
    let listed = &lines[..total.min(LISTED_LINES)];
    let mut words: Vec<String> = listed.iter().map(u64::to_string).collect();
    if total > LISTED_LINES {
        words.push(format!("and {} more", total - LISTED_LINES));
    }
    let message =
        format!("`old_string` is in {shown} {total} times, at lines {}", words.join(", "));
    Error::new(ErrorKind::Ambiguous, message)
        .hint(format!(
            "Nothing was done. Add lines around it so that one place fits, or give near_line, or set replace_all to replace all {total}."
        ))
        .with("lines", listed)
        .with("matches", total)
}
