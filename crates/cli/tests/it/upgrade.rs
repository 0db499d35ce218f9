//! State of other versions: that of 0.1.0 is used, that of a newer version is refused and left as it is.

use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::{PROGRAM, isolated_home, text};

/// See the README.md there.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/state-0.1.0");

/// The workspace of the fixture when it was made.
const OLD_ROOT: &str = "/srv/project";

/// A copy of the fixture: the workspace `ws`, and `state` with the paths of this workspace.
struct Upgrade {
    top: tempfile::TempDir,
    root: PathBuf,
}

impl Upgrade {
    fn new() -> Upgrade {
        let top = tempfile::tempdir().unwrap();
        let fixture = Path::new(FIXTURE);
        copy(&fixture.join("project"), &top.path().join("ws"));
        copy(&fixture.join("state"), &top.path().join("state"));
        // Git keeps no empty directory.
        std::fs::DirBuilder::new().mode(0o700).create(top.path().join("state/followed")).unwrap();
        let root = top.path().join("ws").canonicalize().unwrap();
        let upgrade = Upgrade { top, root };
        let state = upgrade.state();
        let notes = state.join("pending").read_dir().unwrap().map(|note| note.unwrap().path());
        notes.chain([state.join("log")]).for_each(|file| upgrade.relocate_lines(&file));
        let decisions = std::fs::read_to_string(state.join("decisions")).unwrap();
        let decisions = decisions.replace(OLD_ROOT, upgrade.root.to_str().unwrap());
        std::fs::write(state.join("decisions"), decisions).unwrap();
        let index = |root: &Path| {
            state.join("index").join(blake3::hash(root.as_os_str().as_bytes()).to_string())
        };
        std::fs::rename(index(Path::new(OLD_ROOT)), index(&upgrade.root)).unwrap();
        upgrade
    }

    /// Replaces the path of the workspace in lines of the journal, and the checksums.
    fn relocate_lines(&self, file: &Path) {
        let hex = |path: &str| path.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let new_root = self.root.to_str().unwrap();
        let relocated = std::fs::read_to_string(file).unwrap();
        let lines = relocated.lines().map(|line| {
            let json =
                line[9..].replace(OLD_ROOT, new_root).replace(&hex(OLD_ROOT), &hex(new_root));
            format!("{} {json}\n", &blake3::hash(json.as_bytes()).to_hex()[..8])
        });
        std::fs::write(file, lines.collect::<String>()).unwrap();
    }

    fn state(&self) -> PathBuf {
        self.top.path().join("state")
    }

    fn index_directory(&self) -> PathBuf {
        let name = blake3::hash(self.root.as_os_str().as_bytes()).to_string();
        self.state().join("index").join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, "")
    }

    fn run_with(&self, words: &[&str], input: &str) -> Output {
        let words = [words, &["--root", "ws", "--state", "state"]].concat();
        crate::toolcrib(self.top.path(), &words, input.as_bytes())
    }

    /// The JSON output of a command that succeeds.
    fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{words:?}: {printed}{}", text(&output.stderr));
        serde_json::from_str(printed).unwrap()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root.join(file)).unwrap()
    }
}

/// Copies a tree. Directories get the mode of a state directory, files keep theirs.
fn copy(from: &Path, to: &Path) {
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let (from, to) =
            (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// A file or directory: path, mode, time of change, content.
type Item = (PathBuf, u32, (i64, i64), Vec<u8>);

/// Everything below a directory.
fn snapshot(directory: &Path) -> Vec<Item> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let about = path.symlink_metadata().unwrap();
        if about.is_dir() {
            open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = if about.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path, about.mode(), (about.ctime(), about.ctime_nsec()), content));
    }
    found.sort();
    found
}

