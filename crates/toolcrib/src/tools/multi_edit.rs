//! MultiEdit: applies several replacements atomically.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_fs::Content;
use toolcrib_policy::Access;
use toolcrib_text::unified_diff;

use super::content_checks::{ContentChecks, SYNTAX_ERRORS};
use super::escaped_newlines::{escaped_newlines_note, has_escaped_newlines};
use super::replacement::{self, EditResult, NO_REPLACEMENT, Replacement};
use super::shown_diff::DiffDetail;
use crate::cx::CHANGE;
use crate::cx::{Cx, Versions};
use crate::error::{Error, ErrorKind};
use crate::message_names::{FILE_PATH, MULTI_EDIT, NEW_STRING, OLD_STRING};
use crate::metadata_fields::MetadataField;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Applies several edits atomically, in order; each sees the result of the previous ones. Give `file_path` and
/// `edits`, or `files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiEdit {
    /// The file.
    file_path: Option<String>,
    /// Its edits.
    #[schemars(length(min = 1))]
    edits: Option<Vec<OneEdit>>,
    /// Several files.
    #[schemars(length(min = 1))]
    files: Option<Vec<OneFile>>,
    /// Diff shown.
    #[serde(default)]
    diff: DiffDetail,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// Text to replace.
    old_string: String,
    /// Its replacement.
    new_string: String,
    /// Replace every match.
    #[serde(default)]
    replace_all: bool,
    /// Nearest to this line.
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneFile {
    /// The file.
    file_path: String,
    /// Its edits.
    #[schemars(length(min = 1))]
    edits: Vec<OneEdit>,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("file_path", "string", "one file", "The file."),
    MetadataField::new("total_replacements", "integer", "always", "Replacements in all files."),
    MetadataField::new("results", "array of object", "always", "The files."),
    MetadataField::new("results[].file_path", "string", "always", "The file."),
    MetadataField::new(
        "results[].replacements",
        "array of integer",
        "always",
        "Replacements by each edit.",
    ),
    MetadataField::new(
        "results[].matched",
        "array of string",
        "always",
        "How each `old_string` was matched, as for Edit.",
    ),
    MetadataField::new("lines", "array of integer", "error `ambiguous`", "Lines of the matches."),
];

impl Tool for MultiEdit {
    const NAME: &'static str = "MultiEdit";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] = replacement::ALIASES;
    const METADATA: &'static [&'static [MetadataField]] =
        &[METADATA, NO_REPLACEMENT, SYNTAX_ERRORS, CHANGE];

    fn access(&self) -> Vec<Access> {
        let named = self.files.iter().flatten().map(|file| &file.file_path);
        self.file_path.iter().chain(named).map(|path| Access::Write(path.into())).collect()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let detail = DiffDetail::for_call(self.diff, cx);
        let files = merged(cx, self.files()?)?;
        let paths: Vec<&Path> = files.iter().map(|file| Path::new(&file.file_path)).collect();
        let shown = paths.iter().map(|path| cx.show(path)).collect::<Result<Vec<_>, _>>()?;
        let mut made: Vec<Vec<EditResult>> = Vec::new();
        let (changed_files, changed) = cx.update_all(&paths, |was| {
            made.clear();
            let mut now = Vec::new();
            for ((file, was), shown) in files.iter().zip(was).zip(&shown) {
                let (content, replaced) = file.apply(cx, was.as_ref(), shown, files.len())?;
                now.push(content);
                made.push(replaced);
            }
            Ok(now)
        })?;
        let line_chars = cx.limits().line_chars;
        let mut diff = String::new();
        for ((path, shown), (was, now)) in paths.iter().zip(&shown).zip(&changed_files) {
            let encoding = cx.session().encoding(&cx.real_path(path)?);
            diff += &unified_diff(shown, was.as_deref(), Some(now), line_chars, encoding).text;
        }
        let total: usize = made.iter().flatten().map(|made| made.count).sum();
        let detail = match detail {
            // If every edit replaces the same text everywhere, the counts suffice.
            DiffDetail::Short if made.iter().flatten().all(|made| made.count > 1) => {
                DiffDetail::None
            }
            detail => detail,
        };
        // A later edit may move the lines of an earlier one.
        let at = match made.iter().flatten().collect::<Vec<_>>().as_slice() {
            [only] if matches!(detail, DiffDetail::None) && only.count > 0 => {
                format!(" at {}", only.places())
            }
            _ => String::new(),
        };
        let did = if cx.dry_run() { "Dry run, nothing written. Would edit" } else { "Edited" };
        let names = shown.join(", ");
        let replacements = counted(total as u64, "replacement");
        let is_unchanged = changed_files.iter().all(|(was, now)| was.as_deref() == Some(now));
        let mut text = if is_unchanged && total > 0 {
            format!("{names} stays as it was: {replacements} cancel each other out.")
        } else {
            format!("{did} {names}: {replacements}{at}.")
        };
        let matched = shown.iter().zip(&made).flat_map(|(shown, made)| notes(shown, made));
        matched.chain(changed.notes.clone()).for_each(|note| text += &format!(" {note}"));
        let is_escaped = |(file, (was, _)): (&OneFile, &Versions)| {
            let was = was.as_deref().unwrap_or_default();
            file.edits.iter().any(|edit| has_escaped_newlines(&edit.new_string, was))
        };
        if files.iter().zip(&changed_files).any(is_escaped) {
            text += &format!(" {}", escaped_newlines_note(format!("`{NEW_STRING}`")));
        }
        let errors = new_errors(&shown, &changed_files);
        errors.notes().iter().for_each(|note| text += &format!(" {note}"));
        let results: Vec<Value> =
            shown.iter().zip(&made).map(|(shown, made)| result(shown, made)).collect();
        let reply = match shown.as_slice() {
            [only] => Reply::new(text).with("file_path", only.as_str()),
            _ => Reply::new(text),
        };
        let reply = reply
            .with("total_replacements", total)
            .with("results", results)
            .with_all(changed.facts());
        Ok(errors.facts(detail.show(reply, diff, changed.id)))
    }
}

