//! Somebody who is told of each file before a command changes it.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;

use toolcrib_exec::{Touch, Witness};

use super::*;

/// Notes what it is told, and what stands there at that moment.
#[derive(Debug, Default)]
pub(super) struct Notes {
    touched: Mutex<Vec<(PathBuf, Option<String>)>>,
    blind: Mutex<Vec<String>>,
    over: Mutex<bool>,
    breaks: bool,
}

impl Witness for Notes {
    fn touched(&self, touches: &[Touch]) {
        assert!(!self.breaks, "as the test wants it");
        for touch in touches {
            let says = fs::read_to_string(&touch.path).ok();
            self.touched.lock().unwrap().push((touch.path.clone(), says));
        }
    }

    fn blind(&self, why: &io::Error) {
        self.blind.lock().unwrap().push(why.to_string());
    }

    fn over(&self) {
        *self.over.lock().unwrap() = true;
    }
}

impl Notes {
    /// The names that it was told of in a directory, and what they said.
    fn in_directory(&self, directory: &Path) -> BTreeSet<(String, Option<String>)> {
        let touched = self.touched.lock().unwrap();
        let within = touched.iter().filter_map(|(path, says)| {
            let name = path.strip_prefix(directory).ok()?;
            Some((name.display().to_string(), says.clone()))
        });
        within.collect()
    }
}

impl Bench {
    pub(super) fn witnessed(&self, script: &str, notes: &Arc<Notes>) -> Ran {
        let command = self.command(script);
        ran(&self.jobs.start_witnessed(&self.sandbox, &command, notes.clone()).unwrap())
    }

    /// Starts a command with somebody who is told of changes, and makes nothing of it.
    pub(super) fn start_witnessed(&self, script: &str) -> Arc<Job> {
        let notes = Arc::new(Notes::default());
        self.jobs.start_witnessed(&self.sandbox, &self.command(script), notes).unwrap()
    }
}

fn told(names: &[(&str, Option<&str>)]) -> BTreeSet<(String, Option<String>)> {
    names.iter().map(|(name, says)| ((*name).to_owned(), says.map(str::to_owned))).collect()
}

/// Each way to change a file, with the file's name as it is given.
const WAYS: &str = r#"
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
top = os.getcwd()
here = os.open(".", os.O_RDONLY)
open("written", "w").write("new")
open("appended", "a").write("new")
os.close(os.open("opened", os.O_RDWR))
open(top + "/absolute", "w").close()
os.close(os.open("by_descriptor", os.O_WRONLY, dir_fd=here))
open("../ws/dir/../dotted", "w").close()
open("link/through_link", "w").close()
open("link_to_file", "w").close()
os.truncate("truncated", 1)
os.unlink("removed")
os.unlink("removed_at", dir_fd=here)
os.rename("from", "to")
os.rename("from_at", "to_at", src_dir_fd=here, dst_dir_fd=here)
os.link("linked", "new_name")
os.symlink("nowhere", "new_link")
os.mkdir("new_directory")
os.mkfifo("new_pipe")
os.chmod("mode", 0o755)
descriptor = os.open("mode_of_descriptor", os.O_RDONLY)
os.fchmod(descriptor, 0o755)
os.remove("a_link")
class How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
how = How(os.O_WRONLY, 0, 0)
assert libc.syscall(437, here, b"opened_anew", ctypes.byref(how), 24) >= 0
how = How(os.O_RDONLY, 0, 0)
assert libc.syscall(437, here, b"only_read", ctypes.byref(how), 24) >= 0
open("only_read").close()
os.listdir(".")
try:
    os.unlink("not_there")
except FileNotFoundError:
    pass
"#;

const FILES: &[&str] = &[
    "written",
    "appended",
    "opened",
    "absolute",
    "by_descriptor",
    "dotted",
    "dir/through_link",
    "target",
    "truncated",
    "removed",
    "removed_at",
    "from",
    "from_at",
    "linked",
    "mode",
    "mode_of_descriptor",
    "opened_anew",
];

