//! `[[inject]]` in the configuration: credentials that requests to some hosts get. The values are read at startup.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib::{Injection, user_machine};

/// The longest secret with the line end.
const MAX_BYTES: u64 = 16 << 10;

/// The port of a host without one.
const HTTPS: u16 = 443;

/// A credential for the requests to one host.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InjectEntry {
    /// The host, with a port or without.
    host: String,
    /// The header, such as `Authorization`.
    header: String,
    /// Where the secret comes from.
    value: SecretSource,
    /// The value of the header, with `{}` in place of the secret.
    format: Option<String>,
    /// A variable in which commands get a placeholder.
    placeholder: Option<String>,
}

/// The source of a secret.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SecretSource {
    /// A variable of this program.
    Env(String),
    /// A file.
    File(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl InjectEntry {
    /// The file with the secret, which no command may see.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.value {
            SecretSource::File(path) => Some(expanded(path)),
            SecretSource::Env(_) | SecretSource::Command(_) => None,
        }
    }

    /// Fails if a key has an invalid value. Reads no secret.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.host_and_port().map(drop)?;
        let about = |problem: &str| Err(format!("inject for {}: {problem}", self.host));
        match &self.value {
            SecretSource::Env(name) if name.is_empty() => about("env names no variable"),
            SecretSource::File(path) if !expanded(path).is_absolute() => {
                about("file is a relative path; write an absolute path")
            }
            SecretSource::Command(words) if words.is_empty() => about("command is empty"),
            _ => Ok(()),
        }
    }

    /// Reads the secret.
    pub(crate) fn injection(&self) -> Result<Injection, String> {
        let (host, port) = self.host_and_port()?;
        let secret = self.value.read().map_err(|error| format!("inject for {host}: {error}"))?;
        Ok(Injection {
            host,
            port,
            header: self.header.clone(),
            format: self.format.clone().unwrap_or_else(|| "{}".to_owned()),
            secret,
            placeholder: self.placeholder.clone(),
        })
    }

    fn host_and_port(&self) -> Result<(String, u16), String> {
        let split = self
            .host
            .rsplit_once(':')
            .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) = match split {
            Some((host, port)) => (host, port.parse().ok()),
            None => (self.host.as_str(), Some(HTTPS)),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        port.filter(|port| *port > 0 && !host.is_empty() && host.chars().all(is_plain))
            .map(|port| (host.to_ascii_lowercase(), port))
            .ok_or_else(|| {
                format!(
                    "inject: {:?} is not a host such as api.example.com or api.example.com:8443",
                    self.host
                )
            })
    }
}

impl SecretSource {
    fn read(&self) -> Result<String, String> {
        let text = match self {
            SecretSource::Env(name) => {
                std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
            }
            SecretSource::File(path) => {
                let failed = |error: io::Error| format!("{path}: {error}");
                bounded(File::open(expanded(path)).map_err(failed)?).map_err(failed)?
            }
            SecretSource::Command(words) => run(words)?,
        };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() { Err("the value is empty".to_owned()) } else { Ok(text.to_owned()) }
    }
}

/// The output of a program. Its errors are shown to the operator.
fn run(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("command is empty")?;
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = child.stdout.take().map(bounded).transpose();
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    Ok(output.map_err(failed)?.unwrap_or_default())
}

fn bounded(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("a secret has at most {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// The path with the home directory in place of `~`.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), user_machine::home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> InjectEntry {
        toml::from_str(&format!("header = \"Authorization\"\n{text}")).unwrap()
    }

    #[test]
    fn secrets_are_read_from_their_source() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "from a file\n").unwrap();
        for (value, expected) in [
            ("{ env = \"CARGO_PKG_NAME\" }".to_owned(), "toolcrib-cli"),
            (format!("{{ file = {file:?} }}"), "from a file"),
            (
                "{ command = [\"printf\", \"%s\\n\", \"from a program\"] }".to_owned(),
                "from a program",
            ),
        ] {
            let entry = entry(&format!("host = \"API.example.com:8443\"\nvalue = {value}"));
            let injection = entry.injection().unwrap();
            assert_eq!((injection.host.as_str(), injection.port), ("api.example.com", 8443));
            assert_eq!((injection.secret.as_str(), injection.format.as_str()), (expected, "{}"));
        }
        for value in [
            "{ env = \"TOOLCRIB_NO_SUCH_VARIABLE\" }",
            "{ file = \"/nonexistent\" }",
            "{ command = [\"false\"] }",
            "{ command = [\"true\"] }",
        ] {
            let entry = entry(&format!("host = \"a.b\"\nvalue = {value}"));
            assert!(entry.check().is_ok());
            let error = entry.injection().unwrap_err();
            assert!(error.starts_with("inject for a.b: "), "{error}");
        }
    }

    #[test]
    fn invalid_entries_are_errors() {
        for text in [
            "host = \"https://a.b\"\nvalue = { env = \"X\" }",
            "host = \"a.b:x\"\nvalue = { env = \"X\" }",
            "host = \"\"\nvalue = { env = \"X\" }",
            "host = \"a.b\"\nvalue = { env = \"\" }",
            "host = \"a.b\"\nvalue = { file = \"x\" }",
            "host = \"a.b\"\nvalue = { command = [] }",
        ] {
            assert!(entry(text).check().is_err(), "{text}");
        }
        assert_eq!(entry("host = \"a.b\"\nvalue = { file = \"/x\" }").file(), Some("/x".into()));
    }
}
