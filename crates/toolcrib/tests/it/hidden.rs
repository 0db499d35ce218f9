//! Hidden paths: the user's secrets, and files of other servers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::{
    Call, Caps, Error, ErrorKind, Options, Outside, Reply, ReservedPaths, Runtime, SandboxSettings,
    Session,
};

struct Home {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Home {
    /// A home with a project in it, used as root.
    fn as_root() -> Home {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        for directory in [".ssh", ".config/gh", "dotfiles/aws", "project", "state"] {
            fs::create_dir_all(top.path().join("home").join(directory)).unwrap();
        }
        for file in [
            ".ssh/id_rsa",
            ".config/gh/hosts.yml",
            ".config/other.yml",
            "dotfiles/aws/credentials",
            ".netrc",
            "project/a.txt",
        ] {
            fs::write(top.path().join("home").join(file), "canary\n").unwrap();
        }
        symlink("dotfiles/aws", top.path().join("home/.aws")).unwrap();
        symlink("../.ssh/id_rsa", top.path().join("home/project/key")).unwrap();
        let runtime = build(top.path(), "home");
        let session = runtime.session();
        Home { top, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn path(&self, path: &str) -> String {
        self.top.path().join(path).display().to_string()
    }
}

fn build(top: &Path, root: &str) -> Runtime {
    let hidden = [".ssh", ".config/gh", ".aws", ".netrc", ".none"];
    let hidden = hidden.map(|path| top.join("home").join(path)).to_vec();
    Runtime::builder()
        .root(top.join(root))
        .journal(top.join("own-state"), Caps::default())
        .sandbox(SandboxSettings { hidden: hidden.into(), ..SandboxSettings::default() })
        .registry(top.join("servers"))
        .helper(crate::helper())
        .build()
        .unwrap()
}

#[test]
fn file_tools_reject_hidden_paths() {
    let home = Home::as_root();
    for (tool, args) in [
        ("Read", json!({"file_path": ".ssh/id_rsa"})),
        ("Read", json!({"file_path": "project/../.ssh/id_rsa"})),
        ("Read", json!({"file_path": "project/key"})),
        ("Read", json!({"file_path": home.path("home/.netrc")})),
        ("Read", json!({"file_path": ".aws/credentials"})),
        ("Read", json!({"file_path": "dotfiles/aws/credentials"})),
        ("Write", json!({"file_path": ".ssh/authorized_keys", "content": "x"})),
        ("Write", json!({"file_path": ".none/new", "content": "x"})),
        ("Edit", json!({"file_path": ".netrc", "old_string": "canary", "new_string": "x"})),
        ("Grep", json!({"pattern": "canary", "path": ".ssh"})),
        ("Glob", json!({"pattern": ".ssh/*", "hidden": true})),
        ("LS", json!({"path": ".config/gh"})),
        ("Bash", json!({"command": "true", "cwd": ".ssh"})),
    ] {
        let error = home.call(tool, args.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protected, "{tool} {args}: {error}");
        assert!(error.text().contains("`toolcrib config add allow_hidden /"), "{error}");
    }
    let seen = home.call("Bash", json!({"command": "cat .ssh/id_rsa .netrc .aws/credentials"}));
    assert!(!seen.unwrap_err().text().contains("canary"));
    assert_eq!(fs::read_to_string(home.path("home/.netrc")).unwrap(), "canary\n");
}

#[test]
fn searches_and_listings_skip_hidden_paths() {
    let home = Home::as_root();
    // Twice: the second call uses the listing cache.
    for _ in 0..2 {
        let found = home.call("Grep", json!({"pattern": "canary", "hidden": true})).unwrap();
        let files = found.output().lines().filter(|line| !line.starts_with('['));
        let mut files: Vec<&str> = files.collect();
        files.sort_unstable();
        assert_eq!(files, [".config/other.yml", "project/a.txt"]);
    }
    let found = home.call("Glob", json!({"pattern": "**/*", "hidden": true})).unwrap();
    let (files, note) = found.output().split_once('[').unwrap();
    for name in ["id_rsa", "hosts.yml", "credentials", ".netrc", "project/key"] {
        assert!(!files.contains(name), "{files}");
    }
    assert_eq!(note, "5 hidden paths skipped: .aws, .config/gh, .netrc, …]\n");
    let listed = home.call("LS", json!({"recursive": true})).unwrap();
    assert!(listed.output().contains(".ssh (hidden: keys, tokens or history)"), "{listed:?}");
    assert!(!listed.output().contains("hosts.yml") && listed.output().contains("other.yml"));
}

#[test]
fn a_secret_that_moves_behind_a_symlink_is_hidden() {
    let home = Home::as_root();
    fs::remove_file(home.path("home/.netrc")).unwrap();
    home.call("Read", json!({"file_path": home.path("home/.config/other.yml")})).unwrap();
    fs::write(home.path("home/dotfiles/netrc"), "canary\n").unwrap();
    symlink("dotfiles/netrc", home.path("home/.netrc")).unwrap();
    let is_hidden = || {
        let read = home.call("Read", json!({"file_path": home.path("home/dotfiles/netrc")}));
        read.is_err()
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !is_hidden() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(is_hidden());
}

#[test]
fn a_secret_that_appears_while_a_command_runs_is_not_read() {
    let top = crate::command_directory();
    for directory in ["home/.tool", "project"] {
        fs::create_dir_all(top.path().join(directory)).unwrap();
    }
    fs::write(top.path().join("home/.tool/settings"), "plain\n").unwrap();
    let hidden = vec![top.path().join("home/.tool/credentials")];
    let runtime = Runtime::builder()
        .root(top.path().join("project"))
        .journal(top.path().join("state"), Caps::default())
        .sandbox(SandboxSettings { hidden: hidden.into(), ..SandboxSettings::default() })
        .helper(crate::helper())
        .build()
        .unwrap();
    let tool = top.path().join("home/.tool").display().to_string();
    let command = format!(
        "cat {tool}/settings; touch started; while [ ! -e {tool}/credentials ]; do sleep 0.05; done; cat {tool}/*"
    );
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !top.path().join("project/started").exists() {
                std::thread::sleep(Duration::from_millis(20));
            }
            fs::write(top.path().join("home/.tool/credentials"), "canary\n").unwrap();
        });
        let call = Call::new("Bash", json!({"command": command}));
        match runtime.call(&runtime.session(), call, Options::default()) {
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    });
    assert_eq!(output.matches("plain").count(), 2, "{output}");
    assert!(!output.contains("canary"), "{output}");
}

#[test]
fn root_inside_a_hidden_path_is_accessible() {
    let home = Home::as_root();
    let runtime = build(home.top.path(), "home/.config/gh");
    let call = Call::new("Read", json!({"file_path": "hosts.yml"}));
    let reply = runtime.call(&runtime.session(), call, Options::default()).unwrap();
    assert!(reply.output().contains("canary"));
}

#[test]
fn registered_paths_of_other_servers_are_hidden() {
    let home = Home::as_root();
    fs::write(home.path("home/state/journal"), "canary\n").unwrap();
    fs::write(home.path("outside-token"), "canary\n").unwrap();
    let read = |path: &str| home.call("Read", json!({"file_path": path}));
    let grep = || home.call("Grep", json!({"pattern": "canary", "path": "."})).unwrap();
    assert!(read("state/journal").is_ok() && grep().output().contains("state/journal"));
    // The other server starts while this one runs.
    let registry = ReservedPaths::new(home.top.path().join("servers"));
    let own = [home.path("home/state").into(), home.path("outside-token").into()];
    registry.record(&own).unwrap();
    assert_eq!(read("state/journal").unwrap_err().kind(), ErrorKind::Protected);
    assert!(!grep().output().contains("state/journal"));
    let command = format!("cat state/journal; cat {}", home.path("outside-token"));
    let error = home.call("Bash", json!({"command": command})).unwrap_err();
    assert!(!error.text().contains("canary"), "{error}");
}

#[test]
fn a_command_that_names_a_hidden_path_is_told() {
    let home = Home::as_root();
    for command in [
        format!("cat {}; true", home.path("home/.ssh/id_rsa")),
        "ls .ssh".to_owned(),
        "cat $(printf '.ss%s/id_rsa' h); true".to_owned(),
    ] {
        let reply = home.call("Bash", json!({"command": command})).unwrap();
        let note = format!("{} is hidden from commands", home.path("home/.ssh"));
        assert!(reply.output().contains(&note), "{command}: {}", reply.output());
    }
    let reply = home.call("Bash", json!({"command": "cat project/a.txt; echo ssh"})).unwrap();
    assert!(!reply.output().contains("hidden"), "{}", reply.output());
}

#[test]
fn other_workspaces_are_hidden() {
    let home = Home::as_root();
    let all = home.top.path().join("home");
    let runtime = Runtime::builder()
        .root(all.join("project"))
        .hidden_around(&all)
        .outside(Outside::Read)
        .helper(crate::helper())
        .build()
        .unwrap();
    let session = runtime.session();
    let call = |tool: &str, args| runtime.call(&session, Call::new(tool, args), Options::default());
    assert!(call("Read", json!({"file_path": "a.txt"})).is_ok());
    symlink("../dotfiles", all.join("project/link")).unwrap();
    for (tool, args) in [
        ("Read", json!({"file_path": "../dotfiles/aws/credentials"})),
        ("Read", json!({"file_path": "link/aws/credentials"})),
        ("Read", json!({"file_path": all.join("dotfiles/aws/credentials")})),
        ("Write", json!({"file_path": all.join("new/a.txt"), "content": "x"})),
        ("Grep", json!({"pattern": "canary", "path": ".."})),
        ("Glob", json!({"pattern": "*", "path": all})),
        ("LS", json!({"path": ".."})),
        ("Bash", json!({"command": "true", "cwd": ".."})),
    ] {
        let error = call(tool, args.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protected, "{tool} {args}: {error}");
        assert!(error.text().contains("is not in this workspace"), "{tool} {args}: {error}");
        assert!(!error.text().contains("canary"), "{error}");
    }
    if runtime.sandbox_level().is_some_and(|level| level >= 3) {
        let seen =
            call("Bash", json!({"command": "ls -A ..; cat ../dotfiles/aws/* link/aws/*; true"}));
        let seen = seen.unwrap();
        assert!(seen.output().contains("project\n"), "{}", seen.output());
        assert!(!seen.output().contains("canary"), "{}", seen.output());
        assert!(!seen.output().contains(".netrc"), "{}", seen.output());
    }
}
