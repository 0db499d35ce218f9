//! `--dialect` of `call`, `run` and `tools`.

use serde_json::{Value, json};

use crate::{text, toolcrib};

#[test]
fn call_and_run_answer_in_the_dialect() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("a.txt"), "one two two\n").unwrap();
    let edits = json!({"filePath": "a.txt", "edits": [
        {"oldString": "one", "newString": "1"},
        {"oldString": "two", "newString": "2", "replaceAll": true},
    ]});
    let words = ["call", "multiedit", &edits.to_string(), "--dialect", "camel", "--json"];
    let output = toolcrib(workspace.path(), &words, b"");
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "success": true,
        "filePath": "a.txt",
        "totalReplacements": 3,
        "results": [
            {"filePath": "a.txt", "replacements": 1},
            {"filePath": "a.txt", "replacements": 2},
        ],
    });
    assert_eq!(reply["result"], expected, "{reply}");

    let lines = json!({"tool": "read_file", "args": {"offset": 0}}).to_string();
    let output = toolcrib(workspace.path(), &["run", "--dialect", "codex"], lines.as_bytes());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hint = reply["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("read_file takes {\"file_path\": string"), "{reply}");
    assert!(reply.get("result").is_none(), "{reply}");
}

#[test]
fn the_overview_has_the_names_of_the_dialect() {
    let workspace = tempfile::tempdir().unwrap();
    let output = toolcrib(workspace.path(), &["tools", "--dialect", "codex"], b"");
    let overview = text(&output.stdout);
    assert!(overview.starts_with("read_file "), "{overview}");
    assert!(overview.contains("\nshell "), "{overview}");
}
