//! `toolcrib config`: shows and changes `config.toml`. All other bytes of the file stay.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, Item};
use toolcrib::{SettingHints, check_tool_names, similar_names};

use crate::args::{Common, ConfigCommand};
use crate::config::{self, Config, KeyType};
use crate::optional_file::{is_missing, unreadable};
use crate::{network_presets, output, rules};

/// Runs a subcommand. Without one, shows the file.
pub(crate) fn configuration(
    common: &Common,
    command: Option<&ConfigCommand>,
) -> Result<ExitCode, String> {
    match command {
        None | Some(ConfigCommand::Show { key: None }) => show(common),
        Some(ConfigCommand::Show { key: Some(key) }) => show_one(common, key),
        Some(ConfigCommand::Keys) => keys(common),
        Some(ConfigCommand::Set { key, values }) => {
            change(common, key, |document| set(document, key, values, None))
        }
        Some(ConfigCommand::Add { key, values }) => {
            let hints = config::hints(common);
            change(common, key, |document| set(document, key, values, Some(&hints)))
        }
        Some(ConfigCommand::Remove { key, values }) => {
            let hints = config::hints(common);
            change(common, key, |document| remove(document, key, values, &hints))
        }
        Some(ConfigCommand::Unset { key }) => change(common, key, |document| {
            known(key)?;
            document.remove(key);
            Ok(())
        }),
    }
}

/// The file, and its text. The text is empty if the file does not exist.
fn file(common: &Common) -> Result<(PathBuf, String), String> {
    let named = common.config.clone().or_else(config::default_path);
    let path = named.ok_or("the configuration directory is unknown; name a file with --config")?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) if is_missing(&path, &error) => Ok((path, String::new())),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

fn show(common: &Common) -> Result<ExitCode, String> {
    let (path, text) = file(common)?;
    Config::parse(&path, &text)?;
    let exists = path.exists();
    if !output::for_people(common) {
        return print(&json!({"file": path.display().to_string(), "exists": exists, "text": text}));
    }
    let missing = if exists { "" } else { " (does not exist yet)" };
    output::answer(&format!("{}{missing}", path.display()));
    match text.trim() {
        "" => output::answer("Every setting has its default."),
        text => output::answer(&format!("\n{text}\n")),
    }
    output::answer(&format!(
        "`toolcrib config keys` lists all settings; `{}` changes one.",
        config::hints(common).command(&["set", "KEY", "VALUE"])
    ));
    Ok(ExitCode::SUCCESS)
}

/// Shows the value of one setting, and where it comes from.
fn show_one(common: &Common, key: &str) -> Result<ExitCode, String> {
    let (path, text) = file(common)?;
    Config::parse(&path, &text)?;
    let keys = Config::keys();
    let found = keys.iter().find(|(name, ..)| name == key);
    let (_, default, _) = found.ok_or_else(|| unknown(key))?;
    let document: DocumentMut =
        text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let value = document.get(key).map(|item| match item {
        // Without the comment after the value.
        Item::Value(value) => value.clone().decorated("", "").to_string(),
        other => other.to_string().trim().to_owned(),
    });
    if !output::for_people(common) {
        let default = Some(default).filter(|default| !default.is_empty());
        let file = path.display().to_string();
        return print(&json!({"file": file, "key": key, "value": value, "default": default}));
    }
    output::answer(&match (value, default.as_str()) {
        (Some(value), _) => format!("{key} = {value}\n(in {})", path.display()),
        (None, "") => format!("{key} is not set"),
        (None, default) => format!("{key} = {default}\n(the default)"),
    });
    Ok(ExitCode::SUCCESS)
}

