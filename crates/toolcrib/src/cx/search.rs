//! The methods of [`Cx`] that search below a directory.

use std::path::{Path, PathBuf};
use std::time::Instant;

use toolcrib_fs::{BulkReader, FileKind, ResolvedPath, RootKind};
use toolcrib_policy::Effect;
use toolcrib_search::{Listing, ListingCaches, Walk, walk};

use super::Cx;
use crate::cancel_and_progress::Cancel;
use crate::error::{Error, ErrorKind};
use crate::outlines::Outlines;

/// The file or directory of a search.
#[derive(Debug, Clone)]
pub(crate) struct SearchScope {
    pub(crate) tree: BulkReader,
    pub(crate) place: ResolvedPath,
    /// Hidden paths, which the search skips.
    pub(crate) hidden: Vec<PathBuf>,
}

impl SearchScope {
    /// The path relative to the root.
    pub(crate) fn start(&self) -> &Path {
        self.place.relative()
    }

    /// Whether the search covers a single file.
    pub(crate) fn is_file(&self) -> bool {
        self.place.kind() == Some(FileKind::File)
    }
}

impl<'a> Cx<'a> {
    /// Resolves a file or directory to search. The call must have declared it for reading.
    pub(crate) fn search_scope(&self, path: impl AsRef<Path>) -> Result<SearchScope, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
        match place.kind() {
            Some(FileKind::File | FileKind::Directory) => {
                let tree = BulkReader::around(&place);
                let hidden = match tree.kind() {
                    RootKind::Workspace => self.services.paths.hidden.beneath(tree.path()),
                    RootKind::Session => Vec::new(),
                    RootKind::System => {
                        let closed = self.services.paths.closed_directories();
                        [self.services.paths.hidden.all(), closed].concat()
                    }
                };
                Ok(SearchScope { tree, place, hidden })
            }
            Some(_) => {
                let message = format!(
                    "{} is neither a regular file nor a directory",
                    self.show_place(&place)
                );
                Err(Error::new(ErrorKind::NotRegular, message)
                    .hint("Only files and directories can be searched."))
            }
            None => Err(self.missing_error(&place)),
        }
    }

    /// A path relative to a root, as replies show it.
    pub(crate) fn show_in(&self, tree: &BulkReader, relative: &Path) -> String {
        self.services.paths.show(self.session.directory(), &tree.path().join(relative))
    }

    /// Whether a symlink, given by its path relative to a root, leads to a file that may be read.
    pub(crate) fn leads_to_file(&self, tree: &BulkReader, link: &Path) -> bool {
        let (top, link) = (self.session.directory(), tree.path().join(link));
        let found = match tree.kind() {
            RootKind::Workspace => self.services.paths.workspace.resolve(top, &link),
            RootKind::Session | RootKind::System => {
                self.services.paths.resolve(self.session, top, &link)
            }
        };
        found.is_ok_and(|place| {
            let closed = || place.path_aliases().any(|path| self.hidden_reason(&path).is_some());
            place.kind() == Some(FileKind::File) && !closed()
        })
    }

    /// Whether a rule excludes a file from searches. The path is relative to a root.
    pub(crate) fn keeps_back(&self, tree: &BulkReader, relative: &Path) -> bool {
        self.excludes(&tree.path().join(relative))
    }

    /// Whether a rule excludes a file from the results of a call that did not name it.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        self.keeps_any_back() && self.policy.excludes_from_results(path)
    }

    /// Whether a rule denies an effect on a file. For tools that find the files of a call by themselves.
    pub(crate) fn denies(&self, effect: Effect, path: &Path) -> bool {
        self.policy.denies_file(effect, path)
    }

    /// Whether any rule may exclude files from searches.
    pub(crate) fn keeps_any_back(&self) -> bool {
        self.policy.has_rules_on_reading()
    }

    /// Lists a tree, from the listing cache if it is current.
    pub(crate) fn list_tree(&self, asked: &Walk<'_>) -> Listing {
        self.listing_caches(asked.tree).map_or_else(|| walk(asked), |tables| tables.list(asked))
    }

    /// Listing cache of a tree. Directories outside the workspace are neither cached nor watched.
    pub(crate) fn listing_caches(&self, tree: &BulkReader) -> Option<&'a ListingCaches> {
        (tree.kind() == RootKind::Workspace).then_some(&self.services.listings)
    }

    /// Definitions of files that were parsed lately.
    pub(crate) fn outlines(&self) -> &'a Outlines {
        &self.services.outlines
    }

    /// The cancellation flag, for threads.
    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.options.cancel
    }

    /// Deadline of a search that starts now.
    pub(crate) fn search_deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.limits().search_time).unwrap_or(now)
    }
}
