//! Problems of values in a TOML file, in plain words.

use std::ops::Range;

/// A problem of one key or value, without its line. `None` if the parser's message is about something else, such as
/// the syntax of the file.
pub fn toml_problem(text: &str, span: Option<&Range<usize>>, message: &str) -> Option<String> {
    let message = message.lines().next()?;
    let key = span.and_then(|span| toml_key(text, span)).unwrap_or("the value");
    if let Some(rest) = message.strip_prefix("missing field `") {
        return Some(format!("the key `{}` is missing", rest.split('`').next()?));
    }
    if let Some((unknown, known)) = unknown_and_known(message, "unknown field `") {
        return Some(format!("unknown key `{unknown}`; known keys: {}", known.join(", ")));
    }
    if let Some((unknown, known)) = unknown_and_known(message, "unknown variant `") {
        let (last, others) = known.split_last()?;
        let known = match others {
            [] => (*last).to_owned(),
            others => format!("{} or {last}", others.join(", ")),
        };
        return Some(format!("{key} must be {known}, not \"{unknown}\""));
    }
    if message == "wanted string or table" {
        return Some(format!("{key} must be text in quotes"));
    }
    let rest = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!("{key} must be {}, not {}", expected_value(expected)?, found_value(found)))
}

/// The name in backquotes behind `start`, and the names that are allowed instead.
fn unknown_and_known<'a>(message: &'a str, start: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (unknown, expected) = message.strip_prefix(start)?.split_once('`')?;
    Some((unknown, expected.split('`').skip(1).step_by(2).collect()))
}

/// The type that the parser expects, in words.
fn expected_value(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number that is not negative",
        "a boolean" => "true or false",
        "a string" | "a str" => "text in quotes",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        _ => return None,
    })
}

/// The value that the parser found.
fn found_value(found: &str) -> &str {
    match found {
        "map" => "a table",
        "sequence" => "a list",
        found => match found.split_once(['`', '"']) {
            Some((kind, _)) if kind == "string " => &found[kind.len()..],
            Some((_, value)) => value.trim_end_matches('`'),
            None => found,
        },
    }
}

/// The line of a place in a text, from 1.
pub fn line_number(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
}

/// The key whose value begins at a place, or contains it as an entry of a list.
pub fn toml_key<'a>(text: &'a str, span: &Range<usize>) -> Option<&'a str> {
    text.get(..span.start)?.lines().rev().find_map(|line| {
        let Some((key, _)) = line.split_once('=') else {
            // A table in place of a value.
            let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
            return Some(name).filter(|name| !name.is_empty() && !name.starts_with('['));
        };
        // In a table within a line, the last key.
        let line = line.rfind(['{', ',']).map_or(line, |at| &line[at + 1..]);
        let key = line.split_once('=').map_or(key, |(key, _)| key).trim();
        (!key.is_empty() && !key.starts_with(['#', '[', '"', '\''])).then_some(key)
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are tested")]
    struct File {
        #[serde(default)]
        count: u64,
        port: Option<u16>,
        #[serde(default)]
        list: Vec<String>,
        #[serde(default)]
        on: bool,
        word: Option<Word>,
        #[serde(default)]
        entry: Vec<Entry>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        One,
        Two,
        Three,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the errors are tested")]
    struct Entry {
        name: String,
    }

    #[test]
    fn problems_are_in_plain_words_with_the_key() {
        for (text, expected) in [
            ("count = \"5\"", "count must be a whole number that is not negative, not \"5\""),
            ("count = -1", "count must be a whole number that is not negative, not -1"),
            ("count = 1.5", "count must be a whole number that is not negative, not 1.5"),
            ("port = 70000", "port must be a whole number from 0 to 65535, not 70000"),
            ("list = \"a\"", "list must be a list in brackets, not \"a\""),
            ("list = [\n  \"a\",\n  5,\n]", "list must be text in quotes, not 5"),
            ("list = [\n  \"a=b\",\n  5,\n]", "list must be text in quotes, not 5"),
            ("on = \"yes\"", "on must be true or false, not \"yes\""),
            ("count = 1\n[word]\nmode = 1", "word must be one, two or three, not \"mode\""),
            ("on = [true]", "on must be true or false, not a list"),
            ("word = \"four\"", "word must be one, two or three, not \"four\""),
            ("word = 4", "word must be text in quotes"),
            ("entry = 4", "entry must be a list in brackets, not 4"),
            ("entry = [4]", "entry must be a table, not 4"),
            ("entry = [{ name = 4 }]", "name must be text in quotes, not 4"),
            ("[[entry]]", "the key `name` is missing"),
            ("cuont = 5", "unknown key `cuont`; known keys: count, port, list, on, word, entry"),
        ] {
            let error = toml::from_str::<File>(text).unwrap_err();
            let problem = toml_problem(text, error.span().as_ref(), error.message());
            assert_eq!(problem.as_deref(), Some(expected), "{text}: {error}");
        }
        let syntax = toml::from_str::<File>("count = five").unwrap_err();
        assert_eq!(toml_problem("count = five", syntax.span().as_ref(), syntax.message()), None);
    }
}
