//! Files that are not text, as they come: made by hand here, so that each shows one thing.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod image;
mod make_pdf;
mod pdf;