impl MultiEdit {
    /// The files with their edits, from either form of the arguments.
    fn files(self) -> Result<Vec<OneFile>, Error> {
        match (self.file_path, self.edits, self.files) {
            (Some(file_path), Some(edits), None) => Ok(vec![OneFile { file_path, edits }]),
            (None, None, Some(files)) => Ok(files),
            _ => Err(Error::invalid(format!("{MULTI_EDIT} takes {FILE_PATH} and edits, or files"))
                .hint(format!(
                    "Give `{FILE_PATH}` with `edits` for one file, or `files` for several."
                ))),
        }
    }
}

/// The files with their edits in order. A file that is given twice has the edits of both.
fn merged(cx: &Cx<'_>, files: Vec<OneFile>) -> Result<Vec<OneFile>, Error> {
    let mut merged: Vec<OneFile> = Vec::new();
    let mut positions: HashMap<PathBuf, usize> = HashMap::new();
    for file in files {
        match positions.entry(cx.real_path(&file.file_path)?) {
            Occupied(first) => merged[*first.get()].edits.extend(file.edits),
            Vacant(new) => {
                new.insert(merged.len());
                merged.push(file);
            }
        }
    }
    Ok(merged)
}

impl OneFile {
    /// Applies all edits of a file. Returns the new content and the result of each edit.
    fn apply(
        &self,
        cx: &Cx<'_>,
        was: Option<&Content>,
        shown: &str,
        files: usize,
    ) -> Result<(Vec<u8>, Vec<EditResult>), Error> {
        let (mut content, mut made) = (None, Vec::new());
        for (at, edit) in self.edits.iter().enumerate() {
            let replacement = Replacement {
                old: &edit.old_string,
                new: &edit.new_string,
                all: edit.replace_all,
                near_line: edit.near_line,
            };
            let on_disk = was.map(|was| &was[..]);
            let replaced = replacement
                .apply(cx, content.as_deref().or(on_disk), &self.file_path, shown)
                .map_err(|error| {
                    let of = if files > 1 { format!(" in {shown}") } else { String::new() };
                    let error = match at {
                        0 => error,
                        _ => self.as_on_disk(cx, replacement, on_disk, shown, error),
                    };
                    error.about(&format!("edit {} of {}{of}", at + 1, self.edits.len()))
                })?;
            made.push(replaced.made);
            content = Some(replaced.now);
        }
        Ok((content.unwrap_or_default(), made))
    }
}

impl OneFile {
    /// Rewrites the error of a later edit with the line numbers of the file on disk: the call writes nothing.
    fn as_on_disk(
        &self,
        cx: &Cx<'_>,
        replacement: Replacement<'_>,
        on_disk: Option<&[u8]>,
        shown: &str,
        error: Error,
    ) -> Error {
        match replacement.apply(cx, on_disk, &self.file_path, shown) {
            Err(error) => error,
            Ok(_) => {
                let message = match error.kind() {
                    ErrorKind::Ambiguous => {
                        format!("after the previous edits, `{OLD_STRING}` occurs more than once")
                    }
                    ErrorKind::NoMatch => {
                        format!("a previous edit changed the text of `{OLD_STRING}`")
                    }
                    _ => "it does not match the result of the previous edits".to_owned(),
                };
                Error::new(error.kind(), message).hint(
                    format!("Nothing was done. Each edit applies to the result of the previous ones: adapt `{OLD_STRING}`, or change the order."),
                )
            }
        }
    }
}

fn new_errors(shown: &[String], files: &[Versions]) -> ContentChecks {
    let mut errors = ContentChecks::new();
    for (name, (was, now)) in shown.iter().zip(files) {
        let of = (files.len() > 1).then_some(name.as_str());
        errors.examine(name, of, was.as_deref(), now);
    }
    errors
}

/// Notes about inexact matches.
fn notes(shown: &str, made: &[EditResult]) -> Vec<String> {
    let numbered = (1..).zip(made);
    numbered
        .filter_map(|(n, made)| Some(format!("In {shown}, edit {n}: {}", made.matched.note()?)))
        .collect()
}

fn result(shown: &str, made: &[EditResult]) -> Value {
    let counts: Vec<usize> = made.iter().map(|made| made.count).collect();
    let matched: Vec<&str> = made.iter().map(|made| made.matched.name()).collect();
    json!({"file_path": shown, "replacements": counts, "matched": matched})
}
