//! Problems of a configuration file, with the line and the key that they are about.

use toolcrib::{line_number, similar_names, toml_key, toml_problem};

use super::Config;

/// The problem of a text that does not parse, or that has unknown keys or values of another type.
pub(super) fn of_toml(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let line = error.span().map(|span| line_number(text, span.start));
    let at = |problem: String| match line {
        Some(line) => format!("line {line}: {problem}"),
        None => problem,
    };
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (key, expected) = rest.split_once('`').unwrap_or((rest, ""));
        let known = expected.split('`').skip(1).step_by(2);
        return at(match similar_names(key, known, 1).first() {
            Some(similar) => format!("unknown key `{key}`; did you mean `{similar}`?"),
            None => format!("unknown key `{key}`; docs/configuration.md lists the keys"),
        });
    }
    match in_words(text, error) {
        Some(problem) => at(problem),
        None => error.to_string().trim_end().to_owned(),
    }
}

/// The same of a text that is in no file, with the key instead of the line.
pub(super) fn without_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let key = || error.span().and_then(|span| toml_key(text, &span));
    in_words(text, error).unwrap_or_else(|| match key() {
        Some(key) => format!("{key}: {message}"),
        None => message.to_owned(),
    })
}

/// The problem of a single key or value.
fn in_words(text: &str, error: &toml::de::Error) -> Option<String> {
    let span = error.span();
    let key = span.as_ref().and_then(|span| toml_key(text, span));
    let is_source = error.message().contains("`env`, `file`, `command`");
    match key {
        // The parser takes a text for one of the words.
        Some("value") if is_source => Some(
            "value must be a table such as { env = \"NAME\" }, with env, file or command"
                .to_owned(),
        ),
        _ => toml_problem(text, span.as_ref(), error.message()),
    }
}

/// A problem with the line of the key that it names first, if there is one.
pub(super) fn with_line(text: &str, problem: &str) -> String {
    let keys = Config::keys();
    let words = || problem.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let named = words().find_map(|word| keys.iter().find(|(key, ..)| key == word));
    match named.and_then(|(key, ..)| line_of_key(text, key)) {
        Some(line) => format!("line {line}: {problem}"),
        None => problem.to_owned(),
    }
}

/// The line of a key at the top level, from 1.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let is_key = |line: &str| {
        let rest = line.trim_start().trim_start_matches('[').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']']))
    };
    text.lines().position(is_key).map(|at| at + 1)
}
