//! Backtracking patterns on arbitrary lines: every call returns within its time limit, whatever the pattern
//! costs, and no line is counted twice.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::ErrorKind;

use super::parts;
use crate::test_workspace::TestWorkspace;

const FILE: &str = "file.txt";

/// The text is repeated, so that a small input makes a long line.
const REPETITIONS: usize = 2_000;

/// Only an endless loop takes this long.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// The parts are the pattern and the text.
pub(crate) fn backtrack(input: &[u8]) -> String {
    let [pattern, text] = parts(input);
    // An empty look-ahead, so that no pattern uses the linear engine.
    let pattern = format!("(?=){}", String::from_utf8_lossy(pattern));
    let lines = [text, b"\n", &text.repeat(REPETITIONS), b"\n", text].concat();
    let count = lines.split(|byte| *byte == b'\n').count() as u64;
    let start = Instant::now();
    TestWorkspace::with(|workspace| {
        fs::write(workspace.path(FILE), &lines).expect("a file");
        let args = json!({"pattern": pattern, "path": FILE, "output_mode": "count"});
        let reply = workspace.call("Grep", args);
        assert!(start.elapsed() < HANG_TIMEOUT, "the reply came long after the time limit");
        match reply {
            Ok(reply) => {
                let number = |name: &str| reply.metadata()[name].as_u64().unwrap_or(0);
                let undecided = number("undecided_lines");
                assert!(number("total_matches") + undecided <= count, "{}", reply.output());
                match (undecided, reply.metadata()["complete"].as_bool()) {
                    (0, Some(true)) => "decided".to_owned(),
                    (0, _) => "time was over".to_owned(),
                    _ => "not decided".to_owned(),
                }
            }
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                error.kind().name().to_owned()
            }
        }
    })
}
