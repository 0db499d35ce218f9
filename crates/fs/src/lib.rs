//! The files of a workspace: the only crate that opens them.
//!
//! A path that a caller gives is resolved once, from the directory handle of a root, into a
//! [`Place`]: a root and real names beneath it, free of links. Every open goes through the root's
//! handle and follows no link, so that a swapped directory ends in an error and never outside.
//! No path is ever compared as a string to decide what is inside.
//!
//! Reading is bounded and takes regular files only. Writing is [`Change`], which puts a whole new
//! files in place at once or leaves the old ones as they were, and a [`Journal`] that keeps what was
//! there. Nothing here knows tools, policies or replies; errors name the file and the errno.
//!
//! Linux is where this runs and is tested. What differs on another system stands in `beneath.rs`
//! and `change/`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the crate that the bans send everybody to"
)]

#[cfg(not(target_os = "linux"))]
compile_error!("toolcrib-fs has no way yet to confine files on this system; Linux only, for now");

mod beneath;
mod change;
mod closed;
mod content;
mod errno;
mod error;
mod file;
mod file_system;
mod change_capture;
mod hash;
mod journal;
mod listing;
mod lock;
mod path;
mod resolved_path;
mod private;
mod private_file;
mod random;
mod registry;
mod resolve;
mod root;
mod racy;
mod content_cache;
mod threads;
mod tree_reader;
mod watch;
mod workspace;

pub use change::{Change, Committed, CommittedFile, HardLinks, Keeper, NewMode, Step};
pub use closed::Closed;
pub use content::Content;
pub use error::{FsError, FsErrorKind};
pub use file::{FileKind, ReadFile, read_entry};
pub use change_capture::{Action, ChangedFile, Footprint, Lost, Measure, Settled, Share, Worth};
pub use hash::{ContentHash, ContentHasher};
pub use journal::{
    About, Caps, Changes, Damage, DamagedChanges, Decided, Entry, FileChange, Journal,
    KeptDirectory, KeptPath, Outcome as RecoveryOutcome, Recovered, Version,
};
pub use listing::{Directory, EntryKind};
pub use lock::Locks;
pub use resolved_path::Place;
pub use private_file::{PrivateFile, PrivateFileError};
pub use random::random_bytes;
pub use registry::Registry;
pub use root::{Root, RootKind, RootMode, real_path};
pub use content_cache::{Shelf, ShelfLock, Shelved, ShelvedFile};
pub use tree_reader::{FileParts, Stamp, Taken, Tree};
pub use watch::{IsDirectory, Notice, Unwatched, Watch, Watcher};
pub use workspace::Workspace;
