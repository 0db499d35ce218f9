//! An index that is kept for later processes.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_search::{IndexSettings, ListingCaches, PatternOptions};

use crate::indexed::{ALWAYS, PartialDecoder, search, wait_until_not_racy};
use crate::random::Random;
use crate::tree::TestTree;

fn build(tree_dir: &TestTree, index_directory: &Path, settings: IndexSettings) -> ListingCaches {
    let caches = ListingCaches::new(settings, Some(index_directory.to_owned()));
    tree_dir.with_listing(Some(&caches), |listing| {
        caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
    });
    caches
}

fn indexed_files(tree_dir: &TestTree, index_directory: &Path, settings: IndexSettings) -> u64 {
    ListingCaches::new(settings, Some(index_directory.to_owned()))
        .index_status(&tree_dir.tree)
        .files
}

/// Writes thirty files that are old enough to be indexed.
fn write_thirty(tree_dir: &TestTree) {
    for at in 0..30 {
        fs::write(tree_dir.path().join(format!("f{at}")), format!("text {at} end\n")).unwrap();
    }
    wait_until_not_racy();
}

/// The kept segment files of all roots.
fn segment_files(index_directory: &Path) -> Vec<PathBuf> {
    let inside = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let files = inside(index_directory).into_iter().flat_map(|root| inside(&root));
    files.filter(|file| file.file_name() != Some("lock".as_ref())).collect()
}

#[test]
fn a_later_process_knows_indexed_files_and_detects_changed_ones() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    write_thirty(&tree_dir);
    drop(build(&tree_dir, index_directory.path(), ALWAYS));
    assert_eq!(indexed_files(&tree_dir, index_directory.path(), ALWAYS), 31);
    fs::write(tree_dir.path().join("f3"), "another text\n").unwrap();
    fs::rename(tree_dir.path().join("f4"), tree_dir.path().join("f5")).unwrap();
    let caches = ListingCaches::new(ALWAYS, Some(index_directory.path().to_owned()));
    for pattern in ["text", "text 3 end", "another", "text 4", "text 5 ", "text 17", "none"] {
        let options =
            PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
        assert_eq!(
            search(&tree_dir, options, Some(&caches)),
            search(&tree_dir, options, None),
            "{pattern}"
        );
    }
    caches.drop_index(&tree_dir.tree).unwrap();
    assert_eq!(
        (
            indexed_files(&tree_dir, index_directory.path(), ALWAYS),
            segment_files(index_directory.path()).len()
        ),
        (0, 0)
    );
}

#[test]
fn a_small_tree_that_is_searched_often_has_an_index_in_memory_only() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    write_thirty(&tree_dir);
    let settings = IndexSettings { least_files: 1_000, least_files_often: 30, ..ALWAYS };
    let caches = ListingCaches::new(settings, Some(index_directory.path().to_owned()));
    let options =
        PatternOptions { pattern: "7 end", literal: true, ignore_case: false, multiline: false };
    let check =
        || assert_eq!(search(&tree_dir, options, Some(&caches)), search(&tree_dir, options, None));
    let status = || caches.index_status(&tree_dir.tree);
    (0..3).for_each(|_| check());
    assert_eq!((status().files, status().watched), (0, 0));
    let began = Instant::now();
    while (status().files, status().watched) != (31, 1) {
        assert!(began.elapsed() < Duration::from_secs(600), "{:?}", status());
        check();
    }
    assert_eq!(fs::read_dir(index_directory.path()).unwrap().count(), 0);
}

#[test]
fn truncated_posting_lists_exclude_no_match() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    write_thirty(&tree_dir);
    let caches = build(&tree_dir, index_directory.path(), ALWAYS);
    let file = segment_files(index_directory.path()).pop().unwrap();
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(100).unwrap();
    for pattern in ["text 17", "nd", "none"] {
        let options =
            PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
        assert_eq!(
            search(&tree_dir, options, Some(&caches)),
            search(&tree_dir, options, None),
            "{pattern}"
        );
    }
}

