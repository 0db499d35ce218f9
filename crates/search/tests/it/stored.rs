//! An index that is kept for later processes.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_search::{IndexSettings, ListingCaches, PatternOptions};

use crate::indexed::{ALWAYS, Half, age, ask};
use crate::random::Random;
use crate::tree::Grove;

fn build(grove: &Grove, shelves: &Path, settings: IndexSettings) -> ListingCaches {
    let tables = ListingCaches::new(settings, Some(shelves.to_owned()));
    grove.with_listing(Some(&tables), |listing| tables.build_index(&grove.tree, listing, &Half));
    tables
}

fn known(grove: &Grove, shelves: &Path, settings: IndexSettings) -> u64 {
    ListingCaches::new(settings, Some(shelves.to_owned())).index_status(&grove.tree).files
}

/// Writes thirty files that are old enough to be indexed.
fn write_thirty(grove: &Grove) {
    for at in 0..30 {
        fs::write(grove.path().join(format!("f{at}")), format!("text {at} end\n")).unwrap();
    }
    age();
}

/// The kept segment files of all roots.
fn kept(shelves: &Path) -> Vec<PathBuf> {
    let inside = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let files = inside(shelves).into_iter().flat_map(|root| inside(&root));
    files.filter(|file| file.file_name() != Some("lock".as_ref())).collect()
}

#[test]
fn a_later_process_knows_indexed_files_and_detects_changed_ones() {
    let (grove, shelves) = (Grove::new(), tempfile::tempdir().unwrap());
    write_thirty(&grove);
    drop(build(&grove, shelves.path(), ALWAYS));
    assert_eq!(known(&grove, shelves.path(), ALWAYS), 31);
    fs::write(grove.path().join("f3"), "another text\n").unwrap();
    fs::rename(grove.path().join("f4"), grove.path().join("f5")).unwrap();
    let tables = ListingCaches::new(ALWAYS, Some(shelves.path().to_owned()));
    for pattern in ["text", "text 3 end", "another", "text 4", "text 5 ", "text 17", "none"] {
        let wanted =
            PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
        assert_eq!(ask(&grove, wanted, Some(&tables)), ask(&grove, wanted, None), "{pattern}");
    }
    tables.drop_index(&grove.tree).unwrap();
    assert_eq!((known(&grove, shelves.path(), ALWAYS), kept(shelves.path()).len()), (0, 0));
}

#[test]
fn a_small_tree_that_is_searched_often_has_an_index_in_memory_only() {
    let (grove, shelves) = (Grove::new(), tempfile::tempdir().unwrap());
    write_thirty(&grove);
    let settings = IndexSettings { least_files: 1_000, least_files_often: 30, ..ALWAYS };
    let tables = ListingCaches::new(settings, Some(shelves.path().to_owned()));
    let wanted =
        PatternOptions { pattern: "7 end", literal: true, ignore_case: false, multiline: false };
    let search = || assert_eq!(ask(&grove, wanted, Some(&tables)), ask(&grove, wanted, None));
    let status = || tables.index_status(&grove.tree);
    (0..3).for_each(|_| search());
    assert_eq!((status().files, status().watched), (0, 0));
    let began = Instant::now();
    while (status().files, status().watched) != (31, 1) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", status());
        search();
    }
    assert_eq!(fs::read_dir(shelves.path()).unwrap().count(), 0);
}

#[test]
fn truncated_posting_lists_exclude_no_match() {
    let (grove, shelves) = (Grove::new(), tempfile::tempdir().unwrap());
    write_thirty(&grove);
    let tables = build(&grove, shelves.path(), ALWAYS);
    let file = kept(shelves.path()).pop().unwrap();
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(100).unwrap();
    for pattern in ["text 17", "nd", "none"] {
        let wanted =
            PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
        assert_eq!(ask(&grove, wanted, Some(&tables)), ask(&grove, wanted, None), "{pattern}");
    }
}

/// Bits of the file are flipped while its posting lists are in use, a few more each time.
#[test]
fn posting_lists_damaged_while_in_use_exclude_no_match() {
    let (grove, shelves) = (Grove::new(), tempfile::tempdir().unwrap());
    for at in 0..300 {
        let text = format!("text {at} end\n{}\n", "words of all kinds ".repeat(at % 40));
        fs::write(grove.path().join(format!("f{at}")), text).unwrap();
    }
    age();
    let tables = build(&grove, shelves.path(), ALWAYS);
    let file = kept(shelves.path()).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    let patterns = ["text 17", "nd", "none", "kinds words", "text 299 end", "1"];
    let wanted = patterns.map(|pattern| PatternOptions {
        pattern,
        literal: true,
        ignore_case: false,
        multiline: false,
    });
    let expected = wanted.map(|wanted| ask(&grove, wanted, None));
    let mut random = Random::new(7);
    for round in 0..30 {
        let mut damaged = whole.clone();
        for _ in 0..=round * 10 {
            let at = random.below(whole.len());
            damaged[at] ^= 1 << random.below(8);
        }
        // In place, since the process has the file open.
        fs::OpenOptions::new().write(true).open(&file).unwrap().write_all_at(&damaged, 0).unwrap();
        for (wanted, expected) in wanted.into_iter().zip(&expected) {
            assert_eq!(ask(&grove, wanted, Some(&tables)), *expected, "round {round}");
        }
    }
}

#[test]
fn damaged_or_incompatible_segments_are_discarded() {
    let (grove, shelves) = (Grove::new(), tempfile::tempdir().unwrap());
    fs::write(grove.path().join("f"), "text\n").unwrap();
    age();
    let other = IndexSettings { chunk_bytes: 1_024, ..ALWAYS };
    drop(build(&grove, shelves.path(), other));
    assert_eq!((known(&grove, shelves.path(), ALWAYS), kept(shelves.path()).len()), (0, 0));
    drop(build(&grove, shelves.path(), ALWAYS));
    assert_eq!(known(&grove, shelves.path(), ALWAYS), 2);
    let file = kept(shelves.path()).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!((known(&grove, shelves.path(), ALWAYS), kept(shelves.path()).len()), (0, 0));
    // Another root does not use it.
    drop(build(&grove, shelves.path(), ALWAYS));
    assert_eq!(known(&Grove::new(), shelves.path(), ALWAYS), 0);
    // Segments beyond the size limit are deleted.
    let small = IndexSettings { max_bytes: 10, ..ALWAYS };
    assert_eq!((known(&grove, shelves.path(), small), kept(shelves.path()).len()), (0, 0));
}
