//! Commands in the sandbox, through the library: they are subject to the same restrictions as file tools.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::{
    Call, Caps, Error, ErrorKind, Options, Profile, Reply, Rules, Runtime, SandboxSettings, Session,
};

/// A sandboxed runtime, and files around its workspace.
pub(crate) struct Sandboxed {
    pub(crate) top: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) session: Session,
}

impl Sandboxed {
    pub(crate) fn new() -> Sandboxed {
        Sandboxed::with_rules(|_| String::new())
    }

    /// With user rules, which may contain paths of the test.
    fn with_rules(rules: impl Fn(&Path) -> String) -> Sandboxed {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        for directory in [
            "ws/.git/hooks",
            "ws/.git/objects",
            "ws/.git/refs",
            "ws/.vscode",
            "ro",
            "out",
            "home/.ssh",
            "home/.cache",
        ] {
            fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for file in
            ["ws/.git/config", "ws/.vscode/tasks.json", "out/canary", "home/.ssh/key", "ro/f"]
        {
            fs::write(top.path().join(file), "canary").unwrap();
        }
        let rules = Rules::parse(&rules(top.path())).unwrap();
        let settings = SandboxSettings {
            hidden: vec![top.path().join("home/.ssh")].into(),
            caches: vec![top.path().join("home/.cache"), top.path().join("home/.none")],
            ..SandboxSettings::default()
        };
        let runtime = Runtime::builder()
            .root(top.path().join("ws"))
            .read_only_root(top.path().join("ro"))
            .journal(top.path().join("state"), Caps::default())
            .profile(Profile::Workspace)
            .rules(rules)
            .sandbox(settings)
            .helper(crate::helper())
            .build()
            .unwrap();
        let session = runtime.session();
        Sandboxed { top, runtime, session }
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    /// Runs a command. `T/` in it stands for the directory of the test.
    pub(crate) fn bash(&self, command: &str) -> Result<Reply, Error> {
        let top = format!("{}/", self.top.path().display());
        let command = command.replace("T/", &top);
        self.call("Bash", json!({"command": command}))
    }

    pub(crate) fn assert_denied(&self, command: &str) {
        let error = self.bash(command).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{command}: {error}");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.top.path().join(name)).unwrap()
    }
}

#[test]
fn command_is_confined_without_approval() {
    let here = Sandboxed::new();
    let reply = here.bash("echo x > made; echo y > T/home/.cache/y; cat T/ro/f").unwrap();
    assert_eq!(reply.output(), "canary\n[created made; Undo with id 1 reverts this]\n");
    assert_eq!(reply.metadata()["sandbox"], "level 4");
    assert_eq!((here.read("ws/made"), here.read("home/.cache/y")), ("x\n".into(), "y\n".into()));
    for command in [
        "echo x > T/out/canary",
        "rm T/out/canary",
        "echo x > T/ro/f",
        "mkdir T/home/.none",
        "cat T/home/.ssh/key",
        // Through a variable that the command parser does not expand, so the kernel denies it.
        "f=$(echo .git/hooks/pre-commit); echo x > $f",
        "f=$(echo .git/config); echo x > x; mv x $f",
        "f=$(echo .vscode/tasks.json); echo x > $f",
        "mv .git .g2",
        "mv .vscode .v2",
    ] {
        here.assert_denied(command);
    }
    let seen = here.bash("ls -A T/state && ls -A T/home/.ssh").unwrap();
    assert!(seen.output().starts_with("[no output]\n"), "{}", seen.output());
    for file in ["out/canary", "ro/f", "ws/.git/config", "ws/.vscode/tasks.json"] {
        assert_eq!(here.read(file), "canary");
    }
}

#[test]
fn symlinks_of_a_command_do_not_redirect_tools() {
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
fn arguments_cannot_weaken_the_sandbox() {
    let here = Sandboxed::new();
    for argument in ["sandbox", "dangerouslyDisableSandbox", "level", "network"] {
        let error = here.call("Bash", json!({"command": "true", argument: false})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{argument}");
    }
}

#[test]
fn tmp_is_private_and_removed_with_the_session() {
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
fn protection_applies_at_every_depth() {
    let here = Sandboxed::new();
    let ws = here.top.path().join("ws");
    for directory in ["a/b/.git/hooks", "a/b/c/.vscode", "node_modules/x/.git/hooks"] {
        fs::create_dir_all(ws.join(directory)).unwrap();
    }
    for file in ["a/b/.git/config", "a/b/c/.vscode/tasks.json", "a/.envrc"] {
        fs::write(ws.join(file), "canary").unwrap();
    }
    here.bash("f=$(echo a/b/.git/config); echo evil > $f").unwrap();
    for name in [
        "a/b/.git/hooks/pre-commit",
        "a/b/c/.vscode/tasks.json",
        "a/.envrc",
        "node_modules/x/.git/hooks/pre-commit",
    ] {
        here.assert_denied(&format!("f=$(echo {name}); echo evil > $f"));
    }
    here.bash("echo x > a/b/c/new; mkdir a/e; mv a/b/c/new a/e/").unwrap();
    assert_eq!(here.read("ws/a/b/.git/config"), "canary");
}

#[test]
fn deny_rules_apply_to_commands() {
    let rules = "
[[rule]]
name = \"secrets\"
decision = \"deny\"
kind = \"read\"
paths = [\"**/.env\", \"private\", \"HOME/notes\", \"HOME/*.txt\"]
why = \"secrets\"

[[rule]]
name = \"frozen\"
decision = \"deny\"
kind = \"edit\"
paths = [\"frozen/**\"]
why = \"frozen\"
";
    let here = Sandboxed::with_rules(|top| {
        let home = top.join("home");
        for directory in ["ws/web", "ws/private", "ws/frozen/deep", "home/notes"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in
            ["ws/.env", "ws/web/.env", "ws/private/f", "home/notes/n", "ro/.env", "home/a.txt"]
        {
            fs::write(top.join(file), "plover").unwrap();
        }
        fs::write(top.join("ws/frozen/deep/f"), "canary").unwrap();
        rules.replace("HOME", home.to_str().unwrap())
    });
    for command in [
        "f=$(echo .env); cat $f",
        "f=$(echo web/.env); python3 -c 'print(open(\"web/.en\" + \"v\").read())'",
        "cp $(echo .env) copy && cat copy",
        "ln -s $(echo .env) link; cat link",
        "ln $(echo .env) hard && cat hard",
        "cat $(echo private/f)",
        "cat T/home/$(echo notes/n)",
        "cat T/ro/$(echo .env)",
        "d=$(echo web); mv $d public && cat public/.env",
        "f=$(echo frozen/deep/f); echo evil > $f",
        "f=$(echo frozen/new); echo evil > $f",
    ] {
        let error = here.bash(command).unwrap_err();
        assert!(!error.text().contains("plover"), "{command}: {error}");
    }
    let seen = here.bash("grep -rs . . T/home T/ro; true").unwrap();
    assert!(!seen.output().contains("plover"), "{}", seen.output());
    here.bash("f=T/home/a.tx; cat ${f}t").unwrap_err();
    here.bash("cat frozen/deep/f; echo x > web/new").unwrap();
    // The reply names the rules as the cause, and not the protection by name.
    let reply = here.bash("f=$(echo frozen/deep/f); echo evil > $f; true").unwrap();
    assert_eq!(reply.metadata()["refused"][0]["why"], "denied", "{}", reply.output());
    assert!(reply.output().contains("(frozen (rule:frozen); the operator"), "{}", reply.output());
    assert_eq!(here.read("ws/frozen/deep/f"), "canary");
}

#[test]
fn denied_accesses_are_reported_with_the_remedy() {
    let here = Sandboxed::new();
    let error = here.bash("echo x > T/out/new").unwrap_err();
    let text = error.text().to_string();
    // The shell's own message names the path.
    let note = "[refused by the sandbox: the path shown above (outside the roots; --root";
    assert!(text.contains(note), "{text}");
    let error = here.bash("exec 3<> /dev/tcp/192.0.2.1/443").unwrap_err();
    let expected = "network is off; refused: connect 192.0.2.1:443 (the user can allow it: `toolcrib config set network list` and `toolcrib policy allow network HOST:PORT`, or network = \"all\" in config.toml)";
    assert!(error.text().contains(expected), "{error}");
    let reply = here.bash("echo x > T/out/new; true").unwrap();
    assert_eq!(reply.metadata()["refused"][0]["why"], "outside", "{}", reply.output());
    // Every time, also for a successful command.
    let out = here.top.path().join("out/new");
    let note = format!("[refused by the sandbox: write {} (", out.display());
    for _ in 0..2 {
        let reply = here.bash("echo x 2>/dev/null > T/out/new; true").unwrap();
        assert!(reply.output().contains(&note), "{}", reply.output());
        let reply = here.bash("(exec 3<> /dev/tcp/192.0.2.1/443) 2>/dev/null; true").unwrap();
        assert!(reply.output().contains(expected), "{}", reply.output());
    }
    let none = here.bash("echo x > new").unwrap();
    assert!(!none.output().contains("refused"), "{}", none.output());
    assert_eq!(none.metadata().get("refused"), None);
    // By the attempts, not by the output about them.
    let lie = here.bash("echo 'Read-only file system'; exit 1").unwrap_err();
    assert!(!lie.text().contains("refused"), "{lie}");
}

#[test]
fn relative_paths_are_judged_from_the_working_directory() {
    let here = Sandboxed::new();
    here.bash("mkdir sub && cd sub").unwrap();
    // The root itself, from the directory in which the last command ended, and from `cwd`.
    let error = here.bash("rm -rf ..").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = here.call("Bash", json!({"command": "rm -rf .", "cwd": "sub/.."})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    here.bash("mkdir x && rm -rf ./x").unwrap();
}

#[test]
fn secrets_in_file_names_are_masked() {
    let here = Sandboxed::new();
    let token = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbC");
    let made = here.bash(&format!("touch {token}")).unwrap();
    assert!(made.output().contains("[created [masked: GitHub token]; Undo"), "{}", made.output());
    let refused = here.bash(&format!("touch T/out/{token}")).unwrap_err();
    let history = here.call("History", json!({})).unwrap();
    for shown in [format!("{made:?}"), format!("{refused:?}"), format!("{history:?}")] {
        assert!(!shown.contains("ghp_"), "{shown}");
    }
}

/// A cache is the directory that its path led to at the start. A symlink that a command puts there opens
/// nothing.
#[test]
fn cache_replaced_by_a_symlink_is_not_writable() {
    let top = crate::command_directory();
    let at = |name: &str| top.path().join(name);
    for name in ["home/.cache/kept", "out"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let caches = ["home/.npm", "home/.cache/kept", "home/new/deep"].map(at).to_vec();
    let runtime = Runtime::builder()
        .root(at("home"))
        .profile(Profile::Workspace)
        .sandbox(SandboxSettings { caches, ..SandboxSettings::default() })
        .helper(crate::helper())
        .build()
        .unwrap();
    let session = runtime.session();
    let bash = |command: &str| {
        let command = command.replace("OUT", &at("out").display().to_string());
        runtime.call(&session, Call::new("Bash", json!({"command": command})), Options::default())
    };
    let _ = bash(
        "ln -s OUT .npm; mkdir new; ln -s OUT new/deep; mv .cache/kept k; mv .cache c; ln -s OUT .cache/kept",
    );
    let _ = bash("echo x > OUT/one");
    let _ = bash("echo x > .npm/two; echo x > new/deep/three; echo x > .cache/kept/four");
    assert_eq!(fs::read_dir(at("out")).unwrap().count(), 0);
}

#[test]
fn jobs_that_are_in_the_way_of_a_command_are_named() {
    let here = Sandboxed::new();
    let server =
        "import socket, time; s = socket.create_server(('127.0.0.1', 8765)); time.sleep(600)";
    let args = json!({"command": format!("exec /usr/bin/python3 -c \"{server}\""), "run_in_background": true});
    let started = here.call("Bash", args).unwrap();
    let id = started.metadata()["bash_id"].as_str().unwrap().to_owned();
    let waiting = json!({"bash_id": id, "wait_for": "port", "filter": "8765"});
    here.call("BashOutput", waiting).unwrap();
    let error = here.bash(&format!("/usr/bin/python3 -c \"{server}\"")).unwrap_err();
    let note = format!("[port 8765 is in use by {id} (python3); KillShell ends it]");
    assert!(error.text().contains(&note), "{}", error.text());
    let reply = here.bash("kill 99999 2> /dev/null; true").unwrap();
    let note = format!("not visible here; still running: {id} (python3); KillShell ends it]");
    assert!(reply.output().contains(&note), "{}", reply.output());
    here.call("KillShell", json!({"shell_id": id})).unwrap();
    let reply = here.bash("kill 99999 2> /dev/null; true").unwrap();
    assert_eq!(reply.output(), "[no output]\n");
}

#[test]
fn an_unreachable_localhost_is_explained() {
    let fixture = Sandboxed::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let error = fixture.call("Bash", json!({"command": command})).unwrap_err();
    assert!(error.text().contains("localhost is that of this session's commands"), "{error}");
}

#[test]
fn caches_that_commands_may_not_write_are_in_tmp() {
    let sandboxed = Sandboxed::new();
    sandboxed.bash("export HOME=/home/me").unwrap();
    let variables =
        "echo $GOCACHE $UV_CACHE_DIR $npm_config_cache; mkdir -p \"$GOCACHE\" && echo made";
    let reply = sandboxed.call("Bash", json!({"command": variables})).unwrap();
    // Without a network, npm reads its usual cache.
    let expected = "/tmp/cache/go-build /tmp/cache/uv\nmade\n";
    assert!(reply.text().starts_with(expected), "{}", reply.text());
}
