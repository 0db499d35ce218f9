//! Paths that change their kind: file, symlink, directory. Changes are atomic.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use toolcrib_fs::{
    About, Caps, Change, ChangeRecorder, Committed, Content, FsError, FsErrorKind, Journal,
    NewMode, RecoveryOutcome, ResolvedPath, Step,
};

use crate::Tree;

/// The mode, and the content of a file or the target of a symlink.
type Names = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

fn names(tree: &Tree) -> Names {
    let (mut names, mut open) = (Names::new(), vec![tree.path("ws")]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let says = match about.file_type() {
                kind if kind.is_symlink() => {
                    Some(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
                }
                kind if kind.is_file() => Some(fs::read(&path).unwrap()),
                _ => {
                    open.push(path.clone());
                    None
                }
            };
            names.insert(path, (about.permissions().mode(), says));
        }
    }
    names
}

fn entry(tree: &Tree, path: &str) -> ResolvedPath {
    let root = tree.path("ws").canonicalize().unwrap();
    tree.workspace.entry(&root.join(path)).unwrap()
}

fn step(tree: &Tree, path: &str, was: Option<Content>, now: Option<Content>) -> Step {
    let step = Step::new(entry(tree, path), was, now.clone());
    match now.filter(|now| !now.is_link()) {
        Some(_) => step.with_mode(NewMode::Exactly(0o640)),
        None => step,
    }
}

fn commit(tree: &Tree, change: Change) -> Result<Committed, FsError> {
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let locks = change.lock()?;
    let about = About { tool: "Undo".into(), ..About::default() };
    change.commit(&locks, Some(ChangeRecorder { journal: &journal, about }))
}

fn text(text: &str) -> Option<Content> {
    Some(text.as_bytes().into())
}

fn link(target: &str) -> Option<Content> {
    Some(Content::link(target))
}

#[test]
fn a_symlink_is_created_changed_and_removed_without_following_it() {
    let tree = Tree::new();
    let target = |name: &str| fs::read_link(tree.path("ws").join(name)).unwrap();
    commit(&tree, Change::new(vec![step(&tree, "l", None, link("../out/canary"))])).unwrap();
    assert_eq!(target("l"), PathBuf::from("../out/canary"));
    let stale = step(&tree, "l", link("elsewhere"), None);
    let error = commit(&tree, Change::new(vec![stale])).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::Stale);
    let steps = vec![
        step(&tree, "l", link("../out/canary"), link("a/f")),
        step(&tree, "a/f", text("inside"), link("../l")),
    ];
    commit(&tree, Change::new(steps)).unwrap();
    assert_eq!((target("l"), target("a/f")), ("a/f".into(), "../l".into()));
    let steps =
        vec![step(&tree, "l", link("a/f"), None), step(&tree, "a/f", link("../l"), text("inside"))];
    commit(&tree, Change::new(steps)).unwrap();
    assert!(!tree.path("ws/l").exists());
    assert_eq!(fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
    assert_eq!(fs::read(tree.path("out/canary")).unwrap(), b"canary");
}

/// Two directories with files in them, and a symlink.
fn directories() -> Tree {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("ws/d/e")).unwrap();
    fs::set_permissions(tree.path("ws/d/e"), PermissionsExt::from_mode(0o711)).unwrap();
    fs::write(tree.path("ws/d/x"), "x").unwrap();
    tree.link("s", "out");
    tree
}

/// The directories become a file and a symlink, and the symlink becomes a directory.
fn swap(tree: &Tree) -> Change {
    let steps = vec![
        step(tree, "d", None, text("now a file")),
        step(tree, "d/x", text("x"), None),
        step(tree, "s/deep/y", None, text("y")),
        step(tree, "s", link("out"), None),
        step(tree, "a/f", text("inside"), None),
        step(tree, "a", None, link("s")),
    ];
    let gone = ["a", "d", "d/e"].map(|name| entry(tree, name)).to_vec();
    let needed = vec![(entry(tree, "s"), Some(0o750)), (entry(tree, "s/empty"), Some(0o700))];
    Change::new(steps).unneeded_directories(gone).needed_directories(needed)
}

