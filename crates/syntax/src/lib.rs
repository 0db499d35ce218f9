//! Definitions and syntax errors in source code: bytes in, names and line ranges out.
//!
//! tree-sitter parses the text, within [`MAX_BYTES`] and the time that the caller allows. Each language has a table
//! of the nodes that define something. Nothing is stored: every answer is about the given bytes.
//!
//! ```
//! use toolcrib_syntax::{Language, Syntax};
//!
//! let text = b"/// Adds.\nfn add(a: u8) -> u8 {\n    a\n}\n";
//! # #[cfg(feature = "grammars")] {
//! let language = Language::of_name("lib.rs").unwrap();
//! let syntax = Syntax::parse(language, text, &|| false).unwrap();
//! let outline = syntax.outline();
//! let (_, add) = outline.find("add", &[]).next().unwrap();
//! assert_eq!((add.doc_line, add.first_line, add.last_line), (1, 2, 4));
//! # }
//! ```

mod changed_lines;
mod definition;
mod definitions;
mod errors;
mod language;
mod languages;
mod name_query;
mod new_errors;
mod parse;
mod python_indentation;

pub use definition::{Class, Definition, Outline};
pub use language::Language;
pub use new_errors::{ErrorsAfter, NewError, errors_after, new_errors};
pub use parse::{MAX_BYTES, ParseError, Syntax};
