//! Search indexes of the roots, for the operator: status, build, delete.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::BulkReader;
use toolcrib_search::{Deadline, IndexStatus, Listing, Walk};

use crate::error::Error;
use crate::runtime::Runtime;
use crate::search_decoder::SearchDecoder;

/// Search index of one root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootIndex {
    /// Path of the root.
    pub root: PathBuf,
    /// Whether the root has enough files for searches to keep an index.
    pub is_wanted: bool,
    /// Number of searchable files.
    pub files: u64,
    /// State of the index.
    pub status: IndexStatus,
}

/// Time limit for listing one root.
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);

impl Runtime {
    /// Returns the state of the index of each root.
    pub fn indexes(&self) -> Result<Vec<RootIndex>, Error> {
        let timeout = self.services().limits.search_time;
        self.each_tree(timeout, |tree, listing| Ok(self.root_index(tree, listing)))
    }

    /// Files in the indexes of all roots. Cheap: for showing progress while they are built.
    pub fn indexed_files(&self) -> u64 {
        self.services()
            .paths
            .workspace
            .trees()
            .map(|tree| self.services().listings.index_status(&tree).files)
            .sum()
    }

    /// Builds or updates the index of each root, even of roots that are too small for searches to index. With a
    /// journal, the index is stored beside it for later processes.
    pub fn build_indexes(&self) -> Result<Vec<RootIndex>, Error> {
        self.each_tree(BUILD_TIMEOUT, |tree, listing| {
            self.services().listings.build_index(tree, listing, &SearchDecoder);
            Ok(self.root_index(tree, listing))
        })
    }

    /// Deletes the index of each root. It can be rebuilt.
    ///
    /// # Errors
    ///
    /// Fails if the stored index cannot be removed.
    pub fn drop_indexes(&self) -> Result<Vec<RootIndex>, Error> {
        self.each_tree(self.services().limits.search_time, |tree, listing| {
            let shown = tree.path().display().to_string();
            self.services()
                .listings
                .drop_index(tree)
                .map_err(|error| Error::from_fs(&shown, &error))?;
            Ok(self.root_index(tree, listing))
        })
    }

    fn root_index(&self, tree: &BulkReader, listing: &Listing) -> RootIndex {
        RootIndex {
            root: tree.path().to_owned(),
            is_wanted: self.services().listings.is_indexed(listing),
            files: listing.files().len() as u64,
            status: self.services().listings.index_status(tree),
        }
    }

    fn each_tree<T>(
        &self,
        timeout: Duration,
        mut take: impl FnMut(&BulkReader, &Listing) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let never = || false;
        let (mut all, hidden) = (Vec::new(), self.services().paths.hidden.all());
        for tree in self.services().paths.workspace.trees() {
            let listing = self.services().listings.list(&Walk {
                tree: &tree,
                start: Path::new(""),
                ignored: false,
                named: &[],
                own: &hidden,
                stop: &Deadline::new(Instant::now() + timeout, &never),
            });
            all.push(take(&tree, &listing)?);
        }
        Ok(all)
    }
}
