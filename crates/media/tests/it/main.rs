//! Binary files, made by hand so that each shows one thing.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod image;
mod make_pdf;
mod pdf;
