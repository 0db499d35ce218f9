//! Write: writes a whole file.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_fs::Content;
use toolcrib_policy::Access;
use toolcrib_text::{Encoding, Endings, TextProperties, unified_diff, visible_name};

use self::form::Form;
use super::content_checks::{ContentChecks, SYNTAX_ERRORS};
use super::shown_diff::{self, DiffDetail};
use crate::changed_by::authors;
use crate::cx::CHANGE;
use crate::cx::{Cx, Updated};
use crate::error::{Error, ErrorKind};
use crate::message_names::{BASH, EXPECTED_HASH};
use crate::metadata_fields::MetadataField;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::seen_files::Seen;
use crate::tool::{Category, Hints, Tool};

mod form;
mod stale_write;
mod warnings;

/// Creates or overwrites a file. To overwrite, `Read` the whole file first, or pass `expected_hash`. Mode,
/// encoding and line endings are kept unless given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// The file.
    file_path: String,
    /// Whole text.
    content: String,
    /// Hash of its content.
    expected_hash: Option<String>,
    /// Such as utf-8-bom.
    encoding: Option<String>,
    /// To write.
    line_endings: Option<LineEndings>,
    /// Diff shown.
    #[serde(default)]
    diff: DiffDetail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LineEndings {
    Lf,
    Crlf,
    Cr,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("file_path", "string", "always", "The file."),
    MetadataField::new("created", "boolean", "always", "Whether the file is new."),
    MetadataField::new(
        "bytes_written",
        "integer",
        "always",
        "Bytes written; 0 if the file already had this content.",
    ),
    MetadataField::new("lines", "integer", "always", "Lines of the file."),
    MetadataField::new("added_lines", "integer", "always", "Lines added."),
    MetadataField::new("removed_lines", "integer", "always", "Lines removed."),
    MetadataField::new(
        "hash",
        "string",
        "always; error `stale` or `conflict`",
        "Hash of the content of the file.",
    ),
];

impl Tool for Write {
    const NAME: &'static str = "Write";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints { idempotent: true, ..Hints::EDITS };
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("path", "file_path"), ("text", "content"), ("contents", "content")];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, SYNTAX_ERRORS, CHANGE];

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.file_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let shown = cx.show(&self.file_path)?;
        let real = cx.real_path(&self.file_path)?;
        let form = self.form()?;
        let (mut notes, mut had) = (Vec::new(), None);
        let updated = cx.update(&self.file_path, |was| {
            notes.clear();
            let Some(was) = was else { return self.new_file(&form, &shown) };
            if was[..] != *self.content.as_bytes() {
                self.require_seen(cx, &real, was, &shown)?;
            }
            let encoding = *had.insert(cx.encoding(&real, was));
            form.rewrite(&self.content, (was, encoding), &shown, &mut notes)
        });
        let updated = updated.map_err(|error| match error.kind() {
            ErrorKind::TooLarge => {
                error.hint(format!("Nothing was written. Remove it with {BASH}, then call again."))
            }
            _ => error,
        })?;
        cx.mark_seen_whole(&real, &updated.now);
        let written = form.encoding.or(had).unwrap_or(Encoding::UTF_8);
        if !cx.dry_run() {
            cx.session().remember_written(&real, written, &updated.now);
        }
        notes.extend(warnings::of(&self.content, updated.was.as_deref().unwrap_or_default()));
        notes.extend(updated.changed.notes.iter().cloned());
        let link = cx.followed_link(&self.file_path)?;
        notes.extend(link.map(|link| format!("Through the symlink {link}.")));
        if updated.was.is_none() {
            notes.extend(cx.session_file_note(&self.file_path)?);
        }
        let mut errors = ContentChecks::new();
        errors.examine(&shown, None, updated.was.as_deref(), &updated.now);
        notes.extend_from_slice(errors.notes());
        let detail = DiffDetail::for_call(self.diff, cx);
        Ok(errors.facts(reply(cx, &shown, &updated, (had, written), &notes, detail)))
    }
}