#[test]
fn a_directory_becomes_a_file_and_a_symlink_a_directory() {
    let tree = directories();
    let before = names(&tree);
    swap(&tree).check().unwrap();
    assert_eq!(names(&tree), before, "a check touches nothing");

    // A file that the change does not know is in the way: nothing changes.
    fs::write(tree.path("ws/d/e/other"), "").unwrap();
    let with_other = names(&tree);
    let error = commit(&tree, swap(&tree)).unwrap_err();
    assert!(error.to_string().contains("d/e"), "{error}");
    assert_eq!(names(&tree), with_other);
    fs::remove_file(tree.path("ws/d/e/other")).unwrap();

    commit(&tree, swap(&tree)).unwrap();
    let after = names(&tree);
    let at = |name: &str| after.get(&tree.path("ws").join(name)).cloned();
    assert_eq!(at("d"), Some((0o100_640, Some(b"now a file".to_vec()))));
    assert_eq!(at("s/deep/y").unwrap().1, Some(b"y".to_vec()));
    assert_eq!((at("s").unwrap().0, at("s/empty").unwrap().0), (0o40_750, 0o40_700));
    assert_eq!(at("a").unwrap().1, Some(b"s".to_vec()));

    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    let done = journal.entries().unwrap().pop().unwrap();
    let removed: Vec<PathBuf> = done.removed.iter().map(|kept| kept.path()).collect();
    let root = tree.path("ws").canonicalize().unwrap();
    assert_eq!(removed, ["a", "d", "d/e"].map(|name| root.join(name)));
    let made: Vec<PathBuf> = done.directories.iter().map(|kept| kept.path()).collect();
    assert_eq!(made, ["s", "s/deep", "s/empty"].map(|name| root.join(name)));
}

/// A crash after each part of such a change: the next start restores the previous state.
#[test]
fn an_interrupted_swap_is_reverted() {
    let parts: [&dyn Fn(&Tree); 6] = [
        &|tree| fs::remove_file(tree.path("ws/d/x")).unwrap(),
        &|tree| fs::remove_file(tree.path("ws/s")).unwrap(),
        &|tree| fs::remove_file(tree.path("ws/a/f")).unwrap(),
        &|tree| {
            ["d/e", "d", "a"].iter().for_each(|name| {
                fs::remove_dir(tree.path("ws").join(name)).unwrap();
            });
        },
        &|tree| {
            ["deep", "empty"].iter().for_each(|name| {
                fs::create_dir_all(tree.path("ws/s").join(name)).unwrap();
            });
        },
        &|tree| fs::write(tree.path("ws/d"), "now a file").unwrap(),
    ];
    for done in 0..=parts.len() {
        let tree = directories();
        let before = names(&tree);
        // Committed once to get its line, which is then put where a crash leaves it.
        commit(&tree, swap(&tree)).unwrap();
        fs::rename(tree.path("state/log"), tree.path("state/pending/0123")).unwrap();
        fs::remove_dir_all(tree.path("ws/s")).unwrap();
        ["a", "d"].iter().for_each(|name| fs::remove_file(tree.path("ws").join(name)).unwrap());
        for directory in ["a", "d/e"] {
            fs::create_dir_all(tree.path("ws").join(directory)).unwrap();
        }
        fs::set_permissions(tree.path("ws/d/e"), PermissionsExt::from_mode(0o711)).unwrap();
        fs::write(tree.path("ws/d/x"), "x").unwrap();
        fs::write(tree.path("ws/a/f"), "inside").unwrap();
        tree.link("s", "out");
        assert_eq!(names(&tree), before);
        parts[..done].iter().for_each(|part| part(&tree));

        let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
        let recovered = journal.recover(&tree.workspace).unwrap();
        assert_eq!(recovered.len(), 1, "{done}");
        assert_eq!(recovered[0].outcome, RecoveryOutcome::Reverted, "{done}");
        assert_eq!(names(&tree), before, "after {done} parts");
        assert_eq!(journal.recover(&tree.workspace).unwrap(), []);
    }
}
