//! One entry of a mapping at the top of a YAML file, set or taken out by its lines; every other byte
//! stays. What is not written in lines, one key each, is refused: to guess at somebody's YAML is worse
//! than to say what to write.

use std::fmt::Write as _;

use serde_json::Value;

/// The text with the entry `name` in the mapping `key` set, or taken out if there is none to set.
pub(super) fn with(
    text: &str,
    key: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, String> {
    if text.contains('\t') || text.lines().any(|line| line == "---" || line.starts_with('%')) {
        return Err("it is YAML of a kind that we do not change".to_owned());
    }
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = format!("{key}:");
    let found = lines.iter().position(|line| line.trim_end() == head);
    if found.is_none() && lines.iter().any(|line| line.starts_with(&head)) {
        return Err(format!("`{key}` in it is not written as lines of their own"));
    }
    let indent = found.map_or(2, |at| indent_below(&lines[at + 1..]).unwrap_or(2));
    if indent == 0 {
        return Err(format!("`{key}` in it is a list, not a mapping"));
    }
    if let Some(at) = found {
        let own = format!("{:indent$}{name}:", "");
        if let Some(first) = lines[at + 1..].iter().position(|line| line.trim_end() == own) {
            let first = at + 1 + first;
            let body = lines[first + 1..].iter();
            let length =
                body.take_while(|line| !is_blank(line) && indent_of(line) > indent).count();
            lines.drain(first..=first + length);
        }
    }
    let Some(entry) = entry else { return Ok(lines.concat()) };
    let block = block(name, entry, indent);
    match found {
        Some(at) => {
            let mut before = lines[..=at].concat();
            if !before.ends_with('\n') {
                before.push('\n');
            }
            Ok(before + &block + &lines[at + 1..].concat())
        }
        None => {
            let mut text = lines.concat();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            Ok(format!("{text}{head}\n{block}"))
        }
    }
}

/// Whether the entry is there.
pub(super) fn has(text: &str, key: &str, name: &str) -> bool {
    with(text, key, name, None).is_ok_and(|without| without != text)
}

/// The entry as lines. A scalar of JSON is one of YAML.
fn block(name: &str, entry: &Value, indent: usize) -> String {
    let mut text = format!("{:indent$}{name}:\n", "");
    for (field, value) in entry.as_object().into_iter().flatten() {
        let _ = writeln!(text, "{:1$}{field}: {value}", "", indent + 2);
    }
    text
}

/// How far the lines of a mapping stand in; nothing, if it has none.
fn indent_below(lines: &[&str]) -> Option<usize> {
    let first = lines.iter().find(|line| !is_blank(line))?;
    let indent = indent_of(first);
    match indent {
        0 if !first.starts_with('-') => None,
        indent => Some(indent),
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_set_and_taken_out_and_nothing_else_changes() {
        let entry = json!({"enabled": true, "cmd": "/t", "args": ["serve"]});
        let block = "toolcrib:\n      enabled: true\n      cmd: \"/t\"\n      args: [\"serve\"]\n";
        let text = "A: 1\nextensions:\n    # mine\n    developer:\n        enabled: true\nB: 2";
        let set = with(text, "extensions", "toolcrib", Some(&entry)).unwrap();
        assert!(set.contains(&format!("extensions:\n    {block}    # mine\n")), "{set}");
        assert!(has(&set, "extensions", "toolcrib") && !has(text, "extensions", "toolcrib"));
        assert_eq!(with(&set, "extensions", "toolcrib", None).unwrap(), text);
        assert_eq!(with(&set, "extensions", "toolcrib", Some(&entry)).unwrap(), set);
    }

    #[test]
    fn a_mapping_that_is_not_there_is_made() {
        let entry = json!({"enabled": true});
        for (text, expected) in [
            ("", "extensions:\n  toolcrib:\n    enabled: true\n"),
            ("A: 1", "A: 1\nextensions:\n  toolcrib:\n    enabled: true\n"),
            ("extensions:\nA: 1\n", "extensions:\n  toolcrib:\n    enabled: true\nA: 1\n"),
        ] {
            assert_eq!(with(text, "extensions", "toolcrib", Some(&entry)).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_written_otherwise_is_refused() {
        for text in ["extensions: {}\n", "extensions:\n- type: x\n", "---\na: 1\n", "a:\n\tb: 1\n"]
        {
            assert!(with(text, "extensions", "toolcrib", Some(&json!({}))).is_err(), "{text}");
        }
    }
}
