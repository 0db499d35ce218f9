//! A temporary tree that changes by random numbers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::{BulkReader, Root, RootMode, Workspace};
use toolcrib_search::{Deadline, Listing, ListingCaches, Walk, walk};

const NAMES: [&str; 7] = ["a", "b", "src", "x.rs", "y.log", ".dot", "z"];
const RULES: [&str; 7] = ["*.log\n", "src/\n", "/a\n", "b/**\n!b/x.rs\n", "!*.log\n", "x.rs\n", ""];

/// A temporary directory with its tree reader.
pub(crate) struct TestTree {
    directory: tempfile::TempDir,
    pub(crate) tree: BulkReader,
}

impl TestTree {
    pub(crate) fn new() -> TestTree {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(directory.path(), RootMode::ReadOnly).unwrap();
        let tree = BulkReader::around(&Workspace::new(vec![root]).unwrap().top());
        fs::write(directory.path().join(".gitignore"), "").unwrap();
        TestTree { directory, tree }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Tries a change.
    pub(crate) fn change(&self, step: (u8, u8, u8, u8)) {
        let (what, one, two, three) = step;
        let path = self.at(one, two);
        let _ = match what % 8 {
            0 | 1 => path.parent().map_or(Ok(()), |above| {
                fs::create_dir_all(above).and_then(|()| fs::write(&path, "word\n"))
            }),
            2 => fs::create_dir_all(&path),
            3 => fs::remove_file(&path),
            4 => fs::remove_dir_all(&path),
            5 => fs::rename(&path, self.at(two, three)),
            _ => {
                let name = if three % 3 == 0 { ".ignore" } else { ".gitignore" };
                let directory = if path.is_dir() { path } else { self.path().to_owned() };
                fs::write(directory.join(name), RULES[usize::from(three) % RULES.len()])
            }
        };
    }

    fn at(&self, one: u8, two: u8) -> PathBuf {
        let name = |number: u8| NAMES[usize::from(number) % NAMES.len()];
        match two % 3 {
            0 => self.path().join(name(one)),
            _ => self.path().join(name(one)).join(name(two)),
        }
    }

    /// The files that a listing function finds.
    pub(crate) fn list(&self, list: impl FnOnce(&Walk<'_>) -> Listing) -> Vec<PathBuf> {
        self.walk(|request| {
            let listing = list(request);
            let files = listing.choose(|_| true, |file| !file.is_link());
            files.into_iter().map(|file| listing.path(file)).collect()
        })
    }

    /// Calls `look` with a listing from the caches, or from a fresh walk.
    pub(crate) fn with_listing<T>(
        &self,
        caches: Option<&ListingCaches>,
        look: impl FnOnce(&Listing) -> T,
    ) -> T {
        self.walk(|request| {
            look(&caches.map_or_else(|| walk(request), |caches| caches.list(request)))
        })
    }

    fn walk<T>(&self, walk: impl FnOnce(&Walk<'_>) -> T) -> T {
        let never = || false;
        let stop = Deadline::new(Instant::now() + Duration::from_secs(600), &never);
        walk(&Walk {
            tree: &self.tree,
            start: Path::new(""),
            ignored: false,
            named: &[],
            own: &[],
            stop: &stop,
        })
    }
}
