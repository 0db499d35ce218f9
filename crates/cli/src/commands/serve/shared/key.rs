//! What clients must have in common to share a server: everything that decides what the server does, and what its commands
//! may do.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::client_variables;
use crate::args::{Common, ServeArgs};
use crate::commands::{OWN_EXECUTABLE, as_spelled_by_shell, real_path, state};
use crate::config::{self, Config};
use crate::rules;

/// Digits of the key in the names of files. A socket has a short path.
const NAME_DIGITS: usize = 24;

/// What this process may do, and its commands with it.
const STATUS_FIELDS: [&str; 11] = [
    "Uid:",
    "Gid:",
    "Groups:",
    "Umask:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
];

const NAMESPACES: [&str; 6] = ["ipc", "mnt", "net", "pid", "user", "uts"];

/// The key of a shared server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SharedKey {
    digits: String,
    settings: String,
}

impl SharedKey {
    /// The key of a client or a server with these arguments.
    pub(super) fn of(common: &Common, args: &ServeArgs) -> Result<SharedKey, String> {
        let settings = settings(common)?;
        let mut fields = Fields::default();
        fields.add("settings", &settings);
        add_program(&mut fields)?;
        add_process(&mut fields)?;
        add_roots(&mut fields, common)?;
        add_arguments(&mut fields, common, args)?;
        let mut variables: Vec<_> =
            std::env::vars_os().filter(|(name, _)| client_variables::counts(name)).collect();
        variables.sort();
        for (name, value) in variables {
            fields.add(name.as_encoded_bytes(), value.as_encoded_bytes());
        }
        Ok(SharedKey { digits: fields.digits(), settings })
    }

    /// The whole key.
    pub(super) fn digits(&self) -> &str {
        &self.digits
    }

    /// The beginning of the names of its files.
    pub(super) fn name(&self) -> &str {
        &self.digits[..NAME_DIGITS]
    }

    /// Whether the configuration is that of the key.
    pub(super) fn has_settings_of(&self, common: &Common) -> Result<bool, String> {
        Ok(settings(common)? == self.settings)
    }
}

/// The configuration, as it is now: a running server has read its own at its start. Rules are read again when their files
/// change, but those of presets are not, and some changes need a restart. Fails at an invalid rules file, like a server of
/// the client's own.
fn settings(common: &Common) -> Result<String, String> {
    let config = Config::of(common)?;
    let mut fields = Fields::default();
    let file = common.config.clone().or_else(config::default_path).map(absolute).transpose()?;
    fields.add("configuration file", format!("{file:?}"));
    fields.add("configuration", format!("{config:?}"));
    for path in rules::files(common, &config) {
        let path = absolute(path)?;
        fields.add("rules", path.as_os_str().as_encoded_bytes());
        // A server does not follow a symlink that was changed since its start.
        fields.add("real", real_path(&path).as_os_str().as_encoded_bytes());
    }
    // A server that inspects no hosts cannot begin to.
    let is_inspected = rules::read(common, &config)?.name_requests();
    fields.add("requests", is_inspected.to_string());
    // They depend on other files.
    let presets = rules::presets(common, &config)?;
    fields.add("presets", format!("{presets:?}"));
    Ok(fields.digits())
}

/// A program that was replaced since is another one.
fn add_program(fields: &mut Fields) -> Result<(), String> {
    let path = Path::new(OWN_EXECUTABLE);
    let found = path.metadata().map_err(|error| format!("{OWN_EXECUTABLE}: {error}"))?;
    fields.add("version", env!("CARGO_PKG_VERSION"));
    fields.add("program", identity(&found));
    fields.add("changed", format!("{} {}", found.mtime(), found.mtime_nsec()));
    Ok(())
}

fn add_process(fields: &mut Fields) -> Result<(), String> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let status = read("/proc/self/status")?;
    let is_wanted = |line: &&str| STATUS_FIELDS.iter().any(|field| line.starts_with(field));
    for line in status.lines().filter(is_wanted) {
        fields.add("status", line);
    }
    fields.add("limits", read("/proc/self/limits")?);
    for namespace in NAMESPACES {
        let path = format!("/proc/self/ns/{namespace}");
        let found = std::fs::read_link(&path).map_err(|error| format!("{path}: {error}"))?;
        fields.add("namespace", found.as_os_str().as_encoded_bytes());
    }
    let top = Path::new("/").metadata().map_err(|error| format!("/: {error}"))?;
    fields.add("/", identity(&top));
    Ok(())
}

/// The directories themselves, and their names: replies show those that the client uses.
fn add_roots(fields: &mut Fields, common: &Common) -> Result<(), String> {
    for root in common.roots() {
        let spelled = absolute(as_spelled_by_shell(&root.directory))?;
        let at = |error: std::io::Error| format!("{}: {error}", spelled.display());
        let real = spelled.canonicalize().map_err(at)?;
        fields.add("root", identity(&real.metadata().map_err(at)?));
        fields.add("spelled", spelled.as_os_str().as_encoded_bytes());
        fields.add("real", real.as_os_str().as_encoded_bytes());
        fields.add("read-only", root.read_only.to_string());
    }
    Ok(())
}

