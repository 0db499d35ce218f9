//! Warns about roots that are wider than a project: the whole file system, a home directory, a system directory.

use std::path::{Path, PathBuf};

use toolcrib::user_machine;

use crate::args::RootArg;

/// System directories without projects in them, at any depth.
const SYSTEM: [&str; 7] = ["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/lost+found"];

/// System directories that may have projects in them.
const SYSTEM_TOPS: [&str; 15] = [
    "/bin",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/sbin",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/var",
];

/// The directories of the system without projects in them, and those that may have some.
pub(crate) fn system_directories() -> impl Iterator<Item = &'static Path> {
    SYSTEM.into_iter().chain(SYSTEM_TOPS).map(Path::new)
}

/// Warnings for the operator, one sentence for each root that is too wide.
pub(crate) fn warnings(roots: &[RootArg]) -> Vec<String> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let homes: Vec<PathBuf> = user_machine::homes(user_machine::home().as_deref())
        .iter()
        .map(|home| real(home))
        .collect();
    let roots = roots.iter().map(|root| (real(&root.directory), root.read_only));
    roots.filter_map(|(root, read_only)| warning(&root, read_only, &homes)).collect()
}

fn warning(root: &Path, read_only: bool, homes: &[PathBuf]) -> Option<String> {
    let is_system = SYSTEM.iter().any(|top| root.starts_with(top))
        || SYSTEM_TOPS.iter().any(|top| root == Path::new(top));
    let what = if root.parent().is_none() {
        "is the whole file system".to_owned()
    } else if homes.iter().any(|home| home == root) {
        "is a home directory".to_owned()
    } else if let Some(home) = homes.iter().find(|home| home.starts_with(root)) {
        format!("contains the home directory {}", home.display())
    } else if is_system {
        "is a system directory".to_owned()
    } else {
        return None;
    };
    let means = if read_only {
        "read everything in it except known key files, also private files"
    } else {
        "read and change everything in it except known key files, also shell profiles and settings that run code"
    };
    let root = root.display();
    Some(format!(
        "the root {root} {what}. Tools and commands may {means}. Choose a project directory with --root DIR"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_directory_causes_a_warning_and_a_project_does_not() {
        let homes = [PathBuf::from("/home/me"), PathBuf::from("/root")];
        let warned = |root: &str| warning(Path::new(root), false, &homes);
        for (root, what) in [
            ("/", "is the whole file system"),
            ("/home/me", "is a home directory"),
            ("/home", "contains the home directory /home/me"),
            ("/etc/nginx", "is a system directory"),
            ("/usr", "is a system directory"),
        ] {
            let warning = warned(root).unwrap();
            assert!(warning.contains(&format!("the root {root} {what}")), "{warning}");
            assert!(warning.contains("--root DIR"), "{warning}");
        }
        for root in ["/home/me/project", "/work/x", "/usr/src/app", "/var/www/site", "/tmp/x"] {
            assert_eq!(warned(root), None);
        }
    }
}
