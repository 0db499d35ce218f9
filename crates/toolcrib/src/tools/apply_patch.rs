//! ApplyPatch: applies a patch to any number of files, atomically.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::{FileAction, FilePatch, Patch};

mod patched_files;
mod plan;
mod refusal;
mod report;

use self::plan::Plan;
use super::content_checks::SYNTAX_ERRORS;
use super::shown_diff::DiffDetail;
use crate::cx::CHANGE;
use crate::cx::Cx;
use crate::error::Error;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Applies a patch atomically. Takes a unified diff, or *** Begin Patch / *** Update File: NAME (or Add File, Delete
/// File; *** Move to: NAME) / @@ / lines starting with a blank, - or + / *** End Patch. Hunks are placed by
/// content; line numbers are hints. Pure additions go after their @@ line, or to the end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatch {
    /// The patch.
    patch: String,
    /// Diff shown.
    #[serde(default)]
    diff: DiffDetail,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("files_modified", "integer", "always", "Number of files that changed."),
    MetadataField::new("files", "array of object", "always", "The parts of the patch."),
    MetadataField::new("files[].path", "string", "always", "The file."),
    MetadataField::new(
        "files[].action",
        "string",
        "always",
        "`add`, `update`, `delete` or `move`.",
    ),
    MetadataField::new("files[].from", "string", "moves and copies", "The source."),
    MetadataField::new(
        "files[].hash",
        "string",
        "the file exists afterwards",
        "Hash of the new content.",
    ),
    MetadataField::new(
        "files[].already_applied",
        "boolean",
        "the part was already applied",
        "`true`.",
    ),
    MetadataField::new("files[].hunks", "array of object", "updates", "The hunks."),
    MetadataField::new(
        "files[].hunks[].line",
        "integer",
        "with its object",
        "Line where the hunk was placed.",
    ),
    MetadataField::new(
        "files[].hunks[].offset",
        "integer",
        "with its object",
        "Distance from the line in the patch.",
    ),
    MetadataField::new(
        "files[].hunks[].matched",
        "string",
        "with its object",
        "How its lines were matched, as for Edit.",
    ),
    MetadataField::new(
        "files[].hunks[].already_applied",
        "boolean",
        "the hunk was already applied",
        "`true`.",
    ),
    MetadataField::new(
        "already_applied",
        "boolean",
        "always",
        "Whether the whole patch was already applied.",
    ),
    MetadataField::new("added_lines", "integer", "always", "Lines added."),
    MetadataField::new("removed_lines", "integer", "always", "Lines removed."),
    MetadataField::new(
        "file_path",
        "string",
        "error in a part of the patch",
        "The file of that part.",
    ),
    MetadataField::new(
        "patch_line",
        "integer",
        "error in a part of the patch",
        "The line of the patch.",
    ),
    MetadataField::new(
        "hunk",
        "integer",
        "a hunk has no unique place",
        "Its number within the file.",
    ),
    MetadataField::new("header", "string", "a hunk has no unique place", "Its `@@` line."),
    MetadataField::new(
        "line",
        "integer",
        "error `no_match` with a similar text in the file",
        "First line that differs.",
    ),
    MetadataField::new(
        "lines",
        "array of integer",
        "error `ambiguous`",
        "Lines where the hunk fits.",
    ),
    MetadataField::new(
        "matches",
        "integer",
        "error `ambiguous`",
        "Number of places where the hunk fits.",
    ),
];

impl Tool for ApplyPatch {
    const NAME: &'static str = "ApplyPatch";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints { idempotent: true, ..Hints::EDITS };
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("patch_text", "patch"), ("input", "patch")];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, SYNTAX_ERRORS, CHANGE];

    fn access(&self) -> Vec<Access> {
        // An invalid patch accesses nothing; `run` reports the error.
        let Ok(patch) = Patch::parse(&self.patch) else { return Vec::new() };
        let written = written(&patch).into_iter().map(Access::Write);
        let copied = patch.files.iter().filter_map(copied_from).map(Access::Read);
        written.chain(copied).collect()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let patch = Patch::parse(&self.patch).map_err(|error| refusal::unreadable(&error))?;
        let paths = written(&patch);
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let (plan, changed) = cx.edit_files(&paths, |was| {
            let plan = Plan::of(cx, &patch, &paths, was)?;
            Ok((plan.edits(), plan))
        })?;
        Ok(report::reply(cx, &plan, changed, DiffDetail::for_call(self.diff, cx)))
    }
}

/// Every path that is written, once, in the order of the patch: created, changed, deleted, moved, and the targets
/// of moves.
fn written(patch: &Patch<'_>) -> Vec<PathBuf> {
    let moved =
        |file: &'_ FilePatch<'_>| file.from.clone().filter(|_| file.action == FileAction::Move);
    let named = patch.files.iter().flat_map(|file| [moved(file), Some(file.path.clone())]);
    let mut seen = HashSet::new();
    named.flatten().map(|name| path(&name)).filter(|path| seen.insert(path.clone())).collect()
}

/// The source of a copy, which is only read.
fn copied_from(file: &FilePatch<'_>) -> Option<PathBuf> {
    file.from.as_deref().filter(|_| file.action == FileAction::Copy).map(path)
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(bytes).into()
}
