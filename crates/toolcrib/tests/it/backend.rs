//! The raw operations that the protocols of other programs need.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use toolcrib::backend::WriteOptions;
use toolcrib::{ErrorKind, Options, Runtime};

#[test]
fn an_open_file_stays_the_same_when_it_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let session = runtime.session();
    let backend = runtime.backend(&session, Options::default());
    backend.write("a.txt", b"before".to_vec(), WriteOptions::default()).unwrap();
    let file = backend.open("a.txt").unwrap();
    backend.write("a.txt", b"after it".to_vec(), WriteOptions::default()).unwrap();
    assert_eq!((file.size(), file.read(0, 100).unwrap()), (6, b"before".to_vec()));
    assert_eq!(file.read(3, 2).unwrap(), b"or");
    backend.remove("a.txt", false, false).unwrap();
    assert_eq!(file.read(5, 100).unwrap(), b"e");
    assert_eq!(backend.open("a.txt").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_gets_the_mode_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let session = runtime.session();
    let backend = runtime.backend(&session, Options::default());
    for mode in [0o600, 0o755, 0o640, 0o4777] {
        let options = WriteOptions { mode: Some(mode), ..WriteOptions::default() };
        backend.write("a.txt", b"same".to_vec(), options).unwrap();
        let found = std::fs::metadata(directory.path().join("a.txt")).unwrap().permissions();
        assert_eq!(found.mode() & 0o7777, mode & 0o777);
        let listed = backend.list(".").unwrap().entries;
        assert_eq!(listed[0].mode, mode & 0o777);
    }
}

#[test]
fn paths_can_be_limited_to_the_roots() {
    let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    std::fs::write(directory.path().join("a.txt"), "a").unwrap();
    symlink(outside.path(), directory.path().join("link")).unwrap();
    symlink("a.txt", directory.path().join("inside")).unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let session = runtime.session();
    let backend = runtime.backend(&session, Options::default()).roots_only();
    assert_eq!(backend.read("inside", 0, None).unwrap().bytes, b"a");
    for path in ["link/secret", "link", "/etc/passwd", "/tmp", "../x"] {
        let refused = [
            backend.read(path, 0, None).map(drop),
            backend.open(path).map(drop),
            backend.stat(path, true).map(drop),
            backend.list(path).map(drop),
        ];
        for refused in refused {
            let kind = refused.unwrap_err().kind();
            assert!(
                matches!(kind, ErrorKind::OutsideWorkspace | ErrorKind::Denied),
                "{path} {kind:?}"
            );
        }
    }
}
