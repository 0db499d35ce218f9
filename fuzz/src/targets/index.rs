//! The index on disk: whatever damage its bytes have, before it is read or while it is in use, a search has the same
//! result as without an index.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toolcrib_fs::{BulkReader, ContentAddressedCache, Root, RootMode, Workspace};
use toolcrib_search::{
    ChunkDecoder, Deadline, Decoded, Decoder, Grep, InThisProcess, IndexSettings, ListingCaches,
    MatchOptions, Pattern, PatternOptions, Walk, grep, walk,
};

use crate::damage_bytes::{damaged, damaged_in_place};
use crate::test_workspace::scratch;

/// A tree with an index in use.
struct Indexed {
    directory: TempDir,
    tree: BulkReader,
    tables: ListingCaches,
    /// The file of the index, and its bytes.
    file: PathBuf,
    bytes: Vec<u8>,
    /// The results of searches without the index.
    found: Vec<Vec<PathBuf>>,
}

const FILES: usize = 60;

const PATTERNS: [&str; 5] = ["text 17 end", "nd", "none", "words of", "text 5"];

const SETTINGS: IndexSettings = IndexSettings {
    least_files: 0,
    least_files_often: 0,
    max_bytes: 1 << 30,
    chunk_bytes: 512,
    max_watches: usize::MAX,
    trial_pause: Duration::from_secs(600),
};

/// The input describes damage to the file.
pub(crate) fn index(input: &[u8]) -> String {
    static INDEXED: OnceLock<Indexed> = OnceLock::new();
    let indexed = INDEXED.get_or_init(make);
    let in_use = damaged_in_place(&indexed.bytes, input);
    let file = fs::OpenOptions::new().write(true).open(&indexed.file).expect("the index");
    file.write_all_at(&in_use, 0).expect("the damaged index");
    assert_eq!(indexed.search(Some(&indexed.tables)), indexed.found, "damaged while in use");
    file.write_all_at(&indexed.bytes, 0).expect("the whole index");

    let bytes = damaged(&indexed.bytes, input);
    let name = indexed.file.parent().and_then(Path::file_name).expect("a name");
    let at_rest = indexed.directory.path().join("at-rest");
    let _ = fs::remove_dir_all(&at_rest);
    let shelf = ContentAddressedCache::new(at_rest.join(name));
    let hash = shelf.put(&bytes).expect("the damaged index");
    // Under the name of its own hash it counts as intact, and must do no harm.
    let tables = ListingCaches::new(SETTINGS, Some(at_rest.clone()));
    let is_taken = tables.index_status(&indexed.tree).files > 0;
    indexed.search(Some(&tables));
    drop(tables);
    shelf.remove(&hash);
    let whole_name = indexed.file.file_name().expect("a name");
    fs::write(at_rest.join(name).join(whole_name), &bytes).expect("the damaged index");
    let tables = ListingCaches::new(SETTINGS, Some(at_rest));
    assert_eq!(indexed.search(Some(&tables)), indexed.found, "damaged at rest");
    match (bytes == indexed.bytes, is_taken) {
        (true, _) => "whole",
        (false, true) => "taken for another index",
        (false, false) => "no index",
    }
    .to_owned()
}

struct Plain;

impl Decoder for Plain {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        Decoded::Text(bytes.into(), None)
    }

    fn pieces(&self, _: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        None
    }
}

impl Indexed {
    /// The files that match each pattern.
    fn search(&self, tables: Option<&ListingCaches>) -> Vec<Vec<PathBuf>> {
        search(&self.tree, tables)
    }
}

fn search(tree: &BulkReader, tables: Option<&ListingCaches>) -> Vec<Vec<PathBuf>> {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
    let asked = asked(tree, &stop);
    let listing = tables.map_or_else(|| walk(&asked), |tables| tables.list(&asked));
    let files = listing.choose(|_| true, |file| !file.is_link());
    let of_pattern = |pattern: &&str| {
        let wanted =
            PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
        let pattern = Pattern::new(wanted, &InThisProcess::shared(), &stop).expect("a pattern");
        let keep = MatchOptions { skip: 0, most: 5, count_to: u64::MAX, before: 0, after: 0 };
        let (listing, letters, stop) = (&listing, &Plain, &stop);
        let search = Grep {
            tree,
            listing,
            pattern: &pattern,
            letters,
            tables,
            max_bytes: 100_000,
            named: false,
            keep,
            stop,
        };
        let mut found = Vec::new();
        grep(&search, &files, |file, _, _| {
            found.push(listing.path(file));
            true
        });
        found
    };
    PATTERNS.iter().map(of_pattern).collect()
}

fn asked<'a>(tree: &'a BulkReader, stop: &'a Deadline<'a>) -> Walk<'a> {
    Walk { tree, start: Path::new(""), ignored: false, named: &[], own: &[], stop }
}

fn make() -> Indexed {
    let directory = scratch();
    let (workspace, shelves) = (directory.path().join("ws"), directory.path().join("index"));
    fs::create_dir(&workspace).expect("a workspace");
    for at in 0..FILES {
        let text = format!("text {at} end\n{}\n", "words of all kinds ".repeat(at % 30));
        fs::write(workspace.join(format!("f{at}")), text).expect("a file");
    }
    // Wait until the files are no longer racy.
    std::thread::sleep(Duration::from_millis(100));
    let root = Root::open(&workspace, RootMode::ReadOnly).expect("a root");
    let tree = BulkReader::around(&Workspace::new(vec![root]).expect("a workspace").top());
    let tables = ListingCaches::new(SETTINGS, Some(shelves.clone()));
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
    tables.build_index(&tree, &tables.list(&asked(&tree, &stop)), &Plain);
    let file = index_file(&shelves).expect("an index in a file");
    let bytes = fs::read(&file).expect("an index");
    let found = search(&tree, None);
    Indexed { directory, tree, tables, file, bytes, found }
}

/// The file of the index.
fn index_file(shelves: &Path) -> Option<PathBuf> {
    let inside = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let files = inside(shelves).into_iter().flat_map(|shelf| inside(&shelf));
    files.into_iter().find(|file| file.file_name() != Some("lock".as_ref()))
}
