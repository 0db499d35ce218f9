//! A search that takes its files from a map gives the same result as a full search on a fresh walk.

#![allow(clippy::disallowed_methods, reason = "tests lay out the files that are looked at")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::{Root, RootMode, Workspace};

use super::*;
use crate::backtrack::InThisProcess;
use crate::decoder::{ChunkDecoder, Decoded, Decoder};
use crate::index::IndexSettings;
use crate::pattern::PatternOptions;
use crate::walk::{Walk, walk};

struct AsIs;

impl Decoder for AsIs {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        Decoded::Text(bytes.into(), None)
    }

    fn pieces(&self, _beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        None
    }
}

const FILES: usize = 300;

struct MappedTree {
    directory: tempfile::TempDir,
    tree: BulkReader,
    caches: ListingCaches,
}

impl MappedTree {
    /// A tree that was searched until it has a map.
    fn new() -> MappedTree {
        let directory = tempfile::tempdir().unwrap();
        for at in 0..FILES {
            let path = directory.path().join(format!("d{}/e{}/f{at}", at % 7, at % 3));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("word{at} and more\n")).unwrap();
        }
        let root = Root::open(directory.path(), RootMode::ReadOnly).unwrap();
        let tree = BulkReader::around(&Workspace::new(vec![root]).unwrap().top());
        let settings = IndexSettings {
            least_files: 0,
            trial_pause: Duration::MAX,
            ..IndexSettings::default()
        };
        let mapped = MappedTree { directory, tree, caches: ListingCaches::new(settings, None) };
        mapped.index();
        for _ in 0..4 {
            mapped.find("nothing like it");
        }
        assert!(mapped.has_map());
        mapped
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Indexes all files as soon as they are old enough.
    fn index(&self) {
        std::thread::sleep(Duration::from_millis(70));
        self.with_listing(true, |listing, _| {
            self.caches.build_index(&self.tree, listing, &AsIs);
        });
    }

    fn has_map(&self) -> bool {
        self.with_listing(true, |listing, _| listing.summary.doc_map.current().is_some())
    }

