//! Jupyter notebooks: reads cells, and changes single cells in a document that otherwise stays unchanged.
//!
//! The document is never serialized again. Parsing keeps the position of each cell in the text, and a change
//! replaces the text of that cell alone, in the layout of its neighbours.

mod edit;
mod json;
mod object;
mod output;
mod render;
mod source_form;
mod terminal;
mod whitespace;

use std::fmt;
use std::ops::Range;

pub use self::edit::{Edited, Position};
pub use self::render::Rendered;

/// A notebook, borrowed from the bytes it was parsed from.
#[derive(Debug, Clone)]
pub struct Notebook<'a> {
    /// The whole document, with its byte order mark if it has one.
    text: &'a str,
    /// `nbformat` and `nbformat_minor`.
    version: (u64, u64),
    lists: Vec<List<'a>>,
    cells: Vec<Cell<'a>>,
}

/// A list of cells. There is one, or in format 3 one in each worksheet.
#[derive(Debug, Clone)]
struct List<'a> {
    raw: &'a str,
    /// The object that contains it.
    holder: &'a str,
    /// The range of its cells among all cells.
    cells: Range<usize>,
}

/// One cell.
#[derive(Debug, Clone)]
pub struct Cell<'a> {
    /// The JSON text of the cell.
    raw: &'a str,
    list: usize,
    number: usize,
    cell_type: String,
    id: Option<String>,
    execution_count: Option<u64>,
    source: String,
    /// The JSON text of each output.
    outputs: Vec<&'a str>,
}

/// The types that a cell can be given. Other types in a document are read and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// Code to run.
    Code,
    /// Text with markup.
    Markdown,
    /// Text without interpretation.
    Raw,
}

/// Why bytes are not a notebook, or why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookError {
    /// The line in the document, from 1.
    pub line: usize,
    /// The byte in that line, from 1.
    pub column: usize,
    /// The error message.
    pub why: String,
}

impl<'a> Notebook<'a> {
    /// Parses a notebook of format 3 or 4. Unknown, missing or malformed keys are accepted. Invalid JSON is
    /// an error. If a key occurs twice the last one counts, as in Jupyter.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NotebookError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            let valid = std::str::from_utf8(valid).unwrap_or_default();
            NotebookError::at(valid, valid.len(), "it is not UTF-8")
        })?;
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let top = json::members(body).map_err(|error| NotebookError::syntax(&error))?;
        let number = |key| json::last(&top, key).and_then(|raw| raw.parse().ok());
        let version = (
            // Format 4 has been the standard for ten years.
            number("nbformat").unwrap_or(4),
            number("nbformat_minor").unwrap_or(0),
        );
        if version.0 < 3 {
            let why = format!("it is a notebook of format {}, which is older than 3", version.0);
            return Err(NotebookError::at(text, 0, why));
        }
        let mut notebook = Notebook { text, version, lists: Vec::new(), cells: Vec::new() };
        match (json::last(&top, "cells"), json::last(&top, "worksheets")) {
            (Some(cells), _) if version.0 > 3 => notebook.add_list(cells, body.trim())?,
            (_, Some(sheets)) if version.0 == 3 => {
                for sheet in notebook.items(sheets, "`worksheets` is not a list")? {
                    let members = json::members(sheet).unwrap_or_default();
                    if let Some(cells) = json::last(&members, "cells") {
                        notebook.add_list(cells, sheet)?;
                    }
                }
            }
            _ => {
                let key = if version.0 > 3 { "cells" } else { "worksheets" };
                let why = format!("it has no `{key}`, so it is not a notebook");
                return Err(NotebookError::at(text, 0, why));
            }
        }
        Ok(notebook)
    }

    /// The cells, in order.
    pub fn cells(&self) -> &[Cell<'a>] {
        &self.cells
    }

    fn add_list(&mut self, raw: &'a str, holder: &'a str) -> Result<(), NotebookError> {
        let from = self.cells.len();
        for cell in self.items(raw, "`cells` is not a list")? {
            let number = self.cells.len() + 1;
            self.cells.push(Cell::parse(cell, self.lists.len(), number, self.version.0));
        }
        self.lists.push(List { raw, holder, cells: from..self.cells.len() });
        Ok(())
    }

    fn items(&self, raw: &'a str, otherwise: &str) -> Result<Vec<&'a str>, NotebookError> {
        json::items(raw).ok_or_else(|| self.error(raw, otherwise))
    }

    /// An error about a part of the document.
    fn error(&self, part: &str, why: impl Into<String>) -> NotebookError {
        NotebookError::at(self.text, json::offset(self.text, part), why)
    }
}

impl<'a> Cell<'a> {
    fn parse(raw: &'a str, list: usize, number: usize, format: u64) -> Self {
        let members = json::members(raw).unwrap_or_default();
        let get = |key| json::last(&members, key);
        let cell_type = get("cell_type").and_then(json::string).unwrap_or("unknown".to_owned());
        let keys = Keys::of(format, cell_type == CellType::Code.name());
        Cell {
            raw,
            list,
            number,
            id: get("id").and_then(json::string),
            execution_count: get(keys.count).and_then(|raw| raw.parse().ok()),
            source: get(keys.source).and_then(json::multiline).unwrap_or_default(),
            outputs: get("outputs").and_then(json::items).unwrap_or_default(),
            cell_type,
        }
    }

    /// Its number in the notebook, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// `code`, `markdown`, `raw`, or another type in the document. `unknown` if there is none.
    pub fn cell_type(&self) -> &str {
        &self.cell_type
    }

    /// Its id. Cells have none before format 4.5.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Its source.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl CellType {
    /// Its name in the document.
    pub fn name(self) -> &'static str {
        match self {
            CellType::Code => "code",
            CellType::Markdown => "markdown",
            CellType::Raw => "raw",
        }
    }
}

impl NotebookError {
    fn at(text: &str, offset: usize, why: impl Into<String>) -> Self {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        NotebookError { line, column: offset - line_start + 1, why: why.into() }
    }

    fn syntax(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let why = error.to_string();
        let place = format!(" at line {line} column {column}");
        let why = why.strip_suffix(&place).unwrap_or(&why).to_owned();
        // At the very start the parser counts from zero.
        NotebookError { line, column: column.max(1), why }
    }
}

impl fmt::Display for NotebookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.why)
    }
}

impl std::error::Error for NotebookError {}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The keys of a cell, which differ between formats.
struct Keys {
    source: &'static str,
    count: &'static str,
}

impl Keys {
    fn of(format: u64, code: bool) -> Keys {
        match (format, code) {
            (3, true) => Keys { source: "input", count: "prompt_number" },
            (3, false) => Keys { source: "source", count: "prompt_number" },
            _ => Keys { source: "source", count: "execution_count" },
        }
    }
}

#[cfg(test)]
mod tests;
