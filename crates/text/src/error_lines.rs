//! Detects lines of output that report an error, as compilers, tests and shells print them.

/// Words that report an error.
const ERROR_WORDS: [&str; 17] = [
    "err",
    "error",
    "errored",
    "errors",
    "exception",
    "exceptions",
    "fail",
    "failed",
    "failing",
    "fails",
    "failure",
    "failures",
    "fatal",
    "panic",
    "panicked",
    "panics",
    "traceback",
];

/// Suffixes of exception names.
const EXCEPTION_SUFFIXES: [&str; 3] = ["Error", "Exception", "Failure"];

/// Phrases that report success.
const SUCCESS_PHRASES: [&str; 6] =
    ["0 error", "no error", "0 fail", "no fail", "without error", "errors: 0"];

/// First or last words of lines about tests that passed, were skipped or were expected to fail. A number in
/// brackets may follow.
const PASSED_MARKS: [&str; 12] = [
    "ok", "PASS", "PASS:", "PASSED", "SKIP", "SKIPPED", "XFAIL", "passed", "skipped", "xfail", "✓",
    "✔",
];

/// Whether a line reports an error. Names of tests and files may contain such words; only a separate word
/// counts.
pub(crate) fn reports_error(line: &str) -> bool {
    if counts_failures(line) {
        return true;
    }
    let lower = line.to_ascii_lowercase();
    let reports_success = SUCCESS_PHRASES.iter().any(|phrase| lower.contains(phrase));
    !reports_success && !is_passed_test(line) && line.split_whitespace().any(has_error_word)
}

/// `2 failed`, `1 error`, `failures=3`: a count above zero.
fn counts_failures(line: &str) -> bool {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_some = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_kind = |word: &str| {
        let word = word.to_ascii_lowercase();
        matches!(word.as_str(), "error" | "errors" | "failed" | "failure" | "failures" | "failing")
    };
    let after = words.windows(2).any(|pair| is_some(pair[0]) && is_kind(pair[1]));
    let before = ["failures=", "errors=", "Failures: ", "Errors: "];
    let number =
        |rest: &str| rest.chars().take_while(char::is_ascii_digit).any(|digit| digit != '0');
    after || before.iter().any(|word| line.split(word).skip(1).any(number))
}

fn is_passed_test(line: &str) -> bool {
    let mut words = line.split_whitespace().filter(|word| !is_progress(word)).peekable();
    let first = words.peek().copied().unwrap_or_default();
    let is_go_result =
        line.trim_start().starts_with("--- PASS") || line.trim_start().starts_with("--- SKIP");
    let last = words.last().unwrap_or_default();
    is_go_result || PASSED_MARKS.contains(&first) || PASSED_MARKS.contains(&last)
}

/// `[`, `50%]`, `(0.01s)`: follows the outcome of a test.
fn is_progress(word: &str) -> bool {
    let inner = word.trim_matches(['[', ']', '(', ')']);
    inner.is_empty()
        || (inner.ends_with(['%', 's']) && inner.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a whitespace-separated word contains an error word.
fn has_error_word(word: &str) -> bool {
    // A path, or the name of a test.
    if word.contains('/') || word.to_ascii_lowercase().contains("test") {
        return false;
    }
    word.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| {
        let is_exception = EXCEPTION_SUFFIXES.iter().any(|end| part.ends_with(end));
        is_exception || ERROR_WORDS.iter().any(|known| part.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_test_is_not_an_error_whatever_its_name() {
        for line in [
            "tests/test_errors.py::test_TypeError PASSED                  [ 50%]",
            "tests/test_errors.py::test_TypeError SKIPPED (no network) [ 51%]",
            "test error::tests::fails ... ok",
            "test error ... ok",
            "ok 12 - throws an Error",
            "--- PASS: TestError (0.00s)",
            "✓ shows an error",
            "tests/test_errors.py ........ [ 50%]",
            "   Compiling thiserror v1.0.69",
            "0 errors here",
            "test result: ok. 12 passed; 0 failed; 0 ignored",
            "src/error.rs",
            "",
        ] {
            assert!(!reports_error(line), "{line}");
        }
    }

    #[test]
    fn errors_are_detected() {
        for line in [
            "test a ... FAILED",
            "tests/test_a.py::test_b FAILED [ 50%]",
            "E       TypeError: unsupported operand",
            "error[E0308]: mismatched types",
            "src/main.c:3:5: error: expected ';'",
            "thread 'main' panicked at src/lib.rs:3:",
            "Traceback (most recent call last):",
            "java.lang.NullPointerException: null",
            "fatal: not a git repository",
            "npm ERR! code E404",
            "==== 2 failed, 3 passed in 0.12s ====",
            "Tests:       1 failed, 2 passed, 3 total",
            "FAILED (failures=1, errors=0)",
            "1 error, 0 failed",
            "make: *** [all] Error 2",
        ] {
            assert!(reports_error(line), "{line}");
        }
    }
}
