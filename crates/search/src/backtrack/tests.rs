//! Any process may stop reporting or end at any point. Every line is then reported exactly once, as decided
//! or undecided.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use proptest::prelude::*;

use super::engine::Engine;
use super::*;

/// Processes that match, but end at a line with an `x`, and go silent after a number of bytes.
#[derive(Debug)]
struct FailingProcesses {
    max_response_bytes: usize,
    started: AtomicUsize,
}

#[derive(Debug)]
struct FailingProcess {
    engine: Engine,
    max_response_bytes: usize,
}

impl Processes for FailingProcesses {
    fn start(&self, _wait: Option<&Deadline<'_>>) -> Result<Option<Box<dyn Process>>, String> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let max_response_bytes = self.max_response_bytes;
        Ok(Some(Box::new(FailingProcess { engine: Engine::default(), max_response_bytes })))
    }
}

impl Process for FailingProcess {
    fn ask(
        &mut self,
        question: [&[u8]; 2],
        _longest_silence: Duration,
        _stop: &Deadline<'_>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Unanswered> {
        let mut response = Vec::new();
        self.engine.serve_one(&mut question.concat().as_slice(), &mut response).unwrap();
        // A response without reports at every line may be cut.
        let reports_every_line = question[0][1] & 2 != 0;
        let sent = if reports_every_line {
            response.len()
        } else {
            response.len().min(self.max_response_bytes)
        };
        let from = u32::from_le_bytes(question[0][6..10].try_into().unwrap()) as usize;
        let fatal = question[1].iter().skip(from).position(|&byte| byte == b'x');
        let fatal = fatal.map(|at| line_around(question[1], from + at).start);
        for record in response[..sent].chunks_exact(9) {
            let mut one = ResponseReader::default();
            one.feed(record);
            let is_behind = |at: usize| fatal.is_some_and(|fatal| at > fatal);
            let ends = match one.next() {
                Some(Response::DecidedTo(at) | Response::Match { start: at, .. }) => is_behind(at),
                Some(Response::Done) => fatal.is_some(),
                _ => false,
            };
            if ends {
                return Err(Unanswered::Ended);
            }
            if take(record) {
                return Ok(());
            }
        }
        Err(Unanswered::Silent)
    }
}

/// Searches a text with processes that go silent after `max_response_bytes` bytes.
fn search(text: &str, pattern: &str, max_response_bytes: usize) -> (Vec<Found>, usize) {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
    let failing = Arc::new(FailingProcesses { max_response_bytes, started: AtomicUsize::new(0) });
    let processes: Arc<dyn Processes> = failing.clone();
    let backtracker = Backtracker::new(pattern.to_owned(), &processes, &stop).unwrap();
    let mut found = Vec::new();
    let searched_to = backtracker.search(text.as_bytes(), false, u64::MAX, &stop, &mut |one| {
        found.push(one);
        true
    });
    assert_eq!(searched_to, text.len());
    (found, failing.started.load(Ordering::Relaxed))
}

proptest! {
    #[test]
    fn every_line_is_decided_or_undecided_once_when_processes_fail(
        text in "[abx\n]{0,40}",
        max_response_bytes in 9_usize..60,
    ) {
        let (found, started) = search(&text, "(?<=a)b", max_response_bytes);
        let mut expected = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            if line.contains('x') {
                expected.push(Found::Undecided(start..end));
            } else if let Some(at) = line.find("ab") {
                expected.push(Found::Match(start + at + 1..start + at + 2));
            }
            start = end + 1;
        }
        prop_assert_eq!(found, expected);
        prop_assert!(started <= 3 + 2 * text.len());
    }
}

#[test]
fn invalid_utf8_does_not_shift_a_match() {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
    let ready = Backtracker::new("(?<=a)b".to_owned(), &InThisProcess::shared(), &stop).unwrap();
    for multiline in [false, true] {
        let mut found = Vec::new();
        ready.search(b"\xff\n\xff\xfeab\xff ab\n", multiline, 1, &stop, &mut |one| {
            found.push(one);
            true
        });
        assert_eq!(found, [Found::Match(5..6)], "{multiline}");
    }
}

#[test]
fn an_invalid_pattern_has_a_reason() {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
    let wrong = Backtracker::new("(?<=a".to_owned(), &InThisProcess::shared(), &stop);
    assert!(matches!(wrong, Err(CompileError::Invalid(reason)) if !reason.is_empty()));
}