#[test]
fn each_way_to_change_a_file_is_told_before_it_happens() {
    for bench in Bench::with_every_view() {
        let ws = bench.path("ws");
        fs::create_dir(ws.join("dir")).unwrap();
        FILES
            .iter()
            .chain(&["only_read"])
            .for_each(|name| fs::write(ws.join(name), "old").unwrap());
        fs::write(bench.path("ways.py"), WAYS).unwrap();
        bench.give_to(fs::metadata(&ws).unwrap().uid());
        for (to, name) in [("dir", "link"), ("target", "link_to_file"), ("nowhere", "a_link")] {
            std::os::unix::fs::symlink(to, ws.join(name)).unwrap();
        }
        let notes = Arc::new(Notes::default());
        let ran = bench.witnessed("python3 -B $T/ways.py", &notes);
        assert_eq!(ran.exit, Exit::Code(0), "{}", ran.output);

        let mut expected: Vec<(&str, Option<&str>)> =
            FILES.iter().map(|name| (*name, Some("old"))).collect();
        expected.extend(
            [
                "to",
                "to_at",
                "new_name",
                "new_link",
                "new_directory",
                "new_pipe",
                "a_link",
                "not_there",
            ]
            .map(|name| (name, None)),
        );
        assert_eq!(notes.in_directory(&ws), told(&expected));
        assert!(notes.blind.lock().unwrap().is_empty(), "{:?}", notes.blind);
        eventually("it hears of the end", || *notes.over.lock().unwrap());
    }
}

#[test]
fn where_there_are_no_namespaces_it_is_told_too() {
    let bench = super::levels::hobbled(&["namespaces-refused"]);
    let notes = Arc::new(Notes::default());
    let ran = bench.witnessed("echo new > file; rm file; echo x > sub", &notes);
    assert_eq!(ran.exit, Exit::Code(0), "{}", ran.output);
    let expected = told(&[("file", Some("mine")), ("file", Some("new\n")), ("sub", None)]);
    assert_eq!(notes.in_directory(&bench.path("ws")), expected);
}

#[test]
fn a_witness_that_breaks_keeps_nobody_waiting() {
    let bench = Bench::new();
    let notes = Arc::new(Notes { breaks: true, ..Notes::default() });
    assert_eq!(bench.witnessed("echo new > file; cat file", &notes).output, "new\n");
    assert_eq!(notes.blind.lock().unwrap()[0], "the witness broke");
}

#[test]
fn many_at_once_lose_no_word() {
    let bench = Bench::new();
    let notes = Arc::new(Notes::default());
    let script = "for i in {1..20}; do (for j in {1..20}; do echo x > f-$i-$j; done) & done; wait";
    assert_eq!(bench.witnessed(script, &notes).exit, Exit::Code(0));
    assert_eq!(notes.in_directory(&bench.path("ws")).len(), 400);
}

/// A name that leads nowhere good, memory that is not there: the call fails by itself, and nobody minds.
#[test]
fn calls_that_make_no_sense_are_let_fail() {
    let bench = Bench::new();
    let notes = Arc::new(Notes::default());
    let script = r#"python3 - <<'E'
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for path, expected in [(ctypes.c_void_p(1), errno.EFAULT), (b"", errno.ENOENT), (b"a" * 5000, errno.ENAMETOOLONG), (b"no/such/dir/x", errno.ENOENT), (b"file/x", errno.ENOTDIR)]:
    assert libc.open(path, os.O_WRONLY | os.O_CREAT, 0o600) == -1
    assert ctypes.get_errno() == expected, (path, ctypes.get_errno())
assert libc.unlinkat(999, b"x", 0) == -1 and ctypes.get_errno() == errno.EBADF
E"#;
    let ran = bench.witnessed(script, &notes);
    assert_eq!(ran.exit, Exit::Code(0), "{}", ran.output);
    assert!(notes.blind.lock().unwrap().is_empty(), "{:?}", notes.blind);
}
