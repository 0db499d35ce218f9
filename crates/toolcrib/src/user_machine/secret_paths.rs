//! Paths with secrets, which neither commands nor file tools see.
//!
//! The list is in `secret_paths/table.rs`. It applies to the user's home directory, to every other accessible home
//! directory, and to the paths that environment variables name instead.

mod sorted_in_home;
mod table;

use std::path::{Component, Path, PathBuf};

use toolcrib_exec::PathSet;
use toolcrib_fs::real_path;

use self::sorted_in_home::SORTED_IN_HOME;
use self::table::{IN_HOME, OF_SYSTEM, RELOCATED};

/// Base directories that a variable may relocate, relative to the home directory.
const BASES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// The hidden paths of this machine, except those that the operator opens. Paths in `opened` are absolute or
/// relative to the home directory.
///
/// # Errors
///
/// Fails if a path in `opened` is not in the list.
pub fn hidden_paths(opened: &[String]) -> Result<PathSet, String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = super::home();
    let mut places = all(&super::homes(home.as_deref()), home.as_deref(), variable);
    for word in opened {
        let path = opened_path(word, home.as_deref());
        if !places.remove(&path) {
            return Err(format!(
                "allow_hidden: {} is not in the list of hidden paths",
                path.display()
            ));
        }
    }
    Ok(places)
}

fn all(
    homes: &[PathBuf],
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> PathSet {
    let mut places = PathSet::default();
    for home in homes {
        places.add_in_directory(home, &SORTED_IN_HOME);
    }
    let moved = BASES.iter().filter_map(|(name, base)| Some((variable(name)?, base)));
    let moved = moved.flat_map(|(to, base)| {
        in_home().filter_map(move |path| Some(to.join(Path::new(path).strip_prefix(base).ok()?)))
    });
    let relocated = RELOCATED.iter().flat_map(|(name, beneath)| {
        let value = variable(name).unwrap_or_default();
        let paths: Vec<PathBuf> = std::env::split_paths(&value).collect();
        paths
            .into_iter()
            .map(move |path| if beneath.is_empty() { path } else { path.join(beneath) })
    });
    let has_dots = |path: &PathBuf| path.components().any(|part| part == Component::ParentDir);
    let plain = |path: PathBuf| if has_dots(&path) { real_path(&path) } else { path };
    let named = moved.chain(relocated).map(plain).filter(|path| may_be_hidden(path, home));
    let rest: Vec<PathBuf> = named.chain(OF_SYSTEM.iter().map(PathBuf::from)).collect();
    places.add(&rest);
    places
}

/// Whether to hide a path that a variable names. Relative paths, top-level directories, paths beneath `/dev` and
/// `/proc`, and parents of the home directory are not hidden.
fn may_be_hidden(path: &Path, home: Option<&Path>) -> bool {
    let plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    path.is_absolute()
        && plain
        && path.components().count() > 2
        && !path.starts_with("/dev")
        && !path.starts_with("/proc")
        && !home.is_some_and(|home| home.starts_with(path))
}

fn opened_path(word: &str, home: Option<&Path>) -> PathBuf {
    let word = Path::new(word);
    match home {
        Some(home) => home.join(word.strip_prefix("~").unwrap_or(word)),
        None => word.to_owned(),
    }
}

/// The hidden paths beneath a home, by kind.
pub fn by_kind() -> &'static [(&'static str, &'static [&'static str])] {
    IN_HOME
}

/// The hidden paths outside home directories.
pub fn of_system() -> &'static [&'static str] {
    OF_SYSTEM
}

/// Variables that name a hidden path, and the part of it beneath the named directory.
pub fn by_variable() -> impl Iterator<Item = (&'static str, &'static str)> {
    RELOCATED.iter().copied()
}

/// The hidden paths of one home directory, to check that no cache is among them.
pub fn in_home() -> impl Iterator<Item = &'static str> {
    SORTED_IN_HOME.iter().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_path_is_listed_once_and_is_plain() {
        let mut seen = BTreeSet::new();
        for path in in_home() {
            let plain =
                Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
            assert!(plain && !path.ends_with('/'), "{path}");
            assert!(seen.insert(Path::new(path)), "{path} is there twice");
        }
        for path in &seen {
            let outer = path.ancestors().skip(1).find(|above| seen.contains(above));
            assert_eq!(outer, None, "{path:?} is hidden with {outer:?} already");
        }
    }

    #[test]
    fn paths_in_homes_and_paths_of_variables_are_hidden() {
        let variable = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some(PathBuf::from("/elsewhere/config")),
            "KUBECONFIG" => Some(PathBuf::from("/a/one:/b/two")),
            "CODEX_HOME" => Some(PathBuf::from("/a/codex")),
            "HISTFILE" => Some(PathBuf::from("/dev/null")),
            "GNUPGHOME" => Some(PathBuf::from("/home")),
            "NETRC" => Some(PathBuf::from("/usr/lib/../share/netrc")),
            _ => None,
        };
        let homes = ["/home/me".into(), "/home/you".into()];
        let places = all(&homes, Some(Path::new("/home/me")), variable);
        let is_hidden = |path: &str| places.contains(Path::new(path));
        for path in [
            "/home/me/.ssh",
            "/home/you/.ssh",
            "/elsewhere/config/gh",
            "/a/one",
            "/b/two",
            "/a/codex/auth.json",
            "/etc/shadow",
            "/usr/share/netrc",
        ] {
            assert!(is_hidden(path), "{path}");
        }
        assert!(!is_hidden("/dev/null") && !is_hidden("/home"));
    }

    #[test]
    fn a_path_is_opened_by_its_name_in_the_list() {
        let home = Some(Path::new("/home/me"));
        for word in [".npmrc", "~/.npmrc", "/home/me/.npmrc"] {
            assert_eq!(opened_path(word, home), Path::new("/home/me/.npmrc"));
        }
        let opened = hidden_paths(&["~/.npmrc".to_owned()]).unwrap();
        let all = hidden_paths(&[]).unwrap();
        let path = super::super::home().unwrap().join(".npmrc");
        assert!(all.contains(&path) && !opened.contains(&path));
        assert_eq!(all.iter().count(), opened.iter().count() + 1);
        assert!(hidden_paths(&["src".to_owned()]).unwrap_err().contains("is not in the list"));
    }
}
