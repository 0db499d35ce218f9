//! The names of workspaces in paths of requests.

use std::fmt;

use hyper::header::{HeaderMap, HeaderName};

/// The header that a client of protocol version 2026-07-28 sends for an argument called `workspace`. The path names the
/// workspace; a header that contradicts it is refused.
pub(super) const WORKSPACE_PARAMETER: HeaderName = HeaderName::from_static("mcp-param-workspace");

/// The maximum length of a name.
const MAX_BYTES: usize = 64;

/// The name of a workspace: 1 to 64 ASCII letters, digits, `-`, `_` and `.`, without a `.` at the beginning. So it is one
/// component of a path, needs no escapes in a URL, and has one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkspaceId(String);

impl WorkspaceId {
    /// Checks a name. `None` if it is not allowed.
    pub fn parse(name: &str) -> Option<WorkspaceId> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_fit = (1..=MAX_BYTES).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(is_fit);
        is_fit.then(|| WorkspaceId(name.to_owned()))
    }

    /// The name in `/w/NAME/mcp`.
    pub(super) fn of_path(path: &str) -> Option<WorkspaceId> {
        WorkspaceId::parse(path.strip_prefix("/w/")?.strip_suffix("/mcp")?)
    }

    /// Whether the headers name no other workspace.
    pub(super) fn agrees_with(&self, headers: &HeaderMap) -> bool {
        headers.get(WORKSPACE_PARAMETER).is_none_or(|named| named.as_bytes() == self.0.as_bytes())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_directory_entry() {
        let named = |path: &str| WorkspaceId::of_path(path).map(|id| id.0);
        let longest = "x".repeat(MAX_BYTES);
        for name in ["a", "A-b_c.d", "0", "-", "_", "a..b", "mcp", &longest] {
            assert_eq!(named(&format!("/w/{name}/mcp")).as_deref(), Some(name));
        }
        for name in [
            "",
            ".",
            "..",
            ".a",
            "a/b",
            "../a",
            "a/..",
            "%2e%2e",
            "a%2fb",
            "a%00",
            "a\0",
            "a b",
            "ä",
            "a\\b",
            "~",
            "a:b",
            "a;b",
            "*",
            &"x".repeat(MAX_BYTES + 1),
        ] {
            assert_eq!(named(&format!("/w/{name}/mcp")), None, "{name}");
        }
        for path in
            ["/mcp", "/w/mcp", "/w//mcp", "/w/a", "/w/a/mcp/", "/w/a//mcp", "//w/a/mcp", "/W/a/mcp"]
        {
            assert_eq!(named(path), None, "{path}");
        }
    }
}
