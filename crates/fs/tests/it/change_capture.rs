//! Changes of another program are stored before they are made, and become a change in the journal.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib_fs::{
    About, Action, Caps, CaptureClass, CaptureLimits, Change, ChangeCapture, ChangeRecorder,
    ChangedFile, Journal, NotKept, RecoveryOutcome, Settling, SizeLimits, Step, Version, Writer,
    Written,
};

use crate::Tree;

const SETTLING: Settling<'static> = Settling { class: &tracked, has_no_writer: &|_| true };

fn tracked(_: &Path, _: bool) -> CaptureClass {
    CaptureClass::Tracked
}

fn new_capture(tree: &Tree, journal: &Journal, limits: CaptureLimits) -> ChangeCapture {
    let about = About { tool: "Bash".into(), ..About::default() };
    ChangeCapture::new(tree.workspace.clone(), Some(journal.clone()), about, limits)
}

fn actions(files: &[ChangedFile]) -> Vec<(String, Action, Option<&NotKept>)> {
    let name = |file: &ChangedFile| file.path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), file.action, file.lost.as_ref())).collect()
}

#[test]
fn captured_changes_are_recovered_after_a_crash() {
    let tree = Tree::new();
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let root = tree.path("ws").canonicalize().unwrap();
    let capture = new_capture(&tree, &journal, CaptureLimits::default());
    capture.touch(&root.join("a/f"), false, &tracked);
    capture.touch(&root.join("new"), false, &tracked);
    fs::remove_file(root.join("a/f")).unwrap();
    fs::write(root.join("new"), "new").unwrap();
    // A collection in the meantime keeps the noted contents.
    journal.collect().unwrap();
    assert!(journal.recover(&tree.workspace).unwrap().is_empty(), "it goes on");
    drop(capture);

    let recovered = journal.recover(&tree.workspace).unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].outcome, RecoveryOutcome::Finished);
    let entries = journal.entries().unwrap();
    assert_eq!((entries.len(), entries[0].about.tool.as_str()), (1, "Bash"));
    let [gone, new] = entries[0].files.as_slice() else { panic!("{entries:?}") };
    assert_eq!((gone.after, new.before), (None, None));
    let was = journal.content(&gone.before.unwrap()).unwrap().unwrap();
    assert_eq!(was, b"inside");
    assert!(journal.recover(&tree.workspace).unwrap().is_empty(), "once");
    assert_eq!(tree.path("state/followed").read_dir().unwrap().count(), 0);
}

/// After a crash, too, the change ends with the content that the other program found.
#[test]
fn what_others_write_afterwards_is_not_part_of_the_change() {
    for crashes in [false, true] {
        let tree = Tree::new();
        let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
        let root = tree.path("ws").canonicalize().unwrap();
        let capture = new_capture(&tree, &journal, CaptureLimits::default());
        let (changed, other) = (root.join("a/f"), root.join("new"));
        capture.touch(&changed, false, &tracked);
        fs::write(&changed, "by the command").unwrap();
        capture.touch(&other, false, &tracked);
        let written = [&changed, &other].map(|path| Written { path, whole: false });
        capture.take_over(&written, Writer::Command, &SETTLING);
        fs::write(&changed, "by another").unwrap();
        fs::write(&other, "by another").unwrap();
        if crashes {
            drop(capture);
            assert_eq!(journal.recover(&tree.workspace).unwrap().len(), 1);
        } else {
            assert_eq!(capture.settle(false, &SETTLING).files.len(), 1);
        }
        let entries = journal.entries().unwrap();
        let [only] = entries[0].files.as_slice() else { panic!("{entries:?}") };
        assert_eq!(only.path(), changed);
        let after = journal.content(&only.after.unwrap()).unwrap().unwrap();
        assert_eq!(after, b"by the command");
    }
}

fn written(path: &Path) -> [Written<'_>; 1] {
    [Written { path, whole: false }]
}

/// Replaces the content of `a/f`, as a tool of the same or another process does.
fn write_by_tool(tree: &Tree, journal: &Journal, text: &str) {
    let was = fs::read(tree.path("ws/a/f")).ok();
    let place = tree.resolve("a/f").unwrap();
    let change = Change::new(vec![Step::new(place, was.map(Into::into), Some(text.into()))]);
    let about = About { tool: "Edit".into(), ..About::default() };
    let locks = change.lock().unwrap();
    change.commit(&locks, Some(ChangeRecorder { journal, about })).unwrap();
}

