//! Changes of commands are reported, recorded and undone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Error, Options, Profile, Reply, Runtime, Session};

struct Fixture {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

/// Files (content), symlinks (target) and directories of a workspace, with their modes.
type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

impl Fixture {
    fn new() -> Fixture {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        for directory in ["ws/src/deep", "ws/docs", "ws/.git"] {
            fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for (file, content) in [
            ("ws/a.txt", "one\ntwo\n"),
            ("ws/src/lib.rs", "fn  lib() {}\n"),
            ("ws/src/deep/down.rs", "fn down() {}\n"),
            ("ws/docs/page.md", "# Page\n"),
            ("ws/.gitignore", "*.log\nout/\n"),
            ("ws/build.log", "old log\n"),
        ] {
            fs::write(top.path().join(file), content).unwrap();
        }
        let runtime = runtime(top.path());
        let session = runtime.session();
        Fixture { top, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn bash(&self, command: &str) -> Reply {
        self.call("Bash", json!({"command": command})).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join("ws").join(name)
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut open = vec![self.path("")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let about = path.symlink_metadata().unwrap();
                let content = if about.is_symlink() {
                    Some(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
                } else {
                    about.is_file().then(|| fs::read(&path).unwrap())
                };
                if about.is_dir() {
                    open.push(path.clone());
                }
                tree.insert(path, (about.permissions().mode(), content));
            }
        }
        tree
    }

    /// Waits until there are more than `count` changes, and returns the newest.
    fn change_after(&self, count: usize) -> toolcrib::HistoryEntry {
        let until = Instant::now() + Duration::from_secs(600);
        loop {
            let mut history = self.runtime.history().unwrap();
            if history.len() > count {
                return history.pop().unwrap();
            }
            assert!(Instant::now() < until, "there is no change");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn runtime(top: &Path) -> Runtime {
    Runtime::builder()
        .root(top.join("ws"))
        .journal(top.join("state"), Caps::default())
        .profile(Profile::Workspace)
        .helper(crate::helper())
        .build()
        .unwrap()
}

fn changed(reply: &Reply, how: &str) -> Vec<String> {
    let names = reply.metadata()["files_changed"][how].as_array().unwrap();
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn python(line: &str) -> String {
    format!("/usr/bin/python3 -c \"import ctypes, mmap, os; {line}\"")
}

#[test]
fn undo_reverts_all_changes_of_a_command() {
    for (command, created, modified, deleted) in [
        ("sed -i s/one/1/ a.txt", 0, 1, 0),
        ("rm -r src a.txt", 0, 0, 3),
        ("echo new > new; mkdir -p x/y && echo z > x/y/z", 2, 0, 0),
        ("ln -s a.txt link; ln -sf nowhere docs/page.md; mkdir -m 700 -p empty/deep", 1, 1, 0),
        ("mv src/deep/down.rs .; rm -rf docs src; ln -s .. docs; echo file > src", 3, 0, 3),
        ("rm a.txt; mkdir a.txt; echo in > a.txt/in", 1, 0, 1),
        ("mkdir d; mv -T src d; mv docs src; rmdir src/none; echo x > src/page.md", 3, 0, 3),
        ("mv a.txt b.txt", 1, 0, 1),
        ("mv src lib", 2, 0, 2),
        ("mv src lib && echo more >> lib/lib.rs && mv lib/deep deeper", 2, 0, 2),
        ("cat docs/page.md > a.txt", 0, 1, 0),
        ("chmod 600 a.txt", 0, 1, 0),
        ("truncate -s 2 a.txt", 0, 1, 0),
        (": > a.txt", 0, 1, 0),
        (&python("os.open('a.txt', os.O_WRONLY | os.O_TRUNC)"), 0, 1, 0),
        (&python("os.open('a.txt', os.O_RDONLY | os.O_TRUNC)"), 0, 1, 0),
        (&python("ctypes.CDLL(None).creat(b'a.txt', 0o600)"), 0, 1, 0),
        (&python("os.truncate('a.txt', 0)"), 0, 1, 0),
        (&python("os.ftruncate(os.open('a.txt', os.O_RDWR), 0)"), 0, 1, 0),
        (
            &python(
                "f = os.open('a.txt', 0); os.open(f'/proc/self/fd/{f}', os.O_WRONLY | os.O_TRUNC)",
            ),
            0,
            1,
            0,
        ),
        (
            &python(
                "f = os.open('a.txt', os.O_PATH); os.open(f'/dev/fd/{f}', os.O_RDWR | os.O_TRUNC)",
            ),
            0,
            1,
            0,
        ),
        (&python("f = os.open('a.txt', 0); os.truncate(f'/proc/thread-self/fd/{f}', 1)"), 0, 1, 0),
        (
            &python(
                "d = os.open('src', 0); os.open('../a.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=d)",
            ),
            0,
            1,
            0,
        ),
        (
            &python(
                "os.symlink('a.txt', 'l'); os.open('l', os.O_WRONLY | os.O_TRUNC); os.unlink('l')",
            ),
            0,
            1,
            0,
        ),
        (&python("f = open('a.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0] = 88"), 0, 1, 0),
        ("cp a.txt src/lib.rs; cp -r src copy", 2, 1, 0),
        ("ln a.txt b.txt; echo x >> b.txt", 1, 1, 0),
        ("echo log >> build.log; mkdir out; echo o > out/o", 1, 1, 0),
        ("python3 -c 'import os; os.replace(\"a.txt\", \"docs/page.md\")'", 0, 1, 1),
        ("printf 'x\\ny\\n' | tee a.txt docs/new.md > /dev/null", 1, 1, 0),
        ("perl -pi -e 's/fn/pub fn/' src/lib.rs src/deep/down.rs", 0, 2, 0),
        ("(sleep 0.1; echo late > late) & wait", 1, 0, 0),
        ("f=$(mktemp ./t.XXXX); echo x > $f; mv $f a.txt", 0, 1, 0),
        ("exec 3< a.txt; echo gone > /dev/fd/3", 0, 1, 0),
        ("python3 -c \"open('/dev/stdin', 'w').write('x')\" < a.txt", 0, 1, 0),
        ("exec 9< a.txt; echo gone | tee /dev/fd/9 > /dev/null", 0, 1, 0),
        ("exec 3< a.txt; echo gone > /proc/thread-self/fd/3", 0, 1, 0),
        ("exec 3< a.txt; echo gone > /proc/../proc/self/fd/3", 0, 1, 0),
        ("ln -s /proc/self/fd/3 /tmp/l; exec 3< a.txt; echo gone > /tmp/l", 0, 1, 0),
        (
            "ln -s $PWD /tmp/d; ln -s /tmp/d/a.txt /tmp/m; echo gone > /tmp/m; rm /tmp/d /tmp/m",
            0,
            1,
            0,
        ),
    ] {
        let fixture = Fixture::new();
        let before = fixture.tree();
        let reply = fixture.bash(command);
        let after = fixture.tree();
        let counts = ["created", "modified", "deleted"].map(|how| changed(&reply, how).len());
        assert_eq!(counts, [created, modified, deleted], "{command}\n{}", reply.output());
        assert!(reply.output().contains("; Undo with id 1 reverts this]"), "{}", reply.output());
        fixture.call("Undo", json!({"id": 1})).unwrap();
        assert_eq!(fixture.tree(), before, "{command}");
        fixture.call("Undo", json!({"id": 2})).unwrap();
        assert_eq!(fixture.tree(), after, "{command}");
    }
}

/// A process may still have a descriptor or mapping when the reply is returned.
#[test]
fn writes_after_the_reply_are_recorded() {
    for write in [
        "exec 3>> a.txt; (until [ -f go ]; do sleep 0.01; done; echo late >&3; rm go) > /dev/null 2>&1 &",
        "python3 -c 'import mmap, os, time\nf = open(\"a.txt\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b\"O\"\nwhile not os.path.exists(\"go\"): time.sleep(0.01)\nm[0:3] = b\"xxx\"; m.flush(); os.remove(\"go\")' > /dev/null 2>&1 & sleep 0.3",
    ] {
        let fixture = Fixture::new();
        let before = fs::read(fixture.path("a.txt")).unwrap();
        let reply = fixture.call("Bash", json!({"command": write})).unwrap();
        let job = reply.metadata()["bash_id"].as_str().unwrap().to_owned();
        fs::write(fixture.path("go"), "").unwrap();
        while fixture.path("go").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The last process has written and is about to exit.
        let mut text = String::new();
        for _ in 0..2_000 {
            text += fixture.call("BashOutput", json!({"bash_id": job})).unwrap().output();
            if text.contains("modified a.txt") {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(text.contains("modified a.txt"), "{text}");
        assert_ne!(fs::read(fixture.path("a.txt")).unwrap(), before);
        while fs::read(fixture.path("a.txt")).unwrap() != before {
            fixture.call("Undo", json!({})).unwrap();
        }
    }
}

#[test]
fn hard_linked_file_is_reported() {
    let fixture = Fixture::new();
    fs::hard_link(fixture.path("a.txt"), fixture.path("docs/hard")).unwrap();
    let reply = fixture.bash("echo x > a.txt");
    assert!(reply.output().contains("a.txt has other hard links"), "{}", reply.output());
}

#[test]
fn command_without_changes_leaves_no_entry() {
    let fixture = Fixture::new();
    for command in [
        "cat a.txt > /dev/null; ls -R; git status 2>&1; true",
        "echo x > /tmp/x; rm /tmp/x",
        "touch a.txt; cp a.txt x; rm x",
        "sed -i s/nothing/here/ a.txt",
        "chmod 755 a.txt; chmod 644 a.txt",
        "mv a.txt b.txt; mv b.txt a.txt",
        "echo x > a.txt; printf 'one\\ntwo\\n' > a.txt",
    ] {
        fs::set_permissions(fixture.path("a.txt"), fs::Permissions::from_mode(0o644)).unwrap();
        let reply = fixture.call("Bash", json!({"command": command})).unwrap();
        assert!(reply.metadata().get("files_changed").is_none(), "{command}: {}", reply.output());
        assert!(fixture.runtime.history().unwrap().is_empty(), "{command}");
    }
}

#[test]
fn failed_command_reports_its_changes() {
    let fixture = Fixture::new();
    let error = fixture.call("Bash", json!({"command": "rm a.txt; exit 3"})).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("[deleted a.txt; Undo with id 1 reverts this]"), "{text}");
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn changes_by_other_programs_are_not_attributed_to_the_command() {
    let fixture = Fixture::new();
    let job = fixture.call(
        "Bash",
        json!({"command": "rm a.txt; until [ -f go ]; do sleep 0.01; done; rm go", "run_in_background": true}),
    );
    let id = job.unwrap().metadata()["bash_id"].as_str().unwrap().to_owned();
    while fixture.path("a.txt").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::write(fixture.path("docs/page.md"), "by a person\n").unwrap();
    fs::write(fixture.path("go"), "").unwrap();
    let reply =
        fixture.call("BashOutput", json!({"bash_id": id, "wait_for": "exit", "timeout": 30_000}));
    reply.unwrap();
    let change = fixture.change_after(0);
    let names: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["a.txt", "go"]);
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fs::read_to_string(fixture.path("docs/page.md")).unwrap(), "by a person\n");
}

#[test]
fn background_changes_are_reported_at_the_end() {
    let fixture = Fixture::new();
    let reply = fixture.bash("echo now > now; (sleep 0.5; echo later > later) &");
    assert_eq!(changed(&reply, "created"), ["now"]);
    let id = reply.metadata()["bash_id"].as_str().unwrap();
    let later = fixture.change_after(1);
    assert_eq!(later.files[0].path, "later");
    let until = Instant::now() + Duration::from_secs(600);
    let told = loop {
        let reply = fixture.call("BashOutput", json!({"bash_id": id})).unwrap();
        if reply.metadata().get("files_changed").is_some() || Instant::now() > until {
            break reply;
        }
    };
    assert!(told.output().contains("[created later; Undo with id 2 reverts this]"), "{told:?}");
    let ended = fixture.bash("sleep 60 & echo x > killed");
    assert_eq!(changed(&ended, "created"), ["killed"]);
}

#[test]
fn files_too_large_to_capture_are_named() {
    let fixture = Fixture::new();
    fs::write(fixture.path("large.bin"), vec![0; 65 << 20]).unwrap();
    fs::write(fixture.path("large.log"), vec![b'x'; 5 << 20]).unwrap();
    let reply = fixture.bash("rm large.bin large.log a.txt; echo x > b.txt");
    let expected = "[created b.txt; deleted a.txt, large.bin; deleted 1 ignored or generated file (large.log); Undo";
    assert!(reply.output().contains(expected), "{}", reply.output());
    let lost = "[not kept, so Undo cannot restore them: large.bin (68157440 bytes, over the limit of 64 MiB for one file), large.log (5242880 bytes, over the limit of 4 MiB for one ignored or generated file)";
    assert!(reply.output().contains(lost), "{}", reply.output());
    assert_eq!(reply.metadata()["files_changed"]["not_kept"], 2);
    fixture.call("Undo", json!({})).unwrap();
    assert!(fixture.path("a.txt").exists() && !fixture.path("b.txt").exists());
}

/// A FIFO or a socket is never stored, so Undo neither restores nor removes it.
#[test]
fn special_files_that_a_command_creates_stay() {
    let fixture = Fixture::new();
    let reply = fixture.bash("mkfifo pipe; echo x > made");
    let expected = "[created made, pipe; Undo with id 1 reverts this (exceptions below)]\n[note: Undo does not remove pipe (";
    assert!(reply.output().contains(expected), "{}", reply.output());
    let undone = fixture.call("Undo", json!({})).unwrap().text();
    assert!(undone.contains("Not removed, because only files and symlinks are: pipe."), "{undone}");
    assert!(fixture.path("pipe").exists() && !fixture.path("made").exists());
    let reply = fixture.bash("mkfifo other");
    assert!(!reply.output().contains("reverts"), "{}", reply.output());
    let error = fixture.call("Undo", json!({})).unwrap_err().text();
    assert!(error.contains("Undo cannot revert what it did to other"), "{error}");
}

#[test]
fn undo_and_history_name_running_commands_with_unrecorded_changes() {
    let fixture = Fixture::new();
    fixture.bash("echo x > made");
    let quiet = json!({"command": "sleep 600", "run_in_background": true});
    fixture.call("Bash", quiet).unwrap();
    let writes = "echo 1 > log.txt; sleep 600";
    let started = fixture.call("Bash", json!({"command": writes, "run_in_background": true}));
    let id = started.unwrap().metadata()["bash_id"].as_str().unwrap().to_owned();
    crate::eventually(|| {
        fs::read_to_string(fixture.path("log.txt")).is_ok_and(|text| text == "1\n")
    });
    let note = |consequence: &str| {
        format!("[{id} still runs; its latest changes are not recorded yet and {consequence}]")
    };
    let listed = fixture.call("History", json!({})).unwrap().text();
    assert!(listed.contains(&note("not listed")), "{listed}");
    let undone = fixture.call("Undo", json!({})).unwrap().text();
    assert!(undone.contains(&note("not undone")), "{undone}");
    let error = fixture.call("Undo", json!({})).unwrap_err().text();
    assert!(error.contains("nothing to undo") && error.contains(&note("not undone")), "{error}");
    fixture.call("KillShell", json!({"shell_id": id})).unwrap();
    crate::eventually(|| {
        let listed = fixture.call("History", json!({})).unwrap().text();
        listed.contains("log.txt") && !listed.contains("still run")
    });
}

#[test]
fn an_undo_without_effect_is_listed_as_such() {
    let fixture = Fixture::new();
    fixture.bash("echo x > made");
    fs::remove_file(fixture.path("made")).unwrap();
    fixture.call("Undo", json!({})).unwrap();
    let listed = fixture.call("History", json!({})).unwrap().text();
    assert!(listed.contains("Undo of 1: no file changed"), "{listed}");
}

#[test]
fn version_control_files_are_not_captured() {
    let fixture = Fixture::new();
    fs::remove_dir(fixture.path(".git")).unwrap();
    let git = "git -c user.name=a -c user.email=a@b";
    fixture.bash(&format!(
        "git init -q -b main . && git add -A && {git} commit -qm one && git checkout -qb other && echo 2 > a.txt && {git} commit -qam two && git checkout -q main"
    ));
    fs::write(fixture.path("src/lib.rs"), "not committed\n").unwrap();
    let reply = fixture.bash("git checkout -q other; git checkout -q -- src/lib.rs");
    assert_eq!(changed(&reply, "modified"), ["a.txt", "src/lib.rs"], "{}", reply.output());
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fs::read_to_string(fixture.path("src/lib.rs")).unwrap(), "not committed\n");
    assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn undo_fails_while_another_directory_has_the_files_path() {
    let fixture = Fixture::new();
    let before = fixture.tree();
    fixture.bash("rm a.txt");
    fs::create_dir(fixture.path("a.txt")).unwrap();
    fs::write(fixture.path("a.txt/in"), "by a person").unwrap();
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.to_string().contains("a.txt is a directory now"), "{error}");
    fs::remove_dir_all(fixture.path("a.txt")).unwrap();
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fixture.tree(), before);
    // The same if the command created the directory and others added a file.
    fixture.bash("rm a.txt; mkdir a.txt");
    fs::write(fixture.path("a.txt/in"), "by a person").unwrap();
    let with_other = fixture.tree();
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.to_string().contains("a.txt"), "{error}");
    assert_eq!(fixture.tree(), with_other);
}

#[test]
fn symlink_changed_since_is_kept() {
    let fixture = Fixture::new();
    let link = |target: &str| {
        let _ = fs::remove_file(fixture.path("link"));
        std::os::unix::fs::symlink(target, fixture.path("link")).unwrap();
    };
    link("a.txt");
    let reply = fixture.bash("ln -sf docs/page.md link; mkfifo pipe; rm pipe");
    assert_eq!(changed(&reply, "modified"), ["link"]);
    link("elsewhere");
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.to_string().contains("link was changed since"), "{error}");
    assert_eq!(fs::read_link(fixture.path("link")).unwrap(), Path::new("elsewhere"));
    // The target of a symlink is captured; Undo does not follow a new symlink.
    link("a.txt");
    assert_eq!(changed(&fixture.bash("echo x > link"), "modified"), ["a.txt"]);
    fs::remove_file(fixture.path("a.txt")).unwrap();
    fs::write(fixture.top.path().join("outside"), "x\n").unwrap();
    std::os::unix::fs::symlink("../outside", fixture.path("a.txt")).unwrap();
    fixture.call("Undo", json!({})).unwrap_err();
    assert_eq!(fs::read_to_string(fixture.top.path().join("outside")).unwrap(), "x\n");
}

#[test]
fn directory_filled_by_others_is_not_attributed_to_the_command() {
    let fixture = Fixture::new();
    // The rename fails because docs is not empty. Files that a person adds are not part of the change.
    fixture.bash("mv -T src docs 2> /dev/null; echo x > y");
    fs::write(fixture.path("docs/mine"), "by a person").unwrap();
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fs::read_to_string(fixture.path("docs/mine")).unwrap(), "by a person");
}

#[test]
fn many_files_of_many_processes_are_captured() {
    let fixture = Fixture::new();
    fixture.bash("for i in {1..300}; do echo $i > f$i; done");
    let before = fixture.tree();
    let script = "seq 300 | xargs -P 8 -n 10 sh -c 'for i; do echo new > f$i; done' sh; rm f1?";
    let reply = fixture.bash(script);
    assert_eq!((changed(&reply, "modified").len(), changed(&reply, "deleted").len()), (200, 10));
    assert_eq!(reply.metadata()["files_changed"]["count"], 300);
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fixture.tree(), before);
}

#[test]
fn run_later_file_written_by_commands_is_named_once() {
    let fixture = Fixture::new();
    let reply = fixture.bash("echo '{}' > package.json; echo x > other");
    let note =
        "[note: package.json: its scripts run outside the sandbox when a person or CI runs npm]";
    assert!(reply.output().contains(note), "{}", reply.output());
    assert_eq!(reply.metadata()["runs_later"], json!(["package.json"]));
    let reply = fixture.bash("echo '{\"a\": 1}' > package.json");
    assert!(!reply.output().contains("outside the sandbox"), "{}", reply.output());
}
