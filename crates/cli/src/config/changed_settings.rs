//! The settings that a file or a flag changes, for `doctor`. Never with secrets.

use serde_json::{Value, json};
use toolcrib::UpstreamProxy;

use super::{Config, default_path};
use crate::args::{Common, NetworkWord, OuterWord};

/// Replaces words that may be secrets.
const OMITTED: &str = "…";

/// A setting and its value.
pub(crate) type ChangedSetting = (String, Value);

impl Config {
    /// Each setting that has another value than its default, by the file or by a flag. Fails if the file is invalid.
    pub(crate) fn changed_settings(common: &Common) -> Result<Vec<ChangedSetting>, String> {
        let file = common.config.clone().or_else(default_path);
        let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        // Fails with a better message than the parser of a table.
        Config::of(common)?;
        let in_file: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
        let mut changed = Vec::new();
        for (key, default, _) in Config::keys() {
            let in_file = in_file.get(&key).map(serde_json::to_value).transpose();
            let in_file = in_file.map_err(|error| format!("{key}: {error}"))?;
            let Some(value) = with_flag(common, &key, in_file) else { continue };
            if !is_default(&default, &value) {
                let shown = without_secrets(&key, value);
                changed.push((key, shown));
            }
        }
        Ok(changed)
    }
}

/// A setting as a line of the file.
pub(crate) fn line((key, value): &ChangedSetting) -> String {
    format!("{key} = {}", in_toml(value))
}

fn in_toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_toml).collect();
            format!("[{}]", items.join(", "))
        }
        // A string is written alike.
        other => other.to_string(),
    }
}

/// The value that is used, with the flags that replace it or add to it.
fn with_flag(common: &Common, key: &str, in_file: Option<Value>) -> Option<Value> {
    let flag = match key {
        "profile" => common.profile.map(|profile| json!(profile.name())),
        "outside" => common.outside.map(|outside| json!(outside.to_string())),
        "network" => common.network_access.map(NetworkWord::name).map(Value::from),
        "outer" => common.outer.map(OuterWord::name).map(Value::from),
        "tools" => common.tools.as_ref().map(|tools| json!(tools)),
        "no_tools" => common.no_tools.as_ref().map(|more| {
            let known = in_file.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            let more = more.iter().map(|name| json!(name));
            Value::Array(known.into_iter().chain(more).collect())
        }),
        _ => None,
    };
    flag.or(in_file)
}

fn is_default(default: &str, value: &Value) -> bool {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {default}")).ok();
    let parsed = parsed.and_then(|table| serde_json::to_value(table.get("value")?).ok());
    parsed.as_ref() == Some(value)
}

fn without_secrets(key: &str, value: Value) -> Value {
    match (key, &value) {
        ("inject", Value::Array(entries)) => {
            let word =
                |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let shown = |entry: &Value| {
                json!(format!("{}: {}", word(entry, "host"), word(entry, "header")))
            };
            entries.iter().map(shown).collect()
        }
        // Arguments of a program may be secrets, and the URL of a proxy may have a password.
        ("notify", Value::Array(words)) if words.len() > 1 => {
            words.iter().take(1).cloned().chain([json!(OMITTED)]).collect()
        }
        ("upstream_proxy", Value::String(url)) if url != "none" => {
            json!(UpstreamProxy::parse(url).map_or(OMITTED.to_owned(), |proxy| proxy.to_string()))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn changed(text: &str, flags: &[&str]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let words = ["toolcrib", "--config", file.to_str().unwrap(), "doctor"];
        let args = Args::try_parse_from(words.iter().chain(flags)).unwrap();
        Config::changed_settings(&args.common).unwrap().iter().map(line).collect()
    }

    #[test]
    fn settings_with_their_default_are_left_out() {
        assert!(changed("", &[]).is_empty());
        assert!(changed("audit = true\nprofile = \"workspace\"\nno_tools = []", &[]).is_empty());
        assert!(changed("profile = \"cautious\"", &["--profile", "workspace"]).is_empty());
    }

    #[test]
    fn flags_replace_settings_of_the_file_and_add_to_them() {
        let text = "audit = false\nreply_chars = 5000\nprofile = \"open\"\nno_tools = [\"Bash\"]";
        let mut found = changed(text, &["--profile", "cautious", "--no-tools", "LS"]);
        found.sort();
        let expected = [
            "audit = false",
            "no_tools = [\"Bash\", \"LS\"]",
            "profile = \"cautious\"",
            "reply_chars = 5000",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn secrets_are_left_out() {
        let text = "network = \"list\"\nnotify = [\"curl\", \"-H\", \"X: canary\"]\n\
                    upstream_proxy = \"http://me:canary@proxy.example.com:80\"\n\
                    [[inject]]\nhost = \"a.example.com\"\nheader = \"Authorization\"\n\
                    value = { command = [\"print\", \"canary\"] }\n";
        let found = changed(text, &[]).join("\n");
        for line in [
            "notify = [\"curl\", \"…\"]",
            "upstream_proxy = \"http://proxy.example.com:80\"",
            "inject = [\"a.example.com: Authorization\"]",
        ] {
            assert!(found.contains(line), "{found}");
        }
        assert!(!found.contains("canary"), "{found}");
    }
}
