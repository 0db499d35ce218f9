//! Hidden paths of a home directory and of other servers, through the program.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::{PROGRAM, text};

/// Runs calls through `toolcrib run` with this home directory.
fn run(home: &Path, words: &[&str], calls: &[Value]) -> (Vec<Value>, String) {
    let mut child = Command::new(PROGRAM)
        .args(["run"].iter().chain(words))
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for call in calls {
        writeln!(stdin, "{call}").unwrap();
    }
    drop(stdin);
    let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
    let replies = text(&stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (replies, text(&stderr).to_owned())
}

fn call(tool: &str, args: Value) -> Value {
    json!({"tool": tool, "args": args, "wait": true})
}

/// Outside /tmp, which commands see as another directory.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = crate::command_directory();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

fn put(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "canary\n").unwrap();
}

#[test]
fn keys_in_a_home_directory_are_hidden() {
    let (_kept, home) = directory();
    let places = [
        ".ssh/id_ed25519",
        ".claude/.credentials.json",
        ".claude.json",
        ".codex/auth.json",
        ".gemini/oauth_creds.json",
        ".local/share/opencode/auth.json",
        ".config/github-copilot/apps.json",
        ".config/sops/age/keys.txt",
        ".config/rclone/rclone.conf",
        ".cache/huggingface/token",
        ".config/pip/pip.conf",
        ".gem/credentials",
        ".composer/auth.json",
        ".databrickscfg",
        ".oci/config",
        ".terraformrc",
        ".pulumi/credentials.json",
        ".config/BraveSoftware/x/Cookies",
        ".thunderbird/x/logins.json",
        ".local/share/fish/fish_history",
        ".Xauthority",
        ".npmrc",
    ];
    places.iter().for_each(|place| put(&home.join(place)));
    put(&home.join("project/a.txt"));
    let mut calls: Vec<Value> =
        places.iter().map(|place| call("Read", json!({"file_path": place}))).collect();
    let command = format!("cat {} project/a.txt", places.join(" "));
    calls.push(call("Bash", json!({"command": command})));
    calls.push(call("Grep", json!({"pattern": "canary", "hidden": true})));
    let (replies, said) = run(&home, &[], &calls);
    for (reply, place) in replies.iter().zip(places) {
        assert_eq!(reply["error"]["kind"], "protected", "{place}: {reply}");
    }
    let by_command = replies[places.len()].to_string();
    assert_eq!(by_command.matches("canary").count(), 1, "only the project's: {by_command}");
    let found = replies[places.len() + 1].to_string();
    assert!(found.contains("project/a.txt") && !found.contains("npmrc"), "{found}");
    assert!(said.contains("warning: the root") && said.contains("is a home directory"), "{said}");
    // The operator opens one of them.
    let (_kept, elsewhere) = directory();
    let config = elsewhere.join("config.toml");
    std::fs::write(&config, "allow_hidden = [\".npmrc\"]\n").unwrap();
    let words = ["--config", config.to_str().unwrap()];
    let (replies, _) = run(&home, &words, &[call("Read", json!({"file_path": ".npmrc"}))]);
    assert!(replies[0].to_string().contains("canary"), "{}", replies[0]);
}

#[test]
fn servers_do_not_see_the_state_of_other_servers() {
    let (_kept, top) = directory();
    let home = top.join("home");
    let (first, second) = (top.join("first-state"), top.join("second-state"));
    std::fs::create_dir_all(home.join("project")).unwrap();
    let root = home.join("project");
    let root = root.to_str().unwrap();
    let write = call("Write", json!({"file_path": "a", "content": "canary\n"}));
    let (replies, said) =
        run(&home, &["--root", root, "--state", first.to_str().unwrap()], &[write]);
    assert!(replies[0]["error"].is_null() && !said.contains("warning"), "{} {said}", replies[0]);
    put(&home.join(".local/state/toolcrib/http-token"));
    let look = format!(
        "ls -A {0}; cat {1}/.local/state/toolcrib/http-token; true",
        first.display(),
        home.display()
    );
    let calls = [call("Bash", json!({"command": look}))];
    let (replies, _) = run(&home, &["--root", root, "--state", second.to_str().unwrap()], &calls);
    let seen = replies[0].to_string();
    assert!(!seen.contains("canary") && !seen.contains("journal"), "{seen}");
    assert!(std::fs::read_dir(&first).unwrap().count() > 0, "there was something to see");
}