/// A capture, and the real path of `a/f`.
fn capture_of_file(tree: &Tree) -> (Journal, ChangeCapture, PathBuf) {
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let capture = new_capture(tree, &journal, CaptureLimits::default());
    (journal, capture, tree.path("ws").canonicalize().unwrap().join("a/f"))
}

/// The changes of commands in `a/f`, in letters for contents. A blank is no file.
fn changes_of_commands(journal: &Journal) -> Vec<String> {
    let entries = journal.entries().unwrap();
    let letter = |version: Option<Version>| {
        let content = version.map(|version| journal.content(&version).unwrap().unwrap());
        content.map_or(" ".to_owned(), |content| String::from_utf8(content).unwrap())
    };
    let own = entries.iter().filter(|entry| entry.about.tool == "Bash");
    own.flat_map(|entry| &entry.files)
        .map(|file| letter(file.before) + &letter(file.after))
        .collect()
}

/// Also if a tool of another process writes the file, which does not call `take_over`.
#[test]
fn what_tools_write_meanwhile_is_not_part_of_the_changes() {
    for is_told in [true, false] {
        for (steps, expected) in [
            ("c1 t2 c3", vec!["01", "23"]),
            ("c1 t2", vec!["01"]),
            ("c  t2 c3", vec!["23"]),
            ("c  t2", vec![]),
            ("c1 t2 t3 c4", vec!["01", "34"]),
            ("c1 t2 c3 t4 c5 t6", vec!["01", "23", "45"]),
            ("c1 t2 c  t4", vec!["01"]),
            ("c- t2", vec!["0 "]),
            ("c1 t2 c-", vec!["01", "2 "]),
            ("c1 t0 c2", vec!["02"]),
        ] {
            let tree = Tree::new();
            let (journal, capture, file) = capture_of_file(&tree);
            fs::write(&file, "0").unwrap();
            for step in steps.as_bytes().chunks(3) {
                let text = std::str::from_utf8(&step[1..2]).unwrap();
                match (step[0], text) {
                    (b't', _) => {
                        if is_told {
                            capture.take_over(&written(&file), Writer::Tool, &SETTLING);
                        }
                        write_by_tool(&tree, &journal, text);
                        continue;
                    }
                    (_, "-") => {
                        capture.touch(&file, false, &tracked);
                        fs::remove_file(&file).unwrap();
                    }
                    // It only opens the file.
                    (_, " ") => capture.touch(&file, false, &tracked),
                    _ => {
                        capture.touch(&file, false, &tracked);
                        fs::write(&file, text).unwrap();
                    }
                }
            }
            let settled = capture.settle(false, &SETTLING);
            assert!(settled.files.iter().all(|file| file.lost.is_none()), "{steps} {is_told}");
            let mut made = changes_of_commands(&journal);
            made.sort_by_key(|change| change.replace(' ', "9"));
            let is_joined = steps == "c1 t0 c2" && is_told;
            let expected = if is_joined { vec!["01", "02"] } else { expected };
            assert_eq!(made, expected, "{steps} {is_told}");
        }
    }
}

#[test]
fn a_failed_write_of_a_tool_changes_nothing() {
    let tree = Tree::new();
    let (journal, capture, file) = capture_of_file(&tree);
    capture.touch(&file, false, &tracked);
    capture.take_over(&written(&file), Writer::Tool, &SETTLING);
    fs::write(&file, "by the command").unwrap();
    assert_eq!(capture.settle(false, &SETTLING).files.len(), 1);
    let before = journal.entries().unwrap()[0].files[0].before.unwrap();
    assert_eq!(journal.content(&before).unwrap().unwrap(), b"inside");
}

#[test]
fn a_removal_that_others_followed_is_recovered_after_a_crash() {
    let tree = Tree::new();
    let (journal, capture, file) = capture_of_file(&tree);
    capture.touch(&file, false, &tracked);
    fs::remove_file(&file).unwrap();
    capture.take_over(&written(&file), Writer::Tool, &SETTLING);
    fs::write(&file, "by the tool").unwrap();
    drop(capture);
    assert_eq!(journal.recover(&tree.workspace).unwrap().len(), 1);
    journal.collect().unwrap();
    let entries = journal.entries().unwrap();
    let [only] = entries[0].files.as_slice() else { panic!("{entries:?}") };
    assert_eq!(only.after, None);
    assert_eq!(journal.content(&only.before.unwrap()).unwrap().unwrap(), b"inside");
}

