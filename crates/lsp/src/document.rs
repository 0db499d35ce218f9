//! A text that the server has, and what it said about it.

use crate::diagnostic::Errors;

#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) language: String,
    /// Increases with each text.
    pub(crate) version: i64,
    pub(crate) text: String,
    /// Whether the server has been told of the document.
    pub(crate) is_open: bool,
    /// Whether a request for its errors is to be sent.
    pub(crate) is_wanted: bool,
    /// Requests that the server asked to repeat, for this version.
    pub(crate) repeated: u32,
    /// The version that was checked, and its errors.
    pub(crate) answer: Option<(i64, Errors)>,
    /// The order of use, for closing the oldest one.
    pub(crate) used: u64,
}
