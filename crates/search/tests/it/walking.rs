//! Compares the walk and the cached listing with the walker of the `ignore` crate.

use std::fs;
use std::path::PathBuf;

use ignore::WalkBuilder;
use proptest::prelude::*;
use toolcrib_search::{ListingCaches, Walk, walk, walk_ignored};

use crate::tree::TestTree;

/// The files that the walker of the `ignore` crate finds, in path order.
fn by_ignore_crate(tree_dir: &TestTree) -> Vec<PathBuf> {
    let walker = WalkBuilder::new(tree_dir.path())
        .hidden(false)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let files =
        walker.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(|entry| entry.path().strip_prefix(tree_dir.path()).unwrap().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_walk_and_the_cached_listing_equal_those_of_the_ignore_crate(
        steps in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..40),
    ) {
        let tree_dir = TestTree::new();
        let caches = ListingCaches::default();
        for step in steps {
            tree_dir.change(step);
            let expected = by_ignore_crate(&tree_dir);
            prop_assert_eq!(&tree_dir.list(walk), &expected);
            prop_assert_eq!(&tree_dir.list(|request| caches.list(request)), &expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn listed_and_ignored_files_together_are_all_files(
        steps in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..40),
    ) {
        let tree_dir = TestTree::new();
        let caches = ListingCaches::default();
        for step in steps {
            tree_dir.change(step);
            let all = |request: &Walk<'_>| walk(&Walk { ignored: true, ..*request });
            let left_out = |request: &Walk<'_>| {
                walk_ignored(&Walk { ignored: true, ..*request }, &caches.list(request))
            };
            let mut both = [tree_dir.list(walk), tree_dir.list(left_out)].concat();
            both.sort();
            let mut all = tree_dir.list(all);
            all.sort();
            prop_assert_eq!(both, all);
        }
    }
}

#[test]
fn directories_beyond_the_path_limit_are_reported_and_not_entered() {
    let tree_dir = TestTree::new();
    // Two deep trees, one moved to the end of the other: longer than the longest path.
    let [above, _] = ["a", "b"].map(|name| {
        let mut deep = tree_dir.path().join(name);
        fs::create_dir(&deep).unwrap();
        for _ in 0..12 {
            deep.push("d".repeat(250));
            fs::create_dir(&deep).unwrap();
        }
        deep
    });
    fs::rename(tree_dir.path().join("b"), above.join("b")).unwrap();
    let listing = std::cell::RefCell::new(None);
    tree_dir.list(|request| {
        let found = walk(request);
        *listing.borrow_mut() = Some(found.pruned());
        found
    });
    let pruned = listing.into_inner().unwrap();
    assert!(pruned.too_deep + pruned.unreadable > 0, "{pruned:?}");
}

#[test]
fn a_parallel_walk_lists_files_in_the_same_order() {
    let tree_dir = TestTree::new();
    for number in 0..300 {
        let directory = tree_dir.path().join(format!("d{}/e{number}", number % 17));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("f.rs"), "x").unwrap();
    }
    assert_eq!(tree_dir.list(walk), by_ignore_crate(&tree_dir));
}
