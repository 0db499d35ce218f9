//! The leaf against what others make of the same tree and the same text.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests lay out the files that the library looks at, and fail by panicking"
)]

mod finding;
mod indexed;
mod model;
mod parallel;
mod patterns;
mod random;
mod stored;
mod tree;
mod walking;
mod watched;
