//! Parses deny.toml strictly: an unsupported key is an error, not a rule that is silently ignored.

use std::collections::BTreeSet;

use toml::{Table, Value};
use toolcrib_devtools::error::Result;

use super::graph::Package;

/// The supported settings.
pub(super) struct Config {
    /// Target triples; empty means all.
    pub(super) platforms: Vec<String>,
    pub(super) licences: BTreeSet<String>,
    /// `name@version` of packages that may be duplicates.
    pub(super) skips: Vec<String>,
}

/// Settings with a required value: with any other value our check would differ from cargo-deny.
const REQUIRED: &[(&str, &str, &str)] = &[
    ("graph", "all-features", "true"),
    ("licenses", "include-dev", "true"),
    ("licenses", "unused-allowed-license", "\"allow\""),
    ("bans", "multiple-versions", "\"deny\""),
    ("bans", "multiple-versions-include-dev", "true"),
    ("bans", "wildcards", "\"deny\""),
    ("bans", "allow-wildcard-paths", "true"),
    ("sources", "unknown-registry", "\"deny\""),
    ("sources", "unknown-git", "\"deny\""),
];

/// Settings that are read.
const READ: &[(&str, &str)] = &[("graph", "targets"), ("licenses", "allow"), ("bans", "skip")];

impl Config {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let file: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        for &(section, key, value) in REQUIRED {
            let found = lookup(&file, section, key).map(Value::to_string);
            if found.as_deref() != Some(value) {
                return Err(format!("deny.toml: [{section}] needs `{key} = {value}`").into());
            }
        }
        // Only cargo-deny checks advisories.
        for (section, content) in file.iter().filter(|(section, _)| *section != "advisories") {
            let keys = content.as_table().into_iter().flat_map(Table::keys);
            if let Some(key) = keys.into_iter().find(|key| !is_known(section, key)) {
                return Err(format!(
                    "deny.toml: `{key}` in [{section}] is for cargo-deny only; teach it to \
                     xtask/src/deny, or do without"
                )
                .into());
            }
        }
        Ok(Self {
            platforms: strings(&file, "graph", "targets")?,
            licences: strings(&file, "licenses", "allow")?.into_iter().collect(),
            skips: skips(&file)?,
        })
    }

    pub(super) fn skips(&self, package: &Package) -> bool {
        self.skips.contains(&package.spec())
    }
}

fn is_known(section: &str, key: &str) -> bool {
    let granted = REQUIRED.iter().map(|&(section, key, _)| (section, key));
    granted.chain(READ.iter().copied()).any(|known| known == (section, key))
}

fn lookup<'a>(file: &'a Table, section: &str, key: &str) -> Option<&'a Value> {
    file.get(section)?.get(key)
}

fn strings(file: &Table, section: &str, key: &str) -> Result<Vec<String>> {
    let list = lookup(file, section, key).and_then(Value::as_array);
    let strings = list.and_then(|list| {
        list.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()
    });
    strings.ok_or_else(|| format!("deny.toml: [{section}] needs a list of strings `{key}`").into())
}

fn skips(file: &Table) -> Result<Vec<String>> {
    let Some(list) = lookup(file, "bans", "skip") else {
        return Ok(Vec::new());
    };
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let skips = list.iter().map(|skip| {
        let spec = skip.get("crate")?.as_str()?;
        let reason = skip.get("reason")?.as_str()?;
        (spec.contains('@') && !reason.is_empty()).then(|| spec.to_owned())
    });
    skips
        .collect::<Option<_>>()
        .ok_or_else(|| "deny.toml: a `skip` is { crate = \"name@version\", reason = \"…\" }".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        all-features = true
        [advisories]
        yanked = "deny"
        [licenses]
        allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
        include-dev = true
        unused-allowed-license = "allow"
        [bans]
        multiple-versions = "deny"
        multiple-versions-include-dev = true
        wildcards = "deny"
        allow-wildcard-paths = true
        skip = [{ crate = "syn@2.0.1", reason = "for a while" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    fn error_with(good: &str, bad: &str) -> String {
        assert!(GOOD.contains(good));
        Config::parse(&GOOD.replace(good, bad)).err().unwrap().to_string()
    }

    #[test]
    fn parses_supported_settings() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!(config.platforms, ["x86_64-unknown-linux-gnu"]);
        assert!(config.licences.contains("Apache-2.0 WITH LLVM-exception"));
        assert_eq!(config.skips, ["syn@2.0.1"]);
    }

    #[test]
    fn rejects_weaker_settings() {
        assert_eq!(
            error_with("wildcards = \"deny\"", "wildcards = \"warn\""),
            "deny.toml: [bans] needs `wildcards = \"deny\"`"
        );
        assert_eq!(
            error_with("all-features = true", ""),
            "deny.toml: [graph] needs `all-features = true`"
        );
    }

    #[test]
    fn rejects_unsupported_keys() {
        let error = error_with("[sources]", "skip-tree = []\n[sources]");
        assert!(error.starts_with("deny.toml: `skip-tree` in [bans] is for cargo-deny only"));
    }

    #[test]
    fn a_skip_requires_a_version_and_a_reason() {
        for bad in [r#"{ crate = "syn@2.0.1" }"#, r#"{ crate = "syn", reason = "why" }"#] {
            let error = error_with(r#"{ crate = "syn@2.0.1", reason = "for a while" }"#, bad);
            assert!(error.starts_with("deny.toml: a `skip` is "), "{error}");
        }
    }
}