/// The first of both gets a number at which the journal removes contents that no change names.
#[test]
fn a_collection_keeps_the_contents_of_a_second_change() {
    let tree = Tree::new();
    let (journal, capture, file) = capture_of_file(&tree);
    let write = |text: &str| {
        capture.touch(&file, false, &tracked);
        fs::write(&file, text).unwrap();
    };
    // The tool's change is 63.
    for number in 1..63 {
        write(&number.to_string());
        assert_eq!(capture.settle(false, &SETTLING).ids, [number]);
    }
    write("first");
    write_by_tool(&tree, &journal, "by the tool");
    write("second");
    assert_eq!(capture.settle(false, &SETTLING).ids, [64, 65]);
    let entries = journal.entries().unwrap();
    let again = entries.last().unwrap().files[0].clone();
    let content = |version: Option<_>| journal.content(&version.unwrap()).unwrap().unwrap();
    assert_eq!(content(again.before), b"by the tool");
    assert_eq!(content(again.after), b"second");
}

#[test]
fn each_capture_class_has_its_limits() {
    let tree = Tree::new();
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let root = tree.path("ws").canonicalize().unwrap();
    let ignored_limits = SizeLimits { file_bytes: 10, bytes: 25, files: 3 };
    let limits = CaptureLimits {
        tracked: SizeLimits { bytes: 100, ..ignored_limits },
        ignored: ignored_limits,
    };
    let names = ["1", "2", "3", "4", "large", "none"];
    for name in names {
        let length = if name == "large" { 11 } else { 10 };
        fs::write(root.join(name), "x".repeat(length)).unwrap();
    }
    let capture = new_capture(&tree, &journal, limits);
    let class = |path: &Path, _: bool| {
        if path.ends_with("none") { CaptureClass::Excluded } else { CaptureClass::Ignored }
    };
    names.iter().for_each(|name| capture.touch(&root.join(name), false, &class));
    names.iter().for_each(|name| fs::remove_file(root.join(name)).unwrap());
    let settled = capture.settle(false, &SETTLING);
    let expected = [
        ("1", None),
        ("2", None),
        ("3", Some(NotKept::IgnoredTooMuch(ignored_limits))),
        ("4", Some(NotKept::IgnoredTooMuch(ignored_limits))),
        ("large", Some(NotKept::IgnoredTooLarge { bytes: 11, limit: 10 })),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, lost)| ((*name).to_owned(), Action::Deleted, lost.as_ref()))
        .collect();
    assert_eq!(actions(&settled.files), expected);
    assert!(settled.files.iter().all(|file| file.ignored));
    assert_eq!(journal.entries().unwrap()[0].files.len(), 2);
}

#[test]
fn paths_outside_and_in_read_only_roots_are_not_captured() {
    let tree = Tree::new();
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let capture = new_capture(&tree, &journal, CaptureLimits::default());
    let ws = tree.path("ws").canonicalize().unwrap();
    for path in [tree.path("outside"), "/etc/passwd".into(), ws.clone(), "/".into()] {
        capture.touch(&path, true, &tracked);
    }
    assert_eq!(capture.settle(false, &SETTLING).files, []);
    assert!(!tree.path("state").exists(), "nothing was kept");
}

#[test]
fn without_a_journal_changes_are_detected_but_not_stored() {
    let tree = Tree::new();
    let root = tree.path("ws").canonicalize().unwrap();
    let capture = ChangeCapture::new(
        tree.workspace.clone(),
        None,
        About::default(),
        CaptureLimits::default(),
    );
    capture.touch(&root.join("a/f"), false, &tracked);
    std::thread::sleep(Duration::from_millis(2));
    fs::write(root.join("a/f"), "other").unwrap();
    let settled = capture.settle(false, &SETTLING);
    let lost = NotKept::NoJournal;
    assert_eq!(actions(&settled.files), [("f".to_owned(), Action::Modified, Some(&lost))]);
    assert!(settled.ids.is_empty());
}
