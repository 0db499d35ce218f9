//! Edit: replaces text in a file, and changes no other byte.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::unified_diff;

use super::content_checks::{ContentChecks, SYNTAX_ERRORS};
use super::escaped_newlines::{escaped_newlines_note, has_escaped_newlines};
use super::replacement::NO_REPLACEMENT;
use super::replacement::{self, EditResult, Replacement};
use super::shown_diff::DiffDetail;
use crate::cx::CHANGE;
use crate::cx::{Cx, Updated};
use crate::error::Error;
use crate::message_names::NEW_STRING;
use crate::metadata_fields::MetadataField;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Replaces text in a file. `old_string` must occur exactly once, with its indentation and without line numbers;
/// otherwise add context, `near_line` or `replace_all`. A unique match that differs only in indentation, trailing
/// whitespace or typographic quotes is used too. An empty `old_string` creates a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The file.
    file_path: String,
    /// Text to replace.
    old_string: String,
    /// Its replacement.
    new_string: String,
    /// Every match.
    #[serde(default)]
    replace_all: bool,
    /// Near this line.
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
    /// Diff shown.
    #[serde(default)]
    diff: DiffDetail,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("file_path", "string", "always", "The file."),
    MetadataField::new("created", "boolean", "always", "Whether the file is new."),
    MetadataField::new("replacements", "integer", "always", "Number of replacements."),
    MetadataField::new(
        "matched",
        "string",
        "always",
        "How `old_string` was matched: `exact`, or the difference that was tolerated.",
    ),
    MetadataField::new(
        "lines",
        "array of integer",
        "always; error `ambiguous`",
        "Lines of the matches before the edit.",
    ),
    MetadataField::new("added_lines", "integer", "always", "Lines added."),
    MetadataField::new("removed_lines", "integer", "always", "Lines removed."),
    MetadataField::new("hash", "string", "always", "Hash of the new content."),
];

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] = replacement::ALIASES;
    const METADATA: &'static [&'static [MetadataField]] =
        &[METADATA, NO_REPLACEMENT, SYNTAX_ERRORS, CHANGE];

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.file_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let shown = cx.show(&self.file_path)?;
        let real = cx.real_path(&self.file_path)?;
        let seen = cx.session().seen(&real);
        let replacement = Replacement {
            old: &self.old_string,
            new: &self.new_string,
            all: self.replace_all,
            near_line: self.near_line,
        };
        let mut made = EditResult::default();
        let updated = cx.update(&self.file_path, |was| {
            let replaced =
                replacement.apply(cx, was.map(|was| &was[..]), &self.file_path, &shown)?;
            made = replaced.made;
            Ok(replaced.now)
        })?;
        let mut notes: Vec<String> = made.matched.note().into_iter().collect();
        notes.extend(updated.changed.notes.iter().cloned());
        let link = cx.followed_link(&self.file_path)?;
        notes.extend(link.map(|link| format!("Through the symlink {link}.")));
        notes.extend(cx.changed_elsewhere(&real, seen, updated.was.as_ref()));
        let was = updated.was.as_deref().unwrap_or_default();
        if has_escaped_newlines(&self.new_string, was) {
            notes.push(escaped_newlines_note(format!("`{NEW_STRING}`")));
        }
        let mut errors = ContentChecks::new();
        errors.examine(&shown, None, updated.was.as_deref(), &updated.now);
        notes.extend_from_slice(errors.notes());
        Ok(errors.facts(self.reply(cx, (&shown, &real), &updated, &made, &notes)))
    }
}

impl Edit {
    fn reply(
        &self,
        cx: &Cx<'_>,
        (shown, real): (&str, &Path),
        updated: &Updated,
        made: &EditResult,
        notes: &[String],
    ) -> Reply {
        let Updated { was, now, changed } = updated;
        let line_chars = cx.limits().line_chars;
        let encoding = cx.session().encoding(real);
        let diff = unified_diff(shown, was.as_deref(), Some(now), line_chars, encoding);
        let created = was.is_none();
        let did = match (cx.dry_run(), created) {
            (false, false) => "Edited",
            (false, true) => "Created",
            (true, false) => "Dry run, nothing written. Would edit",
            (true, true) => "Dry run, nothing written. Would create",
        };
        let detail = match DiffDetail::for_call(self.diff, cx) {
            // If the same text is replaced everywhere, the line numbers suffice.
            DiffDetail::Short if made.count > 1 || created => DiffDetail::None,
            detail => detail,
        };
        let mut text = match made.count {
            0 => format!("{did} {shown} ({}).", counted(diff.added as u64, "line")),
            count => {
                let at = match detail {
                    DiffDetail::None => format!(" at {}", made.places()),
                    _ => String::new(),
                };
                format!("{did} {shown}: {}{at}.", counted(count as u64, "replacement"))
            }
        };
        notes.iter().for_each(|note| text += &format!(" {note}"));
        let reply = Reply::new(text)
            .with("file_path", shown)
            .with("created", created)
            .with("replacements", made.count)
            .with("matched", made.matched.name())
            .with("lines", made.lines.as_slice())
            .with("added_lines", diff.added)
            .with("removed_lines", diff.removed)
            .with("hash", now.hash().short())
            .with_all(changed.facts());
        detail.show(reply, diff.text, changed.id)
    }
}
