//! The index for the operator, and across processes.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::{text, toolcrib};

fn index(workspace: &Path, state: &Path, word: &str) -> Value {
    let state = format!("--state={}", state.display());
    let output = toolcrib(workspace, &["index", word, "--json", &state], b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
}

#[test]
fn an_index_is_built_used_and_dropped() {
    let (directory, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (workspace, state) = (directory.path(), &state.path().join("state"));
    for at in 0..1_600 {
        std::fs::write(workspace.join(format!("f{at}")), format!("number {at} end\n")).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(index(workspace, state, "status")["indexed_files"], 0);
    let built = index(workspace, state, "build");
    assert_eq!((&built["files"], &built["indexed_files"]), (&1_600.into(), &1_600.into()));
    assert_eq!((&built["kept_by_searches"], &built["full"]), (&true.into(), &false.into()));
    assert_eq!(index(workspace, state, "status")["indexed_files"], 1_600);
    std::fs::write(workspace.join("f7"), "another text\n").unwrap();
    let state_word = format!("--state={}", state.display());
    for (pattern, files) in
        [("number 8 end", 1), ("number 7 end", 0), ("another", 1), ("end$", 1_599)]
    {
        let args = serde_json::json!({"pattern": pattern, "output_mode": "count"}).to_string();
        let output = toolcrib(workspace, &["call", "Grep", "-", &state_word], args.as_bytes());
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["metadata"]["total_matches"], files, "{pattern}");
        assert_eq!(reply["metadata"]["files_searched"], 1_600, "{pattern}");
    }
    let told = toolcrib(workspace, &["index", "status", "--text", &state_word], b"");
    assert!(text(&told.stdout).contains("1600 files, 1600 indexed"), "{}", text(&told.stdout));
    assert_eq!(index(workspace, state, "drop")["indexed_files"], 0);
    assert_eq!(index(workspace, state, "status")["indexed_files"], 0);
}
