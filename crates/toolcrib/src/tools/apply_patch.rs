//! ApplyPatch: a patch over any number of files, all of it or nothing.

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
use super::shown_diff::DiffDetail;
use crate::cx::Cx;
use crate::error::Error;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Applies a patch atomically. Takes a unified diff, or *** Begin Patch / *** Update File: NAME (or Add File, Delete
/// File; *** Move to: NAME) / @@ / lines starting with a blank, - or + / *** End Patch. Hunks are placed by
/// content; line numbers are hints. A hunk of only additions goes to its line, after its @@ line, or to the
/// end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatch {
    patch: String,
    diff: Option<DiffDetail>,
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "ApplyPatch";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints { idempotent: true, ..Hints::EDITS };
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("patch_text", "patch"), ("input", "patch")];

    fn access(&self) -> Vec<Access> {
        // What cannot be read touches nothing; `run` says why.
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
        Ok(report::reply(cx, &plan, changed, DiffDetail::asked(self.diff, cx)))
    }
}

/// Every path that is written, once, in the order of the patch: what is made, changed, deleted or moved,
/// and where to.
fn written(patch: &Patch<'_>) -> Vec<PathBuf> {
    let moved =
        |file: &'_ FilePatch<'_>| file.from.clone().filter(|_| file.action == FileAction::Move);
    let named = patch.files.iter().flat_map(|file| [moved(file), Some(file.path.clone())]);
    let mut seen = HashSet::new();
    named.flatten().map(|name| path(&name)).filter(|path| seen.insert(path.clone())).collect()
}

/// The file that is only read, to make another of it.
fn copied_from(file: &FilePatch<'_>) -> Option<PathBuf> {
    file.from.as_deref().filter(|_| file.action == FileAction::Copy).map(path)
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(bytes).into()
}
