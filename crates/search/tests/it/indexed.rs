//! A search with an index gives the same result as one without: the same files, lines and numbers.

use std::fs;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use toolcrib_search::{
    ChunkDecoder, Deadline, Decoded, Decoder, Grep, InThisProcess, IndexSettings, LineMatches,
    ListingCaches, MatchOptions, Pattern, PatternOptions, Searched, grep,
};

use crate::patterns::any_pattern;
use crate::random::Random;
use crate::tree::TestTree;

/// A partial decoder: text that is not UTF-8 is Latin-1, a NUL after the first byte makes a file binary, and
/// lines may end with `\r`.
pub(crate) struct PartialDecoder;

impl Decoder for PartialDecoder {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        if bytes.iter().skip(1).any(|byte| *byte == 0) {
            return Decoded::Binary;
        }
        let is_latin = std::str::from_utf8(bytes).is_err();
        let letters: String = if is_latin {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        } else {
            String::from_utf8_lossy(bytes).into_owned()
        };
        let letters = if letters.contains('\n') { letters } else { letters.replace('\r', "\n") };
        Decoded::Text(letters.into_bytes().into(), is_latin.then_some("Latin-1"))
    }

    fn pieces(&self, _beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        None
    }
}

/// The complete result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SearchResult {
    pub(crate) found: Vec<(String, LineMatches)>,
    stats: Searched,
    /// The mtime of each file.
    modified: Vec<Option<(i64, i64)>>,
}

pub(crate) const ALWAYS: IndexSettings = IndexSettings {
    least_files: 0,
    least_files_often: 0,
    max_bytes: 1 << 30,
    chunk_bytes: 512,
    max_watches: usize::MAX,
    trial_pause: Duration::from_secs(600),
};

/// Waits until files that were just written are old enough to be indexed.
pub(crate) fn wait_until_not_racy() {
    sleep(Duration::from_millis(70));
}

/// Searches with the caches, or on a fresh walk.
pub(crate) fn search(
    tree_dir: &TestTree,
    options: PatternOptions<'_>,
    caches: Option<&ListingCaches>,
) -> Option<SearchResult> {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(600), &never);
    let pattern = Pattern::new(options, &InThisProcess::shared(), &stop).ok()?;
    tree_dir.with_listing(caches, |listing| {
        let search = Grep {
            tree: &tree_dir.tree,
            listing,
            pattern: &pattern,
            letters: &PartialDecoder,
            tables: caches,
            max_bytes: 100_000,
            named: false,
            keep: MatchOptions { skip: 0, most: 5, count_to: u64::MAX, before: 1, after: 1 },
            stop: &stop,
        };
        let files = listing.files();
        let mut found = Vec::new();
        let stats = grep(&search, &files, |file, hits, _| {
            found.push((listing.path(file).display().to_string(), hits));
            true
        });
        Some(SearchResult {
            found,
            stats,
            modified: toolcrib_search::mtimes(&tree_dir.tree, listing, &files),
        })
    })
}

fn words(seed: u64, count: usize) -> String {
    const PIECES: [&str; 24] = [
        "a", "b", "c", "k", "K", "\u{212a}", "s", "S", "\u{17f}", "é", "ß", "漢", "1", "_", " ",
        "\t", "\n", "\r\n", "(", "abc", "bcd", "ask", "sk ", "abcab",
    ];
    let mut random = Random::new(seed);
    (0..count).map(|_| random.one_of(&PIECES)).collect()
}

/// An indexed tree of texts of all kinds.
fn indexed() -> &'static (TestTree, ListingCaches) {
    static TREE: OnceLock<(TestTree, ListingCaches)> = OnceLock::new();
    TREE.get_or_init(|| {
        let tree_dir = TestTree::new();
        let write =
            |name: String, bytes: &[u8]| fs::write(tree_dir.path().join(name), bytes).unwrap();
        for at in 0..40 {
            write(format!("small{at}"), words(at as u64, at * 3).as_bytes());
            write(format!("large{at}"), words(100 + at as u64, 2_000 + 300 * at).as_bytes());
        }
        let text = words(7, 900);
        write("bom".into(), format!("\u{feff}{text}").as_bytes());
        write("marks".into(), format!("{text}\n\u{feff}abc\n{text}").as_bytes());
        write("latin".into(), &[b"abc \xe9 ask\n", text.as_bytes()].concat());
        write("binary".into(), &[b"abc\0ask\n", text.as_bytes()].concat());
        write("strange".into(), &[b"\0abc ask\n", text.as_bytes()].concat());
        write("returns".into(), text.replace(['\n', '\r'], "\r").as_bytes());
        write("one-line".into(), text.replace(['\n', '\r'], " ").as_bytes());
        write("empty".into(), b"");
        write("two".into(), b"ab");
        write("too-large".into(), words(3, 90_000).as_bytes());
        wait_until_not_racy();
        let caches = ListingCaches::new(ALWAYS, None);
        tree_dir.with_listing(Some(&caches), |listing| {
            caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
        });
        let status = caches.index_status(&tree_dir.tree);
        assert_eq!((status.files, status.building, status.full), (91, false, false));
        (tree_dir, caches)
    })
}

