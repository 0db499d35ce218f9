//! Settings in a client's file: writing them, and reverting that.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::replaced_lines::TextSplice;
use super::{json, toml, yaml};

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileFormat {
    /// JSON, comments and trailing commas allowed.
    Json,
    Toml,
    Yaml,
}

impl FileFormat {
    pub(super) fn get(self, text: &str, path: &[String]) -> Option<Value> {
        match self {
            FileFormat::Json => json::get(text, path),
            FileFormat::Toml => toml::get(text, path),
            FileFormat::Yaml => yaml::get(text, path),
        }
    }

    pub(super) fn set(self, text: &str, path: &[String], value: &Value) -> Result<String, String> {
        match self {
            FileFormat::Json => json::set(text, path, value),
            FileFormat::Toml => toml::set(text, path, value),
            FileFormat::Yaml => yaml::set(text, path, value),
        }
    }

    pub(super) fn remove(self, text: &str, path: &[String]) -> Result<String, String> {
        match self {
            FileFormat::Json => json::remove(text, path),
            FileFormat::Toml => toml::remove(text, path),
            FileFormat::Yaml => yaml::remove(text, path),
        }
    }

    /// Fails if the text is not valid. YAML is read by lines, so that none is known to be invalid.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            FileFormat::Json => json::parse(text).map(drop),
            FileFormat::Toml => toml::check(text),
            FileFormat::Yaml => Ok(()),
        }
    }

    /// Whether a file with this text sets nothing.
    pub(super) fn is_empty(self, text: &str) -> bool {
        match self {
            FileFormat::Json => json::is_empty(text),
            FileFormat::Toml => toml::is_empty(text),
            FileFormat::Yaml => yaml::is_empty(text),
        }
    }

    fn is_empty_container(self, text: &str, path: &[String]) -> bool {
        match (self, path) {
            (FileFormat::Yaml, [key]) => yaml::is_empty_mapping(text, key),
            _ => match self.get(text, path) {
                Some(Value::Object(fields)) => fields.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                _ => false,
            },
        }
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setting {
    /// The value at a path of keys.
    Value(Vec<String>, Value),
    /// The value at a path of keys, unless there is another one.
    Default(Vec<String>, Value),
    /// Items of the list at a path. Other items stay.
    Items(Vec<String>, Vec<String>),
    /// What an earlier `install` wrote at a path is reverted.
    Withdrawn(Vec<String>),
}

impl Setting {
    pub(super) fn value(path: &[&str], value: impl Into<Value>) -> Setting {
        Setting::Value(keys(path), value.into())
    }

    pub(super) fn items(path: &[&str], items: &[&str]) -> Setting {
        Setting::Items(keys(path), keys(items))
    }

    fn path(&self) -> &[String] {
        match self {
            Setting::Value(path, _)
            | Setting::Default(path, _)
            | Setting::Items(path, _)
            | Setting::Withdrawn(path) => path,
        }
    }

    /// Its path, with dots.
    pub(super) fn name(&self) -> String {
        self.path().join(".")
    }

    /// The setting that withdraws this one.
    pub(super) fn withdrawn(&self) -> Setting {
        Setting::Withdrawn(self.path().to_vec())
    }

    /// What the text lacks of it: names of items, or its own name.
    pub(super) fn missing(&self, format: FileFormat, text: &str) -> Vec<String> {
        let found = format.get(text, self.path());
        match self {
            Setting::Value(_, value) | Setting::Default(_, value) => {
                if found.as_ref() == Some(value) { Vec::new() } else { vec![self.name()] }
            }
            Setting::Items(_, items) => {
                let found = found.as_ref().and_then(Value::as_array);
                let has = |item: &String| {
                    found.is_some_and(|all| all.iter().any(|found| found == item.as_str()))
                };
                items.iter().filter(|item| !has(item)).cloned().collect()
            }
            Setting::Withdrawn(_) => Vec::new(),
        }
    }
}

pub(super) fn keys(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}

/// The changes to one file, for `uninstall`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    pub(super) file: PathBuf,
    // The name of the field in existing records.
    #[serde(rename = "form")]
    pub(super) format: FileFormat,
    /// The file did not exist before.
    pub(super) created: bool,
    pub(super) steps: Vec<Step>,
    /// All steps together, as lines. Records of 0.1.0 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) splice: Option<TextSplice>,
}

/// One change to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// An object or list that did not exist before.
    Container(Vec<String>),
    Value {
        path: Vec<String>,
        before: Option<Value>,
        after: Value,
    },
    Items {
        path: Vec<String>,
        added: Vec<String>,
    },
}

