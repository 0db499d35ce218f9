//! Confinement of paths to the roots.

use std::path::Path;
use std::sync::Arc;

use toolcrib_fs::{ForbiddenFiles, FsErrorKind, ReadFile, Root, RootKind, RootMode, Workspace};

use crate::Tree;

fn read(tree: &Tree, path: impl AsRef<Path>) -> Result<String, FsErrorKind> {
    let read = || {
        let bytes = ReadFile::open(&tree.resolve(path)?)?.read_all(100)?;
        Ok(String::from_utf8(bytes).unwrap())
    };
    read().map_err(|error: toolcrib_fs::FsError| error.kind())
}

#[test]
fn all_spellings_of_a_path_inside_are_the_same_file() {
    let tree = Tree::new();
    let absolute = tree.path("ws/a/f");
    let detour = tree.path("ws/../ws/a/f");
    let spellings = [
        "a/f",
        "./a//f",
        "a/../a/f",
        "../ws/a/f",
        absolute.to_str().unwrap(),
        detour.to_str().unwrap(),
    ];
    for spelling in spellings {
        assert_eq!(read(&tree, spelling), Ok("inside".into()), "{spelling}");
    }
}

#[test]
fn a_path_outside_is_refused_in_every_spelling() {
    let tree = Tree::new();
    let spellings = [
        Path::new("../out/canary"),
        Path::new("a/../../out/canary"),
        Path::new(".."),
        Path::new("/"),
        Path::new("/etc/passwd"),
        Path::new("/proc/self/root/etc/passwd"),
        &tree.path("out/canary"),
        &tree.path("ws-evil/secret"),
        &tree.path("ws/../out/canary"),
        &tree.path("out/no-such-file"),
    ];
    for spelling in spellings {
        assert_eq!(read(&tree, spelling), Err(FsErrorKind::Outside), "{spelling:?}");
    }
}

#[test]
fn symlinks_that_stay_inside_are_followed() {
    let tree = Tree::new();
    tree.link("relative", "a/f");
    tree.link("absolute", tree.path("ws/a/f"));
    tree.link("dir", "a");
    tree.link("chain", "dir/../relative");
    for link in ["relative", "absolute", "dir/f", "chain", "dir/../a/f"] {
        assert_eq!(read(&tree, link), Ok("inside".into()), "{link}");
    }
    assert!(tree.resolve("chain").unwrap().through_link());
    assert_eq!(tree.resolve("dir/f").unwrap().relative(), Path::new("a/f"));
}

#[test]
fn dot_dot_after_a_symlink_is_the_parent_of_its_target() {
    let tree = Tree::new();
    std::fs::create_dir_all(tree.path("ws/x/y")).unwrap();
    std::fs::write(tree.path("ws/x/near"), "near").unwrap();
    tree.link("deep", "x/y");
    assert_eq!(read(&tree, "deep/../near"), Ok("near".into()));
}

#[test]
fn symlinks_that_lead_outside_are_refused_and_named() {
    let tree = Tree::new();
    tree.link("file", tree.path("out/canary"));
    tree.link("dir", tree.path("out"));
    tree.link("climb", "../out/canary");
    tree.link("dangling", tree.path("out/created"));
    tree.link("magic", "/proc/self/cwd");
    for path in ["file", "dir/canary", "climb", "dangling", "magic/etc"] {
        let error = tree.resolve(path).unwrap_err();
        assert_eq!(error.kind(), FsErrorKind::Outside, "{path}");
        let link = path.split('/').next().unwrap();
        assert!(error.detail().contains(link), "{error}");
    }
}

#[test]
fn a_symlink_loop_fails() {
    let tree = Tree::new();
    tree.link("loop", "loop");
    assert_eq!(read(&tree, "loop"), Err(FsErrorKind::Io));
}

