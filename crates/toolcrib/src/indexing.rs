//! The indexes of the roots, for the operator: what there is of them, building, dropping.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::TreeReader;
use toolcrib_search::{Deadline, IndexStatus, Listing, Walk};

use crate::error::Error;
use crate::runtime::Runtime;
use crate::search_decoder::AsRead;

/// The index of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootIndex {
    /// The root.
    pub root: PathBuf,
    /// Whether the root has enough files for searches to keep an index of it.
    pub is_wanted: bool,
    /// Files that are there to be searched.
    pub files: u64,
    /// What there is of it.
    pub status: IndexStatus,
}

/// No tree takes as long to be listed.
const TO_BUILD: Duration = Duration::from_secs(600);

impl Runtime {
    /// What there is of the index of each root.
    pub fn indexes(&self) -> Result<Vec<RootIndex>, Error> {
        let patience = self.limits().search_time;
        self.each_tree(patience, |tree, listing| Ok(self.root_index(tree, listing)))
    }

    /// Files in the indexes of all roots. Cheap: for showing progress while they are built.
    pub fn indexed_files(&self) -> u64 {
        self.workspace().trees().map(|tree| self.tables().index_status(&tree).files).sum()
    }

    /// Reads into the index of each root what is not in it yet, also where searches would keep none. Where
    /// there is a journal, it is kept beside it for the processes to come.
    pub fn build_indexes(&self) -> Result<Vec<RootIndex>, Error> {
        self.each_tree(TO_BUILD, |tree, listing| {
            self.tables().build_index(tree, listing, &AsRead);
            Ok(self.root_index(tree, listing))
        })
    }

    /// Forgets the index of each root, and removes what is kept of it.
    pub fn drop_indexes(&self) -> Result<Vec<RootIndex>, Error> {
        self.each_tree(self.limits().search_time, |tree, listing| {
            let shown = tree.path().display().to_string();
            self.tables().drop_index(tree).map_err(|error| Error::from_fs(&shown, &error))?;
            Ok(self.root_index(tree, listing))
        })
    }

    fn root_index(&self, tree: &TreeReader, listing: &Listing) -> RootIndex {
        RootIndex {
            root: tree.path().to_owned(),
            is_wanted: self.tables().is_indexed(listing),
            files: listing.files().len() as u64,
            status: self.tables().index_status(tree),
        }
    }

    fn each_tree<T>(
        &self,
        patience: Duration,
        mut take: impl FnMut(&TreeReader, &Listing) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let never = || false;
        let (mut all, hidden) = (Vec::new(), self.hidden().all());
        for tree in self.workspace().trees() {
            let listing = self.tables().list(&Walk {
                tree: &tree,
                start: Path::new(""),
                ignored: false,
                named: &[],
                own: &hidden,
                stop: &Deadline::new(Instant::now() + patience, &never),
            });
            all.push(take(&tree, &listing)?);
        }
        Ok(all)
    }
}
