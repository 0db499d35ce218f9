//! One line that names a call to people.

use std::path::Path;

use serde_json::Value;
use toolcrib_policy::Access;

/// Characters of a title.
const MAX_CHARS: usize = 200;

/// Arguments that name a path, also of a call that failed before its accesses were known.
const PATH_ARGUMENTS: [&str; 3] = ["file_path", "path", "notebook_path"];

/// One line about a call: the first line of its command, or the tool and the first path, or the change that it undoes.
pub fn call_title(tool: &str, accesses: &[Access], arguments: &Value, workspace: &Path) -> String {
    let command = accesses.iter().find_map(|access| match access {
        Access::Command(text) => text.lines().find(|line| !line.trim().is_empty()),
        _ => None,
    });
    if let Some(line) = command {
        return line.trim().chars().take(MAX_CHARS).collect();
    }
    let given = || PATH_ARGUMENTS.iter().find_map(|name| arguments.get(name)?.as_str());
    let path = accesses.iter().find_map(Access::path).or_else(|| given().map(Path::new));
    let path = path.map(|path| path.strip_prefix(workspace).unwrap_or(path).to_string_lossy());
    let change = ["id", "since"].iter().find_map(|name| arguments.get(name)?.as_u64());
    let what = match (path, change.filter(|_| tool == "Undo")) {
        (Some(path), Some(change)) => format!("change {change} at {path}"),
        (Some(path), None) => path.into_owned(),
        (None, Some(change)) => format!("change {change}"),
        (None, None) => String::new(),
    };
    format!("{tool} {what}").trim_end().chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_named_by_its_command_or_its_path() {
        let title =
            |accesses: &[Access]| call_title("Tool", accesses, &Value::Null, Path::new("/w"));
        let read = Access::Read("/w/src/a.rs".into());
        assert_eq!(title(&[]), "Tool");
        assert_eq!(title(std::slice::from_ref(&read)), "Tool src/a.rs");
        assert_eq!(title(&[Access::Write("/etc/x".into())]), "Tool /etc/x");
        assert_eq!(title(&[Access::Read("/w".into())]), "Tool");
        assert_eq!(title(&[read, Access::Command("\n  make test\nls".into())]), "make test");
    }

    #[test]
    fn a_call_without_accesses_is_named_by_its_arguments() {
        let title = |tool: &str, arguments: Value| {
            call_title(tool, &[Access::WriteAny], &arguments, Path::new("/w"))
        };
        assert_eq!(title("Write", json!({"file_path": "/etc/x", "content": ""})), "Write /etc/x");
        assert_eq!(title("Edit", json!({"file_path": "/w/a.rs"})), "Edit a.rs");
        assert_eq!(title("Undo", json!({"id": 7})), "Undo change 7");
        assert_eq!(title("Undo", json!({"id": 7, "path": "a.rs"})), "Undo change 7 at a.rs");
        assert_eq!(title("Undo", json!({"steps": 1})), "Undo");
    }
}
