//! The syntax errors that a change introduced.

use crate::changed_lines::changed_rows;
use crate::errors::Invalid;
use crate::language::Language;
use crate::parse::{ParseError, Syntax};
use crate::python_indentation::indentation_error;

/// Errors that are reported. Later ones are mostly consequences.
const MAX_REPORTED: usize = 3;

/// A syntax error that a change introduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewError {
    /// Its line, from 1. For an error that the parser finds elsewhere: the first changed line.
    pub line: u64,
    /// A description, such as ``missing `;` ``.
    pub what: String,
}

/// The syntax errors of a text after a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorsAfter {
    /// Those that the change introduced.
    pub new: Vec<NewError>,
    /// The first line that does not parse, if there are errors that the text had before and no new ones.
    pub old: Option<u64>,
}

/// The syntax errors of `after` that `before` did not have, as in [`errors_after`].
pub fn new_errors(
    language: Language,
    before: Option<&[u8]>,
    after: &[u8],
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<NewError>, ParseError> {
    errors_after(language, before, after, is_over).map(|errors| errors.new)
}

/// The syntax errors of `after`, apart from those that `before` had. `before` is `None` for a new text.
///
/// If the text before had errors, or if the language has macros, only brackets that the change unbalanced are
/// errors: the grammar does not know everything in such a text. In Python, also the indentation is checked.
pub fn errors_after(
    language: Language,
    before: Option<&[u8]>,
    after: &[u8],
    is_over: &dyn Fn() -> bool,
) -> Result<ErrorsAfter, ParseError> {
    let only_new = |new: Vec<NewError>| Ok(ErrorsAfter { new, old: None });
    let now = Syntax::parse(language, after, is_over)?;
    if let Some(error) = new_indentation_error(&now, before, after) {
        return only_new(vec![error]);
    }
    if !now.has_errors() {
        return only_new(Vec::new());
    }
    let was = before.map(|before| Syntax::parse(language, before, is_over)).transpose()?;
    let was_valid = was.as_ref().is_none_or(|was| !was.has_errors());
    let rows = changed_rows(before.unwrap_or_default(), after);
    let was_balanced = match &was {
        Some(was) => was.brackets().is_some_and(|brackets| brackets.are_balanced()),
        // In branches of the preprocessor, brackets need not be balanced.
        None => !has_branches(after),
    };
    let mut invalid = now.invalid();
    invalid.retain(|one| one.first_row <= *rows.end() && one.last_row >= *rows.start());
    let unbalanced = now.brackets().filter(|_| was_balanced).and_then(|brackets| brackets.words());
    if let Some(what) = unbalanced {
        let near = invalid.iter().map(|one| one.first_row).find(|row| rows.contains(row));
        let row = if before.is_some() { near.unwrap_or(*rows.start()) } else { near.unwrap_or(0) };
        return only_new(vec![NewError { line: row as u64 + 1, what }]);
    }
    if language.has_macros() {
        return only_new(Vec::new());
    }
    if !was_valid {
        let old = now.invalid_lines().first().map(|(line, _)| *line);
        return Ok(ErrorsAfter { new: Vec::new(), old });
    }
    if invalid.is_empty() {
        // The change is the cause, wherever the parser finds the error.
        invalid = now.invalid();
    }
    invalid.truncate(MAX_REPORTED);
    only_new(invalid.iter().map(|one| one.described(*rows.start())).collect())
}

/// The error in the indentation of Python that a change introduced, unless another error comes before it.
fn new_indentation_error(
    now: &Syntax<'_>,
    before: Option<&[u8]>,
    after: &[u8],
) -> Option<NewError> {
    if now.language != Language::Python {
        return None;
    }
    let error = indentation_error(after)?;
    let was_valid = before.is_none_or(|before| indentation_error(before).is_none());
    let is_first = !now.has_errors() || now.invalid().iter().all(|one| one.first_row >= error.row);
    let is_new = was_valid && is_first;
    is_new.then(|| NewError { line: error.row as u64 + 1, what: error.what.to_owned() })
}

impl Invalid {
    /// The error. One that begins before the change is reported at the change.
    fn described(&self, first_changed: usize) -> NewError {
        let row = if self.last_row >= first_changed {
            self.first_row.max(first_changed)
        } else {
            self.first_row
        };
        let what = match &self.missing {
            Some(missing) => format!("missing {missing}"),
            None if row > self.first_row || self.text.is_empty() => "syntax error".to_owned(),
            None => format!("syntax error at `{}`", shortened(&self.text)),
        };
        NewError { line: row as u64 + 1, what }
    }
}

/// Characters of the invalid text that are shown.
const SHOWN_CHARS: usize = 40;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Whether the text has branches of the C preprocessor.
fn has_branches(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| line.trim_ascii().starts_with(b"#el"))
}
