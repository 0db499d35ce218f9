//! Caches of package managers in the session's temporary directory.
//!
//! Commands may not write the caches in the user's home directory unless the operator allows it: programs outside the
//! sandbox would run what a command has put there. Some tools fail without a cache, so they get one that lasts as
//! long as the session. Variables that the user or a command has set are kept.

use std::path::{Path, PathBuf};

use crate::command_state::Variables;

struct SessionCache {
    variable: &'static str,
    /// Its name in the session's temporary directory.
    directory: &'static str,
    /// The usual cache, relative to the home directory.
    usual: &'static str,
    /// When it replaces the usual cache.
    when: When,
}

#[derive(PartialEq, Eq)]
enum When {
    /// The tool always writes its cache.
    Always,
    /// The tool writes its cache only when it downloads. Without a network, it reads the usual one.
    WithNetwork,
}

const fn cache(
    variable: &'static str,
    directory: &'static str,
    usual: &'static str,
    when: When,
) -> SessionCache {
    SessionCache { variable, directory, usual, when }
}

const CACHES: [SessionCache; 8] = [
    cache("GOCACHE", "go-build", ".cache/go-build", When::Always),
    cache("GOMODCACHE", "go-mod", "go/pkg/mod", When::WithNetwork),
    cache("PIP_CACHE_DIR", "pip", ".cache/pip", When::WithNetwork),
    cache("UV_CACHE_DIR", "uv", ".cache/uv", When::Always),
    cache("YARN_CACHE_FOLDER", "yarn", ".cache/yarn", When::WithNetwork),
    cache("YARN_GLOBAL_FOLDER", "yarn-global", ".yarn/berry", When::WithNetwork),
    cache("npm_config_cache", "npm", ".npm", When::WithNetwork),
    cache("npm_config_store_dir", "pnpm", ".local/share/pnpm/store", When::WithNetwork),
];

/// Adds the variables to an environment, except for caches that commands may write. `tmp` is the temporary directory as
/// the command sees it.
pub(crate) fn add_session_caches(
    environment: &mut Variables,
    tmp: &Path,
    has_network: bool,
    may_write: impl Fn(&Path) -> bool,
) {
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let Some(home) = home.map(|(_, home)| PathBuf::from(home)) else { return };
    for SessionCache { variable, directory, usual, when } in &CACHES {
        let is_set = environment.iter().any(|(name, _)| name.eq_ignore_ascii_case(variable));
        let is_needed = has_network || *when == When::Always;
        if is_needed && !is_set && !may_write(&home.join(usual)) {
            let path = tmp.join("cache").join(directory);
            environment.push(((*variable).into(), path.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(has_network: bool, given: &[(&str, &str)], writable: &str) -> Vec<String> {
        let mut environment: Variables =
            given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let may_write = |path: &Path| path.starts_with(writable);
        add_session_caches(&mut environment, Path::new("/tmp"), has_network, may_write);
        let added = environment.iter().skip(given.len());
        added.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_caches_that_cannot_be_written_are_replaced() {
        let home = [("HOME", "/home/me")];
        assert_eq!(names(false, &home, "/none"), ["GOCACHE", "UV_CACHE_DIR"]);
        assert_eq!(names(true, &home, "/none").len(), CACHES.len());
        assert!(names(true, &home, "/home/me").is_empty());
        assert!(!names(true, &home, "/home/me/.npm").contains(&"npm_config_cache".to_owned()));
        let set = [("HOME", "/home/me"), ("NPM_CONFIG_CACHE", "x"), ("GOCACHE", "off")];
        let added = names(true, &set, "/none");
        assert_eq!(added.len(), CACHES.len() - 2, "{added:?}");
        assert!(names(true, &[], "/none").is_empty());
    }
}
