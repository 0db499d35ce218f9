//! The keys of `config.toml` as a table, for the reference page.

use schemars::schema_for;
use toolcrib::{Caps, CommandLimits, IndexSettings, Limits, Profile};

use super::{APPROVAL_SECONDS, Config};

const MEGABYTE: u64 = 1_000_000;
const DAY: u64 = 24 * 60 * 60;

/// The type of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
    Boolean,
    Integer,
    String,
    Strings,
    Integers,
    Tables,
}

impl Config {
    /// The type of a key. `None` if there is no such key.
    pub(crate) fn type_of(key: &str) -> Option<KeyType> {
        let schema = schema_for!(Config);
        let property = schema.get("properties")?.get(key)?;
        let is = |value: &serde_json::Value, name: &str| match value.get("type") {
            Some(serde_json::Value::Array(names)) => names.iter().any(|one| one == name),
            Some(one) => one == name,
            None => false,
        };
        let items = property.get("items");
        let holds = |name: &str| items.is_some_and(|items| is(items, name));
        Some(match () {
            () if is(property, "boolean") => KeyType::Boolean,
            () if is(property, "integer") => KeyType::Integer,
            () if is(property, "array") && holds("string") => KeyType::Strings,
            () if is(property, "array") && holds("integer") => KeyType::Integers,
            () if is(property, "array") => KeyType::Tables,
            () => KeyType::String,
        })
    }

    /// Each key, its default as TOML, and its description. A key without a default has an empty string.
    pub(crate) fn keys() -> Vec<(String, String, String)> {
        let schema = schema_for!(Config);
        let properties = schema.get("properties").and_then(|value| value.as_object());
        let rows = properties.into_iter().flatten().map(|(key, property)| {
            let described = property.get("description").and_then(|text| text.as_str());
            let description = described.unwrap_or_default().replace('\n', " ");
            (key.clone(), default(key), description)
        });
        rows.collect()
    }
}

fn default(key: &str) -> String {
    let (limits, caps, index) = (Limits::default(), Caps::default(), IndexSettings::default());
    let commands = CommandLimits::DEFAULT;
    let number = match key {
        "approval_seconds" => APPROVAL_SECONDS,
        "audit_megabytes" => caps.audit_bytes / MEGABYTE,
        "journal_megabytes" => caps.bytes / MEGABYTE,
        "journal_days" => caps.age.as_secs() / DAY,
        "reply_chars" => limits.reply_chars as u64,
        "line_chars" => limits.line_chars as u64,
        "edit_megabytes" => limits.edit_bytes / MEGABYTE,
        "picture_megabytes" => limits.picture_bytes / MEGABYTE,
        "picture_side" => u64::from(limits.picture_side),
        "pdf_megabytes" => limits.pdf_bytes / MEGABYTE,
        "notebook_megabytes" => limits.notebook_bytes / MEGABYTE,
        "search_megabytes" => limits.search_bytes / MEGABYTE,
        "search_seconds" => limits.search_time.as_secs(),
        "index_files" => index.least_files,
        "index_megabytes" => index.max_bytes / MEGABYTE,
        "profile" => return format!("{:?}", Profile::default().name()),
        "audit" | "monitor" => return "true".to_owned(),
        "absolute_paths" => return "false".to_owned(),
        "hard_links" => return "\"break\"".to_owned(),
        "network" => return "\"none\"".to_owned(),
        "check" => return "\"off\"".to_owned(),
        "memory" => return format!("\"{}\"", commands.memory),
        "process_memory" => return format!("\"{}\"", commands.process_memory),
        "file_size" => return format!("\"{}\"", commands.file_size),
        "tmp_size" => return format!("\"{}\"", commands.tmp_size),
        "no_tools" | "protect" | "allow_protected" | "allow_hidden" | "caches"
        | "network_presets" | "expose" | "inject" | "notify" => {
            return "[]".to_owned();
        }
        _ => return String::new(),
    };
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_types() {
        for (key, expected) in [
            ("network", Some(KeyType::String)),
            ("profile", Some(KeyType::String)),
            ("monitor", Some(KeyType::Boolean)),
            ("absolute_paths", Some(KeyType::Boolean)),
            ("reply_chars", Some(KeyType::Integer)),
            ("tools", Some(KeyType::Strings)),
            ("allow_protected", Some(KeyType::Strings)),
            ("expose", Some(KeyType::Integers)),
            ("inject", Some(KeyType::Tables)),
            ("other", None),
        ] {
            assert_eq!(Config::type_of(key), expected, "{key}");
        }
    }

    #[test]
    fn every_key_is_described_and_every_default_parses() {
        let keys = Config::keys();
        assert!(keys.len() > 20);
        for (key, default, description) in keys {
            assert!(description.ends_with('.'), "{key}: {description:?}");
            if !default.is_empty() {
                let text = format!("{key} = {default}");
                assert!(toml::from_str::<Config>(&text).is_ok(), "{text}");
            }
        }
    }
}
