//! `toolcrib log verify` and `log export`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{PROGRAM, text, toolcrib};

/// A workspace with some calls.
struct Audited {
    top: tempfile::TempDir,
}

impl Audited {
    fn new() -> Audited {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("ws")).unwrap();
        std::fs::write(top.path().join("ws/a.txt"), "one\n").unwrap();
        Audited { top }
    }

    fn state(&self) -> String {
        self.top.path().join("state").display().to_string()
    }

    fn run(&self, words: &[&str]) -> (bool, String) {
        let state = self.state();
        let words = [words, &["--state", &state]].concat();
        let done = toolcrib(&self.top.path().join("ws"), &words, b"");
        (done.status.success(), text(&done.stdout).to_owned() + text(&done.stderr))
    }

    fn call(&self, tool: &str, arguments: &Value) -> bool {
        self.run(&["call", tool, &arguments.to_string()]).0
    }

    fn verify(&self, more: &[&str]) -> Value {
        let (is_right, said) = self.run(&[&["log", "verify", "--json"], more].concat());
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(is_right, report["problem"].is_null(), "{report}");
        report
    }

    fn export(&self, format: &str) -> Vec<Value> {
        let (_, said) = self.run(&["log", "export", "--format", format]);
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn file(&self) -> PathBuf {
        let files = std::fs::read_dir(Path::new(&self.state()).join("audit")).unwrap().flatten();
        let mut files = files.map(|entry| entry.path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "jsonl")).unwrap()
    }
}

#[test]
fn every_call_is_in_the_chain() {
    let audited = Audited::new();
    assert_eq!(audited.verify(&[])["records"], 0);
    assert!(audited.call("Read", &json!({"file_path": "a.txt"})));
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert!(audited.call("Edit", &edit));
    let write = json!({"file_path": "b.txt", "content": "x"}).to_string();
    assert!(!audited.run(&["call", "Write", &write, "--profile", "cautious"]).0);
    assert!(!audited.call("NoSuchTool", &json!({})));
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    audited.call("Bash", &json!({"command": format!("echo {token}")}));
    let report = audited.verify(&[]);
    assert_eq!((&report["records"], &report["first"]), (&json!(5), &json!(1)), "{report}");
    let records = audited.export("jsonl");
    let tools: Vec<&str> = records.iter().map(|one| one["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Read", "Edit", "Write", "NoSuchTool", "Bash"]);
    assert_eq!(records[1]["change"], 1);
    assert_eq!(records[2]["outcome"], "denied");
    assert!(records[2]["user"].is_u64() && records[2]["process"].is_u64());
    assert!(!std::fs::read_to_string(audited.file()).unwrap().contains(token), "masked");
    let events = audited.export("ocsf");
    assert_eq!(events.len(), 5);
    assert_eq!(events[1]["api"]["operation"], "Edit");
    assert_eq!(events[4]["metadata"]["uid"], report["head"]);
    // Another workspace has its own.
    let elsewhere = audited.top.path().join("other");
    std::fs::create_dir(&elsewhere).unwrap();
    let root = elsewhere.display().to_string();
    assert_eq!(audited.verify(&["--root", &root])["records"], 0);
}

#[test]
fn tampering_is_named_and_a_kept_hash_shows_a_cut_end() {
    let audited = Audited::new();
    for _ in 0..4 {
        audited.call("Read", &json!({"file_path": "a.txt"}));
    }
    let head = audited.verify(&[])["head"].as_str().unwrap().to_owned();
    assert_eq!(audited.verify(&["--head", &head])["kept_at"], 4);
    let file = audited.file();
    let right = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = right.split_inclusive('\n').collect();
    let edited = right.replacen("\"tool\":\"Read\"", "\"tool\":\"Undo\"", 1);
    for (content, problem) in [
        (edited, "record 1 was edited"),
        ([lines[0], lines[2], lines[3]].concat(), "record 2 was deleted"),
        ([lines[0], lines[2], lines[1], lines[3]].concat(), "record 2 was moved or repeated"),
        (
            [lines[0], &lines[1][..50], "\n", lines[2], lines[3]].concat(),
            "record 2 was cut off or overwritten",
        ),
    ] {
        std::fs::write(&file, &content).unwrap();
        assert_eq!(audited.verify(&[])["problem"], problem);
        let (is_right, said) = audited.run(&["log", "verify"]);
        assert!(!is_right && said.contains("BROKEN") && said.contains(problem), "{said}");
    }
    std::fs::write(&file, [lines[0], lines[1]].concat()).unwrap();
    assert!(audited.verify(&[])["problem"].is_null(), "a cut end cannot be seen");
    let problem = audited.verify(&["--head", &head])["problem"].clone();
    assert!(problem.as_str().unwrap().contains("hash that you kept"), "{problem}");
    let (is_right, said) = audited.run(&["log", "verify", "--head", "xyz"]);
    assert!(!is_right && said.contains("64 digits"), "{said}");
}

#[test]
fn sessions_at_the_same_time_make_one_chain_whatever_kills_them() {
    let audited = Audited::new();
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let mut session = Command::new(PROGRAM)
            .args(["run", "--state", &audited.state(), "--no-monitor"])
            .current_dir(audited.top.path().join("ws"))
            .envs(crate::isolated_home())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = session.stdin.take().unwrap();
        for id in 0..100 {
            let call = json!({"id": id, "tool": "Read", "args": {"file_path": "a.txt"}});
            writeln!(input, "{call}").unwrap();
        }
        sessions.push((session, input));
    }
    let recorded = || audited.verify(&[])["records"].as_u64().unwrap();
    while recorded() < 20 {
        std::thread::yield_now();
    }
    sessions[0].0.kill().unwrap();
    for (mut session, input) in sessions {
        drop(input);
        session.wait().unwrap();
    }
    let records = recorded();
    assert!((200..=300).contains(&records), "{records}");
}