#[test]
fn other_kinds_of_files_are_refused_without_blocking() {
    let tree = Tree::new();
    let made = std::process::Command::new("mkfifo").arg(tree.path("ws/fifo")).status().unwrap();
    assert!(made.success());
    std::os::unix::net::UnixListener::bind(tree.path("ws/socket")).unwrap();
    assert_eq!(read(&tree, "fifo"), Err(FsErrorKind::NotRegular));
    assert_eq!(read(&tree, "socket"), Err(FsErrorKind::NotRegular));
    assert_eq!(read(&tree, "a"), Err(FsErrorKind::IsDirectory));
    assert_eq!(read(&tree, "."), Err(FsErrorKind::IsDirectory));
    assert_eq!(read(&tree, "none"), Err(FsErrorKind::NotFound));
    assert_eq!(read(&tree, "a/f/g"), Err(FsErrorKind::NotFound));
    assert_eq!(read(&tree, "a/f/../f"), Err(FsErrorKind::NotFound));
}

#[test]
fn a_path_belongs_to_the_innermost_root() {
    let tree = Tree::new();
    let outer = Root::open(tree.top.path(), RootMode::ReadOnly).unwrap();
    let inner = Root::open(tree.path("ws"), RootMode::ReadWrite).unwrap();
    let workspace = Workspace::new(vec![outer, inner]).unwrap();
    let mode =
        |path: &str| workspace.resolve(&workspace.top(), Path::new(path)).unwrap().root().mode();
    assert_eq!(mode("ws/a/f"), RootMode::ReadWrite);
    assert_eq!(mode("ws/new"), RootMode::ReadWrite);
    assert_eq!(mode("out/canary"), RootMode::ReadOnly);
}

#[test]
fn a_root_cannot_be_both_writable_and_read_only() {
    let tree = Tree::new();
    let root = |mode| Root::open(tree.path("ws"), mode).unwrap();
    assert!(Workspace::new(vec![root(RootMode::ReadOnly), root(RootMode::ReadWrite)]).is_err());
    assert!(Workspace::new(vec![root(RootMode::ReadOnly), root(RootMode::ReadOnly)]).is_ok());
}

#[test]
fn virtual_files_are_not_read() {
    let workspace = Workspace::new(vec![Root::open("/proc", RootMode::ReadOnly).unwrap()]).unwrap();
    let place = workspace.resolve(&workspace.top(), Path::new("version")).unwrap();
    assert_eq!(ReadFile::open(&place).unwrap_err().kind(), FsErrorKind::NotRegular);
}

/// A thread keeps swapping a directory of the workspace for a symlink that leads outside.
#[test]
fn a_swapped_directory_never_leads_a_read_outside() {
    let tree = Tree::new();
    std::fs::create_dir(tree.path("ws/d")).unwrap();
    std::fs::write(tree.path("ws/d/canary"), "inside").unwrap();
    tree.link("d2", tree.path("out"));
    let (one, two) = (tree.path("ws/d"), tree.path("ws/d2"));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (here, one, two) = (rustix::fs::CWD, &one, &two);
                rustix::fs::renameat_with(here, one, here, two, flags).unwrap();
            }
        });
        let mut inside = 0;
        for _ in 0..20_000 {
            match read(&tree, "d/canary") {
                Ok(content) => {
                    assert_eq!(content, "inside");
                    inside += 1;
                }
                Err(kind) => assert!(
                    matches!(
                        kind,
                        FsErrorKind::Outside | FsErrorKind::Stale | FsErrorKind::NotFound
                    ),
                    "{kind:?}"
                ),
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(inside > 0, "the race was never won by an honest read");
    });
}

