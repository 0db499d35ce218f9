//! Edit: one piece of text for another, and not a byte more.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::{Endings, Survey, find_all, find_another, line_number_at, unified_diff};

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
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
        if self.old_string.is_empty() {
            return self.create(cx);
        }
        if self.old_string == self.new_string {
            return Err(Error::invalid("`old_string` and `new_string` are the same")
                .hint("Nothing was done. Say in `new_string` what is to stand there."));
        }
        let file = cx.open(&self.file_path)?;
        let was = file.read_all(cx.limits().edit_bytes)?;
        let survey = Survey::of(&was);
        let old = in_the_files_endings(&self.old_string, &survey);
        let places = self.choose(&was, &survey, old.as_bytes(), file.shown())?;
        let now = self.splice(&was, &places, old.len());
        let lines = places.iter().map(|&at| line_number_at(&was, at, survey.terminator()));
        let lines: Vec<u64> = lines.collect();
        self.finish(cx, Some(was), now, &lines)
    }
}

impl Edit {
    /// The places to replace, of those where the text stands.
    fn choose(
        &self,
        was: &[u8],
        survey: &Survey,
        old: &[u8],
        shown: &str,
    ) -> Result<Vec<usize>, Error> {
        let mut places = find_all(was, old);
        if self.replace_all == Some(true) && !places.is_empty() {
            return Ok(places);
        }
        match places.as_slice() {
            [] => {
                let (old, new) = (&self.old_string, &self.new_string);
                return Err(not_found::explain(shown, was, survey, old, new));
            }
            [only] => match find_another(was, old, *only) {
                None => return Ok(places),
                Some(overlapping) => places.push(overlapping),
            },
            _ => {}
        }
        let lines: Vec<u64> =
            places.iter().map(|&at| line_number_at(was, at, survey.terminator())).collect();
        if let Some(near) = self.near_line {
            let distance = |at: &usize| lines[*at].abs_diff(near);
            let nearest = (0..places.len()).min_by_key(distance).unwrap_or(0);
            let rivals = (0..places.len()).filter(|at| distance(at) == distance(&nearest)).count();
            if rivals == 1 {
                return Ok(vec![places[nearest]]);
            }
        }
        Err(ambiguous(shown, &lines))
    }

    /// The file with the new text at each of the places.
    fn splice(&self, was: &[u8], places: &[usize], old_length: usize) -> Vec<u8> {
        let literal = self.old_string.contains('\r') || self.new_string.contains('\r');
        let mut now = Vec::with_capacity(was.len() + self.new_string.len());
        let mut kept_to = 0;
        for &at in places {
            now.extend_from_slice(&was[kept_to..at]);
            match ending_near(was, at) {
                ending if !literal && ending != "\n" => {
                    now.extend(self.new_string.replace('\n', ending).bytes());
                }
                _ => now.extend(self.new_string.bytes()),
            }
            kept_to = at + old_length;
        }
        now.extend_from_slice(&was[kept_to..]);
        now
    }

    /// An empty `old_string`: a new file, or one that is there and empty.
    fn create(self, cx: &Cx<'_>) -> Result<Reply, Error> {
        let now = self.new_string.clone().into_bytes();
        if !cx.exists(&self.file_path)? {
            return self.finish(cx, None, now, &[1]);
        }
        let file = cx.open(&self.file_path)?;
        if file.size() > 0 {
            let message = format!("`old_string` is empty, and {} is not", file.shown());
            return Err(Error::invalid(message)
                .hint("Say in `old_string` which text of the file to replace."));
        }
        self.finish(cx, Some(Vec::new()), now, &[1])
    }

    fn finish(
        &self,
        cx: &Cx<'_>,
        was: Option<Vec<u8>>,
        now: Vec<u8>,
        lines: &[u64],
    ) -> Result<Reply, Error> {
        let shown = cx.show(&self.file_path)?;
        let diff = unified_diff(&shown, was.as_deref(), Some(&now), cx.limits().line_chars);
        let created = was.is_none();
        let committed = match was {
            Some(was) => cx.replace(&self.file_path, was, now)?,
            None => cx.create(&self.file_path, now)?,
        };
        let did = match (cx.dry_run(), created) {
            (false, false) => "Edited",
            (false, true) => "Created",
            (true, false) => "Dry run, nothing written. Would edit",
            (true, true) => "Dry run, nothing written. Would create",
        };
        let mut says = format!("{did} {shown}: {}.", counted(lines.len() as u64, "replacement"));
        if created {
            says = format!("{did} {shown}.");
        }
        if let Some(link) = cx.followed_link(&self.file_path)? {
            says += &format!(" Through the link {link}.");
        }
        if committed.hard_link_broken {
            says += " The file had another name (hard link), which keeps the old content.";
        }
        Ok(Reply::new(says)
            .diff(diff.text)
            .with("file_path", shown)
            .with("created", created)
            .with("replacements", lines.len())
            .with("lines", lines)
            .with("added_lines", diff.added)
            .with("removed_lines", diff.removed))
    }
}

/// The text with the line endings of the file, where those are all of one kind and the text was
/// written with `\n`, as models write it.
fn in_the_files_endings(text: &str, survey: &Survey) -> String {
    match survey.endings() {
        Endings::CrLf if !text.contains('\r') => text.replace('\n', "\r\n"),
        Endings::Cr if !text.contains('\r') => text.replace('\n', "\r"),
        _ => text.to_owned(),
    }
}

/// How the line that a place is in ends, or the one before it at the end of the file.
fn ending_near(text: &[u8], at: usize) -> &'static str {
    let newline = memchr(text, b'\n', at);
    match newline {
        Some(at) if at > 0 && text[at - 1] == b'\r' => "\r\n",
        Some(_) => "\n",
        None if text.contains(&b'\r') => "\r",
        None => "\n",
    }
}

/// The first `byte` at or after a place, or else the last before it.
fn memchr(text: &[u8], byte: u8, at: usize) -> Option<usize> {
    let after = text[at..].iter().position(|&b| b == byte).map(|found| found + at);
    after.or_else(|| text[..at].iter().rposition(|&b| b == byte))
}

fn ambiguous(shown: &str, lines: &[u64]) -> Error {
    const SHOWN: usize = 20;
    let total = lines.len();
    let mut listed: Vec<String> = lines.iter().take(SHOWN).map(u64::to_string).collect();
    if total > SHOWN {
        listed.push(format!("and {} more", total - SHOWN));
    }
    let message =
        format!("`old_string` is in {shown} {total} times, at lines {}", listed.join(", "));
    Error::new(ErrorKind::Ambiguous, message)
        .hint(format!(
            "Nothing was done. Add lines around it so that one place fits, or give near_line, or set replace_all to replace all {total}."
        ))
        .with("lines", &lines[..total.min(SHOWN)])
        .with("matches", total)
}
