//! The supervisor: performs the calls of a command that change files, as the kernel would.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, symlink};

use super::*;

/// Records each change that it is asked about, and the content at that moment.
#[derive(Debug, Default)]
pub(super) struct RecordingGuard {
    touched: Mutex<Vec<(PathBuf, Option<String>)>>,
    failures: Mutex<Vec<String>>,
    finished: Mutex<bool>,
    panics: bool,
}

impl Guard for RecordingGuard {
    fn decide(&self, accesses: &[FileAccess], _: &dyn Fn() -> Option<Program>) -> GuardVerdict {
        assert!(!self.panics, "as the test wants it");
        for access in accesses {
            let content = fs::read_to_string(&access.path).ok();
            self.touched.lock().push((access.path.clone(), content));
        }
        GuardVerdict::Allow
    }

    fn review(&self, _: &Path, _: &[u8], _: bool) -> Result<(), RefusedContent> {
        Ok(())
    }

    fn may_read(&self, _: &Path) -> bool {
        true
    }

    fn supervision_failed(&self, why: &io::Error) {
        self.failures.lock().push(why.to_string());
    }

    fn finished(&self) {
        *self.finished.lock() = true;
    }
}

impl RecordingGuard {
    /// The paths in a directory that it was asked about, with their content.
    fn in_directory(&self, directory: &Path) -> BTreeSet<(String, Option<String>)> {
        let touched = self.touched.lock();
        let within = touched.iter().filter_map(|(path, content)| {
            let name = path.strip_prefix(directory).ok()?;
            Some((name.display().to_string(), content.clone()))
        });
        within.collect()
    }
}

impl Fixture {
    pub(super) fn run_with_guard(
        &self,
        script: &str,
        notes: &Arc<RecordingGuard>,
    ) -> CommandResult {
        let command = self.command(script);
        wait_for_result(
            &self
                .jobs
                .start(&command, StartOptions::sandboxed(&self.sandbox, notes.clone()))
                .unwrap(),
        )
    }
}

fn expected_set(names: &[(&str, Option<&str>)]) -> BTreeSet<(String, Option<String>)> {
    names.iter().map(|(name, content)| ((*name).to_owned(), content.map(str::to_owned))).collect()
}

/// Each way to change a file. The name of the file says which.
const ALL_CHANGES: &str = r#"
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
assert libc.syscall(437, here, b"opened_anew", ctypes.byref(how), 24) == -1
assert ctypes.get_errno() == 38
read = os.open("by_fd", os.O_RDONLY)
open(f"/dev/fd/{read}", "w").close()
read = os.open("by_proc", os.O_RDONLY)
open(f"/proc/thread-self/../../fd/{read}", "w").close()
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
    "by_fd",
    "by_proc",
];

#[test]
fn each_way_to_change_a_file_is_decided_on_first() {
    for fixture in Fixture::for_each_sandbox() {
        let ws = fixture.path("ws");
        fs::create_dir(ws.join("dir")).unwrap();
        FILES
            .iter()
            .chain(&["only_read", "opened_anew"])
            .for_each(|name| fs::write(ws.join(name), "old").unwrap());
        fs::write(fixture.path("ways.py"), ALL_CHANGES).unwrap();
        fixture.chown_all(fs::metadata(&ws).unwrap().uid());
        for (to, name) in [("dir", "link"), ("target", "link_to_file"), ("nowhere", "a_link")] {
            std::os::unix::fs::symlink(to, ws.join(name)).unwrap();
        }
        let notes = Arc::new(RecordingGuard::default());
        let result = fixture.run_with_guard("python3 -B $T/ways.py", &notes);
        assert_eq!(result.exit, Exit::Code(0), "{}", result.output);

        let mut expected: Vec<(&str, Option<&str>)> =
            FILES.iter().map(|name| (*name, Some("old"))).collect();
        expected.extend(
            ["to", "to_at", "new_name", "new_link", "new_directory", "new_pipe", "a_link"]
                .map(|name| (name, None)),
        );
        assert_eq!(notes.in_directory(&ws), expected_set(&expected));
        assert!(notes.failures.lock().is_empty(), "{:?}", notes.failures);
        eventually("it hears of the end", || *notes.finished.lock());
    }
}

