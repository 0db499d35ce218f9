//! An index that a process leaves to the next one.

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

/// Thirty files that are old enough for an index.
fn write_thirty(grove: &Grove) {
    for at in 0..30 {
        fs::write(grove.path().join(format!("f{at}")), format!("text {at} end\n")).unwrap();
    }
    age();
}

/// The files that are kept, for all roots.
fn kept(shelves: &Path) -> Vec<PathBuf> {
    let inside = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let files = inside(shelves).into_iter().flat_map(|root| inside(&root));
    files.filter(|file| file.file_name() != Some("lock".as_ref())).collect()
}

#[test]
fn what_was_read_is_known_to_the_next_process_and_what_was_changed_is_not() {
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
fn lists_that_cannot_be_read_any_more_leave_nothing_out() {
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

/// Bits of the file are flipped while its lists are in use, a few more each time.
#[test]
fn lists_that_are_damaged_while_they_are_in_use_leave_nothing_out() {
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
        // In place: the process has the file open.
        fs::OpenOptions::new().write(true).open(&file).unwrap().write_all_at(&damaged, 0).unwrap();
        for (wanted, expected) in wanted.into_iter().zip(&expected) {
            assert_eq!(ask(&grove, wanted, Some(&tables)), *expected, "round {round}");
        }
    }
}

#[test]
fn what_is_torn_or_of_another_kind_is_discarded() {
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
    // A root of its own has nothing to do with it.
    drop(build(&grove, shelves.path(), ALWAYS));
    assert_eq!(known(&Grove::new(), shelves.path(), ALWAYS), 0);
    // And more than there is room for is not kept.
    let small = IndexSettings { max_bytes: 10, ..ALWAYS };
    assert_eq!((known(&grove, shelves.path(), small), kept(shelves.path()).len()), (0, 0));
}