impl InstallRecord {
    pub(super) fn new(file: &Path, format: FileFormat, created: bool) -> InstallRecord {
        InstallRecord { file: file.to_owned(), format, created, steps: Vec::new(), splice: None }
    }

    /// The text with the settings. Records the changes.
    pub(super) fn apply(&mut self, text: &str, settings: &[Setting]) -> Result<String, String> {
        let original =
            if self.steps.is_empty() { Some(text.to_owned()) } else { self.restored(text) };
        let new = settings
            .iter()
            .try_fold(text.to_owned(), |text, setting| self.apply_one(&text, setting))?;
        if let Some(original) = original.as_ref().filter(|_| self.steps.is_empty()) {
            return Ok(original.clone());
        }
        if new != text {
            self.splice = original.and_then(|original| TextSplice::between(&original, &new));
        }
        Ok(new)
    }

    /// The text before all steps, to the byte. `None` if the written lines were changed since.
    pub(super) fn restored(&self, text: &str) -> Option<String> {
        self.splice.as_ref()?.revert(text)
    }

    fn apply_one(&mut self, text: &str, setting: &Setting) -> Result<String, String> {
        let (format, path) = (self.format, setting.path());
        let before = format.get(text, path);
        let (after, step) = match setting {
            Setting::Withdrawn(path) => return self.withdraw(text, path),
            Setting::Default(..) if before.is_some() => return Ok(text.to_owned()),
            Setting::Value(_, value) | Setting::Default(_, value) => {
                let path = path.to_vec();
                (value.clone(), Step::Value { path, before: before.clone(), after: value.clone() })
            }
            Setting::Items(_, items) => {
                let mut all = match &before {
                    Some(Value::Array(all)) => all.clone(),
                    None => Vec::new(),
                    Some(_) => return Err(format!("`{}` in it is not a list", path.join("."))),
                };
                let is_missing = |item: &&String| !all.contains(&Value::from(item.as_str()));
                let added: Vec<String> = items.iter().filter(is_missing).cloned().collect();
                all.extend(added.iter().map(|item| Value::from(item.as_str())));
                (Value::Array(all), Step::Items { path: path.to_vec(), added })
            }
        };
        if before.as_ref() == Some(&after) {
            return Ok(text.to_owned());
        }
        for length in 1..path.len() + usize::from(matches!(setting, Setting::Items(..))) {
            if format.get(text, &path[..length]).is_none() {
                self.note(Step::Container(path[..length].to_vec()));
            }
        }
        self.note(step);
        format.set(text, path, &after)
    }

    /// The text without what the step at a path wrote, and without containers that are empty then.
    fn withdraw(&mut self, text: &str, path: &[String]) -> Result<String, String> {
        let Some(at) = self.steps.iter().position(|step| step.path() == (path, false)) else {
            return Ok(text.to_owned());
        };
        let step = self.steps.remove(at);
        let mut text = self.revert_one(text, &step)?;
        for length in (1..=path.len()).rev() {
            let container = Step::Container(path[..length].to_vec());
            if self.format.is_empty_container(&text, &path[..length])
                && let Some(at) = self.steps.iter().position(|step| *step == container)
            {
                text = self.revert_one(&text, &container)?;
                self.steps.remove(at);
            }
        }
        Ok(text)
    }

    /// Records a step. For several steps at one path, the first one's previous value counts.
    fn note(&mut self, step: Step) {
        let old = self.steps.iter_mut().find(|old| old.path() == step.path());
        match (old, step) {
            (Some(Step::Value { after: old, .. }), Step::Value { after, .. }) => *old = after,
            (Some(Step::Items { added: old, .. }), Step::Items { added, .. }) => old.extend(added),
            (Some(Step::Container(_)), Step::Container(_)) => {}
            (_, step) => self.steps.push(step),
        }
    }

    /// The value at a path before and after the change. `None` if it was not changed.
    pub(super) fn change_at(&self, path: &[String]) -> Option<(Option<&Value>, &Value)> {
        self.steps.iter().find_map(|step| match step {
            Step::Value { path: at, before, after } if at == path => Some((before.as_ref(), after)),
            _ => None,
        })
    }

    /// Removes the steps about a value that another program has replaced.
    pub(super) fn forget(&mut self, path: &[String]) {
        self.steps.retain(|step| match step {
            Step::Value { path: at, .. } => !at.starts_with(path),
            _ => true,
        });
    }