#[test]
fn the_guard_is_asked_without_namespaces_too() {
    let fixture = super::levels::hobbled(&["namespaces-refused"]);
    let notes = Arc::new(RecordingGuard::default());
    let result = fixture.run_with_guard("echo new > file; rm file; echo x > sub", &notes);
    assert_eq!(result.exit, Exit::Code(0), "{}", result.output);
    let expected = expected_set(&[("file", Some("mine")), ("file", Some("new\n")), ("sub", None)]);
    assert_eq!(notes.in_directory(&fixture.path("ws")), expected);
}

#[test]
fn a_guard_that_panics_fails_the_call() {
    let fixture = Fixture::new();
    let notes = Arc::new(RecordingGuard { panics: true, ..RecordingGuard::default() });
    let output = fixture.run_with_guard("echo new > file; cat file", &notes).output;
    assert!(output.contains("Input/output error") && output.ends_with("mine"), "{output}");
    assert_eq!(notes.failures.lock()[0], "the supervisor failed");
}

#[test]
fn no_decision_is_lost_under_load() {
    let fixture = Fixture::new();
    let notes = Arc::new(RecordingGuard::default());
    let script = "for i in {1..20}; do (for j in {1..20}; do echo x > f-$i-$j; done) & done; wait";
    assert_eq!(fixture.run_with_guard(script, &notes).exit, Exit::Code(0));
    assert_eq!(notes.in_directory(&fixture.path("ws")).len(), 400);
}

/// Invalid paths and unmapped memory: the call fails with the kernel's errno, and nothing else happens.
#[test]
fn invalid_calls_fail_as_in_the_kernel() {
    let fixture = Fixture::new();
    let notes = Arc::new(RecordingGuard::default());
    let script = r#"python3 - <<'E'
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for path, expected in [(ctypes.c_void_p(1), errno.EFAULT), (b"", errno.ENOENT), (b"a" * 5000, errno.ENAMETOOLONG), (b"no/such/dir/x", errno.ENOENT), (b"file/x", errno.ENOTDIR)]:
    assert libc.open(path, os.O_WRONLY | os.O_CREAT, 0o600) == -1
    assert ctypes.get_errno() == expected, (path, ctypes.get_errno())
assert libc.unlinkat(999, b"x", 0) == -1 and ctypes.get_errno() == errno.EBADF
E"#;
    let result = fixture.run_with_guard(script, &notes);
    assert_eq!(result.exit, Exit::Code(0), "{}", result.output);
    assert!(notes.failures.lock().is_empty(), "{:?}", notes.failures);
}

/// Threads that change a path in memory during the decision gain nothing: the call is performed with the path
/// that was decided on.
#[test]
fn a_path_that_changes_during_the_decision_has_no_effect() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("ws/.git")).unwrap();
    fs::write(fixture.path("ws/.git/config"), "mine").unwrap();
    fs::write(fixture.path("ws/.git/xonfig"), "").unwrap();
    let lines = r#"
import ctypes, os, sys, threading
sys.setswitchinterval(1e-5)
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(b".git/xonfig")
done = False
def flip():
    while not done:
        path[5] = b"c"; path[5] = b"x"
threads = [threading.Thread(target=flip) for _ in range(2)]
[t.start() for t in threads]
opened = 0
for _ in range(600):
    f = libc.open(path, os.O_WRONLY)
    if f >= 0:
        opened += 1
        os.write(f, b"evil"); os.close(f)
    f = libc.creat(path, 0o600)
    if f >= 0: os.close(f)
done = True
[t.join() for t in threads]
print(opened > 0)
"#;
    let script = format!("/usr/bin/python3 - <<'END'{lines}END");
    assert_eq!(fixture.run_ok(&script), "True\n");
    assert_eq!(read(&fixture.path("ws/.git/config")), "mine");
}

/// Reviews each file called `reviewed`, and refuses content with `evil`.
#[derive(Debug)]
struct Reviewer;

