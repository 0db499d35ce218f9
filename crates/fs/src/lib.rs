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

mod change;
mod change_capture;
mod content;
mod content_cache;
mod errno;
mod error;
mod file;
mod file_system;
mod forbidden_files;
mod hash;
mod journal;
mod listing;
mod lock;
mod open_beneath;
mod parallel_io;
mod private_directory;
mod private_file;
mod racy;
mod random;
mod registry;
mod requested_path;
mod resolve;
mod resolved_path;
mod root;
mod tree_reader;
mod watch;
mod workspace;

pub use change::{Change, ChangeRecorder, Committed, CommittedFile, HardLinks, NewMode, Step};
pub use change_capture::{
    Action, CaptureClass, CaptureLimits, CapturedChanges, ChangeCapture, ChangedFile, NotKept,
    Settling, SizeLimits,
};
pub use content::Content;
pub use content_cache::{CachedContent, CachedFile, ContentCache, ContentCacheLock};
pub use error::{FsError, FsErrorKind};
pub use file::{FileKind, ReadFile, read_entry};
pub use forbidden_files::ForbiddenFiles;
pub use hash::{ContentHash, ContentHasher};
pub use journal::{
    About, Caps, Changes, Damage, DamagedChanges, Decided, Entry, FileChange, Journal,
    KeptDirectory, KeptPath, Outcome as RecoveryOutcome, Recovered, Version,
};
pub use listing::{Directory, EntryKind};
pub use lock::Locks;
pub use private_file::{PrivateFile, PrivateFileError};
pub use random::random_bytes;
pub use registry::Registry;
pub use resolved_path::ResolvedPath;
pub use root::{Root, RootKind, RootMode, real_path};
pub use tree_reader::{FileParts, Stamp, TreeReader, WholeRead};
pub use watch::{IsDirectory, Unwatched, Watch, WatchEvent, Watcher};
pub use workspace::Workspace;
