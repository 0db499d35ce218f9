//! Accesses the files of a workspace. No other crate does.
//!
//! A path from a caller is resolved once, from the directory descriptor of a root, to a [`ResolvedPath`]: a
//! root and real names beneath it, without symlinks. Every open goes through the root's descriptor and
//! follows no symlink, so that a swapped directory causes an error and never leads outside. Paths are never
//! compared as strings to decide what is inside.
//!
//! Reading is bounded, and only for regular files. Writing is a [`Change`], which atomically puts complete
//! new files in place or leaves the old ones as they were, with a [`Journal`] that keeps the previous
//! content. This crate does not know tools, policies or replies; errors name the file and the errno.
//!
//! It runs and is tested on Linux. The parts that would differ on another system are in `open_beneath.rs` and
//! `change/`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the lints send code that accesses files to this crate"
)]

#[cfg(not(target_os = "linux"))]
compile_error!("toolcrib-fs cannot confine file access on this system: it supports Linux only");

mod bulk_reader;
mod change;
mod change_capture;
mod content;
mod content_addressed_cache;
mod errno;
mod error;
mod file;
mod file_kind;
mod forbidden_files;
mod hash;
mod journal;
mod listing;
mod local_file_system;
mod lock;
mod new_tree;
mod open_beneath;
mod operator_file;
mod parallel_io;
mod private_directory;
mod private_file;
mod racy;
mod random;
mod real_path;
mod recovery;
mod requested_path;
mod reserved_paths;
mod resolve;
mod resolved_path;
mod root;
mod state_version;
mod trusted_file;
mod unix_time;
mod watch;
mod workspace;

pub use bulk_reader::{BulkReader, EntryStatus, FileParts, Stamp, WholeRead};
pub use change::{Change, ChangeRecorder, Committed, CommittedFile, HardLinks, NewMode, Step};
pub use change_capture::{
    Action, CaptureClass, CaptureLimits, CapturedChanges, ChangeCapture, ChangedFile, Classify,
    NotKept, Settling, SizeLimits, Writer, Written,
};
pub use content::Content;
pub use content_addressed_cache::{
    CachedFile, CachedFileInfo, ContentAddressedCache, ContentAddressedCacheLock,
};
pub use error::{FsError, FsErrorKind};
pub use file::{ReadFile, read_entry};
pub use file_kind::FileKind;
pub use forbidden_files::ForbiddenFiles;
pub use hash::{ContentHash, ContentHasher};
pub use journal::{
    About, AuditBreak, AuditEvent, AuditOutbox, AuditReport, AuditVerifier, CallPage, CallRecord,
    Caps, ChangeOutbox, Changes, CommandEndRecord, ConnectionRecord, Damage, DamagedChanges,
    DecisionRecord, DirectoryMode, Entry, FileChange, Journal, JournalImport, KeptDirectory,
    KeptPath, OutboxChanges, OutboxPosition, OutboxRecord, PrincipalRecord, RefusalRecord,
    SharedHolder, Version, escaped_json,
};
pub use listing::{Directory, EntryKind};
pub use lock::Locks;
pub use new_tree::{NewFile, NewTree};
pub use operator_file::{OperatorChange, OperatorFile};
pub use parallel_io::in_parallel;
pub use private_directory::make_private_directory;
pub use private_file::{PrivateFile, PrivateFileError};
pub use random::random_bytes;
pub use real_path::{RealPaths, real_path, symlinks_on_the_way};
pub use recovery::{Outcome as RecoveryOutcome, Recovered};
pub use reserved_paths::ReservedPaths;
pub use resolved_path::{FileMetadata, ResolvedPath};
pub use root::{Root, RootKind, RootMode};
pub use state_version::check_state_version;
pub use trusted_file::check_trusted_file;
pub use unix_time::{now_ms, unix_ms};
pub use watch::{IsDirectory, Unwatched, Watch, WatchEvent, Watcher};
pub use workspace::Workspace;