impl Guard for Reviewer {
    fn decide(&self, accesses: &[FileAccess], _: &dyn Fn() -> Option<Program>) -> GuardVerdict {
        let is_reviewed = |access: &FileAccess| {
            let made = matches!(
                access.action,
                FileAction::Write | FileAction::Create(_) | FileAction::RenameTo(_)
            );
            made && access.path.file_name().is_some_and(|name| name == "reviewed")
        };
        if accesses.iter().any(is_reviewed) { GuardVerdict::Review } else { GuardVerdict::Allow }
    }

    fn review(&self, _: &Path, content: &[u8], _: bool) -> Result<(), RefusedContent> {
        let evil = content.windows(4).any(|window| window == b"evil");
        let refused = RefusedContent { why: Unwritable::Protected, fallback: None };
        if evil { Err(refused) } else { Ok(()) }
    }

    fn may_read(&self, path: &Path) -> bool {
        path.extension().is_none_or(|extension| extension != "env")
    }

    fn supervision_failed(&self, _: &io::Error) {}

    fn finished(&self) {}
}

#[test]
fn the_reviewed_content_is_the_content_that_stays() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.guard = Arc::new(Reviewer);
        let reviewed = fixture.path("ws/reviewed");
        let content = || fs::read_to_string(&reviewed).unwrap_or_default();
        fixture.run_ok("umask 027; echo good > reviewed");
        eventually("it is published", || content() == "good\n");
        assert_eq!(fs::metadata(&reviewed).unwrap().mode() & 0o777, 0o640);
        fixture.run_ok("echo more >> reviewed; echo evil >> reviewed");
        assert_eq!(content(), "good\nmore\n");
        fixture.run_ok("echo renamed > lock; mv lock reviewed; test ! -e lock");
        assert_eq!(content(), "renamed\n");
        fixture.assert_refused("echo evil > lock; mv lock reviewed", &["Permission denied"]);
        fixture.assert_refused(
            "ln lock reviewed2; ln reviewed2 x/reviewed || ln -f lock reviewed",
            &["denied"],
        );
        // A descriptor that is still open after the review belongs to another file.
        let lines = r#"
import os
f = open("lock2", "w"); f.write("good"); f.flush()
os.rename("lock2", "reviewed"); f.write("evil"); f.flush()
print(open("reviewed").read())
"#;
        let script = format!("/usr/bin/python3 - <<'END'{lines}END");
        assert_eq!(fixture.run_ok(&script), "good\n");
        let job = fixture.start("exec 3> reviewed; echo evil >&3; echo started; sleep 600");
        wait_for_output(&job);
        assert_eq!(content(), "good");
        job.end(toolcrib_exec::Ending::Immediate, toolcrib_exec::Status::Killed);
        job.wait(TEST_TIMEOUT, |now| now.all_exited);
        assert_eq!(content(), "good");
    }
}

#[test]
fn reads_are_decided_on_if_the_sandbox_supervises_them() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.guard = Arc::new(Reviewer);
        fixture.sandbox.supervise_reads = true;
        fs::write(fixture.path("ws/a.env"), "secret").unwrap();
        symlink("a.env", fixture.path("ws/link")).unwrap();
        for script in
            ["cat a.env", "cat link", "grep -r secret . || false", "cat < /proc/self/cwd/a.env"]
        {
            fixture.assert_refused(script, &["Permission denied"]);
        }
        for flags in [
            "O_RDWR",
            "O_RDWR | os.O_APPEND",
            "O_CREAT",
            "O_CREAT | os.O_RDWR",
            "O_ACCMODE",
            "O_RDONLY | os.O_NOFOLLOW",
        ] {
            let flags = flags.replace("O_ACCMODE", "O_RDWR | os.O_WRONLY");
            fixture.assert_python_refused(
                &format!("import os; os.open('a.env', os.{flags}, 0o600)"),
                &["Permission denied"],
            );
            let through = format!(
                "import os; f = os.open('a.env', os.O_PATH); os.open(f'/proc/self/fd/{{f}}', os.{})",
                flags.replace(" | os.O_NOFOLLOW", "")
            );
            fixture.assert_python_refused(&through, &["Permission denied"]);
        }
        assert_eq!(read(&fixture.path("ws/a.env")), "secret");
        fixture.run_ok("cat file; ls; /usr/bin/python3 -c 'import json, ssl'; git init -q r; mkfifo p; (echo x > p) & cat p");
    }
}

