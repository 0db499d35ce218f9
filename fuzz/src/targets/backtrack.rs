//! Patterns that backtrack, on lines of any kind: every call is answered when its time is over, whatever the
//! pattern costs, and no line is counted twice.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::ErrorKind;

use super::parts;
use super::place::Place;

const FILE: &str = "file.txt";

/// The text is repeated, so that a small input makes a long line.
const TIMES: usize = 2_000;

/// Only an endless loop takes so long.
const ENDLESS: Duration = Duration::from_secs(300);

/// The parts are the pattern and the text.
pub(crate) fn backtrack(input: &[u8]) -> String {
    let [pattern, text] = parts(input);
    // An empty look-ahead, so that no pattern is left to the linear engine.
    let pattern = format!("(?=){}", String::from_utf8_lossy(pattern));
    let lines = [text, b"\n", &text.repeat(TIMES), b"\n", text].concat();
    let count = lines.split(|byte| *byte == b'\n').count() as u64;
    let began = Instant::now();
    Place::with(|place| {
        fs::write(place.path(FILE), &lines).expect("a file");
        let args = json!({"pattern": pattern, "path": FILE, "output_mode": "count"});
        let answer = place.call("Grep", args);
        assert!(began.elapsed() < ENDLESS, "the answer came when time was long over");
        match answer {
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
