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
    /// The same, for commands that name this tool. Another tool complains about the variable.
    WithNetworkIfNamed(&'static str),
}

const fn cache(
    variable: &'static str,
    directory: &'static str,
    usual: &'static str,
    when: When,
) -> SessionCache {
    SessionCache { variable, directory, usual, when }
}

/// The store of pnpm, in its home directory.
const PNPM_STORE: &str = ".local/share/pnpm/store";

/// pnpm before version 11 reads the variables of npm, and npm warns of those that it does not know. Scripts that run
/// pnpm without naming it have its home directory, in which it has its store if the project can have links to it.
const CACHES: [SessionCache; 10] = [
    cache("GOCACHE", "go-build", ".cache/go-build", When::Always),
    cache("GOMODCACHE", "go-mod", "go/pkg/mod", When::WithNetwork),
    cache("PIP_CACHE_DIR", "pip", ".cache/pip", When::WithNetwork),
    cache("UV_CACHE_DIR", "uv", ".cache/uv", When::Always),
    cache("YARN_CACHE_FOLDER", "yarn", ".cache/yarn", When::WithNetwork),
    cache("YARN_GLOBAL_FOLDER", "yarn-global", ".yarn/berry", When::WithNetwork),
    cache("npm_config_cache", "npm", ".npm", When::WithNetwork),
    cache("PNPM_HOME", "pnpm", PNPM_STORE, When::WithNetwork),
    cache("pnpm_config_store_dir", "pnpm/store", PNPM_STORE, When::WithNetwork),
    cache("npm_config_store_dir", "pnpm/store", PNPM_STORE, When::WithNetworkIfNamed("pnpm")),
];

/// Adds the variables to an environment, except for caches that commands may write. `tmp` is the temporary directory as
/// the command sees it. `environment` may have variables that an earlier command got.
pub(crate) fn add_session_caches(
    environment: &mut Variables,
    script: &[u8],
    tmp: &Path,
    has_network: bool,
    may_write: impl Fn(&Path) -> bool,
) {
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let Some(home) = home.map(|(_, home)| PathBuf::from(home)) else { return };
    for SessionCache { variable, directory, usual, when } in &CACHES {
        let path = tmp.join("cache").join(directory);
        let is_needed = match when {
            When::Always => true,
            When::WithNetwork => has_network,
            When::WithNetworkIfNamed(tool) => {
                environment.retain(|(name, value)| name != variable || *value != path);
                has_network && script.windows(tool.len()).any(|part| part == tool.as_bytes())
            }
        };
        let is_set = environment.iter().any(|(name, _)| name.eq_ignore_ascii_case(variable));
        if is_needed && !is_set && !may_write(&home.join(usual)) {
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
        let script = b"pnpm install";
        add_session_caches(&mut environment, script, Path::new("/tmp"), has_network, may_write);
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

    #[test]
    fn only_commands_that_name_pnpm_have_its_variable_of_npm() {
        let mut environment: Variables = vec![("HOME".into(), "/home/me".into())];
        let mut is_set_for = |script: &[u8]| {
            add_session_caches(&mut environment, script, Path::new("/tmp"), true, |_| false);
            environment.iter().any(|(name, _)| name == "npm_config_store_dir")
        };
        assert!(!is_set_for(b"npm ci"));
        assert!(is_set_for(b"cd app && pnpm install"));
        assert!(!is_set_for(b"npm ci"), "the variable of an earlier command is kept");
        environment.push(("npm_config_store_dir".into(), "/mine".into()));
        add_session_caches(&mut environment, b"npm ci", Path::new("/tmp"), true, |_| false);
        assert!(environment.iter().any(|(_, value)| value == "/mine"), "{environment:?}");
    }
}
