//! The content of the journal, and recovery of interrupted changes.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use toolcrib_fs::RecoveryOutcome as Outcome;
use toolcrib_fs::{About, Caps, Change, ChangeRecorder, HardLinks, Journal, Step, Version};

use crate::Tree;

fn journal(tree: &Tree, caps: Caps) -> Journal {
    Journal::open(tree.path("state"), caps).unwrap()
}

fn commit(journal: &Journal, steps: Vec<Step>) -> u64 {
    let about = About { tool: "Edit".into(), rule: "test".into(), ..About::default() };
    let change = Change::new(steps);
    let locks = change.lock().unwrap();
    change.commit(&locks, Some(ChangeRecorder { journal, about })).unwrap().id.unwrap()
}

/// Creates directories with the mode that the journal uses.
fn make_private(path: &Path) {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).unwrap();
}

fn replace(tree: &Tree, path: &str, was: &str, now: &str) -> Step {
    Step::replace(tree.resolve(path).unwrap(), was, now)
}

#[test]
fn the_journal_stores_old_and_new_contents() {
    let tree = Tree::new();
    let journal = journal(&tree, Caps::default());
    assert_eq!(commit(&journal, vec![replace(&tree, "a/f", "inside", "new")]), 1);
    assert_eq!(commit(&journal, vec![replace(&tree, "a/f", "new", "newer")]), 2);
    let entries = journal.entries().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].about.tool, "Edit");
    let file = &entries[0].files[0];
    assert_eq!(file.path(), tree.path("ws/a/f").canonicalize().unwrap());
    let content = |version: Version| journal.content(&version).unwrap().unwrap();
    assert_eq!(content(file.before.unwrap()), b"inside");
    assert_eq!(content(file.after.unwrap()), b"new");
    let blobs = tree.path("state/blobs").read_dir().unwrap().count();
    assert_eq!(blobs, 3, "what one change brings and the next replaces is kept once");
    assert_eq!(tree.path("state/pending").read_dir().unwrap().count(), 0);
}

