//! One entry of a JSON file, set or taken out; every other byte stays, comments too.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;

/// The text with the entry `name` in the object at `key` set, or taken out if there is none to set.
pub(super) fn with(
    text: &str,
    key: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, String> {
    let root =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("it is no JSON object")?;
    match entry {
        Some(entry) => {
            let servers = top
                .object_value_or_create(key)
                .ok_or_else(|| format!("`{key}` in it is no object"))?;
            match servers.get(name) {
                Some(old) => old.set_value(input(entry)),
                None => drop(servers.append(name, input(entry))),
            }
        }
        None => {
            if let Some(old) = top.object_value(key).and_then(|servers| servers.get(name)) {
                old.remove();
            }
        }
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') && entry.is_some() && text.lines().count() > 1 {
        text.push('\n');
    }
    Ok(text)
}

/// Whether the entry is there.
pub(super) fn has(text: &str, key: &str, name: &str) -> bool {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok();
    let servers = root.and_then(|root| root.object_value()?.object_value(key));
    servers.is_some_and(|servers| servers.get(name).is_some())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => CstInputValue::Bool(*bool),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_set_and_taken_out_and_nothing_else_changes() {
        let text = "{\n  // mine\n  \"theme\": \"dark\", // and this\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"},\n  },\n}\n";
        let set = with(
            text,
            "mcpServers",
            "toolcrib",
            Some(&json!({"command": "/t", "args": ["serve"]})),
        )
        .unwrap();
        assert!(has(&set, "mcpServers", "toolcrib"), "{set}");
        for kept in ["// mine\n", "// and this\n", "\"other\": {\"command\": \"x\"}"] {
            assert!(set.contains(kept), "{set}");
        }
        let out = with(&set, "mcpServers", "toolcrib", None).unwrap();
        assert!(!has(&out, "mcpServers", "toolcrib"));
        assert_eq!(out.replace([' ', '\n'], ""), text.replace([' ', '\n'], ""));
    }

    #[test]
    fn an_entry_that_is_there_is_replaced_not_doubled() {
        let text = "{\"mcpServers\": {\"toolcrib\": {\"command\": \"old\"}}}";
        let set = with(text, "mcpServers", "toolcrib", Some(&json!({"command": "new"}))).unwrap();
        assert!(set.contains("new") && !set.contains("old"), "{set}");
        assert_eq!(set.matches("toolcrib").count(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_made_and_one_that_is_broken_is_refused() {
        let made = with("", "servers", "toolcrib", Some(&json!({"command": "/t"}))).unwrap();
        let value: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(value["servers"]["toolcrib"]["command"], "/t");
        for broken in ["{", "[]", "{\"servers\": 7}"] {
            assert!(with(broken, "servers", "toolcrib", Some(&json!({}))).is_err(), "{broken}");
        }
    }
}
