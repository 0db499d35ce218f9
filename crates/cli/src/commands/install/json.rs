//! Sets and removes values of a JSON file by path. All other bytes stay, including comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// The value at a path of keys.
pub(super) fn get(text: &str, path: &[String]) -> Option<Value> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    let (name, above) = path.split_last()?;
    object_at(root.object_value()?, above)?.get(name)?.to_serde_value()
}

/// The text with the value at a path set. Creates missing objects above it. In an existing list, only different
/// items are added and removed.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let root = parse(text)?;
    let (name, above) = path.split_last().ok_or("it has no such setting")?;
    let mut object = root.object_value_or_create().ok_or("it is not a JSON object")?;
    for key in above {
        object = object
            .object_value_or_create(key)
            .ok_or_else(|| format!("`{key}` in it is not an object"))?;
    }
    match (object.get(name), value) {
        (None, _) => drop(object.append(name, input(value))),
        (Some(old), Value::Array(items)) => match old.array_value() {
            Some(array) => set_items(&array, items),
            None => old.set_value(input(value)),
        },
        (Some(old), _) => old.set_value(input(value)),
    }
    let mut new = root.to_string();
    if text.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    Ok(new)
}

/// The text without the value at a path.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, String> {
    let root = parse(text)?;
    let (name, above) = path.split_last().ok_or("it has no such setting")?;
    let object = root.object_value().and_then(|top| object_at(top, above));
    if let Some(old) = object.and_then(|object| object.get(name)) {
        old.remove();
    }
    Ok(root.to_string())
}

/// Whether the text sets nothing.
pub(super) fn is_empty(text: &str) -> bool {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok();
    let has_comment = text.contains("//") || text.contains("/*");
    !has_comment
        && root.is_some_and(|root| {
            root.value().is_none()
                || root.object_value().is_some_and(|top| top.properties().is_empty())
        })
}

pub(super) fn parse(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())
}

fn object_at(top: CstObject, path: &[String]) -> Option<CstObject> {
    path.iter().try_fold(top, |object, key| object.object_value(key))
}

fn set_items(array: &CstArray, items: &[Value]) {
    for node in array.elements() {
        if node.to_serde_value().is_none_or(|old| !items.contains(&old)) {
            node.remove();
        }
    }
    let kept: Vec<Value> = array.elements().iter().filter_map(CstNode::to_serde_value).collect();
    for item in items.iter().filter(|item| !kept.contains(item)) {
        array.append(input(item));
    }
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

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn an_entry_is_set_and_removed_and_nothing_else_changes() {
        let text = "{\n  // mine\n  \"theme\": \"dark\", // and this\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"},\n  },\n}\n";
        let entry = path(&["mcpServers", "toolcrib"]);
        let value = json!({"command": "/t", "args": ["serve"]});
        let added = set(text, &entry, &value).unwrap();
        assert_eq!(get(&added, &entry), Some(value), "{added}");
        for kept in ["// mine\n", "// and this\n", "\"other\": {\"command\": \"x\"}"] {
            assert!(added.contains(kept), "{added}");
        }
        let removed = remove(&added, &entry).unwrap();
        assert_eq!(get(&removed, &entry), None);
        assert_eq!(removed.replace([' ', '\n'], ""), text.replace([' ', '\n'], ""));
    }

    #[test]
    fn an_existing_entry_is_replaced() {
        let text = "{\"mcpServers\": {\"toolcrib\": {\"command\": \"old\"}}}";
        let entry = path(&["mcpServers", "toolcrib"]);
        let new = set(text, &entry, &json!({"command": "new"})).unwrap();
        assert!(new.contains("new") && !new.contains("old"), "{new}");
        assert_eq!(new.matches("toolcrib").count(), 1);
    }

    #[test]
    fn a_list_keeps_its_other_items_and_their_comments() {
        let text = "{\n  \"deny\": [\n    \"A\", // mine\n    \"B\"\n  ]\n}\n";
        let deny = path(&["deny"]);
        let more = set(text, &deny, &json!(["A", "B", "C"])).unwrap();
        assert!(more.contains("\"A\", // mine\n"), "{more}");
        assert_eq!(get(&more, &deny), Some(json!(["A", "B", "C"])));
        assert_eq!(set(&more, &deny, &json!(["A", "B"])).unwrap(), text);
    }

    #[test]
    fn a_missing_file_is_created_and_a_broken_one_is_refused() {
        let entry = path(&["servers", "toolcrib"]);
        let made = set("", &entry, &json!({"command": "/t"})).unwrap();
        let value: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(value["servers"]["toolcrib"]["command"], "/t");
        for broken in ["{", "[]", "{\"servers\": 7}"] {
            assert!(set(broken, &entry, &json!({})).is_err(), "{broken}");
        }
        assert!(is_empty("{\n}\n") && is_empty("") && !is_empty(&made) && !is_empty("// x\n{}"));
    }
}