proptest! {
    #[test]
    fn results_are_the_same_as_without_an_index(
        pattern in any_pattern(),
        literal: bool,
        ignore_case: bool,
        multiline: bool,
    ) {
        let (tree_dir, caches) = indexed();
        let options = PatternOptions { pattern: &pattern, literal, ignore_case, multiline };
        prop_assert_eq!(search(tree_dir, options, Some(caches)), search(tree_dir, options, None));
    }
}

#[test]
fn words_of_every_file_are_found_as_without_an_index() {
    let (tree_dir, caches) = indexed();
    let mut found = 0;
    for (seed, length) in [(100, 4), (101, 9), (117, 5), (139, 7), (7, 3), (7, 2)] {
        let text: Vec<char> = words(seed, 2_000).chars().collect();
        for piece in text.chunks(length).take(30) {
            let piece: String = piece.iter().collect();
            for multiline in [false, true] {
                let options = PatternOptions {
                    pattern: &piece,
                    literal: true,
                    ignore_case: false,
                    multiline,
                };
                let result = search(tree_dir, options, Some(caches));
                found +=
                    usize::from(result.as_ref().is_some_and(|result| !result.found.is_empty()));
                assert_eq!(result, search(tree_dir, options, None), "{piece:?}");
            }
        }
    }
    assert!(found > 120, "{found}");
}

#[test]
fn a_change_that_keeps_name_size_and_mtime_is_found() {
    let tree_dir = TestTree::new();
    let caches = ListingCaches::new(ALWAYS, None);
    let file = tree_dir.path().join("f");
    fs::write(&file, "the first text\n").unwrap();
    wait_until_not_racy();
    tree_dir.with_listing(Some(&caches), |listing| {
        caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
    });
    let options =
        |pattern| PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
    let count = |pattern| search(&tree_dir, options(pattern), Some(&caches)).unwrap().found.len();
    assert_eq!((count("first"), count("other")), (1, 0));
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "the other text\n").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    assert_eq!((count("first"), count("other")), (0, 1));
}

#[test]
fn an_index_without_room_does_not_change_results() {
    let tree_dir = TestTree::new();
    for at in 0..50 {
        fs::write(tree_dir.path().join(format!("f{at}")), words(at, 500)).unwrap();
    }
    wait_until_not_racy();
    let caches = ListingCaches::new(IndexSettings { max_bytes: 1, ..ALWAYS }, None);
    tree_dir.with_listing(Some(&caches), |listing| {
        caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
    });
    let status = caches.index_status(&tree_dir.tree);
    assert!(status.full && status.files == 0, "{status:?}");
    let options =
        PatternOptions { pattern: "abc", literal: true, ignore_case: false, multiline: false };
    assert_eq!(search(&tree_dir, options, Some(&caches)), search(&tree_dir, options, None));
}

#[test]
fn undecided_lines_of_a_partly_read_file_are_reported() {
    let tree_dir = TestTree::new();
    // In one of many chunks, a line on which the pattern backtracks too much.
    let line = format!("needle {}-b\n", "a".repeat(40));
    let text = format!("{}{line}", "other words\n".repeat(500));
    fs::write(tree_dir.path().join("f"), text).unwrap();
    wait_until_not_racy();
    let caches = ListingCaches::new(ALWAYS, None);
    tree_dir.with_listing(Some(&caches), |listing| {
        caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
    });
    let pattern = r"needle (?=(?:(a|aa)+\1)+b)";
    let options = PatternOptions { pattern, literal: false, ignore_case: false, multiline: false };
    let result = search(&tree_dir, options, None);
    assert_eq!(result.as_ref().map(|result| result.stats.undecided), Some(1));
    assert_eq!(search(&tree_dir, options, Some(&caches)), result);
}
