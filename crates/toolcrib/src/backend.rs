//! Raw access to a session for programs: bytes instead of text for a model, with the same policy, sandbox and journal.
//!
//! Each operation is the raw form of a tool, and goes the way of its calls: a rule on Write also decides on
//! [`Backend::write`], and a runtime without Bash has no [`Backend::exec`].

mod change_files;
mod exec;
mod file_tree;
mod info;
mod operation;
mod process_control;
mod read_files;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::change_files::{MakeDirectory, Move, Remove, RemoveAll, Write};
use self::exec::ExecOperation;
use self::operation::perform;
use self::read_files::{List, Open, Read, RealPath, StatFile};
use crate::error::Error;
use crate::request::Options;
use crate::runtime::Runtime;
use crate::session::Session;

pub use self::change_files::{Removed, Written};
pub use self::exec::{Exec, ExecEvent, ExecSink, Executed, ProcessStdin, Program, TerminalSize};
pub use self::info::SessionInfo;
pub use self::process_control::{ProcessControl, ProcessSignal};
pub use self::read_files::{
    FileReader, FileStat, ListedEntry, Listing, MAX_READ_BYTES, PathKind, ReadBytes,
};
pub use self::snapshot::Restored;
pub use toolcrib_exec::{OutputStream, has_reader};

/// The largest content of [`Backend::write`].
pub const MAX_WRITE_BYTES: usize = 256 << 20;

/// Raw access to a session of a runtime.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolcrib::{Options, Runtime};
///
/// let directory = tempfile::tempdir()?;
/// let runtime = Runtime::builder().root(directory.path()).build()?;
/// let session = runtime.session();
/// let backend = runtime.backend(&session, Options::default());
/// backend.write("data.bin", vec![0, 255, 10], Default::default())?;
/// assert_eq!(backend.read("data.bin", 1, None)?.bytes, [255, 10]);
/// assert_eq!(backend.stat("data.bin", true)?.size, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Backend<'a> {
    runtime: &'a Runtime,
    session: &'a Session,
    options: Options<'a>,
    /// Whether paths must be in a root.
    roots_only: bool,
}

/// A path as it is: `~` is a name.
fn literal(path: impl Into<PathBuf>) -> PathBuf {
    let path = path.into();
    if path.as_os_str().as_encoded_bytes().starts_with(b"~") {
        return Path::new(".").join(path);
    }
    path
}

/// Options of [`Backend::write`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Adds the bytes to the end of the file.
    pub append: bool,
    /// Makes the file executable, or not. `None` keeps the mode; a new file is not executable.
    pub executable: Option<bool>,
    /// Gives the file these permission bits, whatever `executable` says.
    pub mode: Option<u32>,
}

impl Runtime {
    /// Raw access to a session. `options` hold for each operation.
    pub fn backend<'a>(&'a self, session: &'a Session, options: Options<'a>) -> Backend<'a> {
        Backend { runtime: self, session, options, roots_only: false }
    }
}

impl Backend<'_> {
    /// The same, with paths in the roots only: the policy may allow others, and the session has its own `/tmp`.
    #[must_use]
    pub fn roots_only(self) -> Self {
        Backend { roots_only: true, ..self }
    }

    /// Runs a command and passes its output to `sink`. Blocks until its shell has exited.
    ///
    /// # Errors
    ///
    /// Fails if the policy denies the command, if it cannot be started, or if the call is cancelled. A command that
    /// fails or exceeds its time limit is not an error.
    pub fn exec(&self, exec: Exec, sink: &ExecSink<'_>) -> Result<Executed, Error> {
        exec.check()?;
        let control = exec.control.clone();
        let executed = perform(self, ExecOperation { exec, sink });
        control.end();
        executed
    }

    /// Reads a part of a file, at most [`MAX_READ_BYTES`].
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or if it may not be read.
    pub fn read(
        &self,
        path: impl Into<PathBuf>,
        offset: u64,
        limit: Option<usize>,
    ) -> Result<ReadBytes, Error> {
        let limit = limit.unwrap_or(MAX_READ_BYTES).min(MAX_READ_BYTES);
        perform(self, Read { path: literal(path), offset, limit })
    }

    /// Opens a file, to read all of it in parts.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or if it may not be read.
    pub fn open(&self, path: impl Into<PathBuf>) -> Result<FileReader, Error> {
        perform(self, Open { path: literal(path) })
    }

    /// Replaces a file atomically, or creates it and its parent directories.
    ///
    /// # Errors
    ///
    /// Fails if the file may not or cannot be written.
    pub fn write(
        &self,
        path: impl Into<PathBuf>,
        bytes: impl Into<Vec<u8>>,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        perform(self, Write { path: literal(path), bytes: Arc::new(bytes.into()), options })
    }

    /// Describes a file, or with `follow` false a symlink itself.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, or if it may not be read.
    pub fn stat(&self, path: impl Into<PathBuf>, follow: bool) -> Result<FileStat, Error> {
        perform(self, StatFile { path: literal(path), follow })
    }

    /// Lists a directory, sorted by name.
    ///
    /// # Errors
    ///
    /// Fails if it is not a directory, or if it may not be read.
    pub fn list(&self, path: impl Into<PathBuf>) -> Result<Listing, Error> {
        perform(self, List { path: literal(path) })
    }

    /// Creates a directory. `parents` also creates its parents, and `exist_ok` accepts an existing one.
    ///
    /// # Errors
    ///
    /// Fails if it may not or cannot be created.
    pub fn make_directory(
        &self,
        path: impl Into<PathBuf>,
        parents: bool,
        exist_ok: bool,
    ) -> Result<Written, Error> {
        perform(self, MakeDirectory { path: literal(path), parents, exist_ok })
    }

    /// Removes a file, a symlink or an empty directory; with `recursive`, a directory with its entries.
    ///
    /// # Errors
    ///
    /// Fails if it may not or cannot be removed, or if it does not exist and `missing_ok` is false.
    pub fn remove(
        &self,
        path: impl Into<PathBuf>,
        recursive: bool,
        missing_ok: bool,
    ) -> Result<Removed, Error> {
        perform(self, Remove { path: literal(path), recursive, missing_ok })
    }

    /// Removes files, symlinks and directories with their entries, all or none of them, as one change.
    ///
    /// # Errors
    ///
    /// Fails if one of them may not or cannot be removed, or if they have too many entries.
    pub fn remove_all(&self, paths: Vec<PathBuf>) -> Result<Removed, Error> {
        perform(self, RemoveAll { paths: paths.into_iter().map(literal).collect() })
    }

    /// Moves a file, symlink or directory. `overwrite` replaces an existing file.
    ///
    /// # Errors
    ///
    /// Fails if one of the paths may not be written, or if the target exists.
    pub fn rename(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
        overwrite: bool,
    ) -> Result<Written, Error> {
        perform(self, Move { from: literal(from), to: literal(to), overwrite })
    }

    /// The absolute path without symlinks.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, or if it may not be read.
    pub fn real_path(&self, path: impl Into<PathBuf>) -> Result<PathBuf, Error> {
        perform(self, RealPath { path: literal(path) })
    }
}
