//! Parses a text within limits of size and time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::language::Language;

/// Larger texts are not parsed: they are generated, and a syntax tree takes many times the memory of its text.
pub const MAX_BYTES: usize = 2 << 20;

/// Bytes that the parser gets at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// Why a text has no syntax tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// The text exceeds [`MAX_BYTES`].
    TooLarge,
    /// The caller's time was over.
    Stopped,
    /// The parser does not accept the grammar.
    Grammar,
}

/// A parsed text.
#[derive(Debug)]
pub struct Syntax<'a> {
    pub(crate) language: Language,
    pub(crate) text: &'a [u8],
    pub(crate) tree: Tree,
}

thread_local! {
    /// A parser for each language that the thread has used: a grammar is loaded at its first use.
    static PARSERS: RefCell<HashMap<Language, Parser>> = RefCell::default();
}

impl<'a> Syntax<'a> {
    /// Parses UTF-8 text; other bytes become syntax errors. `is_over` is asked often, and ends the parse.
    pub fn parse(
        language: Language,
        text: &'a [u8],
        is_over: &dyn Fn() -> bool,
    ) -> Result<Syntax<'a>, ParseError> {
        if text.len() > MAX_BYTES {
            return Err(ParseError::TooLarge);
        }
        let taken = PARSERS.with_borrow_mut(|parsers| parsers.remove(&language));
        let mut parser = match taken {
            Some(parser) => parser,
            None => new_parser(language).ok_or(ParseError::Grammar)?,
        };
        let is_stopped = Cell::new(false);
        let stops = || {
            is_stopped.set(is_stopped.get() || is_over());
            is_stopped.get()
        };
        let mut check = |_: &ParseState| {
            if stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut check);
        // One token can be as long as the text, and the parser asks only between tokens.
        let mut read = |at: usize, _| {
            let end = if stops() { at } else { text.len().min(at + CHUNK_BYTES) };
            text.get(at..end).unwrap_or_default()
        };
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        // A stopped parser would continue with the old text.
        parser.reset();
        PARSERS.with_borrow_mut(|parsers| parsers.insert(language, parser));
        let tree = tree.filter(|_| !is_stopped.get()).ok_or(ParseError::Stopped)?;
        Ok(Syntax { language, text, tree })
    }
}

fn new_parser(language: Language) -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(language.grammar()?).ok()?;
    Some(parser)
}
