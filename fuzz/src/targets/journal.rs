//! The journal: whatever damage its bytes have, a change is read unmodified or reported as damaged, a content is
//! unmodified or missing, and no number is assigned twice. This includes a content that is stored as a delta.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use toolcrib_fs::{
    About, Caps, Change, ChangeRecorder, Changes, Entry, Journal, Root, RootMode, Step, Version,
    Workspace,
};

use crate::damage_bytes::damaged;
use crate::test_workspace::scratch;

/// A journal with some changes, as on disk.
struct IntactJournal {
    directory: TempDir,
    log: Vec<u8>,
    /// The content of the file `last`, which has the highest number.
    last: Vec<u8>,
    blob: StoredContent,
    /// The new content of a large file.
    delta: StoredContent,
    entries: Vec<Entry>,
}

/// A content in the journal.
struct StoredContent {
    file: PathBuf,
    /// The bytes of the file.
    stored: Vec<u8>,
    content: Vec<u8>,
    version: Version,
}

const CHANGES: u64 = 8;
/// The changes of a small file. The others are of a large one.
const SMALL_CHANGES: u64 = 6;

/// The number of lines of the large file: enough for the journal to store a delta.
const LARGE_LINES: usize = 200_000;

/// The input describes damage to the log and to a content, and is also used as a log itself.
pub(crate) fn journal(input: &[u8]) -> String {
    static INTACT: OnceLock<IntactJournal> = OnceLock::new();
    let intact = INTACT.get_or_init(make);
    let state = intact.directory.path().join("state");
    let journal = Journal::open(&state, Caps::default()).expect("the journal");
    fs::write(state.join("log"), input).expect("a log");
    let read = journal.changes().expect("a log of any bytes can be read");
    let log = damaged(&intact.log, input);
    fs::write(state.join("log"), &log).expect("a log");
    let Changes { entries, damaged: lost } = journal.changes().expect("a damaged log can be read");
    let are_as_made = entries.iter().all(|entry| intact.entries.contains(entry));
    assert!(are_as_made, "a change was modified");
    let is_known = |id: u64| {
        entries.iter().any(|entry| entry.id == id) || lost.iter().any(|lost| lost.ids.contains(&id))
    };
    assert!(is_known(CHANGES), "the last change is neither read nor reported");
    if let Some(first) = entries.iter().map(|entry| entry.id).min() {
        assert!((first..=CHANGES).all(is_known), "a change is neither read nor reported");
    }
    assert!(log != intact.log || lost.is_empty(), "damage is reported without damage");
    for StoredContent { file, stored, content, version } in [&intact.blob, &intact.delta] {
        fs::write(file, damaged(stored, input)).expect("a content");
        let read = journal.content(version).expect("a damaged content can be read");
        assert!(read.is_none_or(|read| read == *content), "a content was modified");
        fs::write(file, stored).expect("a content");
    }
    let workspace = workspace(&intact.directory);
    let id = change(&journal, &workspace, &intact.directory, "other", "text\n".to_owned());
    assert!(id > CHANGES, "the number {id} is assigned twice");
    fs::write(state.join("last"), &intact.last).expect("a number");
    format!("{} of {CHANGES} read, {} of the input", entries.len(), read.entries.len())
}

fn make() -> IntactJournal {
    let directory = scratch();
    fs::create_dir(directory.path().join("ws")).expect("a workspace");
    let state = directory.path().join("state");
    let journal = Journal::open(&state, Caps::default()).expect("the journal");
    let workspace = workspace(&directory);
    for number in 1..=SMALL_CHANGES {
        let text = format!("text {number}\n");
        assert_eq!(change(&journal, &workspace, &directory, "file", text), number);
    }
    let large = |end: &str| "a line\n".repeat(LARGE_LINES) + end;
    for (number, end) in (SMALL_CHANGES + 1..).zip(["one", "two"]) {
        assert_eq!(change(&journal, &workspace, &directory, "large", large(end)), number);
    }
    let stored = |content: String, suffix| {
        let content = content.into_bytes();
        let version = Version::of(&content.clone().into(), 0o644);
        let file = state.join("blobs").join(format!("{}{suffix}", version.hash));
        let stored = fs::read(&file).expect("a content");
        StoredContent { file, stored, content, version }
    };
    let (blob, delta) = (stored("text 3\n".to_owned(), ""), stored(large("two"), ".delta"));
    let last = fs::read(state.join("last")).expect("a number");
    let log = fs::read(state.join("log")).expect("a log");
    let entries = journal.entries().expect("changes");
    IntactJournal { directory, log, last, blob, delta, entries }
}

fn workspace(directory: &TempDir) -> Workspace {
    let root = Root::open(directory.path().join("ws"), RootMode::ReadWrite).expect("a root");
    Workspace::new(vec![root]).expect("a workspace")
}

/// Makes a change of a file. Returns its number.
fn change(
    journal: &Journal,
    workspace: &Workspace,
    directory: &TempDir,
    name: &str,
    now: String,
) -> u64 {
    let place = workspace.resolve(&workspace.top(), Path::new(name)).expect("a place");
    let step = match fs::read(directory.path().join("ws").join(name)) {
        Ok(was) => Step::replace(place, was, now),
        Err(_) => Step::create(place, now),
    };
    let change = Change::new(vec![step]);
    let locks = change.lock().expect("a lock");
    let recorder =
        ChangeRecorder { journal, about: About { tool: "Edit".into(), ..About::default() } };
    change.commit(&locks, Some(recorder)).expect("a change").id.expect("a number")
}