fn keys(common: &Common) -> Result<ExitCode, String> {
    let keys = Config::keys();
    if !output::for_people(common) {
        let key = |(key, default, description): &(String, String, String)| json!({"key": key, "default": default, "description": without_links(description)});
        return print(&Value::from(keys.iter().map(key).collect::<Vec<_>>()));
    }
    for (key, default, description) in &keys {
        let default =
            if default.is_empty() { String::new() } else { format!(" [default: {default}]") };
        output::answer(&format!("{key}{default}\n    {}", without_links(description)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Changes the file, if the new text is valid.
fn change(
    common: &Common,
    key: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
) -> Result<ExitCode, String> {
    let (path, text) = file(common)?;
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let mut document: DocumentMut = text.parse().map_err(|error| at(&error))?;
    edit(&mut document)?;
    let new = document.to_string();
    let changed = new != text;
    // A problem of the new value has no line in the file, unless the file had it before.
    let checked = match Config::parse(&path, &text) {
        Ok(_) => Config::check_new(&new),
        Err(_) => Config::parse(&path, &new),
    };
    let checked = checked.and_then(|config| {
        let names = match key {
            "tools" => config.tools.as_deref().unwrap_or_default(),
            "no_tools" => &config.no_tools,
            _ => &[],
        };
        check_tool_names(key, names).map_err(|error| error.to_string())?;
        Ok(config)
    });
    let config = checked.map_err(|problem| format!("{problem}\nNothing was changed."))?;
    if changed && !common.dry_run && !rules::replace_if_unchanged(&path, &text, &new)? {
        return Err(at(&"another program changed the file; try again"));
    }
    // Without the comment after the value.
    let value = document.get(key).and_then(Item::as_value);
    let line = value.map(|value| format!("{key} = {}", value.clone().decorated("", "")));
    if !output::for_people(common) {
        let (file, value) = (path.display().to_string(), line);
        let changed = changed && !common.dry_run;
        return print(&json!({"file": file, "setting": value, "changed": changed}));
    }
    output::answer(&sentence(&path, key, line, changed, common.dry_run));
    warn_about_presets(common, key, &config)?;
    if key == "allow_protected" {
        for useless in config.useless_exceptions()? {
            output::warning(&format!(
                "`{useless}` is not a protected name, so it has an effect only on a part of a git repository; docs/protected-and-hidden.md lists the names"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which of the presets allow no host, after a change of them.
fn warn_about_presets(common: &Common, key: &str, config: &Config) -> Result<(), String> {
    if key != "network_presets" {
        return Ok(());
    }
    let presets = network_presets::all(common, &config.network_presets)?;
    for preset in presets.iter().filter(|preset| preset.is_enabled && preset.hosts.is_empty()) {
        output::warning(&format!("{}: {}", preset.name, preset.missing()));
    }
    if !config.network_presets.is_empty() && config.network_name() != "list" {
        let list = config::hints(common).what_sets("network", "list");
        output::warning(&format!("presets need `{list}`"));
    }
    Ok(())
}

fn sentence(path: &Path, key: &str, line: Option<String>, changed: bool, dry_run: bool) -> String {
    let file = path.display();
    let now = line.unwrap_or_else(|| format!("{key} has its default"));
    match (changed, dry_run) {
        (false, _) => format!("{file}: {now} already; nothing was changed."),
        (true, true) => format!("{file}: {now}\nNothing was written."),
        (true, false) => {
            format!("{file}: {now}\nServers that run already use it after their next start.")
        }
    }
}

/// Sets a key, or adds to a list. `adds` says how a key that is no list is set.
fn set(
    document: &mut DocumentMut,
    key: &str,
    values: &[String],
    adds: Option<&SettingHints>,
) -> Result<(), String> {
    let key_type = known(key)?;
    let is_list = matches!(key_type, KeyType::Strings | KeyType::Integers);
    if let Some(hints) = adds.filter(|_| !is_list) {
        let command = hints.command(&["set", key, "VALUE"]);
        return Err(format!("{key} is not a list; use `{command}`"));
    }
    let values = values.iter().map(|text| value(key, key_type, text));
    let values: Vec<toml_edit::Value> = values.collect::<Result<_, String>>()?;
    let new = match values.as_slice() {
        _ if is_list => {
            let mut list = match document.get(key).and_then(Item::as_array) {
                Some(list) if adds.is_some() => list.clone(),
                _ => Array::new(),
            };
            for value in values {
                let shown = value.to_string();
                if !list.iter().any(|known| known.to_string().trim() == shown.trim()) {
                    list.push(value);
                }
            }
            list.into()
        }
        [one] => one.clone(),
        _ => return Err(format!("{key} has one value")),
    };
    let mut new = Item::Value(new);
    if let (Some(Item::Value(old)), Item::Value(new)) = (document.get(key), &mut new) {
        // Keeps a comment after the value.
        *new.decor_mut() = old.decor().clone();
    }
    document[key] = new;
    Ok(())
}

/// Removes values from a list.
fn remove(
    document: &mut DocumentMut,
    key: &str,
    values: &[String],
    hints: &SettingHints,
) -> Result<(), String> {
    let key_type = known(key)?;
    if !matches!(key_type, KeyType::Strings | KeyType::Integers) {
        return Err(format!("{key} is not a list; use `{}`", hints.command(&["unset", key])));
    }
    let Some(list) = document.get_mut(key).and_then(Item::as_array_mut) else {
        return Err(format!("{key} is not set, so nothing can be removed from it"));
    };
    let before = toml_edit::Value::from(list.clone()).decorated("", "");
    for text in values {
        let wanted = value(key, key_type, text)?.to_string();
        let is_it = |known: &toml_edit::Value| known.to_string().trim() == wanted.trim();
        let Some(at) = list.iter().position(is_it) else {
            // Not the list without the values that were found: none is removed from the file then.
            return Err(format!("{key} does not have `{text}`; it is {before}"));
        };
        remove_at(list, at);
    }
    Ok(())
}

/// Removes a value. The spaces at the ends of the list stay as they are.
fn remove_at(list: &mut Array, at: usize) {
    let is_last = at + 1 == list.len();
    let removed = list.remove(at);
    let (prefix, suffix) = (removed.decor().prefix(), removed.decor().suffix());
    if at == 0
        && let Some(first) = list.get_mut(0)
    {
        first.decor_mut().set_prefix(prefix.cloned().unwrap_or_default());
    }
    if is_last && let Some(last) = at.checked_sub(1).and_then(|at| list.get_mut(at)) {
        last.decor_mut().set_suffix(suffix.cloned().unwrap_or_default());
    }
}

/// The type of a key. Fails if there is no such key, or if it has tables.
fn known(key: &str) -> Result<KeyType, String> {
    match Config::type_of(key) {
        Some(KeyType::Tables) => Err(format!("{key} has tables; write them in the file")),
        Some(known) => Ok(known),
        None => Err(unknown(key)),
    }
}

/// The error for a key that does not exist.
fn unknown(key: &str) -> String {
    let keys = Config::keys();
    let names = keys.iter().map(|(name, ..)| name.as_str());
    match similar_names(key, names, 1).first() {
        Some(similar) => format!("unknown key `{key}`; did you mean `{similar}`?"),
        None => format!("unknown key `{key}`; `toolcrib config keys` lists the keys"),
    }
}

fn value(key: &str, key_type: KeyType, text: &str) -> Result<toml_edit::Value, String> {
    let wrong = |expected: &str| format!("{key} is {expected}, not `{text}`");
    match key_type {
        KeyType::Boolean => {
            text.parse::<bool>().map(Into::into).map_err(|_| wrong("true or false"))
        }
        KeyType::Integer => text.parse::<i64>().map(Into::into).map_err(|_| wrong("a number")),
        KeyType::Integers => {
            text.parse::<i64>().map(Into::into).map_err(|_| wrong("a list of numbers"))
        }
        KeyType::String | KeyType::Strings | KeyType::Tables => Ok(text.into()),
    }
}

/// A description without the targets of its links.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        match link
            .split_once("](")
            .and_then(|(name, target)| Some((name, target.split_once(')')?.1)))
        {
            Some((name, behind)) if !name.contains('[') => {
                plain += name;
                rest = behind;
            }
            _ => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

fn print(value: &Value) -> Result<ExitCode, String> {
    output::line(value)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_leaves_the_spaces_of_a_list() {
        for (list, removed, expected) in [
            (r#"["a", "b", "c"]"#, "a", r#"["b", "c"]"#),
            (r#"["a", "b", "c"]"#, "b", r#"["a", "c"]"#),
            (r#"["a", "b"]"#, "b", r#"["a"]"#),
            (r#"["a"]"#, "a", "[]"),
            (r#"[ "a", "b" ]"#, "a", r#"[ "b" ]"#),
            (r#"[ "a", "b" ]"#, "b", r#"[ "a" ]"#),
            ("[\n  \"a\",\n  \"b\",\n]", "a", "[\n  \"b\",\n]"),
        ] {
            let mut document: DocumentMut = format!("protect = {list}\n").parse().unwrap();
            remove(&mut document, "protect", &[removed.to_owned()], &SettingHints::default())
                .unwrap();
            assert_eq!(document.to_string(), format!("protect = {expected}\n"));
        }
    }

    #[test]
    fn links_of_descriptions_are_removed() {
        assert_eq!(without_links("The [profile](profiles.md): `a`."), "The profile: `a`.");
        assert_eq!(without_links("[] and [x"), "[] and [x");
    }
}
