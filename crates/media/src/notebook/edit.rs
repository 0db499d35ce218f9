//! Changes one cell: replaces its text in the document.

use std::ops::Range;

use super::object::Object;
use super::source_form::SourceForm;
use super::whitespace::Layout;
use super::{Cell, CellType, Keys, List, Notebook, NotebookError, json};

/// The position of a new cell. Numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Before the cell with this number.
    Before(usize),
    /// After the cell with this number.
    After(usize),
    /// After all others.
    End,
}

/// A notebook with one changed cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole document.
    pub bytes: Vec<u8>,
    /// The number of the cell. For a deleted cell, its previous number.
    pub number: usize,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its type. For a deleted cell, its previous type.
    pub cell_type: String,
    /// Number of outputs that were removed.
    pub outputs_cleared: usize,
    /// Whether its attachments were removed, which a code cell cannot have.
    pub attachments_removed: bool,
    /// Number of cells in the new document.
    pub total: usize,
}

impl Notebook<'_> {
    /// Replaces the source of a cell, and its type if one is given. Its id and metadata are kept, and its
    /// attachments if the type allows them. Outputs and execution count of a code cell are removed, since
    /// they came from another source. If source and type are the same, nothing changes. Fails if the cell
    /// does not exist or is not an object.
    pub fn replace(
        &self,
        number: usize,
        source: &str,
        cell_type: Option<CellType>,
    ) -> Result<Edited, NotebookError> {
        let cell = self.cell(number)?;
        let Some(mut object) = Object::parse(cell.raw) else {
            return Err(self.error(cell.raw, format!("cell {number} is not an object")));
        };
        let now: &str = match cell_type {
            Some(cell_type) => cell_type.name(),
            None => &cell.cell_type,
        };
        let mut edited = Edited { cell_type: now.to_owned(), ..self.unchanged(cell) };
        if source == cell.source && now == cell.cell_type {
            return Ok(edited);
        }
        let form = SourceForm::of(&object, self.keys(&cell.cell_type).source);
        let form = form
            .or_else(|| self.form_near(cell.list, number))
            .unwrap_or_else(|| SourceForm::new(&object));
        if now != cell.cell_type {
            edited.attachments_removed = self.retype(&mut object, now);
        }
        let keys = self.keys(now);
        object.set(keys.source, form.write(source, self.ascii()));
        if now == CellType::Code.name() || object.get("outputs").is_some() {
            object.set("outputs", "[]");
        }
        if object.get(keys.count).is_some() {
            object.set(keys.count, "null");
        }
        edited.outputs_cleared = cell.outputs.len();
        edited.bytes = self.splice(self.span(cell.raw), &object.write());
        Ok(edited)
    }

    /// Inserts a cell in the layout of its neighbours. From format 4.5 on it gets a unique id, derived from
    /// `seed`, which should be different for each insertion. Fails if the position does not exist.
    pub fn insert(
        &self,
        position: Position,
        source: &str,
        cell_type: CellType,
        seed: u32,
    ) -> Result<Edited, NotebookError> {
        let (list, at) = self.resolve_position(position)?;
        let (List { raw, holder, cells }, here) = (&self.lists[list], self.cells_of(list));
        let holder = Object::parse(holder).unwrap_or_else(|| Object::empty(no_whitespace(), ":"));
        let layout =
            Layout::of_list(raw, holder.colon()).unwrap_or_else(|| holder.layout().deeper());
        let id = (self.version >= (4, 5)).then(|| self.new_id(seed));
        let near = self.object_near(list, cells.start + at);
        let object =
            self.new_cell(near.as_ref(), &layout, &holder, source, cell_type, id.as_deref());
        let text = object.write();
        let bytes = match (at.checked_sub(1).and_then(|before| here.get(before)), here.first()) {
            (Some(before), _) => {
                let end = self.span(before.raw).end;
                self.splice(end..end, &format!(",{}{text}", layout.next))
            }
            (None, Some(behind)) => {
                let start = self.span(behind.raw).start;
                self.splice(start..start, &format!("{text},{}", layout.next))
            }
            (None, None) => self.splice(self.span(raw), &layout.list(&[text])),
        };
        Ok(Edited {
            bytes,
            number: cells.start + at + 1,
            id,
            cell_type: cell_type.name().to_owned(),
            outputs_cleared: 0,
            attachments_removed: false,
            total: self.cells.len() + 1,
        })
    }

    /// Deletes a cell, with its comma. Fails if it does not exist.
    pub fn delete(&self, number: usize) -> Result<Edited, NotebookError> {
        let cell = self.cell(number)?;
        let here = self.cells_of(cell.list);
        let at = number - 1 - self.lists[cell.list].cells.start;
        let span = self.span(cell.raw);
        let gone = match (at.checked_sub(1).and_then(|before| here.get(before)), here.get(at + 1)) {
            (Some(before), _) => self.span(before.raw).end..span.end,
            (None, Some(behind)) => span.start..self.span(behind.raw).start,
            (None, None) => {
                let list = self.span(self.lists[cell.list].raw);
                list.start + 1..list.end - 1
            }
        };
        let (bytes, total) = (self.splice(gone, ""), self.cells.len() - 1);
        Ok(Edited { bytes, total, outputs_cleared: cell.outputs.len(), ..self.unchanged(cell) })
    }

    fn cell(&self, number: usize) -> Result<&Cell<'_>, NotebookError> {
        let cell = number.checked_sub(1).and_then(|at| self.cells.get(at));
        cell.ok_or_else(|| self.error(self.text, format!("there is no cell {number}")))
    }

    fn cells_of(&self, list: usize) -> &[Cell<'_>] {
        &self.cells[self.lists[list].cells.clone()]
    }

    /// The list for a new cell, and the number of cells of that list before it.
    fn resolve_position(&self, position: Position) -> Result<(usize, usize), NotebookError> {
        let (number, behind) = match position {
            Position::Before(number) => (number, 0),
            Position::After(number) => (number, 1),
            Position::End => {
                let last = self.lists.iter().enumerate().next_back();
                return last
                    .map(|(at, list)| (at, list.cells.len()))
                    .ok_or_else(|| self.error(self.text, "there is no worksheet for a new cell"));
            }
        };
        let list = self.cell(number)?.list;
        Ok((list, number - 1 - self.lists[list].cells.start + behind))
    }

    fn unchanged(&self, cell: &Cell<'_>) -> Edited {
        Edited {
            bytes: self.text.as_bytes().to_vec(),
            number: cell.number,
            id: cell.id.clone(),
            cell_type: cell.cell_type.clone(),
            outputs_cleared: 0,
            attachments_removed: false,
            total: self.cells.len(),
        }
    }

    /// A new cell, in the layout of a nearby one if there is any.
    fn new_cell(
        &self,
        near: Option<&Object>,
        list: &Layout,
        holder: &Object,
        source: &str,
        cell_type: CellType,
        id: Option<&str>,
    ) -> Object {
        let layout = near.map_or_else(|| list.deeper(), |near| near.layout().clone());
        let mut object = Object::empty(layout, near.unwrap_or(holder).colon());
        let form = near.and_then(|near| {
            SourceForm::of(near, "source").or_else(|| SourceForm::of(near, "input"))
        });
        let form = form.unwrap_or_else(|| SourceForm::new(&object));
        object.set("cell_type", json::quote(cell_type.name(), true));
        if let Some(id) = id {
            object.set("id", json::quote(id, true));
        }
        object.set("metadata", "{}");
        object.set(self.keys(cell_type.name()).source, form.write(source, self.ascii()));
        if cell_type == CellType::Code {
            self.add_code_members(&mut object);
        }
        if let Some(near) = near {
            object.order_like(near);
        }
        object
    }

    /// Changes the type of a cell. Returns whether attachments were removed.
    fn retype(&self, object: &mut Object, cell_type: &str) -> bool {
        let code = cell_type == CellType::Code.name();
        let attached = code && object.get("attachments").is_some();
        let foreign: &[&str] = match (code, self.version.0) {
            (true, 3) => &["source", "level"],
            (true, _) => &["attachments"],
            (false, 3) => &["input", "outputs", "prompt_number", "language", "collapsed", "level"],
            (false, _) => &["outputs", "execution_count"],
        };
        object.set("cell_type", json::quote(cell_type, true));
        foreign.iter().for_each(|key| object.remove(key));
        if code {
            self.add_code_members(object);
        }
        attached
    }

    /// Adds the members that the format requires of a code cell.
    fn add_code_members(&self, object: &mut Object) {
        object.set_missing("outputs", "[]");
        if self.version.0 > 3 {
            object.set_missing("execution_count", "null");
            return;
        }
        let language = self.cells.iter().find_map(|cell| {
            let members = json::members(cell.raw).ok()?;
            json::last(&members, "language")
        });
        object.set_missing("language", language.unwrap_or("\"python\""));
    }

    /// The object of the cell at an index, or of the nearest cell that is an object.
    fn object_near(&self, list: usize, at: usize) -> Option<Object> {
        let range = &self.lists[list].cells;
        let before = self.cells[range.start..at].iter().rev();
        let behind = self.cells[at..range.end].iter();
        before.chain(behind).find_map(|cell| Object::parse(cell.raw))
    }

    fn form_near(&self, list: usize, number: usize) -> Option<SourceForm> {
        let near = self.object_near(list, number - 1)?;
        SourceForm::of(&near, "source").or_else(|| SourceForm::of(&near, "input"))
    }

    fn keys(&self, cell_type: &str) -> Keys {
        Keys::of(self.version.0, cell_type == CellType::Code.name())
    }

    fn ascii(&self) -> bool {
        json::escapes_non_ascii(self.text)
    }

    /// Eight hex digits that are not the id of another cell.
    fn new_id(&self, seed: u32) -> String {
        let taken = |id: &str| self.cells.iter().any(|cell| cell.id() == Some(id));
        let mut number = seed;
        loop {
            let id = format!("{number:08x}");
            if !taken(&id) {
                return id;
            }
            number = number.wrapping_add(1);
        }
    }

    fn span(&self, part: &str) -> Range<usize> {
        let start = json::offset(self.text, part);
        start..start + part.len()
    }

    fn splice(&self, gone: Range<usize>, new: &str) -> Vec<u8> {
        [&self.text[..gone.start], new, &self.text[gone.end..]].concat().into_bytes()
    }
}

fn no_whitespace() -> Layout {
    Layout::new("", None, "", ":")
}
