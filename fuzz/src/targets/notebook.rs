//! Notebooks: a parsed notebook can be rendered and edited, and the result is a notebook in which only the requested
//! change was made.

use serde_json::Value;
use toolcrib_media::{CellType, Edited, Notebook, Position};

use super::parts;

/// The number of edited cells: each edit costs a few copies of the notebook.
const CELLS: usize = 4;

/// The parts are the document and a new source for its cells.
pub(crate) fn notebook(input: &[u8]) -> String {
    let [document, source] = parts(input);
    let source = String::from_utf8_lossy(source);
    let Ok(notebook) = Notebook::parse(document) else { return "no notebook".to_owned() };
    let sources = sources(&notebook);
    for limit in [0, 300, 100_000] {
        let rendered = notebook.render(1, 10, limit);
        assert_eq!(rendered.total, sources.len());
    }
    let check = EditCheck { document, sources, source: &source };
    for number in 0..=check.sources.len().min(CELLS) + 1 {
        check.replace(&notebook, number);
        check.insert(&notebook, Position::Before(number));
        check.insert(&notebook, Position::After(number));
        check.delete(&notebook, number);
    }
    check.insert(&notebook, Position::End);
    match check.sources.len() {
        0 => "no cells".to_owned(),
        1 => "one cell".to_owned(),
        _ => "several cells".to_owned(),
    }
}

struct EditCheck<'a> {
    document: &'a [u8],
    /// The sources before the edit.
    sources: Vec<String>,
    /// The new source.
    source: &'a str,
}

impl EditCheck<'_> {
    fn replace(&self, notebook: &Notebook<'_>, number: usize) {
        for cell_type in [None, Some(CellType::Code), Some(CellType::Markdown)] {
            let Ok(edited) = notebook.replace(number, self.source, cell_type) else { continue };
            let mut expected = self.sources.clone();
            expected[number - 1] = self.source.to_owned();
            self.check(&edited, &expected, "replaced");
        }
    }

    fn insert(&self, notebook: &Notebook<'_>, position: Position) {
        for cell_type in [CellType::Code, CellType::Raw] {
            let Ok(edited) = notebook.insert(position, self.source, cell_type, 7) else { continue };
            let mut expected = self.sources.clone();
            expected.insert(edited.number - 1, self.source.to_owned());
            self.check(&edited, &expected, "inserted");
        }
    }

    fn delete(&self, notebook: &Notebook<'_>, number: usize) {
        let Ok(edited) = notebook.delete(number) else { return };
        let mut expected = self.sources.clone();
        expected.remove(number - 1);
        self.check(&edited, &expected, "deleted");
    }

    fn check(&self, edited: &Edited, expected: &[String], what: &str) {
        // A document that is not strict JSON need not become strict JSON.
        if is_json(self.document) {
            assert!(is_json(&edited.bytes), "{what}: it is no longer JSON: {}", shown(edited));
        }
        let now = Notebook::parse(&edited.bytes)
            .unwrap_or_else(|error| panic!("{what}: no notebook: {error}: {}", shown(edited)));
        assert_eq!(sources(&now), expected, "{what}: {}", shown(edited));
        assert_eq!(edited.total, expected.len(), "{what}");
    }
}

fn sources(notebook: &Notebook<'_>) -> Vec<String> {
    notebook.cells().iter().map(|cell| cell.source().to_owned()).collect()
}

fn is_json(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice::<Value>(bytes).is_ok()
}

fn shown(edited: &Edited) -> String {
    String::from_utf8_lossy(&edited.bytes).into_owned()
}
