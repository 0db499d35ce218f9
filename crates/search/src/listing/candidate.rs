//! A file of a listing, as offered to a filter.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Entry, ListedDirectory, ListedKind};

/// A file or symlink. Its path is assembled only on request.
#[derive(Debug)]
pub struct Candidate<'a> {
    directory: &'a ListedDirectory,
    entry: Entry,
    /// Length of the path of the listing's start directory.
    top_bytes: usize,
    path: &'a mut Vec<u8>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(
        directory: &'a ListedDirectory,
        entry: Entry,
        top_bytes: usize,
        path: &'a mut Vec<u8>,
    ) -> Candidate<'a> {
        Candidate { directory, entry, top_bytes, path }
    }

    /// The file name.
    pub fn name(&self) -> &'a OsStr {
        self.directory.name(self.entry)
    }

    /// Whether its name, or a directory name above it within the listing, begins with a dot.
    pub fn is_hidden(&self) -> bool {
        self.directory.hidden || self.name().as_bytes().starts_with(b".")
    }

    /// Whether it is a symlink.
    pub fn is_link(&self) -> bool {
        self.entry.kind == ListedKind::Symlink
    }

    /// The path, relative to the root.
    pub fn path(&mut self) -> &Path {
        self.directory.path_of(self.entry, self.path);
        Path::new(OsStr::from_bytes(self.path))
    }

    /// The path, relative to the start of the listing.
    pub fn path_beneath(&mut self) -> &Path {
        let top_bytes = self.top_bytes;
        let path = self.path().as_os_str().as_bytes();
        let beneath = path.get(top_bytes..).unwrap_or_default();
        Path::new(OsStr::from_bytes(beneath.strip_prefix(b"/").unwrap_or(beneath)))
    }
}
