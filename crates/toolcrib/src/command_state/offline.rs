//! Settings for package managers without a network.
//!
//! Package managers retry for up to a minute. If the sandbox has no network, these variables make them fail at
//! once or use their caches. Variables that the user or a command has set are kept.

use crate::command_state::Variables;

/// None of them changes the result of a build from local files.
const OFFLINE_VARIABLES: [(&str, &str); 15] = [
    ("BUNDLE_RETRY", "0"),
    ("BUNDLE_TIMEOUT", "5"),
    ("CARGO_NET_OFFLINE", "true"),
    ("COMPOSER_DISABLE_NETWORK", "1"),
    ("CONDA_OFFLINE", "true"),
    // Modules in the cache and in vendor directories are still found.
    ("GOPROXY", "off"),
    ("PIP_DEFAULT_TIMEOUT", "5"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_RETRIES", "0"),
    ("POETRY_REQUESTS_MAX_RETRIES", "0"),
    ("UV_OFFLINE", "1"),
    // For yarn 2 and later; yarn 1 and pnpm use those of npm.
    ("YARN_HTTP_RETRY", "0"),
    ("YARN_HTTP_TIMEOUT", "5000"),
    ("npm_config_fetch_retries", "0"),
    ("npm_config_update_notifier", "false"),
];

/// Adds the variables to an environment.
pub(crate) fn add_offline_variables(environment: &mut Variables) {
    for (name, value) in OFFLINE_VARIABLES {
        if !environment.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            environment.push((name.into(), value.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_settings_are_kept() {
        let mut environment: Variables = vec![
            ("PIP_RETRIES".into(), "3".into()),
            ("NPM_CONFIG_FETCH_RETRIES".into(), "7".into()),
        ];
        add_offline_variables(&mut environment);
        assert_eq!(environment.len(), OFFLINE_VARIABLES.len());
        assert_eq!(environment[0].1, "3");
        assert!(environment.contains(&("CARGO_NET_OFFLINE".into(), "true".into())));
    }
}
