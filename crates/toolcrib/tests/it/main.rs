//! The library through its public door.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk from outside")]

mod cases;
mod own_tools;
mod permission;
mod properties;
mod records;
