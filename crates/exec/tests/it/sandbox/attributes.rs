//! Extended attributes, including access control lists, and inode flags.

use super::*;

/// Tries to set attributes of the given files with every call.
const ATTRIBUTES: &str = r#"
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def entry(tag, permissions): return struct.pack("<HHI", tag, permissions, 0xffffffff)
acl = struct.pack("<I", 2) + entry(1, 7) + entry(4, 7) + entry(0x20, 7)
def outcome(work):
    try: work(); return "done"
    except OSError as error: return errno.errorcode[error.errno]
for path in sys.argv[1:]:
    os.path.lexists("link") and os.unlink("link")
    os.symlink(path, "link")
    f = os.open(path, os.O_RDONLY)
    print(*[outcome(work) for work in [
        lambda: os.setxattr(path, "user.x", b"1"),
        lambda: os.setxattr(path, "user.x", b"1", follow_symlinks=False),
        lambda: os.setxattr("link", "user.y", b""),
        lambda: os.setxattr(f, "user.z", b"1" * 3000),
        lambda: os.setxattr(f"/proc/self/fd/{f}", "user.z", b"2"),
        lambda: os.setxattr(path, "system.posix_acl_access", acl),
        lambda: os.removexattr(path, "user.x"),
        lambda: os.removexattr("link", "user.y"),
        lambda: os.removexattr(f, "user.z"),
    ]], len(os.listxattr(path)))
    os.close(f)
"#;

fn script(fixture: &Fixture, paths: &str) -> String {
    fs::write(fixture.path("attributes.py"), ATTRIBUTES).unwrap();
    format!("/usr/bin/python3 $T/attributes.py {paths}")
}

#[test]
fn attributes_can_be_set_where_the_mode_can_be_changed() {
    for fixture in Fixture::for_each_sandbox() {
        fs::create_dir_all(fixture.path("ws/.git/hooks")).unwrap();
        fs::write(fixture.path("ws/.git/hooks/hook"), "mine").unwrap();
        let script = script(&fixture, "file .git/hooks/hook .git/hooks $T/out/canary");
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(fixture.path("ws")).unwrap());
        fixture.chown_all(owner);
        let out = fixture.run_ok(&script);
        let lines: Vec<&str> = out.lines().collect();
        let all = |word: &str| format!("{} 0", [word; 9].join(" "));
        assert_eq!(lines[0], all("done"), "{out}");
        assert_eq!(lines[1], all("EACCES"), "{out}");
        assert_eq!(lines[2], all("EACCES"), "{out}");
        assert_eq!(lines[3], all("EROFS"), "{out}");
        let mode = |name: &str| {
            std::os::unix::fs::MetadataExt::mode(&fs::metadata(fixture.path(name)).unwrap()) & 0o777
        };
        assert_eq!((mode("ws/file"), mode("ws/.git/hooks/hook")), (0o777, 0o644));
    }
}

#[test]
fn without_namespaces_attributes_outside_stay_as_they_are() {
    let fixture = super::levels::hobbled(&["namespaces-refused"]);
    let out = fixture.run_ok(&script(&fixture, "$T/out/canary $T/out file"));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], format!("{} 0", ["EACCES"; 9].join(" ")), "{out}");
    assert_eq!(lines[1], lines[0], "{out}");
    assert_eq!(lines[2], format!("{} 0", ["done"; 9].join(" ")), "{out}");
    fixture.assert_canary_unchanged();
}

#[test]
fn other_calls_that_set_attributes_are_denied() {
    for fixture in Fixture::for_each_sandbox() {
        let lines = r#"
import ctypes, errno, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
for number in [463, 466, 469]:
    assert libc.syscall(number, -100, b"file", 0, 0, 0, 0) == -1
    assert ctypes.get_errno() == errno.ENOSYS, number
f, d = os.open("file", os.O_RDONLY), os.open(".", os.O_RDONLY)
# Flags of a file, of a project, verity, and a subvolume of btrfs with a name.
for where, command in [(f, 0x40086602), (f, 0x401c5820), (f, 0x40806685), (d, 0x5000940e), (d, 0x50009417)]:
    try: fcntl.ioctl(where, command, b"\0" * 1000)
    except OSError as error: assert error.errno == errno.EPERM, (hex(command), error)
    else: assert False, hex(command)
fcntl.ioctl(f, 0x541b, b"\0" * 8)
"#;
        fixture.run_ok(&format!("/usr/bin/python3 - <<'END'\n{lines}\nEND"));
    }
}
