//! NotebookEdit: changes one cell of a Jupyter notebook, and no byte of the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_fs::ContentHasher;
use toolcrib_media::{CellType, Edited, Notebook, NotebookError, Position};
use toolcrib_policy::Access;
use toolcrib_text::{truncate_line, unified_diff, visible_name};

use super::replacement::missing;
use super::shown_diff::DiffDetail;
use crate::cx::CHANGE;
use crate::cx::{Cx, Updated};
use crate::error::{Error, ErrorKind};
use crate::message_names::{CELL_ID, CELL_NUMBER, EDIT, EDIT_MODE, NEW_SOURCE, READ};
use crate::metadata_fields::MetadataField;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

mod cell_ref;

use self::cell_ref::CellRef;

/// Replaces, inserts or deletes one notebook cell, by `cell_id` or `cell_number`. Replacing clears its outputs.
/// Insert goes after that cell, or to the end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotebookEdit {
    /// The notebook.
    notebook_path: String,
    /// Its id.
    cell_id: Option<String>,
    /// Its number, from 1.
    #[schemars(range(min = 1))]
    cell_number: Option<u64>,
    /// The new text.
    new_source: Option<String>,
    /// The new type.
    cell_type: Option<CellTypeArgument>,
    /// What to do.
    #[serde(default)]
    edit_mode: Mode,
    /// Of a new cell.
    position: Option<PositionArgument>,
    /// Diff shown.
    #[serde(default)]
    diff: DiffDetail,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellTypeArgument {
    Code,
    Markdown,
    Raw,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PositionArgument {
    Before,
    After,
    End,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("notebook_path", "string", "always", "The notebook."),
    MetadataField::new("edit_mode", "string", "always", "`replace`, `insert` or `delete`."),
    MetadataField::new("cell_number", "integer", "always", "Number of the cell, from 1."),
    MetadataField::new("cell_id", "string", "the cell has an id", "Id of the cell."),
    MetadataField::new("cell_type", "string", "always", "`code`, `markdown` or `raw`."),
    MetadataField::new(
        "total_cells",
        "integer",
        "always; error for an unknown cell",
        "Cells of the notebook.",
    ),
    MetadataField::new("outputs_cleared", "integer", "always", "Number of outputs removed."),
    MetadataField::new("added_lines", "integer", "always", "Lines added."),
    MetadataField::new("removed_lines", "integer", "always", "Lines removed."),
    MetadataField::new("hash", "string", "always", "Hash of the new content."),
    MetadataField::new("line", "integer", "error `unsupported`", "Line of the error in the JSON."),
    MetadataField::new("column", "integer", "error `unsupported`", "Column in that line."),
];

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("path", "notebook_path"),
        ("file_path", "notebook_path"),
        ("source", "new_source"),
        ("mode", "edit_mode"),
    ];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, CHANGE];

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.notebook_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let step = self.step()?;
        let shown = cx.show(&self.notebook_path)?;
        let real = cx.real_path(&self.notebook_path)?;
        let seen = cx.session().seen(&real);
        let mut edited = None;
        let updated = cx.update(&self.notebook_path, |was| {
            let Some(was) = was else { return Err(missing(cx, &self.notebook_path)) };
            let mut done = step.apply(was, &shown)?;
            let now = std::mem::take(&mut done.bytes);
            edited = Some(done);
            Ok(now)
        })?;
        let Some(edited) = edited else {
            return Err(Error::new(ErrorKind::Internal, "the file was not requested"));
        };
        let elsewhere = cx.changed_elsewhere(&real, seen, updated.was.as_ref());
        Ok(self.reply(cx, &shown, &updated, &edited, elsewhere))
    }
}