    /// Takes over the containers that another record of the same file created. Both entries use them.
    pub(super) fn inherit(&mut self, other: &InstallRecord) {
        self.created |= other.created;
        let containers = other.steps.iter().filter(|step| matches!(step, Step::Container(_)));
        let missing = containers.filter(|step| !self.steps.contains(step)).cloned();
        let missing: Vec<Step> = missing.collect();
        if !missing.is_empty() || other.created {
            // The lines before our change have the other entry.
            self.splice = None;
        }
        self.steps.splice(0..0, missing);
    }

    /// The text with every value reverted that still is as it was written.
    pub(super) fn revert(&self, text: &str) -> Result<String, String> {
        self.steps.iter().rev().try_fold(text.to_owned(), |text, step| self.revert_one(&text, step))
    }

    fn revert_one(&self, text: &str, step: &Step) -> Result<String, String> {
        let format = self.format;
        match step {
            Step::Container(path) if format.is_empty_container(text, path) => {
                format.remove(text, path)
            }
            Step::Value { path, before, after }
                if format.get(text, path).as_ref() == Some(after) =>
            {
                match before {
                    Some(before) => format.set(text, path, before),
                    None => format.remove(text, path),
                }
            }
            Step::Items { path, added } => match format.get(text, path) {
                Some(Value::Array(all)) => {
                    let is_ours = |item: &Value| {
                        item.as_str().is_some_and(|item| added.iter().any(|added| added == item))
                    };
                    let others = all.into_iter().filter(|item| !is_ours(item)).collect();
                    format.set(text, path, &Value::Array(others))
                }
                _ => Ok(text.to_owned()),
            },
            _ => Ok(text.to_owned()),
        }
    }
}

impl Step {
    fn path(&self) -> (&[String], bool) {
        match self {
            Step::Container(path) => (path, true),
            Step::Value { path, .. } | Step::Items { path, .. } => (path, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Applies settings and reverts them, through the record's JSON.
    fn apply_and_revert(format: FileFormat, text: &str, settings: &[Setting]) -> (String, String) {
        let mut written = InstallRecord::new(Path::new("/x"), format, text.is_empty());
        let after = written.apply(text, settings).unwrap();
        let again = written.apply(&after, settings).unwrap();
        assert_eq!(again, after, "applied twice");
        let record = serde_json::to_string(&written).unwrap();
        let back = serde_json::from_str::<InstallRecord>(&record).unwrap().revert(&after).unwrap();
        (after, back)
    }

    #[test]
    fn reverting_restores_the_original_text() {
        let deny = [Setting::items(&["permissions", "deny"], &["Bash", "Read"])];
        for text in [
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"Bash\"\n    ]\n  }\n}\n",
            "{\n  \"permissions\": {\n    \"deny\": []\n  }\n}\n",
            "{\n  \"model\": \"x\"\n}\n",
        ] {
            let (after, back) = apply_and_revert(FileFormat::Json, text, &deny);
            assert!(after.contains("\"Bash\"") && after.contains("\"Read\""), "{after}");
            assert_eq!(back.replace([' ', '\n'], ""), text.replace([' ', '\n'], ""), "{after}");
            let mut written = InstallRecord::new(Path::new("/x"), FileFormat::Json, false);
            let after = written.apply(text, &deny).unwrap();
            let after = written.apply(&after, &[Setting::value(&["model"], "y")]).unwrap();
            assert_eq!(written.restored(&after).as_deref(), Some(text), "{after}");
        }
        let off = [
            Setting::value(&["sandbox_mode"], "read-only"),
            Setting::value(&["features", "shell_tool"], false),
        ];
        for text in ["", "# mine\nsandbox_mode = \"x\" # y\n", "[features]\nshell_tool = true\n"] {
            let (after, back) = apply_and_revert(FileFormat::Toml, text, &off);
            assert!(after.contains("shell_tool = false"), "{after}");
            assert_eq!(back, text);
        }
        let entry = json!({"enabled": true});
        let yaml = [Setting::value(&["extensions", "toolcrib"], entry)];
        for text in ["", "A: 1\n", "extensions:\n  x:\n    enabled: true\n"] {
            assert_eq!(apply_and_revert(FileFormat::Yaml, text, &yaml).1, text);
        }
    }

    #[test]
    fn a_value_that_the_user_changed_since_stays() {
        let mut written = InstallRecord::new(Path::new("/x"), FileFormat::Json, false);
        let after = written.apply("{\"a\": 1}", &[Setting::value(&["a"], 2)]).unwrap();
        let changed = after.replace('2', "3");
        assert_eq!(written.revert(&changed).unwrap(), changed);
    }
}
