//! Recognizes an entry with our name that starts another server.

use serde_json::Value;

/// The fields that name what an entry starts or connects to.
const STARTS: [&str; 6] = ["command", "cmd", "url", "httpUrl", "serverUrl", "uri"];

/// Whether an entry starts something else than Toolcrib. `written` is the entry that `install` wrote last: the program may
/// have another name.
pub(super) fn is_foreign(entry: &Value, written: Option<&Value>) -> bool {
    let words = command(entry);
    let line = words.join(" ");
    let mut parts = line.split_whitespace().map(|part| part.trim_matches(['\'', '"']));
    let starts_toolcrib = parts.clone().any(|part| part.rsplit('/').next() == Some(super::NAME))
        && parts.any(|part| part == "serve");
    STARTS.iter().any(|field| entry.get(field).is_some())
        && !starts_toolcrib
        && written.is_none_or(|written| words.is_empty() || command(written) != words)
}

/// The words of the command of an entry. Empty if it has none.
pub(super) fn command(entry: &Value) -> Vec<String> {
    let words = |field: &str| match entry.get(field) {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(words)) => {
            words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    };
    ["command", "cmd", "args"].into_iter().flat_map(words).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_that_starts_toolcrib_is_ours() {
        for entry in [
            json!({}),
            json!({"trust": true}),
            json!({"command": "/usr/bin/toolcrib", "args": ["serve"]}),
            json!({"command": "npx", "args": ["-y", "toolcrib", "serve"]}),
            json!({"command": ["/opt/my tools/toolcrib", "serve", "--root", "/x"]}),
            json!({"cmd": "ssh", "args": ["box", "exec '/opt/my tools/toolcrib' serve --root=x"]}),
        ] {
            assert!(!is_foreign(&entry, None), "{entry}");
        }
        let renamed = json!({"command": "/usr/bin/tc", "args": ["serve"], "timeout": 9});
        assert!(!is_foreign(&renamed, Some(&json!({"command": "/usr/bin/tc", "args": ["serve"]}))));
    }

    #[test]
    fn an_entry_that_starts_something_else_is_not_ours() {
        let ours = json!({"command": "/usr/bin/toolcrib", "args": ["serve"]});
        for entry in [
            json!({"command": "docker", "args": ["run", "mytool"]}),
            json!({"command": ["node", "/x/toolcrib/serve"]}),
            json!({"type": "http", "url": "https://example.com/toolcrib"}),
            json!({"command": {"path": "node"}}),
        ] {
            assert!(is_foreign(&entry, None) && is_foreign(&entry, Some(&ours)), "{entry}");
        }
    }
}