#[test]
fn the_system_root_covers_all_paths_and_other_roots_keep_theirs() {
    let tree = Tree::new();
    let session = tree.path("session");
    std::fs::create_dir(&session).unwrap();
    std::fs::write(session.join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink(tree.path("ws/a/f"), session.join("in")).unwrap();
    std::os::unix::fs::symlink("/proc/self/root", session.join("proc")).unwrap();
    let seen_at = tree.path("seen/tmp");
    std::fs::create_dir_all(&seen_at).unwrap();
    std::fs::write(seen_at.join("real"), "real").unwrap();
    let root = Root::open(tree.path("ws"), RootMode::ReadWrite).unwrap();
    let (out, keys) = (tree.path("out"), tree.path("keys"));
    std::fs::create_dir(&keys).unwrap();
    std::fs::write(keys.join("key"), "secret").unwrap();
    std::fs::hard_link(keys.join("key"), out.join("hard")).unwrap();
    let forbidden = ForbiddenFiles::of([keys.as_path(), &keys.join("key")]);
    let others = [Root::of_session(&session, &seen_at), Root::of_system(forbidden)];
    let others = others.map(|root| Arc::new(root.unwrap()));
    let workspace = Workspace::new(vec![root]).unwrap().with(others);
    let read = |path: &Path| {
        let place = workspace.resolve(&workspace.top(), path)?;
        let bytes = ReadFile::open(&place)?.read_all(100)?;
        Ok((place.root().kind(), String::from_utf8(bytes).unwrap()))
    };
    let read = |path: &Path| read(path).map_err(|error: toolcrib_fs::FsError| error.kind());
    for (path, kind, says) in [
        (out.join("canary"), RootKind::System, "canary"),
        (out.join("../ws/a/f"), RootKind::Workspace, "inside"),
        (seen_at.join("mine"), RootKind::Session, "mine"),
        (seen_at.join("in"), RootKind::Workspace, "inside"),
        (seen_at.join("../tmp/mine"), RootKind::Session, "mine"),
        ("../seen/./tmp/mine".into(), RootKind::Session, "mine"),
    ] {
        assert_eq!(read(&path), Ok((kind, says.to_owned())), "{path:?}");
    }
    for (path, kind) in [
        (seen_at.join("real"), FsErrorKind::NotFound),
        (keys.join("key"), FsErrorKind::Forbidden),
        (out.join("hard"), FsErrorKind::Forbidden),
        (seen_at.join("proc/etc/passwd"), FsErrorKind::Forbidden),
        ("/proc/self/environ".into(), FsErrorKind::Forbidden),
        ("/../../etc/none".into(), FsErrorKind::NotFound),
    ] {
        assert_eq!(read(&path), Err(kind), "{path:?}");
    }
    let place = workspace.resolve(&workspace.top(), &seen_at.join("mine")).unwrap();
    assert_eq!((place.path(), place.location()), (seen_at.join("mine"), session.join("mine")));
    assert_eq!(workspace.seen_path(&place.location()), Some(place.path()));
}

/// Every short path through symlinks to files, to directories, to `/` and above the root, with and without a slash at
/// the end, leads where the kernel leads.
#[test]
fn paths_lead_where_the_kernel_leads() {
    let tree = Tree::new();
    let top = std::fs::canonicalize(tree.top.path()).unwrap();
    let from_slash = format!("slash{}", top.display());
    for (name, target) in [
        ("slash", "/"),
        ("up", ".."),
        ("up-slash", "../"),
        ("dir", "a"),
        ("dir-slash", "a/"),
        ("file", "a/f"),
        ("file-slash", "a/f/"),
        ("to-file-slash", "file-slash"),
        ("through-slash", "slash"),
        ("dangling", "none"),
    ] {
        tree.link(name, target);
    }
    let system = Root::of_system(ForbiddenFiles::of([])).unwrap();
    let workspace = tree.workspace.with([Arc::new(system)]);
    let first = [
        "slash",
        "up",
        "up-slash",
        "dir",
        "dir-slash",
        "file",
        "file-slash",
        "to-file-slash",
        "through-slash",
        "dangling",
        "a",
        "..",
        &from_slash,
    ];
    let later = ["", "f", "..", "ws", "ws/a/f", "out/canary", "none", "tmp", "ws/up/out"];
    for path in first.iter().flat_map(|first| {
        later.iter().flat_map(move |second| {
            ["", "/..", "/f", "/canary"].map(|third| format!("{first}/{second}{third}"))
        })
    }) {
        let path = path.trim_end_matches('/');
        for ending in ["", "/", "/."] {
            let path = format!("{path}{ending}");
            let kernel = kernel_path(&tree.path("ws").join(&path));
            let ours = workspace.resolve(&workspace.top(), Path::new(&path));
            let ours = ours.ok().filter(|place| place.kind().is_some()).map(|place| place.path());
            assert_eq!(ours, kernel, "{path}");
        }
    }
}

/// The real path of a file, as the kernel finds it.
fn kernel_path(path: &Path) -> Option<std::path::PathBuf> {
    use std::os::fd::AsRawFd as _;
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    Some(std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).unwrap())
}