#[test]
fn the_journal_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::new();
    let journal = journal(&tree, Caps::default());
    assert_eq!(journal.entries().unwrap(), []);
    assert!(!tree.path("state").exists(), "nothing is made before there is something to keep");
    commit(&journal, vec![replace(&tree, "a/f", "inside", "new")]);
    assert_eq!(tree.path("state").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

/// A small file is changed many times; then only changes within the limits are kept.
#[test]
fn changes_over_the_limits_are_removed() {
    let tree = Tree::new();
    let small = Caps { bytes: 2_000, ..Caps::default() };
    let kept = journal(&tree, small);
    let mut was = "inside".to_owned();
    for round in 0..200 {
        let now = format!("round {round}");
        commit(&kept, vec![replace(&tree, "a/f", &was, &now)]);
        was = now;
    }
    kept.collect().unwrap();
    let entries = kept.entries().unwrap();
    assert!(entries.len() < 100 && entries.last().unwrap().id == 200, "{}", entries.len());
    let blobs = tree.path("state/blobs").read_dir().unwrap();
    let bytes: u64 = blobs.map(|blob| blob.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 2_500, "{bytes}");

    let old = journal(&tree, Caps { age: Duration::ZERO, ..Caps::default() });
    std::thread::sleep(Duration::from_millis(5));
    old.collect().unwrap();
    assert_eq!(old.entries().unwrap().len(), 1, "the newest is kept");
}

/// Builds the state that a kill leaves behind: the note of a change of two files, of which none, one or both
/// have been put in place.
#[test]
fn an_interrupted_change_is_completed_or_reverted() {
    for (first, second, finished) in
        [(false, false, false), (true, false, false), (false, true, false), (true, true, true)]
    {
        let tree = Tree::new();
        std::fs::write(tree.path("ws/g"), "other").unwrap();
        let journal = journal(&tree, Caps::default());
        let steps =
            || vec![replace(&tree, "a/f", "inside", "new"), replace(&tree, "g", "other", "newer")];
        // Committed once to get its line, which is then moved from the log to where a crash leaves it.
        commit(&journal, steps());
        let line = std::fs::read(tree.path("state/log")).unwrap();
        std::fs::write(tree.path("state/pending/0123"), &line).unwrap();
        std::fs::remove_file(tree.path("state/log")).unwrap();
        let stands = |path: &str, new: bool, (old, now)| {
            std::fs::write(tree.path(path), if new { now } else { old }).unwrap();
        };
        stands("ws/a/f", first, ("inside", "new"));
        stands("ws/g", second, ("other", "newer"));
        std::fs::write(tree.path("ws/a/.toolcrib-0123456789abcdef.tmp"), "stray").unwrap();

        let recovered = journal.recover(&tree.workspace).unwrap();
        assert_eq!(recovered.len(), 1);
        let outcome = if finished { Outcome::Finished } else { Outcome::Reverted };
        assert_eq!((&recovered[0].outcome, recovered[0].left_alone.len()), (&outcome, 0));
        let content = |path: &str| std::fs::read_to_string(tree.path(path)).unwrap();
        let expected = if finished { ("new", "newer") } else { ("inside", "other") };
        assert_eq!((content("ws/a/f").as_str(), content("ws/g").as_str()), expected);
        assert_eq!(journal.entries().unwrap().len(), usize::from(finished));
        assert!(!tree.path("ws/a/.toolcrib-0123456789abcdef.tmp").exists());
        assert_eq!(journal.recover(&tree.workspace).unwrap(), []);
    }
}

#[test]
fn files_changed_after_the_crash_are_not_restored() {
    let tree = Tree::new();
    std::fs::write(tree.path("ws/g"), "other").unwrap();
    let journal = journal(&tree, Caps::default());
    commit(
        &journal,
        vec![replace(&tree, "a/f", "inside", "new"), replace(&tree, "g", "other", "newer")],
    );
    std::fs::rename(tree.path("state/log"), tree.path("state/pending/0123")).unwrap();
    std::fs::write(tree.path("ws/g"), "by hand").unwrap();
    let recovered = journal.recover(&tree.workspace).unwrap();
    assert_eq!(recovered[0].left_alone, [tree.path("ws/g").canonicalize().unwrap()]);
    assert_eq!(std::fs::read(tree.path("ws/g")).unwrap(), b"by hand");
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
}

#[test]
fn hard_links_are_written_through_on_request() {
    let tree = Tree::new();
    std::fs::hard_link(tree.path("ws/a/f"), tree.path("ws/twin")).unwrap();
    let journal = journal(&tree, Caps::default());
    let change = Change::new(vec![replace(&tree, "a/f", "inside", "longer than before")])
        .hard_links(HardLinks::WriteThrough);
    let locks = change.lock().unwrap();
    let recorder = ChangeRecorder { journal: &journal, about: About::default() };
    let committed = change.commit(&locks, Some(recorder)).unwrap();
    assert!(committed.files[0].in_place && !committed.files[0].hard_link_broken);
    assert_eq!(std::fs::read(tree.path("ws/twin")).unwrap(), b"longer than before");
    assert!(journal.entries().unwrap()[0].files[0].in_place);
}

/// A crash between the line in the log and the removal of the note leaves both. The change must not be added
/// twice.
#[test]
fn a_change_that_is_in_the_log_is_not_added_again() {
    let tree = Tree::new();
    let journal = journal(&tree, Caps::default());
    commit(&journal, vec![replace(&tree, "a/f", "inside", "new")]);
    std::fs::copy(tree.path("state/log"), tree.path("state/pending/0123")).unwrap();
    std::fs::write(tree.path("ws/a/f"), "edited since").unwrap();
    let recovered = journal.recover(&tree.workspace).unwrap();
    assert_eq!(recovered[0].outcome, Outcome::Finished);
    assert_eq!(journal.entries().unwrap().len(), 1);
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"edited since");
}

#[test]
fn a_damaged_content_is_stored_again() {
    let tree = Tree::new();
    let journal = journal(&tree, Caps::default());
    commit(&journal, vec![replace(&tree, "a/f", "inside", "new")]);
    for blob in tree.path("state/blobs").read_dir().unwrap() {
        std::fs::write(blob.unwrap().path(), "damaged").unwrap();
    }
    commit(&journal, vec![replace(&tree, "a/f", "new", "inside")]);
    for text in ["new", "inside"] {
        let version = Version::of(&text.into(), 0o644);
        assert_eq!(journal.content(&version).unwrap().as_deref(), Some(text.as_bytes()));
    }
}