/// The operation, with its arguments.
enum Step<'a> {
    Replace(CellRef<'a>, &'a str, Option<CellType>),
    Insert(Option<(CellRef<'a>, PositionArgument)>, &'a str, CellType),
    Delete(CellRef<'a>),
}

impl NotebookEdit {
    /// Validates the arguments.
    fn step(&self) -> Result<Step<'_>, Error> {
        let which = CellRef::of(self.cell_id.as_deref(), self.cell_number);
        let mode = self.edit_mode;
        if self.position.is_some() && mode != Mode::Insert {
            return Err(Error::invalid(format!("`position` requires {EDIT_MODE} insert"))
                .hint(format!("Nothing was done. Omit it, or set {EDIT_MODE} to insert.")));
        }
        let source = self.new_source.as_deref();
        let cell_type = self.cell_type.map(CellTypeArgument::cell_type);
        match (mode, which, source) {
            (Mode::Replace | Mode::Insert, _, None) => {
                Err(Error::invalid(format!("`{NEW_SOURCE}` is missing")).hint(
                    format!("Nothing was done. Give the new text as `{NEW_SOURCE}`; to remove a cell, set {EDIT_MODE} to delete."),
                ))
            }
            (Mode::Replace | Mode::Delete, None, _) => Err(Error::invalid(format!("neither `{CELL_ID}` nor `{CELL_NUMBER}` is given")).hint(
                format!("Nothing was done. Give {CELL_ID} or {CELL_NUMBER}, as {READ} shows them."),
            )),
            (Mode::Replace, Some(which), Some(source)) => {
                Ok(Step::Replace(which, source, cell_type))
            }
            (Mode::Insert, which, Some(source)) => {
                let cell_type = cell_type.unwrap_or(CellType::Code);
                Ok(Step::Insert(self.place(which)?, source, cell_type))
            }
            (Mode::Delete, Some(_), Some(source)) if !source.is_empty() => {
                Err(Error::invalid(format!("`{NEW_SOURCE}` is given, but {EDIT_MODE} is delete")).hint(
                    format!("Nothing was done. Omit `{NEW_SOURCE}` to delete the cell, or set {EDIT_MODE} to replace."),
                ))
            }
            (Mode::Delete, Some(which), _) => Ok(Step::Delete(which)),
        }
    }

    /// The cell next to which a new one is inserted, and the side. `None` for the end.
    fn place<'a>(
        &self,
        which: Option<CellRef<'a>>,
    ) -> Result<Option<(CellRef<'a>, PositionArgument)>, Error> {
        match (which, self.position) {
            (Some(_), Some(PositionArgument::End)) => {
                Err(Error::invalid("`position` is end, but a cell is given")
                    .hint("Nothing was done. Omit the cell, or use position before or after."))
            }
            (None, Some(PositionArgument::Before | PositionArgument::After)) => {
                Err(Error::invalid("`position` is before or after, but no cell is given").hint(
                    format!(
                        "Nothing was done. Give {CELL_ID} or {CELL_NUMBER}; 1 is the first cell."
                    ),
                ))
            }
            (None, _) => Ok(None),
            (Some(which), position) => {
                Ok(Some((which, position.unwrap_or(PositionArgument::After))))
            }
        }
    }

    fn reply(
        &self,
        cx: &Cx<'_>,
        shown: &str,
        updated: &Updated,
        edited: &Edited,
        elsewhere: Option<String>,
    ) -> Reply {
        let Updated { was, now, changed } = updated;
        let diff = unified_diff(shown, was.as_deref(), Some(now), cx.limits().line_chars, None);
        let mut text = self.reply_text(cx.dry_run(), was.as_ref() == Some(now), shown, edited);
        let link = cx.followed_link(&self.notebook_path).ok().flatten();
        let link = link.map(|link| format!("Through the symlink {link}."));
        for note in changed.notes.iter().chain(&link).chain(&elsewhere) {
            text += &format!(" {note}");
        }
        let detail = DiffDetail::for_call(self.diff, cx);
        let reply = detail
            .show(Reply::new(text), diff.text, changed.id)
            .with("notebook_path", shown)
            .with("edit_mode", self.edit_mode.name())
            .with("cell_number", edited.number)
            .with("cell_type", edited.cell_type.as_str())
            .with("total_cells", edited.total)
            .with("outputs_cleared", edited.outputs_cleared)
            .with("added_lines", diff.added)
            .with("removed_lines", diff.removed)
            .with("hash", now.hash().short())
            .with_all(changed.facts());
        match &edited.id {
            Some(id) => reply.with("cell_id", id.as_str()),
            None => reply,
        }
    }

    /// The text of the reply.
    fn reply_text(&self, dry_run: bool, same: bool, shown: &str, edited: &Edited) -> String {
        let cell = cell_ref::name(edited.number, &edited.cell_type, edited.id.as_deref());
        if same {
            return format!("{shown}: {cell} already has this content; nothing was written.");
        }
        let did = if dry_run { "Dry run, nothing written. Would edit" } else { "Edited" };
        let total = counted(edited.total as u64, "cell");
        let outputs = counted(edited.outputs_cleared as u64, "output");
        let mut text = match (self.edit_mode, edited.outputs_cleared) {
            (Mode::Replace, 0) => format!("{did} {shown}: {cell} replaced."),
            (Mode::Replace, _) => format!("{did} {shown}: {cell} replaced, {outputs} cleared."),
            (Mode::Insert, _) => format!("{did} {shown}: {cell} inserted; {total} in total."),
            (Mode::Delete, 0) => format!("{did} {shown}: {cell} deleted; {total} left."),
            (Mode::Delete, _) => {
                format!("{did} {shown}: {cell} deleted with {outputs}; {total} left.")
            }
        };
        if edited.attachments_removed {
            text += " Its attachments were removed: a code cell cannot have any.";
        }
        text
    }
}