#[test]
fn the_journal_of_0_1_0_is_read_and_its_changes_are_undone() {
    let upgrade = Upgrade::new();
    let output = upgrade.run(&["log", "--json"]);
    assert!(text(&output.stderr).contains("ApplyPatch"), "the interrupted change: {output:?}");
    assert_eq!(upgrade.read("notes.txt"), "1\nTWO\n3\n", "it was reverted");
    let names = upgrade.root.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let leftovers = names.filter(|name| name.to_string_lossy().starts_with(".toolcrib-"));
    assert_eq!(leftovers.count(), 0);

    let log = upgrade.json(&["log"]);
    let ids: Vec<u64> = log["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(log["damaged"].as_array().map_or(0, Vec::len), 0, "{log}");
    let shown = upgrade.run(&["show", "2", "--text"]);
    assert!(text(&shown.stdout).contains("-two\n+TWO"), "{}", text(&shown.stdout));
    let decisions = upgrade.run(&["log", "--decisions", "--json"]);
    assert!(text(&decisions.stdout).contains("profile:workspace:write"), "{decisions:?}");

    let bad_name = upgrade.root.join(std::ffi::OsStr::from_bytes(b"bad_\xff.txt"));
    upgrade.json(&["undo", "8", "--yes"]);
    assert_eq!(std::fs::read(&bad_name).unwrap(), b"x");
    upgrade.json(&["undo", "7", "--yes"]);
    assert_eq!(upgrade.read("src/new.txt"), "first\n");
    assert!(!upgrade.root.join("added.txt").exists());
    upgrade.json(&["undo", "4", "--yes"]);
    assert_eq!(upgrade.read("notes.txt"), "one\nTWO\nthree\n");
    upgrade.json(&["undo", "2", "--yes"]);
    assert_eq!(upgrade.read("notes.txt"), "one\ntwo\nthree\n");
    upgrade.json(&["undo", "3", "--yes"]);
    assert_eq!(upgrade.read("run.sh"), "#!/bin/sh\necho old\n");
    assert_eq!(upgrade.root.join("run.sh").metadata().unwrap().mode() & 0o777, 0o755);
    assert!(!bad_name.exists() && !upgrade.root.join("made/file").exists());
    upgrade.json(&["undo", "1", "--yes"]);
    assert!(!upgrade.root.join("src").exists());
    upgrade.json(&["redo", "--yes"]);
    assert_eq!(upgrade.read("src/new.txt"), "first\n");

    let version = std::fs::read_to_string(upgrade.state().join("version")).unwrap();
    assert_eq!(version, format!("toolcrib state 3, written by {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(upgrade.json(&["log"])["changes"][0]["id"], 15, "numbers continue");
}

#[test]
fn reading_state_of_0_1_0_does_not_change_it() {
    let upgrade = Upgrade::new();
    // The first start settles the interrupted change.
    upgrade.json(&["log"]);
    let before = snapshot(&upgrade.state());
    upgrade.json(&["log"]);
    upgrade.json(&["show", "3"]);
    assert_eq!(snapshot(&upgrade.state()), before);
}

#[test]
fn rules_and_configuration_of_0_1_0_are_in_force() {
    let upgrade = Upgrade::new();
    std::fs::write(upgrade.root.join(".env"), "KEY=1\n").unwrap();
    let (rules, config) = (format!("{FIXTURE}/rules.toml"), format!("{FIXTURE}/config.toml"));
    let call = |tool: &str, args: Value| {
        let output =
            upgrade.run(&["call", tool, &args.to_string(), "--rules", &rules, "--config", &config]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let denied = call("Read", json!({"file_path": ".env"}));
    assert_eq!(denied["error"]["kind"], "denied", "{denied}");
    assert!(denied.to_string().contains("secrets live there"), "{denied}");
    let denied = call("Write", json!({"file_path": "src/locked.txt", "content": "x"}));
    assert_eq!(denied["error"]["kind"], "denied", "{denied}");
    let denied = call("Write", json!({"file_path": "kept.txt", "content": "x"}));
    assert_eq!(denied["error"]["kind"], "protected", "{denied}");
    assert_eq!(call("Write", json!({"file_path": "free.txt", "content": "x"}))["success"], true);
    for (command, decision) in [("git push origin", "deny"), ("npm run test", "allow")] {
        let tested =
            upgrade.json(&["policy", "test", command, "--rules", &rules, "--profile", "cautious"]);
        assert_eq!(tested["decision"], decision, "{tested}");
    }
}

#[test]
fn the_http_token_of_0_1_0_is_used() {
    let upgrade = Upgrade::new();
    let token = upgrade.state().join("http-token");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    let before = std::fs::read(&token).unwrap();
    let mut server = Command::new(PROGRAM)
        .args(["serve", "--http", "127.0.0.1:0", "--root", "ws", "--state", "state"])
        .current_dir(upgrade.top.path())
        .envs(isolated_home())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let is_serving = said.into_iter().any(|line| line.contains("serving MCP at"));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(is_serving);
    assert_eq!(std::fs::read(&token).unwrap(), before);
}

/// The segment of 0.1.0 gets the fingerprint of a file with other content, so that a search that used it would
/// miss the file.
#[test]
fn the_index_of_0_1_0_is_replaced_and_searches_are_right() {
    let upgrade = Upgrade::new();
    upgrade.json(&["log"]);
    let file = upgrade.root.join("notes.txt");
    std::fs::write(&file, "a word that 0.1.0 has not seen: rhinoceros\n").unwrap();
    let directory = upgrade.index_directory();
    let is_segment = |path: &PathBuf| path.file_name().unwrap() != "lock";
    let segments = || -> Vec<PathBuf> {
        let all = directory.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
        all.filter(is_segment).collect()
    };
    let old = segments().pop().unwrap();
    let mut bytes = std::fs::read(&old).unwrap();
    let header = b"toolcrib index 1 of 0.1.0\n";
    assert!(bytes.starts_with(header));
    // The chunk size and four counts come first, then eleven numbers of each file.
    let about = file.metadata().unwrap();
    let files = u64::from_le_bytes(bytes[header.len() + 8..][..8].try_into().unwrap());
    assert_eq!(files, 5);
    let stamp = [
        about.dev().cast_signed(),
        about.ino().cast_signed(),
        about.size().cast_signed(),
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec(),
    ];
    let first_file = header.len() + 5 * 8;
    for (at, number) in stamp.iter().enumerate() {
        bytes[first_file + at * 8..][..8].copy_from_slice(&number.to_le_bytes());
    }
    std::fs::remove_file(&old).unwrap();
    let planted = directory.join(blake3::hash(&bytes).to_string());
    std::fs::write(&planted, &bytes).unwrap();

    std::fs::write(upgrade.top.path().join("config.toml"), "index_files = 1\n").unwrap();
    let with_index = |words: &[&str]| upgrade.json(&[words, &["--config", "config.toml"]].concat());
    let status = with_index(&["index", "status"]);
    assert_eq!(
        (&status[0]["indexed_files"], &status[0]["dropped_older"]),
        (&0.into(), &true.into())
    );
    assert!(!planted.exists());
    std::fs::write(&planted, &bytes).unwrap();
    let shown = upgrade.run(&["index", "status", "--text"]);
    assert!(text(&shown.stdout).contains("older version was removed"), "{shown:?}");
    std::fs::write(&planted, &bytes).unwrap();
    let found = with_index(&["call", "Grep", "{\"pattern\": \"rhinoceros\"}"]);
    assert!(found["output"].as_str().unwrap().contains("notes.txt"), "{found}");
}

/// Every command that uses the state, with its input.
fn commands() -> Vec<(Vec<&'static str>, String)> {
    const WRITE: &str = "{\"file_path\": \"new.txt\", \"content\": \"x\"}";
    let line = format!("{{\"id\": 1, \"tool\": \"Write\", \"args\": {WRITE}}}\n");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let none = String::new;
    vec![
        (vec!["log"], none()),
        (vec!["log", "--decisions"], none()),
        (vec!["show", "1"], none()),
        (vec!["diff"], none()),
        (vec!["undo", "--yes"], none()),
        (vec!["redo", "--yes"], none()),
        (vec!["call", "Write", WRITE], none()),
        (vec!["call", "Undo", "{}"], none()),
        (vec!["call", "Bash", "{\"command\": \"touch new.txt\"}"], none()),
        (vec!["run"], line),
        (vec!["serve"], format!("{initialize}\n")),
        (vec!["serve", "--http", "127.0.0.1:0"], none()),
        (vec!["index", "build"], none()),
        (vec!["index", "drop"], none()),
        (vec!["doctor"], none()),
    ]
}

#[test]
fn newer_or_unknown_state_is_refused_by_every_command_and_left_as_it_is() {
    let newer = "toolcrib state 999, written by 7.8.9\n";
    let own = format!("toolcrib state 3, written by {}\n", env!("CARGO_PKG_VERSION"));
    let versions: [(&[u8], &str); 5] = [
        (newer.as_bytes(), "use toolcrib 7.8.9 or newer"),
        (&newer.as_bytes()[..20], "is damaged"),
        (&own.as_bytes()[..own.len() - 1], "is damaged"),
        (b"", "is damaged"),
        (b"\x7fELF\0\xff garbage\n", "is damaged"),
    ];
    for (version, expected) in versions {
        let upgrade = Upgrade::new();
        std::fs::write(upgrade.state().join("version"), version).unwrap();
        let (state, workspace) = (snapshot(&upgrade.state()), snapshot(&upgrade.root));
        for (words, input) in commands() {
            let output = upgrade.run_with(&words, &input);
            assert!(!output.status.success(), "{words:?}");
            let said = [text(&output.stdout), text(&output.stderr)].concat();
            assert!(said.contains(expected), "{words:?}: {said}");
            assert!(
                said.contains(upgrade.state().canonicalize().unwrap().to_str().unwrap()),
                "{said}"
            );
            assert_eq!(snapshot(&upgrade.state()), state, "{words:?}");
            assert_eq!(snapshot(&upgrade.root), workspace, "{words:?}");
        }
    }
}

/// The default state directory also has the records of servers and of `install`.
#[test]
fn a_newer_default_state_directory_gets_no_records() {
    let top = tempfile::tempdir().unwrap();
    let state = top.path().join(".state/toolcrib");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).unwrap();
    std::fs::write(state.join("version"), "toolcrib state 999, written by 7.8.9\n").unwrap();
    std::fs::create_dir(top.path().join("ws")).unwrap();
    let before = snapshot(&state);
    let run = |words: &[&str]| {
        Command::new(PROGRAM)
            .args(words)
            .current_dir(top.path())
            .env_clear()
            .env("HOME", top.path())
            .env("XDG_CONFIG_HOME", top.path().join(".config"))
            .env("XDG_STATE_HOME", top.path().join(".state"))
            .output()
            .unwrap()
    };
    let elsewhere = ["call", "LS", "{}", "--root", "ws", "--state", "other"];
    let output = run(&elsewhere);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("7.8.9"), "{}", text(&output.stderr));
    for words in [["install", "cursor"], ["uninstall", "cursor"]] {
        let output = run(&words);
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output.stderr).contains("7.8.9"), "{}", text(&output.stderr));
    }
    assert_eq!(snapshot(&state), before);
    assert!(!top.path().join(".cursor").exists());
}
