//! Reads a Jupyter notebook cell by cell.

use toolcrib_fs::Content;
use toolcrib_media::{Notebook, Rendered};
use toolcrib_text::visible;

use super::Part;
use super::line_page::FOOTER_CHARS;
use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::Error;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::seen_files::Seen;
use crate::tools::invisible_notes::InvisibleCharacters;

/// Whether a file is a notebook by its name. Its bytes are those of any JSON.
pub(super) fn is_notebook(file: &OpenFile) -> bool {
    file.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Reads a part of a notebook; offset and limit count cells. Returns the reason if the file is not a notebook; the
/// caller then reads it as text.
pub(super) fn read(
    cx: &Cx<'_>,
    file: &OpenFile,
    part: Part,
) -> Result<Result<Reply, String>, Error> {
    if file.size() > cx.limits().notebook_bytes {
        let most = cx.limits().notebook_bytes;
        return Ok(Err(format!("shown as text: notebooks are parsed up to {most} bytes")));
    }
    let bytes = Content::from(file.read_all(cx.limits().notebook_bytes)?);
    let notebook = match Notebook::parse(&bytes) {
        Ok(notebook) => notebook,
        Err(error) => {
            return Ok(Err(format!("shown as text, because it is not a notebook: {error}")));
        }
    };
    let total = notebook.cells().len() as u64;
    let first = match part.offset {
        1 => 1,
        offset @ 1.. if offset.unsigned_abs() > total => {
            return Err(no_such_cell(file, offset.unsigned_abs(), total));
        }
        offset @ 1.. => offset.unsigned_abs(),
        offset => total.saturating_sub(offset.unsigned_abs()) + 1,
    };
    let room = cx.limits().reply_chars.saturating_sub(FOOTER_CHARS);
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let Rendered { text, shown, clipped_chars, .. } =
        notebook.render(at(first), at(part.limit), room);
    let is_whole = first == 1 && shown as u64 == total && clipped_chars == 0;
    let seen = if is_whole { Seen::whole(&bytes) } else { Seen::of(&bytes) };
    let hash = seen.hash.short();
    cx.session().remember_seen(file.path().to_owned(), seen);
    let text = if total == 0 { "[the notebook has no cells]\n".to_owned() } else { text };
    let text = visible(text.as_bytes());
    let hidden = InvisibleCharacters::of_text(&text);
    let text = text + &hidden.note();
    Ok(Ok(hidden
        .facts(Reply::new(text))
        .with("file_path", file.shown())
        .with("offset", first)
        .with("cells_read", shown)
        .with("total_cells", total)
        .with("truncated", shown as u64 + first <= total || clipped_chars > 0)
        .with("hash", hash)))
}

fn no_such_cell(file: &OpenFile, cell: u64, total: u64) -> Error {
    let message =
        format!("{} has {}; there is no cell {cell}", file.shown(), counted(total, "cell"));
    Error::invalid(message)
        .hint("In a notebook, offset and limit count cells.")
        .with("total_cells", total)
}
