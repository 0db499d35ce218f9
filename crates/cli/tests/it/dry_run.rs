//! `--dry-run`: no message of any transport changes a file.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::http::{Server, post, right_headers};
use crate::{PROGRAM, isolated_home, text, toolcrib};

const FLAGS: [&str; 6] = ["--root", "ws", "--state", "state", "--profile", "open"];

/// A workspace with a change that can be undone.
fn prepare(top: &Path) {
    std::fs::create_dir_all(top.join("ws")).unwrap();
    std::fs::write(top.join("ws/a.txt"), "one\n").unwrap();
    let edit = r#"{"file_path": "a.txt", "old_string": "one", "new_string": "two"}"#;
    let made = toolcrib(top, &[&["call", "Edit", edit], &FLAGS[..]].concat(), b"");
    assert!(made.status.success(), "{}", text(&made.stdout));
}

fn assert_unchanged(top: &Path) {
    assert_eq!(std::fs::read_to_string(top.join("ws/a.txt")).unwrap(), "two\n");
    let names: Vec<_> = std::fs::read_dir(top.join("ws")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let log = toolcrib(top, &[&["log", "--json"], &FLAGS[..]].concat(), b"");
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    assert_eq!(log["total"], 1, "{log}");
}

/// A call of each tool that would change something without `--dry-run`.
fn calls() -> Vec<(&'static str, Value)> {
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let edits =
        json!({"file_path": "a.txt", "edits": [{"old_string": "two", "new_string": "three"}]});
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+x\n*** Delete File: a.txt\n*** End Patch\n";
    let cell = json!({"notebook_path": "b.ipynb", "new_source": "1", "edit_mode": "insert"});
    vec![
        ("Undo", json!({})),
        ("Write", json!({"file_path": "b.txt", "content": "x\n"})),
        ("Bash", json!({"command": "echo x > c.txt"})),
        ("Edit", edit),
        ("MultiEdit", edits),
        ("ApplyPatch", json!({"patch": patch})),
        ("NotebookEdit", cell),
        ("Read", json!({"file_path": "a.txt"})),
        ("LS", json!({})),
        ("Glob", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "two"})),
        ("BashOutput", json!({"bash_id": "sh_1"})),
        ("KillShell", json!({"shell_id": "sh_1"})),
        ("ListShells", json!({})),
        ("History", json!({})),
    ]
}

#[test]
fn every_tool_is_called() {
    let top = tempfile::tempdir().unwrap();
    let listed = toolcrib(top.path(), &["tools", "--format", "mcp"], b"");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    for tool in listed["tools"].as_array().unwrap() {
        assert!(calls().iter().any(|(name, _)| tool["name"] == *name), "{}", tool["name"]);
    }
}

