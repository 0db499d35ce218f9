//! Caches of build tools. Commands may write those that the operator enables.

/// The caches of each build tool, relative to the home directory.
const CACHES: &[(&str, &[&str])] = &[
    // Includes the lock files of cargo.
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

/// The caches of a tool. Fails if the tool is unknown.
pub(crate) fn cache(tool: &str) -> Result<&'static [&'static str], String> {
    let found = CACHES.iter().find(|(name, _)| *name == tool);
    found.map(|(_, paths)| *paths).ok_or_else(|| {
        let names: Vec<&str> = CACHES.iter().map(|(name, _)| *name).collect();
        format!("no caches are known for {tool:?}; known tools: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cache_overlaps_a_hidden_path() {
        let caches = CACHES.iter().flat_map(|(_, paths)| *paths);
        for cache in caches {
            let cache = std::path::Path::new(cache);
            let clash = toolcrib::user_machine::secret_paths::in_home().find(|secret| {
                cache.starts_with(secret) || std::path::Path::new(secret).starts_with(cache)
            });
            assert_eq!(clash, None, "{cache:?}");
        }
        assert!(cache("nix").unwrap_err().contains("cargo, rustup"));
    }
}
