//! Copies workspaces and their journal to an object store with the interface of S3, and restores them elsewhere.
//!
//! # How it works
//!
//! Nothing that a tool does waits for the network. A [`Copier`] has a thread that looks at the journal and at the files of each
//! workspace, and copies new contents. A backup consists of objects that are written once and never replaced or removed:
//!
//! - `blobs/HASH`: the content of a file, or a part of a large one, by its hash;
//! - `segments/NUMBER`: the changes since the previous segment, of the files and in the history. Some are checkpoints, which
//!   have all of it.
//!
//! A segment is stored only if there is none with its number. So of two machines that continue the same backup, one fails, and
//! stops. [`restore()`] can take a backup over: it adds a segment, and the machine that wrote it before cannot any more.
//!
//! The client for the object store is our own: three kinds of requests, signed, with a bound for everything that the server sends.

mod address;
mod blobs;
mod contents;
mod copier;
mod copy;
mod credentials;
mod error;
mod objects;
mod position;
mod restore;
mod scan;
mod segment;
mod signature;
mod tree;
mod verify;
mod xml_text;

pub use address::{BackupAddress, ServerSettings};
pub use contents::{Summary, summarize};
pub use copier::{Copied, Copier, FollowedWorkspace, copy_now};
pub use credentials::{Credentials, file_value};
pub use error::{BackupError, BackupErrorKind};
pub use objects::{CredentialSource, Objects};
pub use position::LocalStatus;
pub use restore::{Restore, Restored, restore};
pub use segment::LeftOut;
pub use verify::{Verified, verify};
