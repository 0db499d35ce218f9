//! Runs the user's command for questions that nobody answers at once.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::live::Live;

/// A question that was answered within this time needs no notification.
const DELAY: Duration = Duration::from_secs(2);

/// How often waiting questions are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// The command is ended after this time.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The largest question that is passed on as a whole.
const MAX_BYTES: usize = 64 << 10;

/// Runs the command once for each question that waits longer than the delay.
pub(crate) async fn notify(live: Arc<Live>, command: Vec<String>) {
    let mut changes = live.follow();
    let mut seen: Vec<(String, Instant)> = Vec::new();
    let mut told: HashSet<String> = HashSet::new();
    loop {
        let waiting = live.waiting();
        let ids: HashSet<&str> = waiting.iter().filter_map(|one| one["id"].as_str()).collect();
        seen.retain(|(id, _)| ids.contains(id.as_str()));
        told.retain(|id| ids.contains(id.as_str()));
        for question in &waiting {
            let Some(id) = question["id"].as_str() else { continue };
            let first = match seen.iter().find(|(known, _)| known == id) {
                Some((_, first)) => *first,
                None => {
                    seen.push((id.to_owned(), Instant::now()));
                    continue;
                }
            };
            if first.elapsed() >= DELAY && told.insert(id.to_owned()) {
                let (command, text) = (command.clone(), passed_on(question));
                tokio::task::spawn_blocking(move || run(&command, &text));
            }
        }
        if waiting.len() == told.len() {
            if changes.changed().await.is_err() {
                return;
            }
        } else {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// The question as JSON. The largest parts are left out if it is too long.
fn passed_on(question: &Value) -> String {
    let whole = question.to_string();
    if whole.len() <= MAX_BYTES {
        return whole;
    }
    let mut short = question.clone();
    if let Some(fields) = short.as_object_mut() {
        for field in ["diff", "command", "accesses", "always", "always_directory", "never"] {
            fields.remove(field);
        }
    }
    short["cut"] = json!(["diff", "command", "accesses", "always", "always_directory", "never"]);
    short.to_string()
}

/// Runs the command with the question on its standard input. Without a shell: words of the question are only data.
fn run(command: &[String], question: &str) {
    let Some((program, arguments)) = command.split_first() else { return };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    if let Some(mut input) = child.stdin.take() {
        let question = format!("{question}\n");
        // A command that reads nothing must not block this thread.
        let _ = std::thread::Builder::new().spawn(move || {
            let _ = input.write_all(question.as_bytes());
        });
    }
    end_in_time(&mut child);
}

fn end_in_time(child: &mut Child) {
    let began = Instant::now();
    while began.elapsed() < TIME_LIMIT {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(INTERVAL),
            _ => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_question_is_passed_on_without_its_largest_parts() {
        let question = json!({"id": "q", "why": "x", "diff": "y".repeat(MAX_BYTES)});
        let text = passed_on(&question);
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert!(text.len() < 1_000 && parsed["why"] == "x" && parsed["cut"][0] == "diff");
        assert_eq!(passed_on(&json!({"id": "q"})), "{\"id\":\"q\"}");
    }

    #[test]
    fn the_command_gets_the_question_as_data() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("$(touch x) got");
        let command = ["tee".to_owned(), file.display().to_string()];
        run(&command, "{\"id\":\"; rm\"}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"id\":\"; rm\"}\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        run(&["/does/not/exist".to_owned()], "{}");
        run(&[], "{}");
    }
}
