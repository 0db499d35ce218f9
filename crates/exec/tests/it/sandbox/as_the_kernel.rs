//! Supervised calls have the same outcome as in the kernel: the same script runs inside and outside.

use super::*;

/// Runs a script in a sandbox and outside, each in a new directory, and compares the outputs.
fn same_outside(lines: &str) {
    for fixture in Fixture::for_each_user() {
        let path = fixture.path("script.py");
        fs::write(&path, lines).unwrap();
        let outside = fixture.path("outside");
        fs::create_dir(&outside).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(fixture.path("ws")).unwrap());
        fixture.chown_all(owner);
        let mut python = std::process::Command::new("/usr/bin/python3");
        if owner == NOBODY {
            use std::os::unix::process::CommandExt as _;
            python.uid(NOBODY).gid(NOBODY);
        }
        // Through stdin: the other user may not have access to every directory on the way.
        let script = fs::File::open(&path).unwrap();
        let output = python.arg("-").stdin(script).current_dir(&outside).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let expected = String::from_utf8(output.stdout).unwrap();
        assert!(!expected.is_empty());
        let inside = fixture.run_ok("mkdir inside; cd inside; /usr/bin/python3 $T/script.py");
        for (inside, outside) in inside.lines().zip(expected.lines()) {
            assert_eq!(inside, outside);
        }
        assert_eq!(inside.lines().count(), expected.lines().count());
    }
}

#[test]
fn trailing_slashes_behind_symlinks_behave_as_in_the_kernel() {
    same_outside(
        r#"
import errno, os, shutil, stat
def make():
    os.mkdir("t"); os.chdir("t")
    os.mkdir("dir"); open("file", "w").close(); open("source", "w").close(); os.mkdir("source_dir")
    for name, text in [("dangling", "nowhere"), ("slashed", "nowhere/"), ("to_file", "file"),
                       ("to_dir", "dir"), ("to_dir_slashed", "dir/"), ("to_link", "dangling"),
                       ("loop", "loop"), ("dotted", "dir/.")]:
        os.symlink(text, name)
def tree():
    found = []
    for top, directories, files in os.walk("."):
        for name in directories + files:
            path = os.path.join(top, name)
            found.append((path, oct(os.lstat(path).st_mode)))
    return sorted(found)
def opened(*flags):
    def work(name):
        value = 0
        for flag in flags: value |= getattr(os, flag)
        os.close(os.open(name, value, 0o600))
    return work
def symlink_over(name): os.symlink("x", name)
def attribute(name): os.setxattr(name, "user.x", b"1")
def attribute_of_link(name): os.setxattr(name, "user.x", b"1", follow_symlinks=False)
works = {
    "creat": opened("O_CREAT", "O_WRONLY"), "write": opened("O_WRONLY"),
    "new": opened("O_CREAT", "O_EXCL", "O_WRONLY"), "nofollow": opened("O_WRONLY", "O_NOFOLLOW"),
    "creat_nofollow": opened("O_CREAT", "O_WRONLY", "O_NOFOLLOW"),
    "trunc": opened("O_TRUNC"), "mkdir": os.mkdir, "rmdir": os.rmdir, "unlink": os.unlink,
    "rename_from": lambda name: os.rename(name, "target"),
    "rename_from_slash": lambda name: os.rename(name, "target/"),
    "rename_to": lambda name: os.rename("source", name),
    "rename_dir_to": lambda name: os.rename("source_dir", name),
    "symlink": symlink_over, "link_from": lambda name: os.link(name, "new", follow_symlinks=False),
    "link_from_followed": lambda name: os.link(name, "new", src_dir_fd=os.open(".", 0), follow_symlinks=True),
    "link_to": lambda name: os.link("source", name), "chmod": lambda name: os.chmod(name, 0o700),
    "truncate": lambda name: os.truncate(name, 3), "mkfifo": os.mkfifo,
    "attribute": attribute, "attribute_of_link": attribute_of_link,
}
names = ["dangling", "slashed", "to_file", "to_dir", "to_dir_slashed", "to_link", "loop", "dotted",
         "file", "dir", "missing", "missing/deep", "dir/.."]
os.umask(0o022)
make(); before = tree()
for name in names:
    for end in ["", "/", "/."]:
        for what, work in works.items():
            try: work(name + end); outcome = "done"
            except OSError as error: outcome = errno.errorcode[error.errno]
            after = tree()
            print(what, name + end, outcome, [entry for entry in after if entry not in before])
            if outcome == "done" or after != before:
                os.chdir(".."); shutil.rmtree("t"); make()
"#,
    );
}

#[test]
fn the_file_size_limit_of_the_caller_applies() {
    same_outside(
        r#"
import errno, os, resource, signal
open("f", "wb").write(b"x" * 5000)
def outcome(work):
    try: work(); return "done"
    except OSError as error: return errno.errorcode[error.errno]
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
got = []
signal.signal(signal.SIGXFSZ, lambda *_: got.append(1))
for length in [4999, 4500, 4000, 4001, 3000, 3500, 1 << 40, -1]:
    print(length, outcome(lambda: os.truncate("f", length)), os.stat("f").st_size, len(got))
f = os.open("f", os.O_WRONLY)
print(outcome(lambda: os.ftruncate(f, 9000)), outcome(lambda: os.posix_fallocate(f, 0, 9000)), len(got))
child = os.fork()
if child == 0:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.truncate("f", 1 << 30)
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
"#,
    );
}

/// A command may raise its own limit, but the limit of the supervisor must not kill the supervisor.
#[test]
fn a_limit_of_the_supervisor_does_not_end_it() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let fixture = Fixture::new();
    let before = getrlimit(Resource::Fsize);
    // Other tests write no files of this size.
    let limit = Rlimit { current: Some(1 << 40), maximum: before.maximum };
    setrlimit(Resource::Fsize, limit).unwrap();
    let lines = "import os, resource\n\
                 hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n\
                 resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n\
                 os.truncate('file', (1 << 40) + 1)";
    fixture.assert_python_refused(lines, &["File too large"]);
    setrlimit(Resource::Fsize, before).unwrap();
    assert_eq!(fixture.run_ok("cat file"), "mine");
}
