//! Paths outside the workspace: readable like for commands, never a secret, writable only after approval.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    Answer, Call, Caps, Error, ErrorKind, Options, Outside, Profile, Question, Reply, Rules,
    Runtime, SandboxSettings, Session,
};

struct Machine {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Machine {
    fn new() -> Machine {
        Machine::with(|builder, _| builder)
    }

    fn with(
        more: impl FnOnce(toolcrib::RuntimeBuilder, &Path) -> toolcrib::RuntimeBuilder,
    ) -> Machine {
        let top = crate::command_directory();
        let at = |name: &str| top.path().join(name);
        for directory in ["ws", "lib/json", "home/.ssh", "home/.config/gh", "other/src"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for (file, content) in [
            ("ws/a.txt", "inside\n"),
            ("lib/json/decoder.py", "public\n"),
            ("home/.ssh/id_rsa", "SECRET\n"),
            ("home/.config/gh/hosts.yml", "SECRET\n"),
            ("home/.config/ok.yml", "public\n"),
            ("home/.netrc", "SECRET\n"),
            ("other/src/main.rs", "fn main() {}\n"),
        ] {
            fs::write(at(file), content).unwrap();
        }
        let hidden = [".ssh", ".config/gh", ".netrc", ".aws"].map(|path| at("home").join(path));
        let builder = Runtime::builder()
            .root(at("ws"))
            .home(at("home"))
            .journal(at("state"), Caps::default())
            .sandbox(SandboxSettings {
                hidden: hidden.to_vec().into(),
                ..SandboxSettings::default()
            })
            .helper(crate::helper());
        let runtime = more(builder, top.path()).build().unwrap();
        let session = runtime.session();
        Machine { top, runtime, session }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.path().join(path)
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<Reply, Error> {
        self.call("Read", json!({"file_path": path.as_ref()}))
    }

    /// Makes a call with an approver that gives this answer. Returns the reasons of the questions.
    fn ask(&self, answer: &Answer, tool: &str, args: Value) -> (Result<Reply, Error>, Vec<String>) {
        let whys = Mutex::new(Vec::new());
        let approver = |question: &Question<'_>| {
            whys.lock().push(question.reason());
            answer.clone()
        };
        let options = Options { approver: &approver, ..Options::default() };
        let reply = self.runtime.call(&self.session, Call::new(tool, args), options);
        (reply, whys.into_inner())
    }
}

fn assert_no_secret(machine: &Machine, tool: &str, args: Value) {
    let text = match machine.call(tool, args.clone()) {
        Ok(reply) => reply.output().to_owned(),
        Err(error) => error.text(),
    };
    assert!(!text.contains("SECRET"), "{tool} {args}: {text}");
}

#[test]
fn no_path_spelling_reads_a_secret() {
    let machine = Machine::new();
    let home = machine.at("home");
    symlink(home.join(".ssh"), machine.at("lib/keys")).unwrap();
    symlink("../home", machine.at("lib/up")).unwrap();
    symlink(machine.at("lib/keys/id_rsa"), machine.at("ws/key")).unwrap();
    symlink("../lib/up/.ssh", machine.at("ws/dir")).unwrap();
    fs::hard_link(home.join(".netrc"), machine.at("lib/hard")).unwrap();
    // A secret path that becomes a symlink while the server runs.
    fs::create_dir(machine.at("vault")).unwrap();
    fs::write(machine.at("vault/credentials"), "SECRET\n").unwrap();
    symlink(machine.at("vault"), home.join(".aws")).unwrap();
    let own = fs::read_dir(machine.at("state")).into_iter().flatten().count();
    let spellings = [
        home.join(".ssh/id_rsa"),
        home.join(".ssh//./id_rsa"),
        home.join(".ssh/../.ssh/id_rsa"),
        home.join(".config/../.ssh/id_rsa"),
        home.join(".ssh/id_rsa/"),
        home.join(".netrc"),
        home.join(".aws/credentials"),
        "~/.ssh/id_rsa".into(),
        "~//.ssh/id_rsa".into(),
        "../home/.ssh/id_rsa".into(),
        machine.at("lib/keys/id_rsa"),
        machine.at("lib/up/.ssh/id_rsa"),
        machine.at("lib/hard"),
        "key".into(),
        "dir/id_rsa".into(),
        Path::new("/proc/self/root").join(home.join(".ssh/id_rsa").strip_prefix("/").unwrap()),
        Path::new("/proc/self/cwd").join("x"),
        Path::new("/dev/fd/../../..").join(home.join(".ssh/id_rsa").strip_prefix("/").unwrap()),
        machine.at("state/log"),
        machine.at("state"),
    ];
    for path in &spellings {
        let error = machine.read(path).err().unwrap_or_else(|| panic!("{path:?} was read"));
        assert_ne!(error.kind(), ErrorKind::Internal, "{path:?}: {error}");
        assert_no_secret(&machine, "Read", json!({"file_path": path}));
        assert_no_secret(
            &machine,
            "Grep",
            json!({"pattern": "SEC", "path": path, "output_mode": "content"}),
        );
        assert_no_secret(&machine, "LS", json!({"path": path}));
        let write = json!({"file_path": path, "content": "x"});
        assert!(machine.call("Write", write).is_err(), "{path:?}");
    }
    assert_eq!(fs::read_to_string(home.join(".ssh/id_rsa")).unwrap(), "SECRET\n");
    let after = fs::read_dir(machine.at("state")).into_iter().flatten().count();
    assert!(after >= own);
}

#[test]
fn searches_and_listings_outside_skip_secrets() {
    let machine = Machine::new();
    let top = machine.top.path();
    symlink(machine.at("home/.ssh/id_rsa"), machine.at("lib/key")).unwrap();
    let args = json!({"pattern": "SECRET|public", "path": top, "hidden": true, "ignored": true});
    let found = machine.call("Grep", args).unwrap();
    assert!(found.output().contains("decoder.py") && found.output().contains("ok.yml"));
    let args = json!({"pattern": "**/*", "path": top, "hidden": true, "ignored": true});
    let listed = machine.call("Glob", args).unwrap();
    let tree = machine.call("LS", json!({"path": top, "recursive": true, "depth": 9})).unwrap();
    for text in [found.output(), listed.output()] {
        for name in ["id_rsa", "hosts.yml", "lib/key\n"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }
    assert!(!tree.output().contains("hosts.yml") && !tree.output().contains("id_rsa ("));
    for name in ["decoder.py", "main.rs"] {
        assert!(listed.output().contains(&format!("{}/", top.display())), "paths are absolute");
        assert!(listed.output().contains(name) && tree.output().contains(name), "{name}");
    }
    for text in [found.output(), listed.output()] {
        let (files, notes) = text.split_once("\n[").unwrap();
        assert!(!files.contains(".netrc") && notes.contains("hidden paths skipped: "), "{text}");
    }
}

#[test]
fn bind_mount_of_a_secret_is_hidden() {
    let machine = Machine::new();
    let mount = |from: &str, to: &str| {
        fs::create_dir_all(machine.at(to)).unwrap();
        let made = std::process::Command::new("mount")
            .args(["--bind".as_ref(), machine.at(from).as_os_str(), machine.at(to).as_os_str()])
            .output();
        made.is_ok_and(|made| made.status.success())
    };
    // Only root may mount, and not everywhere.
    if !mount("home/.ssh", "alias") {
        return;
    }
    let whole = mount("home", "house");
    let outcomes = [
        machine.read(machine.at("alias/id_rsa")),
        machine.call("LS", json!({"path": machine.at("alias")})),
        machine.read(machine.at("house/.ssh/id_rsa")),
        machine.read(machine.at("house/.netrc")),
    ];
    let search = json!({"pattern": "SECRET", "path": machine.top.path(), "hidden": true});
    let found = machine.call("Grep", search).unwrap().output().to_owned();
    for name in ["alias", "house"] {
        let _ = std::process::Command::new("umount").arg(machine.at(name)).status();
    }
    assert!(whole && outcomes.iter().all(Result::is_err), "{outcomes:?}");
    assert!(found.starts_with("No match for"), "{found}");
}

#[test]
fn swapped_symlink_does_not_read_a_secret() {
    let machine = Machine::new();
    let (link, spare) = (machine.at("lib/swap"), machine.at("lib/spare"));
    symlink(machine.at("lib/json"), &link).unwrap();
    fs::write(machine.at("lib/json/id_rsa"), "public\n").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let targets = [machine.at("home/.ssh"), machine.at("lib/json")];
            for target in targets.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                symlink(target, &spare).unwrap();
                fs::rename(&spare, &link).unwrap();
            }
        });
        for _ in 0..300 {
            assert_no_secret(&machine, "Read", json!({"file_path": link.join("id_rsa")}));
            let args = json!({"pattern": "SEC", "path": &link, "output_mode": "content"});
            assert_no_secret(&machine, "Grep", args);
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn special_files_are_rejected_at_once() {
    let machine = Machine::new();
    let fifo = machine.at("lib/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(machine.at("lib/s")).unwrap();
    for path in [fifo, machine.at("lib/s")] {
        assert_eq!(machine.read(&path).unwrap_err().kind(), ErrorKind::NotRegular);
    }
    for path in ["/dev/zero", "/dev/stdin", "/proc/kmsg", "/proc/self/mem", "/sys/kernel"] {
        assert_eq!(machine.read(path).unwrap_err().kind(), ErrorKind::Protected, "{path}");
    }
}

#[test]
fn search_of_the_whole_system_is_bounded() {
    let limits = toolcrib::Limits {
        search_time: std::time::Duration::from_millis(200),
        ..toolcrib::Limits::default()
    };
    let machine = Machine::with(|builder, _| builder.limits(limits));
    let args = json!({"pattern": "no such line anywhere at all", "path": "/"});
    let text = machine.call("Grep", args).unwrap().output().to_owned();
    assert!(!text.contains("/proc/") && !text.contains("/sys/"), "{text}");
    let found = machine.call("Glob", json!({"pattern": "/**/*.nosuchname"})).unwrap();
    assert!(!found.output().contains("/proc/"), "{}", found.output());
}

#[test]
fn rules_apply_outside_the_workspace() {
    let machine = Machine::with(|builder, top| {
        let rules = format!(
            "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"{0}/lib/json\"]\n\
             [[rule]]\ndecision = \"deny\"\nkind = \"external_directory\"\npaths = [\"{0}/other\"]\n",
            top.display()
        );
        builder.rules(Rules::parse(&rules).unwrap())
    });
    for path in ["lib/json/decoder.py", "other/src/main.rs"] {
        assert_eq!(machine.read(machine.at(path)).unwrap_err().kind(), ErrorKind::Denied, "{path}");
    }
    assert!(machine.read(machine.at("home/.config/ok.yml")).is_ok());
    let args = json!({"pattern": "public|main", "path": machine.top.path(), "hidden": true});
    let found = machine.call("Grep", args).unwrap().output().to_owned();
    assert!(!found.contains("decoder.py") && !found.contains("main.rs"), "{found}");
    let write = json!({"file_path": machine.at("other/x"), "content": "x"});
    let (reply, asked) = machine.ask(&Answer::Allow, "Write", write);
    assert_eq!((reply.unwrap_err().kind(), asked.len()), (ErrorKind::Denied, 0));
}

#[test]
fn approval_opens_the_directory_for_the_session() {
    let machine = Machine::new();
    let file = |name: &str| machine.at("other/src").join(name).display().to_string();
    let write = |name: &str| json!({"file_path": file(name), "content": "x\n"});
    let nobody = machine.call("Write", write("a")).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::OutsideWorkspace);
    assert!(nobody.text().contains("--root DIR"), "{nobody}");
    let (no, _) = machine.ask(&Answer::Deny(String::new()), "Write", write("a"));
    assert_eq!(no.unwrap_err().kind(), ErrorKind::Denied);
    let (yes, asked) = machine.ask(&Answer::AllowForSession, "Write", write("a"));
    let text = yes.unwrap().output().to_owned();
    let opens = format!("an approval for the session opens {}", machine.at("other/src").display());
    assert!(asked[0].contains(&opens), "{}", asked[0]);
    assert!(text.contains("commands still cannot write there"), "{text}");
    // The directory and its contents are open; its siblings are not.
    let edit = json!({"file_path": file("main.rs"), "old_string": "main", "new_string": "start"});
    machine.call("Edit", edit).unwrap();
    machine.call("Write", write("deep/b")).unwrap();
    let beside = json!({"file_path": machine.at("other/c"), "content": "x"});
    assert_eq!(machine.call("Write", beside).unwrap_err().kind(), ErrorKind::OutsideWorkspace);
    let command = format!("echo x > {}", file("d"));
    assert!(machine.call("Bash", json!({"command": command})).is_err());
    // All of these changes can be undone.
    let history = machine.call("History", json!({})).unwrap().output().to_owned();
    assert!(history.contains("main.rs") && history.contains("deep/b"), "{history}");
    machine.call("Undo", json!({"steps": 3})).unwrap();
    assert_eq!(fs::read_to_string(file("main.rs")).unwrap(), "fn main() {}\n");
    assert!(!machine.at("other/src/a").exists() && !machine.at("other/src/deep").exists());
    let other = machine.runtime.session();
    let call = Call::new("Write", write("a"));
    assert!(machine.runtime.call(&other, call, Options::default()).is_err(), "another session");
    assert!(machine.runtime.history().unwrap().is_empty(), "not of this workspace");
}

#[test]
fn approval_of_one_call_opens_nothing() {
    let machine = Machine::new();
    let file = |name: &str| machine.at("other/src").join(name).display().to_string();
    let write = |name: &str| json!({"file_path": file(name), "content": "x\n"});
    let (yes, _) = machine.ask(&Answer::Allow, "Write", write("a"));
    let text = yes.unwrap().output().to_owned();
    assert!(!text.contains("is open to file tools"), "{text}");
    for name in ["a", "b"] {
        let later = machine.call("Write", write(name)).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::OutsideWorkspace, "{name}: {later}");
    }
    machine.call("Undo", json!({})).unwrap();
    assert!(!machine.at("other/src/a").exists());
}

#[test]
fn nobody_is_asked_about_an_edit_outside_that_cannot_succeed() {
    let machine = Machine::new();
    let edit = json!({"file_path": machine.at("other/src/main.rs"), "old_string": "none", "new_string": "x"});
    let (failed, asked) = machine.ask(&Answer::AllowForSession, "Edit", edit);
    let failed = failed.unwrap_err();
    assert_eq!((failed.kind(), asked.len()), (ErrorKind::NoMatch, 0), "{failed}");
}

#[test]
fn approval_of_a_file_in_home_opens_only_that_file() {
    let machine = Machine::new();
    let write = |name: &str| json!({"file_path": format!("~/{name}"), "content": "x\n"});
    let (yes, _) = machine.ask(&Answer::AllowForSession, "Write", write("notes.txt"));
    yes.unwrap();
    assert!(machine.at("home/notes.txt").exists() && !machine.at("ws/~").exists());
    assert_eq!(
        machine.call("Write", write(".bashrc")).unwrap_err().kind(),
        ErrorKind::OutsideWorkspace
    );
    let (hidden, asked) = machine.ask(&Answer::Allow, "Write", write(".ssh/authorized_keys"));
    assert_eq!((hidden.unwrap_err().kind(), asked.len()), (ErrorKind::Protected, 0));
}

#[test]
fn protected_names_apply_outside_the_workspace() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("other/.git/hooks")).unwrap();
    for name in ["other/.git/hooks/pre-commit", "other/.vscode/tasks.json"] {
        let write = json!({"file_path": machine.at(name), "content": "x"});
        let (reply, asked) = machine.ask(&Answer::Allow, "Write", write);
        assert_eq!((reply.unwrap_err().kind(), asked.len()), (ErrorKind::Protected, 0), "{name}");
    }
}

