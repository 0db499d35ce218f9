//! Runs the user's command for questions that nobody answers at once.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::live::Live;

/// A question that was answered within this time needs no notification.
const DELAY: Duration = Duration::from_secs(2);

/// How often waiting questions are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// The command is ended after this time.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Commands that run at once. Other questions wait.
const MAX_RUNNING: usize = 2;

/// The largest question that is passed on as a whole.
const MAX_BYTES: usize = 64 << 10;

/// Runs the command once for each question that waits longer than the delay.
pub(crate) async fn notify(live: Arc<Live>, command: Vec<String>) {
    let mut changes = live.follow();
    let mut seen: Vec<(String, Instant)> = Vec::new();
    let mut told: HashSet<String> = HashSet::new();
    let free = Arc::new(Semaphore::new(MAX_RUNNING));
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
            let is_due = first.elapsed() >= DELAY && !told.contains(id);
            if is_due && start(&free, &command, question) {
                told.insert(id.to_owned());
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

/// Runs the command in a thread of its own: a slow command must not occupy the threads for requests. Returns whether
/// there was room for it.
fn start(free: &Arc<Semaphore>, command: &[String], question: &Value) -> bool {
    let Ok(permit) = free.clone().try_acquire_owned() else { return false };
    let (command, text) = (command.to_vec(), passed_on(question));
    let thread = std::thread::Builder::new().name("notify".to_owned()).spawn(move || {
        run(&command, &text);
        drop(permit);
    });
    thread.is_ok()
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
    fn slow_commands_leave_threads_to_requests_and_are_bounded() {
        const SCRIPT: &str = "cat > \"$0/$$\"; until [ -e \"$0/end\" ]; do sleep 0.1; done";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        let started = || std::fs::read_dir(directory.path()).unwrap().count();
        let live = Arc::new(Live::new());
        let questions = (0..5).map(|at| json!({"id": format!("s-{at}")})).collect();
        live.join("s", json!({}), questions, Vec::new());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let command = ["sh", "-c", SCRIPT, &path].map(str::to_owned).to_vec();
            let notifying = tokio::spawn(notify(live.clone(), command));
            while started() < MAX_RUNNING {
                tokio::time::sleep(INTERVAL).await;
            }
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            // The others had the time to start.
            tokio::time::sleep(INTERVAL * 4).await;
            assert_eq!(started(), MAX_RUNNING);
            std::fs::write(directory.path().join("end"), "").unwrap();
            while started() < 6 {
                tokio::time::sleep(INTERVAL).await;
            }
            notifying.abort();
        });
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