/// The log cannot be written, so the change is reverted: a replaced, a deleted and a created file.
#[test]
fn a_change_that_cannot_be_logged_is_reverted() {
    let tree = Tree::new();
    std::fs::write(tree.path("ws/g"), "other").unwrap();
    make_private(&tree.path("state/log"));
    let journal = journal(&tree, Caps::default());
    let change = Change::new(vec![
        replace(&tree, "a/f", "inside", "new"),
        Step::delete(tree.resolve("g").unwrap(), b"other".to_vec()),
        Step::create(tree.resolve("x/y").unwrap(), b"made".to_vec()),
    ]);
    let locks = change.lock().unwrap();
    let recorder = ChangeRecorder { journal: &journal, about: About::default() };
    assert!(change.commit(&locks, Some(recorder)).is_err());
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
    assert_eq!(std::fs::read(tree.path("ws/g")).unwrap(), b"other");
    assert!(!tree.path("ws/x").exists());
    assert_eq!(tree.path("state/pending").read_dir().unwrap().count(), 0);
}

/// More files and directories than are held open at once: all change, and if one of the last fails, none
/// does.
#[test]
fn a_change_of_many_files_is_atomic() {
    let tree = Tree::new();
    let journal = journal(&tree, Caps::default());
    let name = |number: usize| format!("many/d{}/f{number}", number % 100);
    let create = |number| Step::create(tree.resolve(name(number)).unwrap(), "one");
    assert_eq!(commit(&journal, (0..300).map(create).collect()), 1);
    let entries = || {
        let all = (0..300).map(|number| std::fs::read(tree.path("ws").join(name(number))).unwrap());
        all.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(entries(), [b"one".to_vec()].into());
    let steps = || (0..300).map(|number| replace(&tree, &name(number), "one", "two"));
    let change = Change::new(steps().collect());
    let locks = change.lock().unwrap();
    // The log cannot be written, which shows when every file is new.
    std::fs::rename(tree.path("state/log"), tree.path("state/log.aside")).unwrap();
    make_private(&tree.path("state/log"));
    let recorder = ChangeRecorder { journal: &journal, about: About::default() };
    assert!(change.commit(&locks, Some(recorder)).is_err());
    assert_eq!(entries(), [b"one".to_vec()].into());
    std::fs::remove_dir(tree.path("state/log")).unwrap();
    std::fs::rename(tree.path("state/log.aside"), tree.path("state/log")).unwrap();
    assert_eq!(commit(&journal, steps().collect()), 2);
    assert_eq!(entries(), [b"two".to_vec()].into());
    assert_eq!(tree.path("state/pending").read_dir().unwrap().count(), 0);
}

/// The paths and bytes of all files below a directory.
fn files_below(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push((path.clone(), std::fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

/// A newer program raised the state while this one was running.
#[test]
fn a_journal_that_became_newer_is_neither_read_nor_written() {
    let tree = Tree::new();
    let journal = journal(&tree, Caps { bytes: 0, age: Duration::ZERO, ..Caps::default() });
    commit(&journal, vec![replace(&tree, "a/f", "inside", "new")]);
    std::fs::write(tree.path("state/version"), "toolcrib state 999, written by 0.9.0\n").unwrap();
    let before = files_below(&tree.path("state"));
    let change = Change::new(vec![replace(&tree, "a/f", "new", "newer")]);
    let locks = change.lock().unwrap();
    let about = About { tool: "Edit".into(), ..About::default() };
    let committed = change.commit(&locks, Some(ChangeRecorder { journal: &journal, about }));
    let errors = [
        committed.map(drop).unwrap_err(),
        journal.entries().map(drop).unwrap_err(),
        journal.collect().unwrap_err(),
        journal.check_decisions().unwrap_err(),
        Journal::open(tree.path("state"), Caps::default()).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(error.detail().contains("use toolcrib 0.9.0 or newer"), "{error}");
    }
    assert_eq!(files_below(&tree.path("state")), before);
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"new");
}
