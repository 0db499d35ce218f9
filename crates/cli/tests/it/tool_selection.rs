//! `--tools` and `--no-tools`: the operator's choice holds in every transport.

use serde_json::{Value, json};
use toolcrib_testkit::McpTransport;

use crate::{PROGRAM, text, toolcrib};

fn names(listed: &Value) -> Vec<String> {
    let tools = listed["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_selection_is_the_same_for_tools_call_and_run() {
    let top = tempfile::tempdir().unwrap();
    let listed = |flags: &[&str]| {
        let words = [&["tools", "--format", "mcp", "--state", "state"][..], flags].concat();
        let output = toolcrib(top.path(), &words, b"");
        assert!(output.status.success(), "{}", text(&output.stderr));
        names(&serde_json::from_slice(&output.stdout).unwrap())
    };
    assert_eq!(listed(&["--tools", "Read,grep"]), ["Read", "Grep"]);
    assert_eq!(listed(&["--tools=Read,Bash", "--no-tools", "shell"]), ["Read"]);
    assert_eq!(listed(&["--profile", "read-only"]), ["Read", "LS", "Glob", "Grep", "History"]);
    let config = top.path().join("config.toml");
    std::fs::write(&config, "tools = [\"Read\", \"LS\", \"Glob\"]\nno_tools = [\"LS\"]\n").unwrap();
    assert_eq!(listed(&["--config", "config.toml"]), ["Read", "Glob"]);
    assert_eq!(listed(&["--config", "config.toml", "--tools", "LS,Grep"]), ["Grep"]);
    assert_eq!(listed(&["--config", "config.toml", "--no-tools", "Glob"]), ["Read"]);

    let flags = ["--no-tools", "Write", "--state", "state"];
    let write = r#"{"file_path": "a.txt", "content": "x"}"#;
    let called = toolcrib(top.path(), &[&["call", "Write", write][..], &flags].concat(), b"");
    let reply: Value = serde_json::from_slice(&called.stdout).unwrap();
    assert_eq!(reply["error"]["kind"], "denied", "{reply}");
    assert!(reply["output"].as_str().unwrap().contains("the operator disabled this tool"));
    let line = format!("{{\"id\": 1, \"tool\": \"Write\", \"args\": {write}}}\n");
    let run = toolcrib(top.path(), &[&["run"][..], &flags].concat(), line.as_bytes());
    assert!(text(&run.stdout).contains("the operator disabled this tool"));
    assert!(!top.path().join("a.txt").exists());
}

#[test]
fn an_invalid_selection_is_an_error_at_startup() {
    let top = tempfile::tempdir().unwrap();
    let rule =
        "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**\"]\ntools = [\"Raed\"]\n";
    std::fs::write(top.path().join("rules.toml"), rule).unwrap();
    for (words, expected) in [
        (&["run", "--tools", "Raed"][..], "tools: no tool `Raed`\nDid you mean Read?"),
        (&["tools", "--no-tools", "Raed"], "no_tools: no tool `Raed`\nDid you mean Read?"),
        (&["--no-tools", "Bash", "run", "--no-tools", "Write"], "give --no-tools once"),
        (&["tools", "--tools", "Read", "--no-tools", "Read"], "leave no tool"),
        (&["policy", "check", "rules.toml"], "Did you mean Read?"),
        (&["--rules", "../rules.toml", "--root", "ws", "tools"], "Did you mean Read?"),
    ] {
        std::fs::create_dir_all(top.path().join("in/ws")).unwrap();
        let directory =
            if words.contains(&"--rules") { top.path().join("in") } else { top.path().to_owned() };
        let words = [words, &["--state", "state", "--text"]].concat();
        let output = toolcrib(&directory, &words, b"");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn a_server_lists_and_mentions_only_selected_tools() {
    let top = tempfile::tempdir().unwrap();
    for (flags, expected) in [
        (&["--tools", "Read,LS"][..], &["Read", "LS"][..]),
        (&["--profile", "read-only"], &["Read", "LS", "Glob", "Grep", "History"]),
    ] {
        let at = |name: &str| top.path().join(name).display().to_string();
        let mut all = vec!["--root".to_owned(), at(""), "--state".to_owned(), at("state")];
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut transport = McpTransport::with_flags(PROGRAM, all);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        transport.send(&hello.to_string());
        let instructions = Value::Object(transport.receive())["result"]["instructions"].to_string();
        for absent in ["Bash", "commands", "Edit", "Write", "Undo", "changing"] {
            assert!(!instructions.contains(absent), "{absent}: {instructions}");
        }
        transport.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        transport.send(r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#);
        assert_eq!(names(&Value::Object(transport.receive())["result"]), expected);
        let call = json!({"name": "Bash", "arguments": {"command": "touch made"}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call});
        transport.send(&call.to_string());
        let answer = Value::Object(transport.receive());
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(!top.path().join("made").exists());
    }
}

#[test]
fn a_setting_with_an_unknown_tool_is_refused_and_doctor_has_its_own_row() {
    let top = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let words = [words, &["--config", "config.toml", "--state", "state"]].concat();
        toolcrib(top.path(), &words, b"")
    };
    for (key, name, nearest) in [("tools", "Raed", "Read"), ("no_tools", "Bsh", "Bash")] {
        let refused = run(&["config", "set", key, name]);
        let said = text(&refused.stderr);
        assert!(!refused.status.success() && said.contains("Nothing was changed."), "{said}");
        let expected = format!("{key}: no tool `{name}`\nDid you mean {nearest}?");
        assert!(said.contains(&expected), "{said}");
    }
    assert!(!top.path().join("config.toml").exists());
    assert!(run(&["config", "set", "no_tools", "Bash"]).status.success());
    std::fs::write(top.path().join("config.toml"), "tools = [\"Raed\"]\n").unwrap();
    let output = run(&["doctor", "--text"]);
    let said = text(&output.stdout);
    let row = |name: &str| said.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(row("tools").contains("no tool `Raed`"), "{said}");
    assert!(row("journal").contains("see tools"), "{said}");
}
