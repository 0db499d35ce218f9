//! Tests of the grammars and tables through the public interface.
#![allow(
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a panic is a failed test, and Python decides on texts of Python"
)]

mod any_text;
mod compared;
mod definitions;
mod new_errors;
mod python_indentation;
mod samples;
