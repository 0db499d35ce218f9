//! If the kernel or a container's filter refuses `openat2`, opening by steps gives the same results.

use std::collections::BTreeMap;
use std::path::Path;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use toolcrib_fs::{Change, FsErrorKind, ReadFile, Step};

use crate::Tree;

/// Makes `openat2` fail on this thread, as where it is unknown (ENOSYS) or not allowed (EPERM).
fn forbid_openat2(errno: i32) {
    let rules = BTreeMap::from([(libc::SYS_openat2, vec![])]);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.try_into().unwrap()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

fn kind_of(tree: &Tree, path: impl AsRef<Path>) -> Option<FsErrorKind> {
    let read = tree.resolve(path).and_then(|place| ReadFile::open(&place)?.read_all(100));
    read.err().map(|error| error.kind())
}

fn check(errno: i32) {
    let tree = Tree::new();
    tree.link("inside", "a/f");
    tree.link("dir", "a");
    tree.link("out", tree.path("out/canary"));
    tree.link("dir-out", tree.path("out"));
    forbid_openat2(errno);
    for path in ["a/f", "inside", "dir/f", "a/../a/f", "../ws/a/f"] {
        assert_eq!(kind_of(&tree, path), None, "{path}");
    }
    for path in ["out", "dir-out/canary", "../out/canary"] {
        assert_eq!(kind_of(&tree, path), Some(FsErrorKind::Outside), "{path}");
    }
    assert_eq!(kind_of(&tree, "a/none"), Some(FsErrorKind::NotFound));
    assert_eq!(kind_of(&tree, "a"), Some(FsErrorKind::IsDirectory));

    let change = Change::new(vec![
        Step::replace(tree.resolve("inside").unwrap(), b"inside".to_vec(), b"new".to_vec()),
        Step::create(tree.resolve("x/y").unwrap(), b"made".to_vec()),
    ]);
    let locks = change.lock().unwrap();
    change.commit(&locks, None).unwrap();
    assert_eq!(std::fs::read(tree.path("ws/a/f")).unwrap(), b"new");
    assert_eq!(std::fs::read(tree.path("ws/x/y")).unwrap(), b"made");
}

/// A filter applies to a thread and cannot be removed, so each check has its own thread.
#[test]
fn everything_works_without_openat2() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        std::thread::spawn(move || check(errno)).join().unwrap();
    }
}
