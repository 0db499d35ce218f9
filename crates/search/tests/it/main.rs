//! Compares the crate with other implementations on the same trees and texts.

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
