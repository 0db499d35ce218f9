//! Sets and removes entries of a top-level mapping of a YAML file by lines. All other bytes stay. YAML that does
//! not have one key per line is refused: a wrong guess would damage the user's file.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The value at a path. Of an entry, only fields that are scalars or lists on one line.
pub(super) fn get(text: &str, path: &[String]) -> Option<Value> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (key, name) = (path.first()?, path.get(1));
    let mapping = find_mapping(&lines, key).ok()??;
    let Some(name) = name else { return Some(Value::Object(Map::new())) };
    let entry = mapping.entry(&lines, name)?;
    let mut fields = Map::new();
    for line in &lines[entry.start + 1..entry.end] {
        if let Some((field, value)) = line.trim().split_once(": ") {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            fields.insert(field.to_owned(), value);
        }
    }
    match path.get(2) {
        Some(field) => fields.remove(field),
        None => Some(Value::Object(fields)),
    }
}

/// The text with an entry, or one field of an existing entry, set.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    refuse_other_yaml(text)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    match path {
        [key, name] => set_entry(&lines, key, name, value),
        [key, name, field] => {
            let mapping = find_mapping(&lines, key)?.ok_or_else(|| format!("it has no `{key}`"))?;
            let entry = mapping.entry(&lines, name).ok_or_else(|| format!("it has no `{name}`"))?;
            Ok(set_field(&lines, &entry, field, value))
        }
        _ => Err("only entries of a top-level mapping can be set".to_owned()),
    }
}

/// The text without an entry, a field of an entry, or an empty mapping.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, String> {
    refuse_other_yaml(text)?;
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(mapping) = path.first().map(|key| find_mapping(&lines, key)).transpose()?.flatten()
    else {
        return Ok(text.to_owned());
    };
    match path {
        [_] => drop(lines.remove(mapping.at)),
        [_, name] => {
            if let Some(entry) = mapping.entry(&lines, name) {
                lines.drain(entry.start..entry.end);
            }
        }
        [_, name, field] => {
            let entry = mapping.entry(&lines, name);
            let line = entry.and_then(|entry| field_line(&lines, &entry, field));
            line.map(|line| lines.remove(line));
        }
        _ => {}
    }
    Ok(lines.concat())
}

/// Whether the text sets nothing.
pub(super) fn is_empty(text: &str) -> bool {
    text.trim().is_empty()
}

/// Whether a mapping has no entries.
pub(super) fn is_empty_mapping(text: &str, key: &str) -> bool {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mapping = find_mapping(&lines, key).ok().flatten();
    mapping.is_some_and(|mapping| {
        let next = lines[mapping.at + 1..].iter().find(|line| !line.trim().is_empty());
        next.is_none_or(|line| indent_of(line) == 0)
    })
}

/// A mapping: the line of its key, and the indentation of its entries.
struct Mapping {
    at: usize,
    indent: usize,
}

/// The lines of an entry. The first has its name.
struct Entry {
    start: usize,
    end: usize,
    indent: usize,
}

impl Mapping {
    fn entry(&self, lines: &[&str], name: &str) -> Option<Entry> {
        let own = format!("{:1$}{name}:", "", self.indent);
        let end = lines[self.at + 1..]
            .iter()
            .position(|line| !is_blank(line) && indent_of(line) == 0)
            .map_or(lines.len(), |length| self.at + 1 + length);
        let within = &lines[self.at + 1..end];
        let start = self.at + 1 + within.iter().position(|line| line.trim_end() == own)?;
        let body = lines[start + 1..end].iter();
        let length = body.take_while(|line| !is_blank(line) && indent_of(line) > self.indent);
        Some(Entry { start, end: start + 1 + length.count(), indent: self.indent })
    }
}

fn find_mapping(lines: &[&str], key: &str) -> Result<Option<Mapping>, String> {
    let head = format!("{key}:");
    let Some(at) = lines.iter().position(|line| line.trim_end() == head) else {
        return if lines.iter().any(|line| line.starts_with(&head)) {
            Err(format!("`{key}` in it is not a block with one entry per line"))
        } else {
            Ok(None)
        };
    };
    match indent_below(&lines[at + 1..]).unwrap_or(2) {
        0 => Err(format!("`{key}` in it is a list, not a mapping")),
        indent => Ok(Some(Mapping { at, indent })),
    }
}

fn refuse_other_yaml(text: &str) -> Result<(), String> {
    if text.contains('\t') || text.lines().any(|line| line == "---" || line.starts_with('%')) {
        Err("it has YAML syntax that Toolcrib does not edit (tabs, `---`, `%`)".to_owned())
    } else {
        Ok(())
    }
}