/// The supervisor never blocks on another command.
#[test]
fn fifos_terminals_and_leases_work() {
    // Not as another user: the output belongs to this process, and other users may not open it again.
    let fixture = Fixture::new();
    let script = "mkfifo p; (sleep 0.2; cat p) & echo through > p; wait; \
                      echo a | tee >(cat > b) > /dev/null; sleep 0.1; echo x > /dev/stdout; echo y > /dev/null; \
                      script -qec 'echo z > /dev/tty' /dev/null < /dev/null";
    let out = fixture.run_ok(script);
    assert!(out.starts_with("through\nx\n") && out.contains('z'), "{out}");
    let lines = r#"
import fcntl, os, signal, threading
signal.signal(signal.SIGIO, lambda *_: None)
f = os.open("leased", os.O_CREAT | os.O_RDONLY, 0o600)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
def write():
    open("leased", "w").write("x"); print("written")
t = threading.Thread(target=write); t.start()
import time; time.sleep(0.3)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_UNLCK); t.join()
"#;
    let script = format!("/usr/bin/python3 - <<'END'{lines}END");
    assert_eq!(fixture.run_ok(&script), "written\n");
    // Opening a FIFO that is never read ends with its command.
    let job = fixture.start("mkfifo q; echo started; echo x > q");
    wait_for_output(&job);
    job.end(toolcrib_exec::Ending::Immediate, toolcrib_exec::Status::Killed);
    assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited);
}

