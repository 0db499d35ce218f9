//! `server.json`, the entry for the MCP registry.
//!
//! The requirements of its schema of 2025-12-11 that concern us: a name in reverse-DNS form with exactly one
//! slash, a description of at most 100 characters, a version that is not a range, and packages of a known type
//! with an identifier, a version and a transport. The registry also compares the name with `mcpName` in the npm
//! package and with the `mcp-name` mark in the description of the Python package.

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;

use super::Artefact;
use super::npm;
use super::release_info::{Release, SUMMARY};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// The longest description that the registry takes.
const MAX_DESCRIPTION: usize = 100;

/// The artefact.
pub(super) fn server_json(release: &Release) -> Result<Artefact> {
    let manifest = npm::source_manifest()?;
    let name = manifest.get("mcpName").and_then(Value::as_str);
    let entry = entry(name.ok_or("packaging/npm/package.json has no mcpName")?, &release.version)?;
    let bytes = (serde_json::to_string_pretty(&entry)? + "\n").into_bytes();
    Ok(Artefact { name: "server.json".to_owned(), bytes })
}

fn entry(name: &str, version: &str) -> Result<Value> {
    if !is_server_name(name) {
        return Err(format!("`{name}` is no name of a server: it is like com.example/name").into());
    }
    if SUMMARY.chars().count() > MAX_DESCRIPTION {
        return Err(format!("the summary is longer than {MAX_DESCRIPTION} characters").into());
    }
    let package = |registry: &str, runtime: &str| {
        json!({
            "registryType": registry,
            "identifier": "toolcrib",
            "version": version,
            "runtimeHint": runtime,
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "serve"}],
        })
    };
    Ok(json!({
        "$schema": SCHEMA,
        "name": name,
        "title": "Toolcrib",
        "description": SUMMARY,
        "version": version,
        "packages": [package("npm", "npx"), package("pypi", "uvx")],
    }))
}

fn is_server_name(name: &str) -> bool {
    let is_plain = |part: &str, also: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
    };
    name.split_once('/').is_some_and(|(space, name)| is_plain(space, ".-") && is_plain(name, "._-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_names_both_packages_and_their_version() {
        let entry = entry("com.example/toolcrib", "1.2.3").unwrap();
        for (index, registry) in ["npm", "pypi"].into_iter().enumerate() {
            let package = &entry["packages"][index];
            assert_eq!(package["registryType"], registry);
            assert_eq!(package["version"], "1.2.3");
            assert_eq!(package["packageArguments"][0]["value"], "serve");
        }
    }

    #[test]
    fn a_name_has_one_slash() {
        assert!(is_server_name("io.github.toolcrib/toolcrib"));
        for bad in ["toolcrib", "a/b/c", "/b", "a/", "a b/c"] {
            assert!(!is_server_name(bad), "{bad}");
        }
    }
}