#[test]
fn profile_and_setting_decide_on_outside_access() {
    use ErrorKind::{Denied, OutsideWorkspace};
    for (profile, outside, expected) in [
        (Profile::Workspace, None, None),
        (Profile::Open, None, None),
        (Profile::Cautious, None, Some(Denied)),
        (Profile::ReadOnly, None, Some(OutsideWorkspace)),
        (Profile::Workspace, Some(Outside::Deny), Some(OutsideWorkspace)),
        (Profile::Open, Some(Outside::Ask), Some(Denied)),
        (Profile::ReadOnly, Some(Outside::Read), None),
    ] {
        let machine = Machine::with(|builder, _| {
            let builder = builder.profile(profile);
            outside.into_iter().fold(builder, toolcrib::RuntimeBuilder::outside)
        });
        let read = machine.read(machine.at("lib/json/decoder.py"));
        assert_eq!(read.err().map(|error| error.kind()), expected, "{profile} {outside:?}");
    }
    let machine = Machine::with(|builder, _| builder.profile(Profile::Cautious));
    let args = json!({"path": machine.at("lib")});
    let (reply, asked) = machine.ask(&Answer::AllowForSession, "LS", args);
    assert!(reply.is_ok() && asked.len() == 1);
    assert!(machine.read(machine.at("lib/json/decoder.py")).is_ok(), "beneath what was allowed");
    assert!(machine.read(machine.at("other/src/main.rs")).is_err());
}

#[test]
fn home_as_root_hides_keys() {
    let machine = Machine::with(|builder, top| builder.root(top.join("home")));
    for path in [machine.at("home/.ssh/id_rsa"), "~/.netrc".into()] {
        assert_eq!(machine.read(&path).unwrap_err().kind(), ErrorKind::Protected, "{path:?}");
    }
    assert!(machine.read("~/.config/ok.yml").is_ok());
}