fn set_entry(lines: &[&str], key: &str, name: &str, value: &Value) -> Result<String, String> {
    let Some(mapping) = find_mapping(lines, key)? else {
        let mut text = lines.concat();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        return Ok(format!("{text}{key}:\n{}", block(name, value, 2)));
    };
    let block = block(name, value, mapping.indent);
    let (start, end) = match mapping.entry(lines, name) {
        Some(entry) => (entry.start, entry.end),
        None => (mapping.at + 1, mapping.at + 1),
    };
    let mut before = lines[..start].concat();
    if !before.ends_with('\n') {
        before.push('\n');
    }
    Ok(before + &block + &lines[end..].concat())
}

fn set_field(lines: &[&str], entry: &Entry, field: &str, value: &Value) -> String {
    let first = lines[entry.start + 1..entry.end].first();
    let indent = first.map_or(entry.indent + 2, |line| indent_of(line));
    let new = format!("{:indent$}{field}: {value}\n", "");
    let (start, end) = match field_line(lines, entry, field) {
        Some(line) => (line, line + 1),
        None => (entry.start + 1, entry.start + 1),
    };
    lines[..start].concat() + &new + &lines[end..].concat()
}

fn field_line(lines: &[&str], entry: &Entry, field: &str) -> Option<usize> {
    let head = format!("{field}:");
    let within = &lines[entry.start + 1..entry.end];
    let indent = indent_of(within.first()?);
    let is_field = |line: &&str| indent_of(line) == indent && line.trim_start().starts_with(&head);
    Some(entry.start + 1 + within.iter().position(is_field)?)
}

/// The entry as lines. A JSON scalar is also a YAML scalar.
fn block(name: &str, entry: &Value, indent: usize) -> String {
    let mut text = format!("{:indent$}{name}:\n", "");
    for (field, value) in entry.as_object().into_iter().flatten() {
        let _ = writeln!(text, "{:1$}{field}: {value}", "", indent + 2);
    }
    text
}

/// The indentation of a mapping's entries. `None` if it has none.
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

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn an_entry_is_set_and_removed_and_nothing_else_changes() {
        let entry = json!({"enabled": true, "cmd": "/t", "args": ["serve"]});
        let ours = path(&["extensions", "toolcrib"]);
        let block = "toolcrib:\n      enabled: true\n      cmd: \"/t\"\n      args: [\"serve\"]\n";
        let text = "A: 1\nextensions:\n    # mine\n    developer:\n        enabled: true\nB: 2";
        let added = set(text, &ours, &entry).unwrap();
        assert!(added.contains(&format!("extensions:\n    {block}    # mine\n")), "{added}");
        assert_eq!((get(&added, &ours), get(text, &ours)), (Some(entry.clone()), None));
        assert_eq!(remove(&added, &ours).unwrap(), text);
        assert_eq!(set(&added, &ours, &entry).unwrap(), added);
    }

    #[test]
    fn a_field_is_set_and_restored() {
        let text = "extensions:\n  developer:\n    type: builtin\n    enabled: true\n  x:\n    enabled: true\n";
        let field = path(&["extensions", "developer", "enabled"]);
        let off = set(text, &field, &json!(false)).unwrap();
        assert_eq!(off, text.replacen("enabled: true", "enabled: false", 1));
        assert_eq!(get(&off, &field), Some(json!(false)));
        assert_eq!(set(&off, &field, &json!(true)).unwrap(), text);
        assert!(set("A: 1\n", &field, &json!(true)).is_err());
    }

    #[test]
    fn a_missing_mapping_is_created_and_an_empty_one_removed() {
        let (ours, entry) = (path(&["extensions", "toolcrib"]), json!({"enabled": true}));
        for (text, expected) in [
            ("", "extensions:\n  toolcrib:\n    enabled: true\n"),
            ("A: 1", "A: 1\nextensions:\n  toolcrib:\n    enabled: true\n"),
            ("extensions:\nA: 1\n", "extensions:\n  toolcrib:\n    enabled: true\nA: 1\n"),
        ] {
            let added = set(text, &ours, &entry).unwrap();
            assert_eq!(added, expected);
            let removed = remove(&added, &ours).unwrap();
            assert!(is_empty_mapping(&removed, "extensions"), "{removed}");
            let nothing = remove(&removed, &path(&["extensions"])).unwrap();
            assert_eq!(nothing.trim(), text.replace("extensions:\n", "").trim());
        }
        assert!(!is_empty_mapping("extensions:\n  x:\n    enabled: true\n", "extensions"));
    }

    #[test]
    fn other_yaml_is_refused() {
        let ours = path(&["extensions", "toolcrib"]);
        for text in ["extensions: {}\n", "extensions:\n- type: x\n", "---\na: 1\n", "a:\n\tb: 1\n"]
        {
            assert!(set(text, &ours, &json!({})).is_err(), "{text}");
        }
    }
}