fn add_arguments(fields: &mut Fields, common: &Common, args: &ServeArgs) -> Result<(), String> {
    let mut common = common.for_workspace(Path::new("/"));
    for path in [&mut common.config, &mut common.rules] {
        *path = path.take().map(absolute).transpose()?;
    }
    common.state = state(&common)?;
    // Nothing depends on them here.
    (common.json, common.text) = (false, false);
    fields.add("options", format!("{common:?}"));
    // Without those that need --http. A new argument does not compile until it is added here.
    let ServeArgs {
        dialect,
        structured,
        shared: _,
        shared_part: _,
        http: _,
        token_file: _,
        identity: _,
        public_url: _,
        tls_cert: _,
        tls_key: _,
        allow_hosts: _,
        workspaces: _,
        workspace_rules: _,
        workspace_tokens: _,
        max_workspaces: _,
        no_monitor,
        #[cfg(feature = "postgres")]
        store,
        #[cfg(feature = "postgres")]
        store_name,
        #[cfg(feature = "postgres")]
        lease,
        #[cfg(feature = "backup")]
            backup: _,
    } = args;
    fields.add("presentation", format!("{dialect} {structured} {no_monitor}"));
    #[cfg(feature = "postgres")]
    if store.is_some() {
        fields.add("store", format!("{store:?} {store_name:?} {lease}"));
        // The address may be in a file with a relative path.
        fields.add("directory", format!("{:?}", std::env::current_dir()));
    }
    fields.add("backup", format!("{:?}", args.backup()));
    Ok(())
}

/// Which file or directory it is.
fn identity(found: &Metadata) -> String {
    format!("{}:{}", found.dev(), found.ino())
}

fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Hashes names and values, with their lengths.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        for part in [name.as_ref(), value.as_ref()] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    fn digits(self) -> String {
        let mut digits = String::new();
        for byte in self.0.finalize() {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn key(words: &[&str]) -> String {
        try_key(words).unwrap()
    }

    fn try_key(words: &[&str]) -> Result<String, String> {
        let args = Args::try_parse_from(["toolcrib"].iter().chain(words)).unwrap();
        let Command::Serve(serve) = &args.command else { panic!("{words:?}") };
        Ok(SharedKey::of(&args.common, serve)?.digits().to_owned())
    }

    #[test]
    fn all_that_a_server_depends_on_is_in_the_key() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name).display().to_string();
        let (config, rules, root) = (at("config.toml"), at("rules.toml"), at("ws"));
        std::fs::write(&config, "").unwrap();
        std::fs::write(&rules, "").unwrap();
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        let read_only = format!("{root}:ro");
        let usual = ["serve", "--config", &config, "--rules", &rules, "--root", &root];
        let with = |more: &[&str]| key(&[&usual, more].concat());
        let plain = with(&[]);
        // The client and the server have the same key.
        assert_eq!(plain, with(&["--shared"]));
        assert_eq!(plain, with(&["--shared-part=serve"]));
        assert_eq!(plain, with(&["--text"]));
        let mut others = vec![
            with(&["--profile", "read-only"]),
            with(&["--outside", "deny"]),
            with(&["--network-access", "all"]),
            with(&["--state", &at("state")]),
            with(&["--tools", "Read"]),
            with(&["--no-tools", "Bash"]),
            with(&["--dry-run"]),
            with(&["--dialect", "codex"]),
            with(&["--structured"]),
            with(&["--no-monitor"]),
            key(&["serve", "--config", &config, "--rules", &rules, "--root", &read_only]),
            key(&["serve", "--config", &config, "--rules", &rules, "--root", &at("other")]),
        ];
        std::fs::write(&config, "profile = \"cautious\"\n").unwrap();
        others.push(with(&[]));
        std::fs::write(&config, "").unwrap();
        // A running server reads changed rules again.
        let rule = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**/x\"]\n";
        std::fs::write(&rules, rule).unwrap();
        assert_eq!(plain, with(&[]));
        // It does not begin to inspect hosts, and follows no symlink that was changed.
        let requests = "[[rule]]\ndecision = \"allow\"\nkind = \"network\"\nhosts = [\"a.example\"]\nmethods = [\"GET\"]\n";
        std::fs::write(&rules, requests).unwrap();
        others.push(with(&[]));
        std::fs::write(&rules, "[[rule]]\ndecision = \"maybe\"\n").unwrap();
        assert!(try_key(&usual).unwrap_err().contains("maybe"));
        std::fs::rename(&rules, at("target.toml")).unwrap();
        std::fs::write(at("target.toml"), rule).unwrap();
        std::os::unix::fs::symlink("target.toml", &rules).unwrap();
        others.push(with(&[]));
        std::fs::remove_file(&rules).unwrap();
        std::fs::write(&rules, rule).unwrap();
        assert_eq!(plain, with(&[]));
        std::fs::copy(&rules, at("other.toml")).unwrap();
        others.push(key(&[
            "serve",
            "--config",
            &config,
            "--rules",
            &at("other.toml"),
            "--root",
            &root,
        ]));
        // Another directory with the same name.
        std::fs::create_dir(at("new")).unwrap();
        std::fs::rename(at("new"), &root).unwrap();
        others.push(with(&[]));
        others.push(plain);
        let count = others.len();
        others.sort();
        others.dedup();
        assert_eq!(others.len(), count);
    }
}