#[test]
fn a_log_that_cannot_be_written_is_reported_once() {
    let audited = Audited::new();
    let state = PathBuf::from(audited.state());
    audited.call("Read", &json!({"file_path": "a.txt"}));
    std::fs::remove_dir_all(state.join("audit")).unwrap();
    std::fs::write(state.join("audit"), "").unwrap();
    let call = json!({"id": 1, "tool": "Read", "args": {"file_path": "a.txt"}, "wait": true});
    let words = ["run", "--no-monitor", "--state", &audited.state()];
    let input = format!("{call}\n{call}\n{call}\n");
    let done = toolcrib(&audited.top.path().join("ws"), &words, input.as_bytes());
    let told =
        text(&done.stdout).lines().map(|reply| reply.contains("not being recorded in the audit"));
    assert_eq!(told.collect::<Vec<_>>(), [false, true, false], "{done:?}");
}

#[test]
fn the_log_can_be_turned_off() {
    let audited = Audited::new();
    let config = audited.top.path().join("config.toml");
    std::fs::write(&config, "audit = false\n").unwrap();
    let config = config.display().to_string();
    let (is_done, _) =
        audited.run(&["call", "Read", "{\"file_path\": \"a.txt\"}", "--config", &config]);
    assert!(is_done);
    assert_eq!(
        (&audited.verify(&[])["records"], &audited.verify(&[])["off"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(audited.verify(&["--config", &config])["off"], true);
    let (_, said) = audited.run(&["log", "verify", "--text", "--config", &config]);
    assert!(said.contains("The log is off (`audit = false`)"), "{said}");
}

#[test]
fn a_symlink_in_place_of_the_log_is_named() {
    let audited = Audited::new();
    audited.call("Read", &json!({"file_path": "a.txt"}));
    let file = audited.file();
    let moved = audited.top.path().join("moved");
    std::fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    let (is_right, said) = audited.run(&["log", "verify"]);
    assert!(!is_right && said.contains("follows no symlink"), "{said}");
    assert!(!said.contains("repeat the change"), "{said}");
}

#[test]
fn an_export_has_no_characters_that_a_terminal_acts_on() {
    let audited = Audited::new();
    let hidden = "a\u{9b}31m\u{202e}b\u{7f}";
    audited.call("Read", &json!({"file_path": hidden}));
    audited.call("Bash", &json!({"command": format!("echo {hidden}")}));
    for format in ["jsonl", "ocsf"] {
        let (is_done, said) = audited.run(&["log", "export", "--format", format]);
        assert!(is_done && said.contains("\\u202e") && said.contains("\\u009b"), "{said}");
        assert!(!said.contains(['\u{9b}', '\u{202e}', '\u{7f}']), "{said:?}");
    }
    let record = &audited.export("jsonl")[0];
    assert_eq!(record["arguments"]["file_path"], hidden);
}

#[test]
fn sessions_are_named_and_arguments_keep_their_form() {
    let audited = Audited::new();
    let edits = json!([{"old_string": "one", "new_string": "two"}]);
    let files = json!([{"file_path": "a.txt", "edits": edits}]);
    assert!(audited.call("MultiEdit", &json!({"files": files})));
    audited.call("Read", &json!({"file_path": "a.txt"}));
    assert_eq!(audited.export("jsonl")[0]["arguments"]["files"], files);
    let events = audited.export("ocsf");
    let session = |at: usize| events[at]["actor"]["session"]["uid"].as_str().unwrap();
    assert_ne!(session(0), session(1), "two processes have two sessions");
}

#[test]
fn passwords_in_commands_are_not_recorded() {
    let audited = Audited::new();
    let command = "true PGPASSWORD=geheim1; true mysql -pgeheim2; true --password geheim3";
    audited.call("Bash", &json!({"command": command}));
    let refused = json!({"command": command}).to_string();
    assert!(!audited.run(&["call", "Bash", &refused, "--profile", "read-only"]).0);
    let (_, decisions) = audited.run(&["log", "--decisions"]);
    let recorded = std::fs::read_to_string(audited.file()).unwrap();
    for text in [&decisions, &recorded] {
        assert!(text.contains("--password [masked: password]"), "{text}");
        assert!(!text.contains("geheim"), "{text}");
    }
}

/// `audit_megabytes` bounds the log, and verification says where it begins.
#[test]
fn the_oldest_records_are_removed_over_the_limit() {
    let audited = Audited::new();
    let config = audited.top.path().join("config.toml");
    std::fs::write(&config, "audit_megabytes = 1\n").unwrap();
    let config = config.display().to_string();
    let text = "x".repeat(10_000);
    let input: String = (0..400)
        .map(|id| {
            let args = json!({"command": format!(": {id} {text}")});
            json!({"id": id, "tool": "Bash", "args": args}).to_string() + "\n"
        })
        .collect();
    let words = ["run", "--no-monitor", "--state", &audited.state(), "--config", &config];
    let done = toolcrib(&audited.top.path().join("ws"), &words, input.as_bytes());
    assert!(done.status.success(), "{done:?}");
    let report = audited.verify(&[]);
    assert!(report["first"].as_u64().unwrap() > 1, "{report}");
    let (_, said) = audited.run(&["log", "verify"]);
    assert!(said.contains("because of audit_megabytes"), "{said}");
    let files = std::fs::read_dir(Path::new(&audited.state()).join("audit")).unwrap().flatten();
    let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 1_100_000, "{bytes}");
}
