//! Commands in the sandbox, through the library: what they are held to is what the file tools are held to.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{
    Call, Caps, Error, ErrorKind, Options, Profile, Reply, Runtime, SandboxSettings, Session,
};

struct Sandboxed {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Sandboxed {
    fn new() -> Sandboxed {
        // Not in /tmp: commands have another one.
        let top = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in ["ws/.git/hooks", "ws/.vscode", "ro", "out", "home/.ssh", "home/.cache"] {
            fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for file in
            ["ws/.git/config", "ws/.vscode/tasks.json", "out/canary", "home/.ssh/key", "ro/f"]
        {
            fs::write(top.path().join(file), "canary").unwrap();
        }
        let settings = SandboxSettings {
            hidden: vec![top.path().join("home/.ssh")],
            caches: vec![top.path().join("home/.cache"), top.path().join("home/.none")],
            ..SandboxSettings::default()
        };
        let runtime = Runtime::builder()
            .root(top.path().join("ws"))
            .read_only_root(top.path().join("ro"))
            .journal(top.path().join("state"), Caps::default())
            .profile(Profile::Workspace)
            .sandbox(settings)
            .helper(crate::helper())
            .build()
            .unwrap();
        let session = runtime.session();
        Sandboxed { top, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    /// Runs a command; `T/` in it is the directory of the test.
    fn bash(&self, command: &str) -> Result<Reply, Error> {
        let top = format!("{}/", self.top.path().display());
        let command = command.replace("T/", &top);
        self.call("Bash", json!({"command": command}))
    }

    fn refused(&self, command: &str) {
        let error = self.bash(command).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{command}: {error}");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.top.path().join(name)).unwrap()
    }
}

#[test]
fn a_command_keeps_inside_without_a_question() {
    let here = Sandboxed::new();
    let reply = here.bash("echo x > made; echo y > T/home/.cache/y; cat T/ro/f").unwrap();
    assert_eq!(reply.output(), "canary\n[created made; Undo with id 1 takes it back]\n");
    assert_eq!(reply.metadata()["sandbox"], "level 4");
    assert_eq!((here.read("ws/made"), here.read("home/.cache/y")), ("x\n".into(), "y\n".into()));
    for command in [
        "echo x > T/out/canary",
        "rm T/out/canary",
        "echo x > T/ro/f",
        "mkdir T/home/.none",
        "cat T/home/.ssh/key",
        // By a variable that the reading of the command does not follow: it is the kernel that refuses.
        "f=$(echo .git/hooks/pre-commit); echo x > $f",
        "f=$(echo .git/config); echo x > $f",
        "f=$(echo .vscode/tasks.json); echo x > $f",
        "mv .git .g2",
        "mv .vscode .v2",
    ] {
        here.refused(command);
    }
    let seen = here.bash("ls -A T/state && ls -A T/home/.ssh").unwrap();
    assert_eq!(seen.output(), "[no output]\n");
    for file in ["out/canary", "ro/f", "ws/.git/config", "ws/.vscode/tasks.json"] {
        assert_eq!(here.read(file), "canary");
    }
}

#[test]
fn what_a_command_plants_is_harmless_to_the_next_tool() {
    let here = Sandboxed::new();
    here.bash("ln -s T/out/canary link; ln -s T/home dir; mkfifo pipe").unwrap();
    for (tool, args) in [
        ("Write", json!({"file_path": "link", "content": "x"})),
        ("Write", json!({"file_path": "dir/.ssh/key", "content": "x"})),
        ("Read", json!({"file_path": "dir/.ssh/key"})),
        ("Read", json!({"file_path": "pipe"})),
    ] {
        here.call(tool, args).unwrap_err();
    }
    assert_eq!(
        (here.read("out/canary"), here.read("home/.ssh/key")),
        ("canary".into(), "canary".into())
    );
}

#[test]
fn no_argument_lowers_it() {
    let here = Sandboxed::new();
    for argument in ["sandbox", "dangerouslyDisableSandbox", "level", "network"] {
        let error = here.call("Bash", json!({"command": "true", argument: false})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{argument}");
    }
}

#[test]
fn tmp_is_the_sessions_and_goes_with_it() {
    let here = Sandboxed::new();
    here.bash("echo x > /tmp/mark; test $TMPDIR = /tmp").unwrap();
    assert_eq!(here.bash("cat /tmp/mark; mktemp > /dev/null").unwrap().output(), "x\n");
    let other = here.runtime.session();
    let call = Call::new("Bash", json!({"command": "cat /tmp/mark"}));
    here.runtime.call(&other, call, Options::default()).unwrap_err();
    drop((other, here.session));
    let left = fs::read_dir(here.top.path().join("state")).unwrap().flatten();
    let left: Vec<_> =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with("tmp-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_protected_name_that_a_command_makes_is_said_and_protected_from_then_on() {
    let here = Sandboxed::new();
    // By a variable that the reading of the command does not follow.
    let reply = here.bash("for f in $(echo .envrc .git/hooks.txt); do echo x > $f; done").unwrap();
    assert_eq!(reply.metadata()["protected_path_created"], json!([".envrc"]), "{}", reply.output());
    assert!(reply.output().contains("protected from now on: .envrc"), "{}", reply.output());
    here.refused("f=$(echo .envrc); echo y > $f");
    let again = here.bash("true").unwrap();
    assert_eq!(again.metadata().get("protected_path_created"), None);
}

#[test]
fn a_command_is_judged_from_where_it_begins() {
    let here = Sandboxed::new();
    here.bash("mkdir sub && cd sub").unwrap();
    // The root itself, from where the last command ended, and from where this one is to begin.
    let error = here.bash("rm -rf ..").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = here.call("Bash", json!({"command": "rm -rf .", "cwd": "sub/.."})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    here.bash("mkdir x && rm -rf ./x").unwrap();
}
