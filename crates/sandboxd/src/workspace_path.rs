//! Paths of requests, as paths of the workspace.

use std::path::{Path, PathBuf};

/// A path of a request is not a path of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// It leads out of the root.
    Escapes,
    /// It cannot be the name of a file.
    Invalid,
}

/// Longer than any path that the system accepts.
const MAX_PATH_BYTES: usize = 4_096;

/// The absolute path of a path in a request. An absolute path is taken from the root, too, unless it is already in a root. `..`
/// is applied to the text; symlinks are resolved later.
pub(crate) fn workspace_path(roots: &[PathBuf], given: &str) -> Result<PathBuf, BadPath> {
    let first = roots.first().ok_or(BadPath::Escapes)?;
    if given.contains('\0') || given.len() > MAX_PATH_BYTES {
        return Err(BadPath::Invalid);
    }
    let is_absolute = given.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in given.split('/') {
        match name {
            "" | "." => {}
            ".." if names.pop().is_some() || is_absolute => {}
            ".." => return Err(BadPath::Escapes),
            name => names.push(name),
        }
    }
    let relative: PathBuf = names.iter().collect();
    let absolute = Path::new("/").join(&relative);
    let is_in_root = is_absolute && roots.iter().any(|root| absolute.starts_with(root));
    Ok(if is_in_root { absolute } else { join(first, &relative) })
}

/// Joins without a slash at the end.
fn join(root: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(relative) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_root() {
        let roots = [PathBuf::from("/workspace"), PathBuf::from("/data")];
        for (given, path) in [
            ("", "/workspace"),
            ("/", "/workspace"),
            (".", "/workspace"),
            ("a/b.txt", "/workspace/a/b.txt"),
            ("a//b/./c/", "/workspace/a/b/c"),
            ("a/../b", "/workspace/b"),
            ("/workspace", "/workspace"),
            ("/workspace/a", "/workspace/a"),
            ("/data/x", "/data/x"),
            ("/workspace-evil/a", "/workspace/workspace-evil/a"),
            ("/etc/passwd", "/workspace/etc/passwd"),
            ("/../../etc/passwd", "/workspace/etc/passwd"),
            ("/workspace/../etc/passwd", "/workspace/etc/passwd"),
            ("~/x", "/workspace/~/x"),
            ("...", "/workspace/..."),
        ] {
            assert_eq!(workspace_path(&roots, given), Ok(path.into()), "{given}");
        }
        for given in ["..", "../..", "../../etc/passwd", "a/../../b", "./.."] {
            assert_eq!(workspace_path(&roots, given), Err(BadPath::Escapes), "{given}");
        }
        for given in ["a\0b", &"x".repeat(MAX_PATH_BYTES + 1)] {
            assert_eq!(workspace_path(&roots, given), Err(BadPath::Invalid));
        }
        assert_eq!(workspace_path(&[], "a"), Err(BadPath::Escapes));
    }
}