    fn with_listing<T>(
        &self,
        from_caches: bool,
        look: impl FnOnce(&Listing, &Deadline<'_>) -> T,
    ) -> T {
        let never = || false;
        let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
        let start = Path::new("");
        let request =
            Walk { tree: &self.tree, start, ignored: false, named: &[], own: &[], stop: &stop };
        let listing = if from_caches { self.caches.list(&request) } else { walk(&request) };
        look(&listing, &stop)
    }

    /// The files with a text and the numbers of files searched before each, with the caches or without.
    fn search(&self, text: &str, with_caches: bool) -> (Vec<PathBuf>, Searched) {
        let options =
            PatternOptions { pattern: text, literal: true, ignore_case: false, multiline: false };
        self.with_listing(with_caches, |listing, stop| {
            let pattern = Pattern::new(options, &InThisProcess::shared(), stop).unwrap();
            let search = Grep {
                tree: &self.tree,
                listing,
                pattern: &pattern,
                letters: &AsIs,
                tables: with_caches.then_some(&self.caches),
                max_bytes: 1 << 20,
                named: false,
                keep: MatchOptions::count(u64::MAX),
                stop,
            };
            let mut found = Vec::new();
            let searched = grep(&search, &listing.files(), |file, _, _| {
                found.push(listing.path(file));
                true
            });
            (found, searched)
        })
    }

    /// The number of files with a text. Checks that it is the same without caches.
    fn find(&self, text: &str) -> usize {
        let found = self.search(text, true);
        assert_eq!(found, self.search(text, false), "{text}");
        found.0.len()
    }
}

#[test]
fn every_change_is_seen_while_the_map_stays() {
    let mapped = MappedTree::new();
    assert_eq!((mapped.find("word"), mapped.find("word299")), (FILES, 1));
    for round in 0..5 {
        let name = format!("d{}/e{}/f{round}", round % 7, round % 3);
        // In place, and by a rename, as editors write files.
        let text = format!("changed{round}\n");
        fs::write(mapped.at(&name), &text).unwrap();
        assert_eq!((mapped.find(text.trim()), mapped.find("word")), (1, FILES - 1));
        assert!(mapped.has_map());
        fs::write(mapped.at("d0/tmp"), format!("word{round} again\n")).unwrap();
        fs::rename(mapped.at("d0/tmp"), mapped.at(&name)).unwrap();
        assert_eq!((mapped.find(text.trim()), mapped.find("word")), (0, FILES));
        assert_eq!(mapped.find(" again"), round + 1);
        assert!(mapped.has_map());
    }
    // An indexed file is no longer visited.
    mapped.index();
    assert_eq!((mapped.find(" again"), mapped.find("changed")), (5, 0));
    fs::write(mapped.at("d0/e0/f0"), "changed once more\n").unwrap();
    assert_eq!((mapped.find(" again"), mapped.find("changed")), (4, 1));
}

#[test]
fn files_that_come_and_go_are_seen() {
    let mapped = MappedTree::new();
    fs::write(mapped.at("d3/new"), "word\n").unwrap();
    assert_eq!(mapped.find("word"), FILES + 1);
    fs::rename(mapped.at("d3/new"), mapped.at("d4/new")).unwrap();
    fs::remove_file(mapped.at("d0/e0/f0")).unwrap();
    assert_eq!((mapped.find("word"), mapped.find("word0")), (FILES, 0));
    // Directories that swap their names have the same entries as before.
    for at in [1, 2] {
        fs::create_dir(mapped.at(format!("s{at}"))).unwrap();
        fs::write(mapped.at(format!("s{at}/same")), format!("swapped{at}\n")).unwrap();
    }
    mapped.index();
    for _ in 0..3 {
        assert_eq!((mapped.find("swapped1"), mapped.find("swapped2")), (1, 1));
    }
    assert!(mapped.has_map());
    fs::rename(mapped.at("s1"), mapped.at("aside")).unwrap();
    fs::rename(mapped.at("s2"), mapped.at("s1")).unwrap();
    fs::rename(mapped.at("aside"), mapped.at("s2")).unwrap();
    assert_eq!((mapped.find("swapped1"), mapped.find("swapped2")), (1, 1));
    fs::write(mapped.at("s1/same"), "SWAPPED\n").unwrap();
    assert_eq!((mapped.find("swapped1"), mapped.find("swapped2")), (1, 0));
    fs::remove_dir_all(mapped.at("d5")).unwrap();
    fs::create_dir_all(mapped.at("d5/e0")).unwrap();
    fs::write(mapped.at("d5/e0/f5"), "word5 is back\n").unwrap();
    assert_eq!(mapped.find("is back"), 1);
}

#[test]
fn a_new_map_is_made_when_many_files_were_changed_or_indexed_again() {
    let mapped = MappedTree::new();
    let outdated = || {
        mapped.with_listing(true, |listing, _| {
            listing.summary.doc_map.current().map(|(_, cleared)| cleared.len())
        })
    };
    for at in 0..100 {
        let path = mapped.at(format!("d{}/e{}/f{at}", at % 7, at % 3));
        fs::write(path, format!("another{at}\n")).unwrap();
    }
    assert_eq!((mapped.find("another"), mapped.find("word")), (100, FILES - 100));
    assert_eq!(outdated(), Some(100));
    mapped.index();
    for _ in 0..4 {
        assert_eq!((mapped.find("another"), mapped.find("word")), (100, FILES - 100));
    }
    assert_eq!(outdated(), Some(0));
    // All segments are replaced.
    mapped.caches.drop_index(&mapped.tree).unwrap();
    assert_eq!(mapped.find("another"), 100);
    mapped.index();
    for _ in 0..4 {
        assert_eq!((mapped.find("another99"), mapped.find("word")), (1, FILES - 100));
    }
    assert_eq!(outdated(), Some(0));
}

#[test]
fn a_search_sees_its_own_change_while_others_change_and_search() {
    let mapped = MappedTree::new();
    std::thread::scope(|scope| {
        for session in 0..4 {
            let mapped = &mapped;
            scope.spawn(move || {
                for round in 0..60 {
                    let at = session + 21 * (round % 5);
                    let name = mapped.at(format!("d{}/e{}/f{at}", at % 7, at % 3));
                    let text = format!("session{session} round{round}.\n");
                    if round % 3 == 0 {
                        let aside = mapped.at(format!("aside{session}"));
                        fs::write(&aside, &text).unwrap();
                        fs::rename(&aside, &name).unwrap();
                    } else {
                        fs::write(&name, &text).unwrap();
                    }
                    assert_eq!(mapped.search(text.trim(), true).0.len(), 1, "{text}");
                    let before = format!("session{session} round{}.", round as isize - 5);
                    assert_eq!(mapped.search(&before, true).0.len(), 0, "{before}");
                    if session == 0 && round % 10 == 9 {
                        mapped.index();
                    }
                }
            });
        }
    });
    assert_eq!(mapped.find("round"), 20);
}