/// Bits of the file are flipped while its posting lists are in use, a few more each time.
#[test]
fn posting_lists_damaged_while_in_use_exclude_no_match() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    for at in 0..300 {
        let text = format!("text {at} end\n{}\n", "words of all kinds ".repeat(at % 40));
        fs::write(tree_dir.path().join(format!("f{at}")), text).unwrap();
    }
    wait_until_not_racy();
    let caches = build(&tree_dir, index_directory.path(), ALWAYS);
    let file = segment_files(index_directory.path()).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    let patterns = ["text 17", "nd", "none", "kinds words", "text 299 end", "1"];
    let options = patterns.map(|pattern| PatternOptions {
        pattern,
        literal: true,
        ignore_case: false,
        multiline: false,
    });
    let expected = options.map(|options| search(&tree_dir, options, None));
    let mut random = Random::new(7);
    for round in 0..30 {
        let mut damaged = whole.clone();
        for _ in 0..=round * 10 {
            let at = random.below(whole.len());
            damaged[at] ^= 1 << random.below(8);
        }
        // In place, since the process has the file open.
        fs::OpenOptions::new().write(true).open(&file).unwrap().write_all_at(&damaged, 0).unwrap();
        for (options, expected) in options.into_iter().zip(&expected) {
            assert_eq!(search(&tree_dir, options, Some(&caches)), *expected, "round {round}");
        }
    }
}

/// Stores a copy of a segment with another format number.
fn copy_with_format(segment: &Path, format: u8) -> PathBuf {
    let mut bytes = fs::read(segment).unwrap();
    let number = b"toolcrib index ".len();
    assert_eq!(bytes[number], b'2');
    bytes[number] = format;
    let copy = segment.with_file_name(toolcrib_fs::ContentHash::of(&bytes).to_string());
    fs::write(&copy, bytes).unwrap();
    copy
}

#[test]
fn a_newer_index_is_left_alone_and_an_older_one_is_deleted() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    write_thirty(&tree_dir);
    drop(build(&tree_dir, index_directory.path(), ALWAYS));
    let own = segment_files(index_directory.path()).pop().unwrap();
    let (older, newer) = (copy_with_format(&own, b'1'), copy_with_format(&own, b'3'));
    let bytes = fs::read(&newer).unwrap();
    fs::remove_file(&own).unwrap();
    let status = || {
        ListingCaches::new(ALWAYS, Some(index_directory.path().to_owned()))
            .index_status(&tree_dir.tree)
    };
    let found = status();
    assert_eq!((found.files, found.dropped_older, found.has_newer), (0, true, true));
    assert!(!older.exists());
    drop(build(&tree_dir, index_directory.path(), ALWAYS));
    let found = status();
    assert_eq!((found.files, found.dropped_older, found.has_newer), (31, false, true));
    let small = IndexSettings { max_bytes: 10, ..ALWAYS };
    assert_eq!(indexed_files(&tree_dir, index_directory.path(), small), 0);
    assert_eq!(
        (segment_files(index_directory.path()), fs::read(&newer).unwrap()),
        (vec![newer], bytes)
    );
}

#[test]
fn damaged_or_incompatible_segments_are_discarded() {
    let (tree_dir, index_directory) = (TestTree::new(), tempfile::tempdir().unwrap());
    fs::write(tree_dir.path().join("f"), "text\n").unwrap();
    wait_until_not_racy();
    let other = IndexSettings { chunk_bytes: 1_024, ..ALWAYS };
    drop(build(&tree_dir, index_directory.path(), other));
    assert_eq!(
        (
            indexed_files(&tree_dir, index_directory.path(), ALWAYS),
            segment_files(index_directory.path()).len()
        ),
        (0, 0)
    );
    drop(build(&tree_dir, index_directory.path(), ALWAYS));
    assert_eq!(indexed_files(&tree_dir, index_directory.path(), ALWAYS), 2);
    let file = segment_files(index_directory.path()).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(
        (
            indexed_files(&tree_dir, index_directory.path(), ALWAYS),
            segment_files(index_directory.path()).len()
        ),
        (0, 0)
    );
    // Another root does not use it.
    drop(build(&tree_dir, index_directory.path(), ALWAYS));
    assert_eq!(indexed_files(&TestTree::new(), index_directory.path(), ALWAYS), 0);
    // Segments beyond the size limit are deleted.
    let small = IndexSettings { max_bytes: 10, ..ALWAYS };
    assert_eq!(
        (
            indexed_files(&tree_dir, index_directory.path(), small),
            segment_files(index_directory.path()).len()
        ),
        (0, 0)
    );
}
