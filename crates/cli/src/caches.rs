//! What lies in a home that a sandbox must know of: keys, which commands do not see, and the caches of
//! build tools, which they may write if the operator says so.

/// Files and directories of keys, beneath the home.
pub(crate) const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".config/containers",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".npmrc",
    ".pypirc",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];

/// The caches of each build tool, beneath the home.
const CACHES: &[(&str, &[&str])] = &[
    // With the locks by which one cargo waits for another.
    (
        "cargo",
        &[".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".cargo/.package-cache-mutate"],
    ),
    ("rustup", &[".rustup"]),
    ("npm", &[".npm"]),
    ("pnpm", &[".local/share/pnpm", ".cache/pnpm"]),
    ("yarn", &[".cache/yarn", ".yarn"]),
    ("pip", &[".cache/pip"]),
    ("uv", &[".cache/uv", ".local/share/uv"]),
    ("go", &["go/pkg", ".cache/go-build"]),
    ("maven", &[".m2/repository"]),
    ("gradle", &[".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/wrapper"]),
];

/// The caches of a tool.
pub(crate) fn cache(tool: &str) -> Result<&'static [&'static str], String> {
    let found = CACHES.iter().find(|(name, _)| *name == tool);
    found.map(|(_, paths)| *paths).ok_or_else(|| {
        let names: Vec<&str> = CACHES.iter().map(|(name, _)| *name).collect();
        format!("no caches are known for {tool:?}; there are: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cache_lies_in_what_is_hidden_nor_holds_it() {
        let caches = CACHES.iter().flat_map(|(_, paths)| *paths);
        for cache in caches {
            let cache = std::path::Path::new(cache);
            let clash = SECRETS.iter().find(|secret| {
                cache.starts_with(secret) || std::path::Path::new(secret).starts_with(cache)
            });
            assert_eq!(clash, None, "{cache:?}");
        }
        assert!(cache("nix").unwrap_err().contains("cargo, rustup"));
    }
}
