//! The output of `cargo metadata`, as untyped JSON.

use serde_json::Value;

use crate::error::Result;
use crate::process;

/// The workspace members with the dependencies that their manifests declare.
pub fn of_members() -> Result<Value> {
    read(&["--no-deps"])
}

/// All packages with their dependency graph on these platforms, with all features.
pub fn resolved(platforms: &[String]) -> Result<Value> {
    let mut words = vec!["--all-features"];
    for platform in platforms {
        words.extend(["--filter-platform", platform]);
    }
    read(&words)
}

/// The workspace member with this name. Fails if there is none.
pub fn member<'a>(members: &'a Value, name: &str) -> Result<&'a Value> {
    let is_it = |package: &&Value| text(package, "name").is_ok_and(|found| found == name);
    let found = list(members, "packages")?.iter().find(is_it);
    found.ok_or_else(|| format!("there is no package `{name}`").into())
}

/// The array at this key. Fails if there is none.
pub fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    let list = value.get(key).and_then(Value::as_array).map(Vec::as_slice);
    list.ok_or_else(|| lacks(key))
}

/// The string at this key. Fails if there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| lacks(key))
}

fn read(words: &[&str]) -> Result<Value> {
    let mut command = process::cargo(&["metadata", "--format-version", "1", "--locked"]);
    let printed = process::capture(command.args(words))?;
    Ok(serde_json::from_str(&printed)?)
}

fn lacks(key: &str) -> Box<dyn std::error::Error> {
    format!("`cargo metadata` has no `{key}` where one was expected: has its format changed?")
        .into()
}
