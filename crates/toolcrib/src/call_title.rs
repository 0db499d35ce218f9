//! One line that names a call to people.

use std::path::Path;

use toolcrib_policy::Access;

/// Characters of a title.
const MAX_CHARS: usize = 200;

/// One line about a call: the first line of its command, or the tool and the first path.
pub fn call_title(tool: &str, accesses: &[Access], workspace: &Path) -> String {
    let command = accesses.iter().find_map(|access| match access {
        Access::Command(text) => text.lines().find(|line| !line.trim().is_empty()),
        _ => None,
    });
    if let Some(line) = command {
        return line.trim().chars().take(MAX_CHARS).collect();
    }
    let Some(path) = accesses.iter().find_map(Access::path) else { return tool.to_owned() };
    let path = path.strip_prefix(workspace).unwrap_or(path);
    let line = format!("{tool} {}", path.to_string_lossy());
    line.trim_end().chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_command_or_its_path() {
        let title = |accesses: &[Access]| call_title("Tool", accesses, Path::new("/w"));
        let read = Access::Read("/w/src/a.rs".into());
        assert_eq!(title(&[]), "Tool");
        assert_eq!(title(std::slice::from_ref(&read)), "Tool src/a.rs");
        assert_eq!(title(&[Access::Write("/etc/x".into())]), "Tool /etc/x");
        assert_eq!(title(&[Access::Read("/w".into())]), "Tool");
        assert_eq!(title(&[read, Access::Command("\n  make test\nls".into())]), "make test");
    }
}
