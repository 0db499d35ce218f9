//! Searching: many files that nobody named, beneath a directory that somebody did.

use std::path::{Path, PathBuf};
use std::time::Instant;

use toolcrib_fs::{FileKind, ResolvedPath, RootKind, TreeReader};
use toolcrib_policy::Effect;
use toolcrib_search::{Listing, ListingCaches, Walk, walk};

use super::Cx;
use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind};

/// Where a search begins.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) tree: TreeReader,
    pub(crate) place: ResolvedPath,
    /// The hidden places, which no search enters.
    pub(crate) hidden: Vec<PathBuf>,
}

impl Ground {
    /// The path from the root.
    pub(crate) fn start(&self) -> &Path {
        self.place.relative()
    }

    /// Whether it is one file.
    pub(crate) fn is_file(&self) -> bool {
        self.place.kind() == Some(FileKind::File)
    }
}

impl<'a> Cx<'a> {
    /// A file or a directory to search, if the call said that it would read it.
    pub(crate) fn ground(&self, path: impl AsRef<Path>) -> Result<Ground, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        match place.kind() {
            Some(FileKind::File | FileKind::Directory) => {
                let tree = TreeReader::around(&place);
                let hidden = match tree.kind() {
                    RootKind::Workspace => self.runtime.hidden().beneath(tree.path()),
                    RootKind::Session => Vec::new(),
                    RootKind::System => {
                        let closed = self.runtime.closed_directories();
                        [self.runtime.hidden().all(), closed].concat()
                    }
                };
                Ok(Ground { tree, place, hidden })
            }
            Some(_) => {
                let message =
                    format!("{} is no regular file and no directory", self.show_place(&place));
                Err(Error::new(ErrorKind::NotRegular, message)
                    .hint("Only files and directories can be searched."))
            }
            None => Err(self.missing(&place)),
        }
    }

    /// A path from a root, as replies show it.
    pub(crate) fn show_in(&self, tree: &TreeReader, relative: &Path) -> String {
        self.runtime.show_path(self.session.directory(), &tree.path().join(relative))
    }

    /// Whether a link, by its path from a root, leads to a file that may be seen.
    pub(crate) fn leads_to_file(&self, tree: &TreeReader, link: &Path) -> bool {
        let (top, link) = (self.session.directory(), tree.path().join(link));
        let found = match tree.kind() {
            RootKind::Workspace => self.runtime.workspace().resolve(top, &link),
            RootKind::Session | RootKind::System => self.runtime.find(self.session, top, &link),
        };
        found.is_ok_and(|place| {
            let closed = || place.paths_on_the_way().any(|path| self.hidden(&path).is_some());
            place.kind() == Some(FileKind::File) && !closed()
        })
    }

    /// Whether a rule keeps a file from searches, by its path from a root.
    pub(crate) fn keeps_back(&self, tree: &TreeReader, relative: &Path) -> bool {
        self.keeps_any_back() && self.policy.keeps_back(&tree.path().join(relative))
    }

    /// Whether there may be such a file.
    pub(crate) fn keeps_any_back(&self) -> bool {
        self.policy.has_rules_on_reading()
    }

    /// Lists a tree, by what earlier calls have listed where that still holds.
    pub(crate) fn list_tree(&self, asked: &Walk<'_>) -> Listing {
        self.tables(asked.tree).map_or_else(|| walk(asked), |tables| tables.list(asked))
    }

    /// What is known of the files of a tree without looking into them. Of what lies outside the workspace nothing
    /// is kept, and nothing is watched.
    pub(crate) fn tables(&self, tree: &TreeReader) -> Option<&'a ListingCaches> {
        (tree.kind() == RootKind::Workspace).then(|| self.runtime.tables())
    }

    /// The flag that ends the call, for threads.
    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.options.cancel
    }

    /// When a search that begins now answers what it has.
    pub(crate) fn search_until(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.limits().search_time).unwrap_or(now)
    }
}
