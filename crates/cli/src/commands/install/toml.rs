//! Sets and removes values of a TOML file by path. All other bytes stay, including comments.

use serde_json::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike};

/// The value at a path of keys.
pub(super) fn get(text: &str, path: &[String]) -> Option<Value> {
    let document: DocumentMut = text.parse().ok()?;
    let (name, above) = path.split_last()?;
    let mut table: &dyn TableLike = document.as_table();
    for key in above {
        table = table.get(key)?.as_table_like()?;
    }
    json(table.get(name)?)
}

/// The text with the value at a path set. Creates missing tables above it.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let (name, above) = path.split_last().ok_or("it has no such setting")?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, key) in above.iter().enumerate() {
        let mut group = Table::new();
        // A table with only tables in it needs no header.
        group.set_implicit(depth + 1 == above.len() && value.is_object());
        table = table
            .entry(key)
            .or_insert(Item::Table(group))
            .as_table_like_mut()
            .ok_or_else(|| format!("`{key}` in it is not a table"))?;
    }
    let mut new = item(value);
    if let (Some(Item::Value(old)), Item::Value(new)) = (table.get(name), &mut new) {
        // Keeps a comment after the value.
        *new.decor_mut() = old.decor().clone();
    }
    match table.get_mut(name) {
        Some(old) => *old = new,
        None => drop(table.insert(name, new)),
    }
    Ok(document.to_string())
}

/// The text without the value at a path.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let (name, above) = path.split_last().ok_or("it has no such setting")?;
    let mut table: Option<&mut dyn TableLike> = Some(document.as_table_mut());
    for key in above {
        table = table.and_then(|table| table.get_mut(key)?.as_table_like_mut());
    }
    match table.and_then(|table| table.remove(name)) {
        Some(_) => Ok(document.to_string()),
        // Written again, the document would end with a newline.
        None => Ok(text.to_owned()),
    }
}

/// Fails if the text is not valid.
pub(super) fn check(text: &str) -> Result<(), String> {
    text.parse::<DocumentMut>().map(drop).map_err(|error| {
        let place = error.to_string().lines().next().unwrap_or_default().to_owned();
        format!("{place}: {}", error.message().replace('\n', "; "))
    })
}

/// Whether the text sets nothing.
pub(super) fn is_empty(text: &str) -> bool {
    text.trim().is_empty()
}

fn item(value: &Value) -> Item {
    match value {
        Value::Object(_) => Item::Table(table(value)),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
            Item::ArrayOfTables(items.iter().map(table).collect::<ArrayOfTables>())
        }
        other => Item::Value(plain(other)),
    }
}

fn table(value: &Value) -> Table {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(key, field)| (key.as_str(), plain(field))).collect()
}

fn plain(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Array(items) => items.iter().map(plain).collect::<Array>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.as_str(), plain(field)));
            fields.collect::<InlineTable>().into()
        }
        // TOML has no null.
        other => other.as_str().unwrap_or_default().into(),
    }
}

fn json(item: &Item) -> Option<Value> {
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| json_of_table(table)).collect();
    }
    match item {
        Item::Value(value) => json_of_value(value),
        other => json_of_table(other.as_table_like()?),
    }
}

fn json_of_table(table: &dyn TableLike) -> Option<Value> {
    let fields = table.iter().map(|(key, item)| Some((key.to_owned(), json(item)?)));
    fields.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
}

fn json_of_value(value: &toml_edit::Value) -> Option<Value> {
    Some(match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(bool) => (*bool.value()).into(),
        toml_edit::Value::Datetime(_) => return None,
        toml_edit::Value::Array(items) => {
            items.iter().map(json_of_value).collect::<Option<Vec<_>>>()?.into()
        }
        toml_edit::Value::InlineTable(table) => json_of_table(table)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn a_table_is_set_and_removed_and_nothing_else_changes() {
        let text = "# mine\nmodel = 'x'  # quoted so\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let (ours, entry) =
            (path(&["mcp_servers", "toolcrib"]), json!({"command": "/t", "args": ["serve"]}));
        let added = set(text, &ours, &entry).unwrap();
        assert!(added.starts_with(text), "{added}");
        assert!(
            added.ends_with("[mcp_servers.toolcrib]\ncommand = \"/t\"\nargs = [\"serve\"]\n"),
            "{added}"
        );
        assert_eq!(remove(&added, &ours).unwrap(), text);
        let made = set("", &ours, &entry).unwrap();
        assert_eq!((get(&made, &ours), get(text, &ours)), (Some(entry.clone()), None));
        assert!(set("a = ", &ours, &entry).is_err());
        assert!(set("mcp_servers = 7", &ours, &entry).is_err());
    }

    #[test]
    fn a_value_is_set_and_restored_with_its_comment() {
        let text = "mode = \"rw\" # mine\n\n[features]\nweb = true\n";
        let (mode, shell) = (path(&["mode"]), path(&["features", "shell"]));
        let new = set(text, &mode, &json!("ro")).unwrap();
        let new = set(&new, &shell, &json!(false)).unwrap();
        assert_eq!(new, "mode = \"ro\" # mine\n\n[features]\nweb = true\nshell = false\n");
        let back = set(&remove(&new, &shell).unwrap(), &mode, &json!("rw")).unwrap();
        assert_eq!(back, text);
    }

    #[test]
    fn a_list_of_tables_is_written_as_such() {
        let rules = json!([{"toolName": ["a", "b"], "priority": 999}]);
        let new = set("", &path(&["rule"]), &rules).unwrap();
        assert_eq!(new, "[[rule]]\ntoolName = [\"a\", \"b\"]\npriority = 999\n");
        assert_eq!(get(&new, &path(&["rule"])), Some(rules));
        assert!(is_empty(&remove(&new, &path(&["rule"])).unwrap()));
    }
}
