//! References to cells.

use toolcrib_media::Notebook;
use toolcrib_text::{truncate_line, visible_name};

use crate::error::{Error, ErrorKind};
use crate::message_names::{CELL_ID, CELL_NUMBER, READ};
use crate::phrases::counted;

/// Number of cells to list if none matches.
const LISTED_CELLS: usize = 20;

/// Characters shown of an id. Valid ids have at most 64.
const ID_CHARS: usize = 64;

/// Characters shown of a cell's first line.
const LINE_CHARS: usize = 60;

/// A reference to a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum CellRef<'a> {
    Id(&'a str),
    Number(u64),
    /// Both must refer to the same cell.
    Both(&'a str, u64),
}

impl<'a> CellRef<'a> {
    pub(super) fn of(id: Option<&'a str>, number: Option<u64>) -> Option<CellRef<'a>> {
        match (id, number) {
            (Some(id), Some(number)) => Some(CellRef::Both(id, number)),
            (Some(id), None) => Some(CellRef::Id(id)),
            (None, Some(number)) => Some(CellRef::Number(number)),
            (None, None) => None,
        }
    }

    /// The number of the cell.
    pub(super) fn find(self, notebook: &Notebook<'_>, shown: &str) -> Result<usize, Error> {
        match self {
            CellRef::Id(id) => by_id(notebook, id, shown),
            CellRef::Number(number) => by_number(notebook, number, shown),
            CellRef::Both(id, number) => {
                let (one, other) =
                    (by_id(notebook, id, shown)?, by_number(notebook, number, shown)?);
                if one == other {
                    return Ok(one);
                }
                let id = show_id(id);
                Err(Error::invalid(format!(
                    "the cell with the id {id} is cell {one}, not cell {number}"
                ))
                .hint(format!("Nothing was done. Give one of {CELL_ID} and {CELL_NUMBER}.")))
            }
        }
    }
}

/// The name of a cell in replies.
pub(super) fn name(number: usize, cell_type: &str, id: Option<&str>) -> String {
    let cell_type = show_id(cell_type);
    match id {
        Some(id) => format!("cell {number} ({cell_type}, id {})", show_id(id)),
        None => format!("cell {number} ({cell_type})"),
    }
}

fn by_id(notebook: &Notebook<'_>, id: &str, shown: &str) -> Result<usize, Error> {
    let found: Vec<usize> = notebook
        .cells()
        .iter()
        .filter(|cell| cell.id() == Some(id))
        .map(|cell| cell.number())
        .collect();
    match found.as_slice() {
        [only] => Ok(*only),
        [] => by_number_in_id(notebook, id).ok_or_else(|| {
            let message = format!("no cell of {shown} has the id {}", show_id(id));
            no_such_cell(notebook, message)
        }),
        several => {
            let numbers: Vec<String> =
                several.iter().take(LISTED_CELLS).map(usize::to_string).collect();
            let message = format!(
                "{} cells of {shown} have the id {}: cells {}",
                several.len(),
                show_id(id),
                numbers.join(", ")
            );
            Err(Error::new(ErrorKind::Ambiguous, message)
                .hint(format!("Nothing was done. Give {CELL_NUMBER} instead.")))
        }
    }
}

/// Resolves `cell-3`, which other tools use for cells without an id, to the number, if that cell has no id.
fn by_number_in_id(notebook: &Notebook<'_>, id: &str) -> Option<usize> {
    let number: usize = id.strip_prefix("cell-").unwrap_or(id).parse().ok()?;
    let cell = notebook.cells().get(number.checked_sub(1)?)?;
    cell.id().is_none().then_some(number)
}

fn by_number(notebook: &Notebook<'_>, number: u64, shown: &str) -> Result<usize, Error> {
    let cells = notebook.cells().len();
    match usize::try_from(number) {
        Ok(number) if (1..=cells).contains(&number) => Ok(number),
        _ => {
            let has = counted(cells as u64, "cell");
            Err(no_such_cell(notebook, format!("{shown} has {has}; there is no cell {number}")))
        }
    }
}

fn no_such_cell(notebook: &Notebook<'_>, message: String) -> Error {
    let cells = notebook.cells();
    let mut list = String::new();
    for cell in cells.iter().take(LISTED_CELLS) {
        let line = cell.source().lines().next().unwrap_or_default();
        let line = truncate_line(&visible_name(line.as_bytes()), LINE_CHARS);
        let name = name(cell.number(), cell.cell_type(), cell.id());
        list += &format!("  {name}: {line}\n");
    }
    if cells.len() > LISTED_CELLS {
        list += &format!("  and {} more; {READ} shows them\n", cells.len() - LISTED_CELLS);
    }
    let hint = if cells.is_empty() {
        format!(
            "Nothing was done. It has no cells; omit {CELL_ID} and {CELL_NUMBER} to insert one."
        )
    } else {
        "Nothing was done. Give one of these.".to_owned()
    };
    Error::new(ErrorKind::NoMatch, message).detail(list).hint(hint).with("total_cells", cells.len())
}

fn show_id(id: &str) -> String {
    truncate_line(&visible_name(id.as_bytes()), ID_CHARS)
}