impl Step<'_> {
    fn apply(&self, was: &[u8], shown: &str) -> Result<Edited, Error> {
        let notebook = Notebook::parse(was).map_err(|error| not_a_notebook(shown, &error))?;
        let edited = match self {
            Step::Replace(which, source, cell_type) => {
                notebook.replace(which.find(&notebook, shown)?, source, *cell_type)
            }
            Step::Insert(next_to, source, cell_type) => {
                let position = match next_to {
                    None => Position::End,
                    Some((which, PositionArgument::Before)) => {
                        Position::Before(which.find(&notebook, shown)?)
                    }
                    Some((which, _)) => Position::After(which.find(&notebook, shown)?),
                };
                notebook.insert(position, source, *cell_type, seed(was, source))
            }
            Step::Delete(which) => notebook.delete(which.find(&notebook, shown)?),
        };
        edited.map_err(|error| not_a_notebook(shown, &error))
    }
}

impl CellTypeArgument {
    fn cell_type(self) -> CellType {
        match self {
            CellTypeArgument::Code => CellType::Code,
            CellTypeArgument::Markdown => CellType::Markdown,
            CellTypeArgument::Raw => CellType::Raw,
        }
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Replace => "replace",
            Mode::Insert => "insert",
            Mode::Delete => "delete",
        }
    }
}

/// Seed of the id of a new cell. It is deterministic, so that the real call makes the id that its preview showed.
fn seed(was: &[u8], source: &str) -> u32 {
    let mut hasher = ContentHasher::default();
    hasher.feed(was);
    hasher.feed(source.as_bytes());
    let digits = hasher.finish().short();
    digits.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn not_a_notebook(shown: &str, error: &NotebookError) -> Error {
    let why = truncate_line(&visible_name(error.why.as_bytes()), 200);
    let (line, column) = (error.line, error.column);
    let message = format!("{shown} is not a notebook: line {line}, column {column}: {why}");
    Error::new(ErrorKind::Unsupported, message)
        .hint(format!("Nothing was done. Use {EDIT} to change it as text."))
        .with("line", line)
        .with("column", column)
}
