//! One table of a TOML file, set or taken out; every other byte stays, comments too.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// The text with the table `key.name` set, or taken out if there is none to set.
pub(super) fn with(
    text: &str,
    key: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    match entry {
        Some(entry) => {
            let mut group = Table::new();
            group.set_implicit(true);
            let servers = document.entry(key).or_insert(Item::Table(group));
            let servers =
                servers.as_table_like_mut().ok_or_else(|| format!("`{key}` is no table"))?;
            servers.insert(name, Item::Table(table(entry)));
        }
        None => {
            if let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
        }
    }
    Ok(document.to_string())
}

/// Whether the table is there.
pub(super) fn has(text: &str, key: &str, name: &str) -> bool {
    let document = text.parse::<DocumentMut>().ok();
    document.is_some_and(|document| document.get(key).and_then(|all| all.get(name)).is_some())
}

fn table(entry: &Value) -> Table {
    let mut table = Table::new();
    for (key, field) in entry.as_object().into_iter().flatten() {
        let item = match field {
            Value::Array(items) => value(items.iter().filter_map(Value::as_str).collect::<Array>()),
            Value::Bool(bool) => value(*bool),
            other => value(other.as_str().unwrap_or_default()),
        };
        table.insert(key, item);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_is_set_and_taken_out_and_nothing_else_changes() {
        let text = "# mine\nmodel = 'x'  # quoted so\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let entry = json!({"command": "/t", "args": ["serve"]});
        let set = with(text, "mcp_servers", "toolcrib", Some(&entry)).unwrap();
        assert!(set.starts_with(text), "{set}");
        assert!(
            set.ends_with("[mcp_servers.toolcrib]\ncommand = \"/t\"\nargs = [\"serve\"]\n"),
            "{set}"
        );
        assert_eq!(with(&set, "mcp_servers", "toolcrib", None).unwrap(), text);
        let made = with("", "mcp_servers", "toolcrib", Some(&entry)).unwrap();
        assert!(has(&made, "mcp_servers", "toolcrib") && !has(text, "mcp_servers", "toolcrib"));
        assert!(with("a = ", "mcp_servers", "toolcrib", Some(&entry)).is_err());
        assert!(with("mcp_servers = 7", "mcp_servers", "toolcrib", Some(&entry)).is_err());
    }
}
