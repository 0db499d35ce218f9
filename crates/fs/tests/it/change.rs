//! Changes are atomic.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::IFlags;
use toolcrib_fs::{Change, Committed, FsError, FsErrorKind, Root, RootMode, Step, Workspace};

use crate::Tree;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn commit(steps: Vec<Step>) -> Result<Committed, FsError> {
    let change = Change::new(steps);
    let locks = change.lock()?;
    change.commit(&locks, None)
}

fn replace(tree: &Tree, path: &str, was: &str, now: &str) -> Result<bool, FsErrorKind> {
    let place = tree.resolve(path).unwrap();
    commit(vec![Step::replace(place, was, now)])
        .map(|done| done.files[0].hard_link_broken)
        .map_err(|error| error.kind())
}

#[test]
fn a_replaced_file_keeps_its_mode_and_attributes() {
    let tree = Tree::new();
    let file = tree.path("ws/a/f");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o751)).unwrap();
    let attribute =
        rustix::fs::setxattr(&file, "user.color", b"red", rustix::fs::XattrFlags::empty());
    assert_eq!(replace(&tree, "a/f", "inside", "new"), Ok(false));
    assert_eq!(std::fs::read(&file).unwrap(), b"new");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o751);
    if attribute.is_ok() {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(&file, "user.color", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"red");
    }
    assert_eq!(names(&tree.path("ws/a")), ["f"]);
}

/// Only root can set these attributes, on file systems that have them. Otherwise there is nothing to test.
#[test]
fn immutable_and_append_only_files_are_reported() {
    let tree = Tree::new();
    let file = std::fs::File::open(tree.path("ws/a/f")).unwrap();
    for (attribute, word) in [(IFlags::IMMUTABLE, "immutable"), (IFlags::APPEND, "append-only")] {
        let Ok(before) = rustix::fs::ioctl_getflags(&file) else { return };
        if rustix::fs::ioctl_setflags(&file, before | attribute).is_err() {
            return;
        }
        let place = tree.resolve("a/f").unwrap();
        let outcome = commit(vec![Step::replace(place, "inside", "new")]);
        rustix::fs::ioctl_setflags(&file, before).unwrap();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), FsErrorKind::ReadOnly);
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let tree = Tree::new();
    for was in ["other", "insid", "inside and more"] {
        assert_eq!(replace(&tree, "a/f", was, "new"), Err(FsErrorKind::Stale));
    }
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
    assert_eq!(names(&tree.path("ws/a")), ["f"]);
}

#[test]
fn a_symlink_stays_and_its_target_changes() {
    let tree = Tree::new();
    tree.link("link", "a/f");
    assert_eq!(replace(&tree, "link", "inside", "new"), Ok(false));
    assert!(tree.path("ws/link").is_symlink());
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"new");
}

#[test]
fn another_hard_link_keeps_the_old_content() {
    let tree = Tree::new();
    std::fs::hard_link(tree.path("ws/a/f"), tree.path("out/twin")).unwrap();
    assert_eq!(replace(&tree, "a/f", "inside", "new"), Ok(true));
    assert_eq!(std::fs::read(tree.path("out/twin")).unwrap(), b"inside");
}

#[test]
fn parent_directories_of_a_new_file_are_created() {
    let tree = Tree::new();
    let place = tree.resolve("x/y/z").unwrap();
    commit(vec![Step::create(place, b"new".to_vec())]).unwrap();
    assert_eq!(std::fs::read(tree.path("ws/x/y/z")).unwrap(), b"new");
    assert_eq!(names(&tree.path("ws/x/y")), ["z"]);
}

#[test]
fn a_file_that_was_created_meanwhile_is_not_replaced() {
    let tree = Tree::new();
    let place = tree.resolve("x/y").unwrap();
    std::fs::create_dir(tree.path("ws/x")).unwrap();
    std::fs::write(tree.path("ws/x/y"), "theirs").unwrap();
    let error = commit(vec![Step::create(place, b"new".to_vec())]).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::Stale);
    assert_eq!(std::fs::read(tree.path("ws/x/y")).unwrap(), b"theirs");
    assert_eq!(names(&tree.path("ws/x")), ["y"]);
}

#[test]
fn a_read_only_root_is_not_written() {
    let tree = Tree::new();
    let root = Root::open(tree.path("ws"), RootMode::ReadOnly).unwrap();
    let workspace = Workspace::new(vec![root]).unwrap();
    let place = workspace.resolve(&workspace.top(), Path::new("a/f")).unwrap();
    let step = Step::replace(place, b"inside".to_vec(), b"new".to_vec());
    let error = commit(vec![step]).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::ReadOnly);
}

#[test]
fn a_check_fails_like_a_commit_and_writes_nothing() {
    let tree = Tree::new();
    let check = |was: &str| {
        let place = tree.resolve("a/f").unwrap();
        let step = Step::replace(place, was, b"new".to_vec());
        Change::new(vec![step]).check().map_err(|error| error.kind())
    };
    assert_eq!(check("inside"), Ok(()));
    assert_eq!(check("other"), Err(FsErrorKind::Stale));
    let place = tree.resolve("x/y").unwrap();
    assert!(Change::new(vec![Step::create(place, b"new".to_vec())]).check().is_ok());
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
    assert_eq!(names(&tree.path("ws")), ["a"]);
}

/// Two files change, one is deleted, one is created; the last step fails, so nothing changes.
#[test]
fn a_change_of_several_files_is_atomic() {
    let tree = Tree::new();
    for name in ["one", "two", "three"] {
        std::fs::write(tree.path("ws").join(name), name).unwrap();
    }
    let step = |path: &str, was: Option<&str>, now: Option<&str>| {
        let place = tree.resolve(path).unwrap();
        match (was, now) {
            (Some(was), Some(now)) => Step::replace(place, was, now),
            (Some(was), None) => Step::delete(place, was),
            (None, now) => Step::create(place, now.unwrap()),
        }
    };
    let steps = || {
        vec![
            step("one", Some("one"), Some("1")),
            step("two", Some("two"), None),
            step("new/file", None, Some("new")),
        ]
    };
    let mut bad = steps();
    bad.push(step("three", Some("changed meanwhile"), Some("3")));
    assert_eq!(commit(bad).unwrap_err().kind(), FsErrorKind::Stale);
    assert_eq!(names(&tree.path("ws")), ["a", "one", "three", "two"]);
    assert_eq!(std::fs::read(tree.path("ws/one")).unwrap(), b"one");

    commit(steps()).unwrap();
    assert_eq!(names(&tree.path("ws")), ["a", "new", "one", "three"]);
    assert_eq!(std::fs::read(tree.path("ws/one")).unwrap(), b"1");
    assert_eq!(std::fs::read(tree.path("ws/new/file")).unwrap(), b"new");
}

#[test]
fn a_file_cannot_change_twice_in_one_change() {
    let tree = Tree::new();
    let step = || Step::replace(tree.resolve("a/f").unwrap(), "inside", "new");
    assert!(commit(vec![step(), step()]).is_err());
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"inside");
}