/// Calls are performed with the credentials of the command.
#[test]
fn calls_are_performed_with_the_credentials_of_the_command() {
    let fixture = Fixture::new();
    fs::write(fixture.path("ws/others"), "others").unwrap();
    fs::create_dir(fixture.path("ws/theirs")).unwrap();
    if rustix::process::geteuid().is_root() {
        for name in ["others", "theirs"] {
            chown(fixture.path("ws").join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fixture.assert_refused("echo x > others", &["Permission denied"]);
        fixture.assert_refused("chmod 777 others", &["Operation not permitted"]);
        fixture.assert_refused("echo x > theirs/new", &["Permission denied"]);
    }
    fixture.assert_refused("mknod device c 1 3", &["Operation not permitted"]);
    fixture.assert_refused("echo x > /proc/1/mem", &["Read-only", "Permission denied", "No such"]);
    assert_eq!(fixture.run_ok("umask 077; mkdir d; echo x > d/f; stat -c %a d d/f"), "700\n600\n");
    let result = fixture.run("ulimit -n 3; exec 3> new 4> new2 5> new3; echo x");
    assert!(result.output.contains("Too many open files"), "{}", result.output);
}

/// Landlock denies every change that is not supervised: a command has no right to change files itself.
#[test]
fn unix_sockets_can_be_bound_only_at_allowed_paths() {
    for fixture in Fixture::for_each_sandbox() {
        fs::create_dir_all(fixture.path("ws/.git/hooks")).unwrap();
        if fixture.run_ok("id -u") != "0\n" {
            fixture.chown_all(NOBODY);
        }
        let lines = r#"
import os, socket
def bind(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(name); return s.getsockname() == name
    except OSError as error:
        return type(error).__name__
here = os.getcwd()
print(bind("mine.sock"), bind(here + "/other.sock"), bind("/tmp/in-tmp.sock"))
print(bind(".git/hooks/x"), bind(here + "/.git/config"), bind("mine.sock"), bind("/etc/x"))
print(oct(os.stat("mine.sock").st_mode & 0o777))
"#;
        let script = format!("umask 022; /usr/bin/python3 - <<'END'{lines}END");
        let expected = "True True True\nPermissionError PermissionError OSError";
        let out = fixture.run_ok(&script);
        assert!(out.starts_with(expected) && out.ends_with("0o755\n"), "{out}");
    }
}

/// Paths are resolved with the credentials of the command: a directory that it may not search is closed,
/// whatever privileges the supervisor has.
#[test]
fn an_unsearchable_directory_is_closed_for_every_call() {
    use std::os::unix::fs::PermissionsExt as _;
    for fixture in Fixture::for_each_sandbox() {
        let ws = fixture.path("ws");
        fs::create_dir_all(ws.join("closed/deep")).unwrap();
        for name in ["closed/file", "closed/deep/file"] {
            fs::write(ws.join(name), "mine").unwrap();
            fs::set_permissions(ws.join(name), fs::Permissions::from_mode(0o666)).unwrap();
        }
        symlink("closed/file", ws.join("link")).unwrap();
        if fixture.run_ok("id -u") != "0\n" {
            fixture.chown_all(NOBODY);
        }
        fixture.run_ok("chmod 0 closed");
        for name in ["closed/file", "closed/deep/file", "link", "closed/../closed/file"] {
            for work in [
                "os.close(os.open(NAME, os.O_WRONLY))",
                "os.close(os.open(NAME, os.O_RDWR | os.O_CREAT, 0o600))",
                "os.truncate(NAME, 0)",
                "os.chmod(NAME, 0o600)",
                "os.link(NAME, 'another', src_dir_fd=os.open('.', 0), follow_symlinks=True)",
                "os.setxattr(NAME, 'user.x', b'1')",
            ] {
                let lines = format!("import os; {}", work.replace("NAME", &format!("'{name}'")));
                fixture.assert_python_refused(&lines, &["Permission denied"]);
            }
        }
        for script in ["rm closed/file", "mkdir closed/new", "mv file closed/", "mv closed/file x"]
        {
            fixture.assert_refused(script, &["Permission denied"]);
        }
        fixture.run_ok("chmod 755 closed");
        assert_eq!(read(&ws.join("closed/file")), "mine");
    }
}

/// Neither refused content nor that of a killed command leaves anything behind.
#[test]
fn unpublished_content_leaves_nothing_behind() {
    let mut fixture = Fixture::new();
    fixture.guard = Arc::new(Reviewer);
    fixture.run_ok("echo good > reviewed");
    let lines = r#"
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
# More often than files are written at a time.
for number in range(300):
    f = os.open("reviewed", os.O_WRONLY | os.O_TRUNC); os.write(f, b"evil"); os.close(f)
for number in range(300):
    child = os.fork()
    if child == 0:
        f = os.open("reviewed", os.O_WRONLY); os.write(f, b"evil")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
for name, content in [("bad", "evil"), ("lock", "other")]:
    open(name, "w").write(content)
    assert libc.renameat2(-100, name.encode(), -100, b"reviewed", 1) == -1
    assert ctypes.get_errno() in (errno.EACCES, errno.EEXIST)
os.unlink("bad"); os.unlink("lock")
os.mkdir("d"); os.mkdir("d/reviewed"); open("d/lock", "w").write("fine")
try: os.rename("d/lock", "d/reviewed")
except OSError: os.unlink("d/lock")
print(sorted(os.listdir(".")), os.listdir("d"))
f = os.open("reviewed", os.O_WRONLY | os.O_TRUNC); os.write(f, b"fine"); os.close(f)
"#;
    let out = fixture.run_ok(&format!("/usr/bin/python3 - <<'END'{lines}END"));
    assert_eq!(out, "['d', 'file', 'reviewed'] ['reviewed']\n");
    eventually("it is published", || read(&fixture.path("ws/reviewed")) == "fine");
}

/// The supervisor closes its descriptors of files that it has handed over: a program that is open for writing
/// cannot be executed.
#[test]
fn a_program_can_be_executed_right_after_it_was_written() {
    let fixture = Fixture::new();
    let lines = r#"
import os
for number in range(500):
    f = os.open("program", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o755)
    os.write(f, b'#!/bin/true\n'); os.close(f)
    child = os.fork()
    if child == 0:
        try: os.execv("program", ["program"])
        except OSError as error: print(error, flush=True)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
"#;
    fixture.run_ok(&format!("/usr/bin/python3 - <<'END'{lines}END"));
}