impl Write {
    /// The requested encoding and line endings.
    fn form(&self) -> Result<Form, Error> {
        let encoding = self.encoding.as_deref().map(|name| {
            Encoding::named(name).ok_or_else(|| {
                let name = visible_name(name.as_bytes());
                Error::invalid(format!("`encoding`: {name} is not supported")).hint(
                    "Use one such as utf-8, utf-8-bom, utf-16le, windows-1252, shift_jis or gbk.",
                )
            })
        });
        let endings = self.line_endings.map(|endings| match endings {
            LineEndings::Lf => Endings::Lf,
            LineEndings::Crlf => Endings::CrLf,
            LineEndings::Cr => Endings::Cr,
        });
        Ok(Form { encoding: encoding.transpose()?, endings })
    }

    fn new_file(&self, form: &Form, shown: &str) -> Result<Vec<u8>, Error> {
        if self.expected_hash.is_some() {
            return Err(Error::new(ErrorKind::Stale, "the file does not exist, so it has no hash")
                .hint(format!("Nothing was written. Omit {EXPECTED_HASH} to create the file.")));
        }
        form.of_new_file(&self.content, shown)
    }

    /// A session may overwrite a file if it has read or written all of its current content, or if the call has its
    /// hash.
    fn require_seen(
        &self,
        cx: &Cx<'_>,
        real: &Path,
        was: &Content,
        shown: &str,
    ) -> Result<(), Error> {
        let (seen, now) = (cx.session().seen(real), Seen::of(was));
        if let Some(expected) = &self.expected_hash {
            let known = now.hash.is(expected);
            return if known { Ok(()) } else { Err(stale_write::wrong_hash(cx, shown, was, &now)) };
        }
        match seen {
            Some(seen) if seen.hash == now.hash && seen.is_whole() => Ok(()),
            Some(seen) if seen.hash == now.hash => {
                Err(stale_write::partly_read(cx, shown, was, &seen, &now))
            }
            Some(seen) => {
                let by = authors(cx.history(), cx.session(), real, seen.hash, now.hash);
                Err(stale_write::changed(cx, shown, was, &seen, &now, by))
            }
            None if was.is_empty() => Ok(()),
            None => Err(stale_write::never_read(cx, shown, was, &now)),
        }
    }
}

fn reply(
    cx: &Cx<'_>,
    shown: &str,
    updated: &Updated,
    (encoding_before, encoding_now): (Option<Encoding>, Encoding),
    notes: &[String],
    detail: DiffDetail,
) -> Reply {
    let Updated { was, now, changed } = updated;
    let created = was.is_none();
    let same = was.as_ref() == Some(now);
    let encoding = Encoding::of_known(now, Some(encoding_now));
    let lines = TextProperties::of(&encoding.decode(now).unwrap_or(now[..].into())).lines();
    let line_chars = cx.limits().line_chars;
    let diff = unified_diff(shown, was.as_deref(), Some(now), line_chars, encoding_before);
    let mut size = format!("{}, {}", counted(lines, "line"), counted(now.len() as u64, "byte"));
    if !created {
        size += &format!("; {}", shown_diff::counts(diff.added, diff.removed));
    }
    let mut text = match (cx.dry_run(), created, same) {
        (_, _, true) => format!("{shown} already has this content; nothing was written."),
        (false, true, _) => format!("Created {shown} ({size})."),
        (false, false, _) => format!("Wrote {shown} ({size})."),
        (true, true, _) => format!("Dry run, nothing written. Would create {shown} ({size})."),
        (true, false, _) => format!("Dry run, nothing written. Would write {shown} ({size})."),
    };
    notes.iter().for_each(|note| text += &format!(" {note}"));
    let reply = Reply::new(text)
        .with("file_path", shown)
        .with("created", created)
        .with("bytes_written", if same { 0 } else { now.len() })
        .with("lines", lines)
        .with("added_lines", diff.added)
        .with("removed_lines", diff.removed)
        .with("hash", now.hash().short())
        .with_all(changed.facts());
    // The caller knows the new content.
    let detail = if detail == DiffDetail::Short { DiffDetail::None } else { detail };
    detail.show(reply, diff.text, changed.id)
}
