//! The journal is private to its user, and unexpected files in it neither block nor redirect writes.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use toolcrib_fs::{
    About, Caps, Change, ChangeRecorder, ContentAddressedCache, DecisionRecord, FsErrorKind,
    Journal, Step, Version,
};

use crate::Tree;

fn make(path: &Path, mode: u32) {
    std::fs::DirBuilder::new().recursive(true).create(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn commit(journal: &Journal, step: Step) -> Result<(), toolcrib_fs::FsError> {
    let change = Change::new(vec![step]);
    let locks = change.lock()?;
    change.commit(&locks, Some(ChangeRecorder { journal, about: About::default() })).map(drop)
}

#[test]
fn a_directory_that_others_can_access_is_refused() {
    let tree = Tree::new();
    make(&tree.path("open"), 0o777);
    make(&tree.path("readable"), 0o755);
    make(&tree.path("group"), 0o770);
    make(&tree.path("private"), 0o700);
    make(&tree.path("shared/private"), 0o700);
    make(&tree.path("shared"), 0o777);
    make(&tree.path("sticky/private"), 0o700);
    make(&tree.path("sticky"), 0o1777);
    make(&tree.path("planted/blobs"), 0o777);
    make(&tree.path("planted"), 0o700);
    symlink("private", tree.path("link")).unwrap();
    symlink("sticky", tree.path("link-above")).unwrap();
    std::fs::write(tree.path("file"), "").unwrap();
    let cases = [
        ("open", Some("mode 777")),
        ("readable", Some("chmod 700")),
        ("group", Some("mode 770")),
        ("link", Some("is a symlink")),
        ("link/", Some("is a symlink")),
        ("file", Some("is not a directory")),
        ("shared/private", Some("can be written by other users")),
        ("shared/new", Some("can be written by other users")),
        ("planted", Some("blobs is open to other users")),
        ("private", None),
        ("new", None),
        ("sticky/private", None),
        ("link-above/private", None),
    ];
    for (name, expected) in cases {
        let opened = Journal::open(tree.path(name), Caps::default());
        match (opened, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert_eq!(error.kind(), FsErrorKind::Permission, "{name}: {error}");
                assert!(error.to_string().contains(expected), "{name}: {error}");
            }
            (opened, _) => panic!("{name}: {opened:?}"),
        }
    }
    assert!(ContentAddressedCache::new(tree.path("open")).put(b"x").is_err());
    assert_eq!(tree.path("open").read_dir().unwrap().count(), 0);
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let tree = Tree::new();
    if tree.path("ws").metadata().unwrap().uid() != 0 {
        return; // Only root can give a directory away.
    }
    make(&tree.path("theirs/above"), 0o700);
    for (name, owned) in [("theirs/above", "theirs/above"), ("theirs/above/new", "theirs")] {
        chown(tree.path(owned), Some(1234), None).unwrap();
        let error = Journal::open(tree.path(name), Caps::default()).unwrap_err();
        assert!(error.to_string().contains("belongs to user 1234"), "{error}");
    }
}

/// Creates a file at the first path, which may lead to the second, outside.
type Plant = fn(&Path, &Path);

/// Whatever is at the path of a journal file: nothing blocks on it, and nothing is written through it.
#[test]
fn foreign_files_are_refused_without_blocking() {
    let plants: [(&str, Plant); 4] = [
        ("symlink", |path, out| symlink(out, path).unwrap()),
        ("dangling symlink", |path, _| symlink("/nowhere/at/all", path).unwrap()),
        ("FIFO", |path, _| {
            let status = std::process::Command::new("mkfifo").arg(path).status();
            assert!(status.unwrap().success());
        }),
        ("directory", |path, _| std::fs::create_dir(path).unwrap()),
    ];
    for (what, plant) in plants {
        for name in ["log", "decisions", "lock", "collecting", "last", "blobs/BLOB", "pending/x"] {
            let tree = Tree::new();
            let out = tree.path("out/canary");
            let blob = Version::of(&"inside".into(), 0o644);
            let name = name.replace("BLOB", &blob.hash.to_string());
            for directory in ["state/blobs", "state/pending", "state"] {
                make(&tree.path(directory), 0o700);
            }
            plant(&tree.path("state").join(&name), &out);
            let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
            // Each call fails or works without the file; none blocks.
            let _ = journal.recover(&tree.workspace);
            let _ = journal.changes();
            let _ = journal.content(&blob);
            let decided = journal.record_decision(DecisionRecord::default());
            // The first write of all needs the lock, to store the version of the state.
            let is_needed = ["decisions", "lock"].contains(&name.as_str());
            assert_eq!(decided.is_err(), is_needed, "{what} {name}");
            let _ = journal.decisions();
            let step = Step::replace(tree.resolve("a/f").unwrap(), "inside", "new");
            let made = commit(&journal, step);
            let expected = if made.is_ok() { "new" } else { "inside" };
            assert_eq!(std::fs::read_to_string(tree.path("ws/a/f")).unwrap(), expected);
            let _ = journal.collect();
            assert_eq!(std::fs::read(&out).unwrap(), b"canary", "{what} {name}");
            let must_fail = ["log", "lock", "collecting"].contains(&name.as_str());
            assert!(made.is_err() || !must_fail, "{what} {name}");
        }
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    let tree = Tree::new();
    if tree.path("ws").metadata().unwrap().uid() != 0 {
        return; // Only root can give a file away.
    }
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    commit(&journal, Step::replace(tree.resolve("a/f").unwrap(), "inside", "new")).unwrap();
    chown(tree.path("state/log"), Some(1234), None).unwrap();
    let error = journal.changes().unwrap_err();
    assert!(error.to_string().contains("belongs to user 1234"), "{error}");
}

/// A directory that is removed while a process uses it is created again.
#[test]
fn a_removed_directory_is_created_again() {
    let tree = Tree::new();
    let journal = Journal::open(tree.path("state"), Caps::default()).unwrap();
    commit(&journal, Step::replace(tree.resolve("a/f").unwrap(), "inside", "new")).unwrap();
    std::fs::remove_dir_all(tree.path("state")).unwrap();
    commit(&journal, Step::replace(tree.resolve("a/f").unwrap(), "new", "newer")).unwrap();
    assert_eq!(journal.entries().unwrap().len(), 1);
}