/// A path with a typing error is often that of another project.
#[test]
fn a_path_that_is_refused_is_not_hidden_from_later_servers() {
    let (_kept, home) = directory();
    let project = home.join("project");
    put(&project.join("a.txt"));
    put(&home.join("token"));
    for path in [&project, &home.join("token")] {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let toolcrib = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(&home).env_clear().env("HOME", &home);
        command.env("PATH", "/usr/bin:/bin").output().unwrap()
    };
    for refused in [
        &["--state", "project", "call", "LS"][..],
        &["--state", "project", "serve", "--http", "0", "--token-file", "new-token"],
        &["serve", "--http", "0", "--token-file", "token"],
    ] {
        let output = toolcrib(refused);
        assert!(!output.status.success(), "{refused:?}");
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(said.contains("chmod"), "{refused:?}: {said}");
    }
    let calls = ["project/a.txt", "token"].map(|file| call("Read", json!({"file_path": file})));
    let (replies, _) = run(&home, &[], &calls);
    assert!(replies.iter().all(|reply| reply.to_string().contains("canary")), "{replies:?}");
    assert!(!home.join("new-token").exists());
    // A path that is used is hidden, and `doctor` names it.
    toolcrib(&["--state", "used", "call", "LS"]);
    let output = toolcrib(&["doctor", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hidden = found["hidden"].as_str().unwrap();
    assert!(hidden.contains("/used: files of servers") && !hidden.contains("project"), "{hidden}");
}

/// The configuration is reached through symlinks in a root, as with a repository of dotfiles. Neither commands nor
/// file tools can read it, change it, or put another one in its place.
#[test]
fn configuration_behind_symlinks_in_a_root_cannot_be_replaced() {
    use std::os::unix::fs::symlink;
    // The directory and the files may each be symlinks.
    for by_file in [false, true] {
        let (_kept, home) = directory();
        let root = home.join("dotfiles");
        let real = root.join("real/config/toolcrib");
        std::fs::create_dir_all(&real).unwrap();
        std::fs::write(real.join("config.toml"), "profile = \"workspace\" # canary\n").unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        symlink("real/config", root.join("config")).unwrap();
        if by_file {
            std::fs::create_dir_all(home.join(".config/toolcrib")).unwrap();
            let target = root.join("config/toolcrib/config.toml");
            symlink(target, home.join(".config/toolcrib/config.toml")).unwrap();
        } else {
            symlink("dotfiles/config", home.join(".config")).unwrap();
        }
        let scripts = [
            "cat config/toolcrib/config.toml real/config/toolcrib/config.toml",
            "echo evil > config/toolcrib/config.toml",
            "echo evil > real/config/toolcrib/config.toml",
            "rm -rf real/config/toolcrib",
            "mv real other",
            "mv real/config real/other",
            "mkdir -p evil/toolcrib; echo evil > evil/toolcrib/config.toml; rm config; mv evil config",
            "mkdir -p evil/toolcrib; mv -T config kept; mv -T evil config",
            "ln -sfn evil config",
            "ln -s evil new; mv -T new config",
            "mv -T --exchange file config",
        ];
        let mut calls: Vec<Value> =
            scripts.iter().map(|script| call("Bash", json!({"command": script}))).collect();
        for file in ["config/toolcrib/config.toml", "real/config/toolcrib/config.toml"] {
            calls.push(call("Read", json!({"file_path": file})));
            calls.push(call("Write", json!({"file_path": file, "content": "evil"})));
        }
        calls.push(call("Write", json!({"file_path": "config", "content": "evil"})));
        let words = ["--root", root.to_str().unwrap()];
        let (replies, errors) = run(&home, &words, &calls);
        assert_eq!(replies.len(), calls.len(), "{errors}");
        for (call, reply) in calls.iter().zip(&replies) {
            assert!(!reply.to_string().contains("canary"), "{call}: {reply}");
            let found = std::fs::read_to_string(home.join(".config/toolcrib/config.toml")).unwrap();
            assert!(found.contains("canary"), "{call}: {reply}");
        }
        let link = std::fs::read_link(root.join("config")).unwrap();
        assert_eq!(link, Path::new("real/config"), "{replies:#?}");
    }
}
