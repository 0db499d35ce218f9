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
        if question[0][0] == 0 {
            return if take(&response) { Ok(()) } else { Err(Unanswered::Ended) };
        }
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
    let backtracker = Backtracker::new(pattern.to_owned(), false, &processes, &stop).unwrap();
    let mut found = Vec::new();
    let searched_to = backtracker.search(text.as_bytes(), u64::MAX, &stop, &mut |one| {
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
        let (found, started) = search(&text, "(?<=a)b(?!b)", max_response_bytes);
        let mut expected = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            if line.contains('x') && line.contains("ab") {
                // The linear engine decides the other lines.
                expected.push(Found::Undecided(start..end));
            } else if let Some(at) = line.replace("abb", "...").find("ab") {
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
    for multiline in [false, true] {
        let pattern = "(?<=a)b".to_owned();
        let processes = InThisProcess::shared();
        let ready = Backtracker::new(pattern, multiline, &processes, &stop).unwrap();
        let mut found = Vec::new();
        ready.search(b"\xff\n\xff\xfeab\xff ab\n", 1, &stop, &mut |one| {
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
    let wrong = Backtracker::new("(?<=a".to_owned(), false, &InThisProcess::shared(), &stop);
    assert!(matches!(wrong, Err(CompileError::Invalid(reason)) if !reason.is_empty()));
}

/// The results of a search with and without the prefilter.
fn both_results(pattern: &str, text: &[u8]) -> Option<[Vec<Found>; 2]> {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(120), &never);
    let processes = InThisProcess::shared();
    let mut ready = Backtracker::new(pattern.to_owned(), false, &processes, &stop).ok()?;
    let result = |ready: &Backtracker| {
        let mut found = Vec::new();
        ready.search(text, u64::MAX, &stop, &mut |one| {
            found.push(one);
            true
        });
        found
    };
    let with = result(&ready);
    ready.prefilter = None;
    Some([with, result(&ready)])
}

proptest! {
    #[test]
    fn the_prefilter_changes_no_result(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "(?<=a)", "(?<!b)", "(?=\\s)", "(?!\\w)", "(?>a|ab)", "(a|b)", "\\1", "a", "ab", "b+",
                ".", "[^a]", "\\W", "\\s*", "(?i:K)", "é?", "a++", "\\b", "^", "$", "\\K", "(?:b|)",
                "a{2}", "\\r", "\\x61", "(?s:.)", "\\h", "\\R",
            ]),
            1..7,
        ),
        text in "[abkK\u{212a}é .\r\n]{0,60}",
    ) {
        // fancy-regex 0.20 matches `b+\s*b+` on one `b`. The prefilter excludes that line.
        prop_assume!(parts.iter().filter(|part| part.contains('+')).count() < 2);
        let pattern = format!("(?m:{})", parts.concat());
        if let Some([with, without]) = both_results(&pattern, text.as_bytes()) {
            prop_assert_eq!(with, without, "{}", pattern);
        }
    }
}

#[test]
fn only_candidate_lines_are_sent_to_the_process() {
    // The process ends at a line with an `x`.
    let found = search("x\nab\nx and more\nab x\nab\n", "(?<=a)b", usize::MAX).0;
    assert_eq!(found, [Found::Match(3..4), Found::Undecided(16..20), Found::Match(22..23)]);
}
