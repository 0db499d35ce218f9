//! Code shared by the development programs: building the product, running it in a scratch directory, talking to
//! it, and installing the programs that it is compared with. No product crate uses this crate.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "for developers: it reads files, starts processes and prints; the bans are for the library"
)]

pub mod cache;
pub mod error;
pub mod inspector;
pub mod line_process;
pub mod metadata;
pub mod node;
pub mod peers;
pub mod process;
pub mod product;
pub mod python;
pub mod python_oracle;
pub mod random;
pub mod scratch;
pub mod system_packages;
pub mod watchdog;
pub mod workspace;