#[test]
fn a_refused_call_is_refused_with_the_same_error() {
    let directory = crate::command_directory();
    let top = directory.path();
    std::fs::create_dir_all(top.join("ws")).unwrap();
    let write = r#"{"file_path": "b.txt", "content": "x"}"#;
    for (profile, tool, args) in [
        ("workspace", "Bash", r#"{"command": "rm -rf /"}"#),
        ("workspace", "Bash", r#"{"command": "true", "cwd": "missing"}"#),
        ("workspace", "Bash", "rm -rf /"),
        ("read-only", "Bash", r#"{"command": "ls"}"#),
        ("read-only", "Write", write),
        ("read-only", "Undo", "{}"),
    ] {
        let flags = ["--root", "ws", "--state", "state", "--profile", profile];
        let call = |more: &[&str]| -> Value {
            let words = [&["call", tool, args][..], &flags, more].concat();
            serde_json::from_slice(&toolcrib(top, &words, b"").stdout).unwrap()
        };
        let (real, dry) = (call(&[]), call(&["--dry-run"]));
        assert_eq!(real["success"], false, "{real}");
        assert_eq!(real, dry);
    }
    let flags = ["--root", "ws", "--state", "state", "--profile", "cautious", "--dry-run"];
    let asked = toolcrib(top, &[&["call", "Write", write][..], &flags].concat(), b"");
    let asked: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(asked["metadata"]["would_ask"]["rule"], "profile:cautious:write", "{asked}");
    assert!(!top.join("ws/b.txt").exists());
}

#[test]
fn a_command_without_a_dry_run_refuses_the_flag() {
    let top = tempfile::tempdir().unwrap();
    for words in [&["kill", "sh_1"][..], &["index", "drop"], &["index", "build"]] {
        let output = toolcrib(top.path(), &[words, &["--dry-run"]].concat(), b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("has no dry run"), "{}", text(&output.stderr));
    }
}

/// Parameters of calls that would change something, also malformed ones.
fn odd_params() -> Vec<Value> {
    let mut all = Vec::new();
    for (tool, arguments) in &calls() {
        let params = json!({"name": tool, "arguments": arguments});
        let with = |field: &str, value: Value| {
            let mut params = params.clone();
            params[field] = value;
            params
        };
        all.push(params.clone());
        all.push(with("arguments", arguments.to_string().into()));
        all.push(with("arguments", json!([arguments])));
        all.push(with("arguments", Value::Null));
        all.push(with("arguments", 5.into()));
        all.push(with("arguments", "".into()));
        if !["Undo", "Write", "Bash"].contains(tool) {
            continue;
        }
        all.push(with("requestState", 5.into()));
        all.push(with("requestState", "x".into()));
        all.push(with("requestState", json!({"x": []})));
        all.push(with("inputResponses", json!([])));
        all.push(with("inputResponses", json!({"permission": 5})));
        all.push(with("other", json!({"dry_run": false})));
        all.push(with("_meta", json!({"toolcrib/dry_run": false})));
        all.push(with("_meta", json!({"toolcrib/dry_run": "no"})));
        all.push(with("_meta", json!({"progressToken": []})));
        all.push(with("name", tool.to_lowercase().into()));
        all.push(json!([params]));
    }
    all.push(json!({"name": "Undo"}));
    all
}

/// MCP messages with these parameters.
fn messages() -> Vec<Value> {
    let mut id = 0;
    let mut next = || {
        id += 1;
        id
    };
    let call = |id: i32, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let mut all = Vec::new();
    for params in odd_params() {
        all.push(call(next(), &params));
        let mut modern = call(next(), &params);
        if let Some(params) = modern["params"].as_object_mut() {
            let mut meta = params.get("_meta").cloned().unwrap_or_else(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
            params.insert("_meta".to_owned(), meta);
        }
        all.push(modern);
        let mut more = call(next(), &params);
        more["result"] = json!({});
        all.push(more);
    }
    all
}

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[test]
fn standard_input_and_output() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    prepare(top);
    let mut server = Command::new(PROGRAM)
        .args(["serve", "--dry-run"])
        .args(FLAGS)
        .current_dir(top)
        .envs(isolated_home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut send = |message: &Value| writeln!(stdin, "{message}").unwrap();
    send(&initialize());
    stdout.next().unwrap().unwrap();
    send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for message in messages() {
        // A call without an id and a message with a result get no response. The calls after them give them time to
        // run.
        let mut notification = message.clone();
        notification.as_object_mut().unwrap().remove("id");
        send(&notification);
        send(&message);
        while message.get("result").is_none() {
            let answer: Value = serde_json::from_str(&stdout.next().unwrap().unwrap()).unwrap();
            if answer["id"] == message["id"] {
                break;
            }
        }
    }
    drop(stdin);
    for line in stdout {
        line.unwrap();
    }
    server.wait().unwrap();
    assert_unchanged(top);
}

#[test]
fn http() {
    let server = Server::start("localhost:0", &["--dry-run", "--profile", "open"]);
    prepare(server.directory.path());
    let bearer = server.bearer();
    let mut headers = right_headers("localhost", &bearer);
    headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("mcp-"));
    let begun = server.ask(&post("/mcp", &headers, &initialize()));
    let session = begun.split("mcp-session-id: ").nth(1).unwrap().split('\r').next().unwrap();
    for message in messages() {
        let name = message["params"]["name"].as_str().unwrap_or("Undo").to_owned();
        for in_session in [true, false] {
            let mut headers = headers.clone();
            if in_session {
                headers.push(("Mcp-Session-Id", Some(session)));
            } else {
                headers.extend([
                    ("MCP-Protocol-Version", Some("2026-07-28")),
                    ("Mcp-Method", Some("tools/call")),
                    ("Mcp-Name", Some(name.as_str())),
                ]);
            }
            let answer = server.ask(&post("/mcp", &headers, &message));
            assert!(answer.starts_with("HTTP/1.1 "), "{message}: {answer}");
            assert!(!answer.starts_with("HTTP/1.1 5"), "{message}: {answer}");
        }
    }
    assert_unchanged(server.directory.path());
}

#[test]
fn lines_and_single_calls() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    prepare(top);
    let mut lines = String::new();
    for params in odd_params() {
        let (tool, args) = (&params["name"], &params["arguments"]);
        lines += &format!("{}\n", json!({"id": 1, "tool": tool, "args": args}));
        lines +=
            &format!("{}\n", json!({"tool": tool, "args": args, "dry_run": false, "wait": true}));
        lines += &format!("{}\n", json!({"tool": tool, "args": args, "dry_run": "false"}));
        lines += &format!("{params}\n");
    }
    let run = toolcrib(top, &[&["run", "--dry-run"], &FLAGS[..]].concat(), lines.as_bytes());
    assert_eq!(text(&run.stdout).lines().count(), lines.lines().count());
    assert_unchanged(top);
    for (tool, args) in calls() {
        for args in [args.to_string(), json!([args]).to_string(), args.to_string() + "}"] {
            toolcrib(top, &[&["call", tool, &args, "--dry-run"], &FLAGS[..]].concat(), b"");
        }
    }
    assert_unchanged(top);
}
