//! MultiEdit: several replacements at once, all of them or none.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_fs::Content;
use toolcrib_policy::Access;
use toolcrib_text::unified_diff;

use super::replacement::{self, Made, Replacement};
use crate::cx::Cx;
use crate::error::Error;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};
use crate::words::counted;

/// Several replacements at once, each as in Edit and on what those before it made: all, or none. Give file_path
/// and edits for one file, or files for several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiEdit {
    file_path: Option<String>,
    edits: Option<Vec<OneEdit>>,
    files: Option<Vec<OneFile>>,
}

// Edit says more: to repeat it here, twice, would cost every conversation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneFile {
    file_path: String,
    edits: Vec<OneEdit>,
}

impl Tool for MultiEdit {
    const NAME: &'static str = "MultiEdit";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] = replacement::ALIASES;

    fn access(&self) -> Vec<Access> {
        let named = self.files.iter().flatten().map(|file| &file.file_path);
        self.file_path.iter().chain(named).map(|path| Access::Write(path.into())).collect()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let files = self.files()?;
        let paths: Vec<&Path> = files.iter().map(|file| Path::new(&file.file_path)).collect();
        let shown = paths.iter().map(|path| cx.show(path)).collect::<Result<Vec<_>, _>>()?;
        let mut made: Vec<Vec<Made>> = Vec::new();
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
        let diff: String = shown
            .iter()
            .zip(&changed_files)
            .map(|(shown, (was, now))| {
                unified_diff(shown, was.as_deref(), Some(now), line_chars).text
            })
            .collect();
        let total: usize = made.iter().flatten().map(|made| made.count).sum();
        let did = if cx.dry_run() { "Dry run, nothing written. Would edit" } else { "Edited" };
        let mut says =
            format!("{did} {}: {}.", shown.join(", "), counted(total as u64, "replacement"));
        let matched = shown.iter().zip(&made).flat_map(|(shown, made)| notes(shown, made));
        matched.chain(changed.notes.clone()).for_each(|note| says += &format!(" {note}"));
        let results: Vec<Value> =
            shown.iter().zip(&made).map(|(shown, made)| result(shown, made)).collect();
        Ok(Reply::new(says)
            .diff(diff)
            .with("total_replacements", total)
            .with("results", results)
            .with_all(changed.facts()))
    }
}

impl MultiEdit {
    /// The files with their replacements, by whichever of the two forms they were given.
    fn files(self) -> Result<Vec<OneFile>, Error> {
        let files = match (self.file_path, self.edits, self.files) {
            (Some(file_path), Some(edits), None) => vec![OneFile { file_path, edits }],
            (None, None, Some(files)) => files,
            _ => {
                return Err(Error::invalid("MultiEdit takes file_path and edits, or files")
                    .hint("Give `file_path` with `edits` for one file, or `files` for several."));
            }
        };
        if files.is_empty() || files.iter().any(|file| file.edits.is_empty()) {
            return Err(Error::invalid("there is no edit to make")
                .hint("Give at least one edit for each file."));
        }
        Ok(files)
    }
}

impl OneFile {
    /// What the file says after all of its replacements, and what each of them made.
    fn apply(
        &self,
        cx: &Cx<'_>,
        was: Option<&Content>,
        shown: &str,
        files: usize,
    ) -> Result<(Vec<u8>, Vec<Made>), Error> {
        let (mut content, mut made) = (None, Vec::new());
        for (at, edit) in self.edits.iter().enumerate() {
            let replacement = Replacement {
                old: &edit.old_string,
                new: &edit.new_string,
                all: edit.replace_all == Some(true),
                near_line: edit.near_line,
            };
            let replaced = replacement
                .apply(cx, content.as_deref().or(was.map(|was| &was[..])), &self.file_path, shown)
                .map_err(|error| {
                    let of = if files > 1 { format!(" in {shown}") } else { String::new() };
                    error.about(&format!("edit {} of {}{of}", at + 1, self.edits.len()))
                })?;
            made.push(replaced.made);
            content = Some(replaced.now);
        }
        Ok((content.unwrap_or_default(), made))
    }
}

/// How the edits of a file were matched, where that was not letter for letter.
fn notes(shown: &str, made: &[Made]) -> Vec<String> {
    let numbered = (1..).zip(made);
    numbered
        .filter_map(|(n, made)| Some(format!("Edit {n} in {shown}: {}", made.matched.note()?)))
        .collect()
}

fn result(shown: &str, made: &[Made]) -> Value {
    let counts: Vec<usize> = made.iter().map(|made| made.count).collect();
    let matched: Vec<&str> = made.iter().map(|made| made.matched.name()).collect();
    json!({"file_path": shown, "replacements": counts, "matched": matched})
}
