//! Definitions and syntax errors of files: decodes them as Read does, and parses them within a budget.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, Instant};

use toolcrib_search::{Decoded, Decoder};
use toolcrib_syntax::{
    ErrorsAfter, Language, MAX_BYTES, Outline, ParseError, Syntax, errors_after,
};
use toolcrib_text::visible;

use crate::search_decoder::SearchDecoder;

/// Questions of the parser whether it may continue, for one megabyte of ordinary code. Budgets are counted in them:
/// the reply must not depend on the load of the machine.
const STEPS_PER_MEGABYTE: u64 = 10_000;

/// A budget of parsing work, for one file or several.
pub(crate) struct ParseBudget {
    steps: Cell<u64>,
    /// For the case that steps take unusually long.
    until: Instant,
}

impl ParseBudget {
    /// A budget for a number of megabytes of ordinary code.
    pub(crate) fn megabytes(megabytes: u64, at_most: Duration) -> ParseBudget {
        let steps = Cell::new(megabytes * STEPS_PER_MEGABYTE);
        ParseBudget { steps, until: Instant::now() + at_most }
    }

    /// The number of remaining steps.
    pub(crate) fn remaining(&self) -> u64 {
        self.steps.get()
    }

    /// Takes as many steps as an earlier parse of the text. Fails if the parse would have ended before.
    pub(crate) fn take(&self, steps: u64) -> Result<(), Unparsed> {
        let remaining = self.steps.get().saturating_sub(steps);
        self.steps.set(remaining);
        if remaining == 0 { Err(Unparsed::OverBudget) } else { Ok(()) }
    }

    /// Takes a step. Returns whether the budget is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.steps.set(self.steps.get().saturating_sub(1));
        self.steps.get() == 0 || Instant::now() > self.until
    }
}

/// Why the definitions of a file are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unparsed {
    /// Its language is not supported.
    Language,
    Binary,
    TooLarge,
    /// The budget was used up.
    OverBudget,
}

/// The definitions of a file. `name` is its name without directories.
pub(crate) fn outline(name: &str, bytes: &[u8], budget: &ParseBudget) -> Result<Outline, Unparsed> {
    let (language, text) = source(name, bytes)?;
    let is_over = || budget.is_over();
    let syntax = Syntax::parse(language, &text, &is_over).map_err(unparsed)?;
    let outline = syntax.outline_until(&is_over);
    if outline.is_cut && is_over() { Err(Unparsed::OverBudget) } else { Ok(outline) }
}

/// The language and text of a file. Lines end with `\n`.
fn source<'b>(name: &str, bytes: &'b [u8]) -> Result<(Language, Cow<'b, [u8]>), Unparsed> {
    if !may_have_definitions(name) {
        return Err(Unparsed::Language);
    }
    if bytes.len() > MAX_BYTES {
        return Err(Unparsed::TooLarge);
    }
    let Decoded::Text(text, _) = SearchDecoder.read(bytes) else { return Err(Unparsed::Binary) };
    let language = Language::of_file(name, &text).ok_or(Unparsed::Language)?;
    Ok((language, text))
}

fn unparsed(error: ParseError) -> Unparsed {
    match error {
        ParseError::TooLarge => Unparsed::TooLarge,
        ParseError::Stopped => Unparsed::OverBudget,
        ParseError::Grammar => Unparsed::Language,
    }
}

/// The syntax errors of a file after a change. None, if the file cannot be parsed within the budget.
pub(crate) fn errors_after_change(
    name: &str,
    was: Option<&[u8]>,
    now: &[u8],
    budget: &ParseBudget,
) -> ErrorsAfter {
    let Ok((language, now)) = source(name, now) else { return ErrorsAfter::default() };
    let was = match was.map(|was| source(name, was)) {
        Some(Ok((before, was))) if before == language => Some(was),
        Some(_) => return ErrorsAfter::default(),
        None => None,
    };
    let errors = errors_after(language, was.as_deref(), &now, &|| budget.is_over());
    let mut errors = errors.unwrap_or_default();
    errors.new.iter_mut().for_each(|error| error.what = visible(error.what.as_bytes()));
    errors
}

/// Whether a file may have definitions, by its name: a script without an extension names its language in the text.
pub(crate) fn may_have_definitions(name: &str) -> bool {
    has_definitions(name) || !name.contains('.')
}

/// Whether a file has a supported language by its name.
pub(crate) fn has_definitions(name: &str) -> bool {
    Language::of_name(name).is_some()
}

/// The name of a file without directories.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
