//! Watches, and their failures: lost events, exhausted watches, directories moved together with their
//! watches, files with several names.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use toolcrib_search::{IndexSettings, ListingCaches, PatternOptions};

use crate::indexed::{ALWAYS, PartialDecoder, search, wait_until_not_racy};
use crate::model;
use crate::tree::TestTree;

/// A tree that was searched until it is watched and all its files are indexed.
struct Watched {
    tree_dir: TestTree,
    caches: ListingCaches,
}

impl Watched {
    fn new(files: &[(&str, &str)]) -> Watched {
        Watched::with(files, ALWAYS)
    }

    fn with(files: &[(&str, &str)], settings: IndexSettings) -> Watched {
        let watched =
            Watched { tree_dir: TestTree::new(), caches: ListingCaches::new(settings, None) };
        for (name, text) in files {
            let path = watched.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        wait_until_not_racy();
        watched.build();
        for _ in 0..3 {
            assert_eq!(watched.count("nothing like it"), 0);
        }
        assert!(watched.watched() > 0);
        watched
    }

    fn at(&self, name: impl AsRef<Path>) -> std::path::PathBuf {
        self.tree_dir.path().join(name)
    }

    fn build(&self) {
        let Watched { tree_dir, caches } = self;
        tree_dir.with_listing(Some(caches), |listing| {
            caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
        });
    }

    fn watched(&self) -> u64 {
        self.caches.index_status(&self.tree_dir.tree).watched
    }

    /// The number of files that contain a text. Checks that it is the same without an index.
    fn count(&self, text: &str) -> usize {
        let options =
            PatternOptions { pattern: text, literal: true, ignore_case: false, multiline: false };
        let result = search(&self.tree_dir, options, Some(&self.caches));
        assert_eq!(result, search(&self.tree_dir, options, None), "{text}");
        result.unwrap().found.len()
    }

    /// Writes another text of the same length and restores the mtime: only the watch reports the change.
    fn edit_keeping_mtime(&self, name: &str, text: &str) {
        let modified = fs::metadata(self.at(name)).unwrap().modified().unwrap();
        let mut file = fs::File::options().write(true).open(self.at(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(modified).unwrap();
    }
}

#[test]
fn a_change_is_seen_by_the_next_search() {
    let watched = Watched::new(&[("a/f", "one word\n"), ("b/c/g", "two\n"), ("h", "three\n")]);
    assert_eq!(watched.watched(), 4);
    watched.edit_keeping_mtime("a/f", "one w0rd\n");
    assert_eq!((watched.count("word"), watched.count("w0rd")), (0, 1));
    fs::create_dir_all(watched.at("new/deep")).unwrap();
    fs::write(watched.at("new/deep/f"), "a word\n").unwrap();
    assert_eq!(watched.count("word"), 1);
    fs::remove_dir_all(watched.at("b")).unwrap();
    assert_eq!((watched.count("two"), watched.count("three")), (0, 1));
    fs::write(watched.at(".gitignore"), "/h\n").unwrap();
    assert_eq!(watched.count("three"), 0);
}

#[test]
fn no_change_is_missed_when_events_are_lost() {
    let watched = Watched::new(&[("a/f", "one word\n"), ("a/g", "noise\n"), ("a/h", "noise\n")]);
    let open = |name| fs::File::options().append(true).open(watched.at(name)).unwrap();
    let (mut one, mut two) = (open("a/g"), open("a/h"));
    // More events than the queue holds. Identical consecutive events would be merged.
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    for _ in 0..most.trim().parse::<usize>().unwrap() / 2 + 1_000 {
        one.write_all(b".").unwrap();
        two.write_all(b".").unwrap();
    }
    watched.edit_keeping_mtime("a/f", "one w0rd\n");
    fs::write(watched.at("a/new"), "w0rd\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("w0rd")), (0, 2));
    watched.edit_keeping_mtime("a/f", "one word\n");
    assert_eq!((watched.count("word"), watched.count("w0rd")), (1, 1));
}

#[test]
fn directories_that_swap_names_are_not_confused() {
    let watched =
        Watched::new(&[("a/deep/f", "first\n"), ("b/deep/f", "other\n"), ("c/f", "third\n")]);
    fs::rename(watched.at("a"), watched.at("aside")).unwrap();
    fs::rename(watched.at("b"), watched.at("a")).unwrap();
    fs::rename(watched.at("aside"), watched.at("b")).unwrap();
    assert_eq!((watched.count("first"), watched.count("other")), (1, 1));
    // Each is watched under its new name.
    watched.edit_keeping_mtime("a/deep/f", "OTHER\n");
    assert_eq!((watched.count("first"), watched.count("OTHER")), (1, 1));
    watched.edit_keeping_mtime("b/deep/f", "FIRST\n");
    assert_eq!((watched.count("FIRST"), watched.count("other")), (1, 0));
    // Moved out of the tree, changed there, and moved back.
    let outside = tempfile::tempdir_in(watched.tree_dir.path().parent().unwrap()).unwrap();
    fs::rename(watched.at("c"), outside.path().join("c")).unwrap();
    assert_eq!(watched.count("third"), 0);
    fs::write(outside.path().join("c/f"), "3rd..\n").unwrap();
    fs::rename(outside.path().join("c"), watched.at("c")).unwrap();
    assert_eq!((watched.count("third"), watched.count("3rd..")), (0, 1));
}

#[test]
fn a_file_with_two_names_is_statted_each_time() {
    let watched = Watched::new(&[("a/f", "one word\n"), ("b/g", "two\n")]);
    let outside = tempfile::tempdir_in(watched.tree_dir.path().parent().unwrap()).unwrap();
    fs::hard_link(watched.at("a/f"), outside.path().join("f")).unwrap();
    fs::hard_link(watched.at("b/g"), watched.at("a/g")).unwrap();
    wait_until_not_racy();
    watched.build();
    assert_eq!((watched.count("word"), watched.count("w0rd"), watched.count("two")), (1, 0, 2));
    // In an unwatched directory.
    fs::write(outside.path().join("f"), "one w0rd\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("w0rd")), (0, 1));
    fs::write(watched.at("a/g"), "one word\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("two")), (2, 0));
}

#[test]
fn a_new_hard_link_within_the_tree_is_detected() {
    let texts = [("a/f", "one word\n"), ("b/g", "two\n"), ("c/h", "three\n"), ("d/i", "four\n")];
    let watched = Watched::new(&texts);
    fs::hard_link(watched.at("a/f"), watched.at("b/f")).unwrap();
    assert_eq!(watched.count("word"), 2);
    fs::write(watched.at("b/f"), "one w0rd\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("w0rd")), (0, 2));
    // The link replaces another file.
    fs::hard_link(watched.at("c/h"), watched.at("b/new")).unwrap();
    fs::rename(watched.at("b/new"), watched.at("b/g")).unwrap();
    assert_eq!(watched.count("three"), 2);
    fs::write(watched.at("b/g"), "another\n").unwrap();
    assert_eq!((watched.count("three"), watched.count("another")), (0, 2));
    // The link is in a new directory.
    fs::create_dir(watched.at("new")).unwrap();
    fs::hard_link(watched.at("d/i"), watched.at("new/i")).unwrap();
    assert_eq!(watched.count("four"), 2);
    fs::write(watched.at("new/i"), "five\n").unwrap();
    assert_eq!((watched.count("four"), watched.count("five")), (0, 2));
}

#[test]
fn a_change_that_no_watch_reported_disables_the_watches() {
    let watched = Watched::with(
        &[("a/f", "one word\n"), ("b/g", "two\n")],
        IndexSettings { trial_pause: Duration::ZERO, ..ALWAYS },
    );
    let outside = tempfile::tempdir_in(watched.tree_dir.path().parent().unwrap()).unwrap();
    // A link that is created after the file was indexed, in an unwatched directory.
    fs::hard_link(watched.at("a/f"), outside.path().join("f")).unwrap();
    fs::write(outside.path().join("f"), "one w0rd\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("w0rd")), (0, 1));
    let status = watched.caches.index_status(&watched.tree_dir.tree);
    assert!(status.deaf && status.watched == 0, "{status:?}");
    let alarm = || watched.caches.take_alarm(&watched.tree_dir.tree);
    assert_eq!((alarm().is_some(), alarm()), (true, None));
    fs::write(outside.path().join("f"), "one word\n").unwrap();
    assert_eq!((watched.count("word"), watched.count("w0rd")), (1, 0));
}

#[test]
fn ignored_directories_are_not_watched() {
    let watched =
        Watched::new(&[(".gitignore", "/target\n"), ("target/a/b/f", "x\n"), ("src/f", "y\n")]);
    assert_eq!(watched.watched(), 2);
}

#[test]
fn a_tree_with_too_few_watches_is_searched_correctly() {
    for max_watches in [0, 1, 4] {
        let caches = ListingCaches::new(IndexSettings { max_watches, ..ALWAYS }, None);
        model::run(caches, model::steps() / 10, 100 + max_watches as u64);
    }
}
