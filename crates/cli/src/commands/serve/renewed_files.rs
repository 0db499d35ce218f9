//! What is hidden so that no tool sees a secret file, also after it was renewed.
//!
//! A file that takes the place of another by its name is hidden as the other was. But Kubernetes and certbot renew files by
//! symlinks that point to new files: `tls.key -> ..data/tls.key` and `..data -> ..v1`, or
//! `live/HOST/privkey.pem -> ../../archive/HOST/privkey1.pem`. The next file has a path that nobody knows now. So the
//! directories of the symlinks and of their targets are hidden.

use std::path::{Path, PathBuf};

use toolcrib::{symlinks_on_the_way, user_machine};

use crate::wide_roots::system_directories;

/// More directories that commands need.
const SHARED: [&str; 9] = [
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/share",
    "/var/lib",
    "/var/lock",
    "/var/run",
    "/var/tmp",
];

/// Directories in a home directory that many programs share.
const SHARED_AT_HOME: [&str; 4] = [".cache", ".config", ".local/bin", ".local/share"];

/// The paths to hide for secret files with these absolute paths. Fails if a directory would have to be hidden that the tools
/// need: a root, a home directory, or a directory of the system.
pub(super) fn hidden_paths(
    files: impl Iterator<Item = PathBuf>,
    roots: &[PathBuf],
) -> Result<Vec<PathBuf>, String> {
    let mut hidden = Vec::new();
    let homes = user_machine::homes(user_machine::home().as_deref());
    let needed = needed_directories(roots, &homes);
    for file in files {
        for directory in directories(&file, &homes) {
            if let Some(needed) = needed.iter().find(|needed| needed.starts_with(&directory)) {
                return Err(refusal(&file, &directory, needed));
            }
            hidden.push(directory);
        }
        hidden.push(file);
    }
    hidden.sort();
    hidden.dedup();
    Ok(hidden)
}

fn refusal(file: &Path, directory: &Path, needed: &Path) -> String {
    let (shown, directory_shown) = (file.display(), directory.display());
    let what = if needed == directory {
        "which tools and commands need".to_owned()
    } else {
        format!("which contains {}", needed.display())
    };
    let real = real(file);
    format!(
        "{shown}: a symlink leads to this file, so that all of {directory_shown} must be hidden from tools, {what}. Put the \
         file into a directory of its own. If the symlink never changes, give the path without it: {}",
        real.display()
    )
}

/// The directories in which a file is renewed. None if no symlink leads to it.
fn directories(file: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    // The system's own, such as `/var/run`, do not change.
    let is_fixed = |link: &PathBuf| {
        homes.contains(link)
            || system_directories().chain(SHARED.map(Path::new)).any(|path| path == link)
    };
    let links = symlinks_on_the_way(file).into_iter().filter(|link| !is_fixed(link));
    let both = links.flat_map(|link| [real(&link), link]);
    both.filter_map(|path| path.parent().map(Path::to_owned)).collect()
}

/// The directories that are never hidden.
fn needed_directories(roots: &[PathBuf], homes: &[PathBuf]) -> Vec<PathBuf> {
    let at_home = homes.iter().flat_map(|home| SHARED_AT_HOME.map(|name| home.join(name)));
    let system = system_directories().chain(SHARED.map(Path::new)).map(Path::to_owned);
    let all = roots.iter().chain(homes).cloned().chain(at_home).chain(system);
    all.map(|path| real(&path)).collect()
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn hidden(file: &Path, root: &Path) -> Result<Vec<PathBuf>, String> {
        hidden_paths(std::iter::once(file.to_owned()), &[root.to_owned()])
    }

    #[test]
    fn directories_with_renewed_files_are_hidden() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        for name in ["root", "k8s/..v1", "live/x", "archive/x", "releases/1/keys"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        for name in ["k8s/..v1/key", "archive/x/key1", "releases/1/keys/key", "plain"] {
            std::fs::write(top.join(name), "").unwrap();
        }
        symlink("..v1", top.join("k8s/..data")).unwrap();
        symlink("..data/key", top.join("k8s/key")).unwrap();
        symlink("../../archive/x/key1", top.join("live/x/key")).unwrap();
        symlink("plain", top.join("beside")).unwrap();
        let root = top.join("root");
        let expected = |names: &[&str]| Ok(names.iter().map(|name| top.join(name)).collect());
        assert_eq!(hidden(&top.join("plain"), &root), expected(&["plain"]));
        let k8s = ["k8s", "k8s/..v1", "k8s/key"];
        assert_eq!(hidden(&top.join("k8s/key"), &root), expected(&k8s));
        assert_eq!(
            hidden(&top.join("k8s/..data/key"), &root),
            expected(&["k8s", "k8s/..data/key"])
        );
        let certbot = ["archive/x", "live/x", "live/x/key"];
        assert_eq!(hidden(&top.join("live/x/key"), &root), expected(&certbot));
        // The directory is, or contains, a root.
        for root in [&root, &top] {
            let refusal = hidden(&top.join("beside"), root).unwrap_err();
            assert!(refusal.contains("a directory of its own"), "{refusal}");
            assert!(refusal.ends_with(&format!(": {}", top.join("plain").display())), "{refusal}");
        }
        // Also if a symlink above the file is replaced.
        symlink("releases/1", top.join("current")).unwrap();
        assert!(hidden(&top.join("current/keys/key"), &root).is_err());
    }

    #[test]
    fn directories_of_the_system_are_not_hidden() {
        let homes = [PathBuf::from("/home/me")];
        let needed = needed_directories(&[], &homes);
        for directory in ["/", "/etc", "/etc/ssl", "/usr", "/home", "/home/me", "/home/me/.config"]
        {
            assert!(needed.iter().any(|needed| needed.starts_with(directory)), "{directory}");
        }
        for directory in
            ["/etc/letsencrypt/live/x", "/etc/toolcrib", "/run/secrets/x", "/home/me/x"]
        {
            assert!(!needed.iter().any(|needed| needed.starts_with(directory)), "{directory}");
        }
    }
}
