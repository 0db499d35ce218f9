//! Reads the hosts of each package manager, and of git, from its configuration. A tool without configuration has no
//! known hosts.

use super::git_hosts::git;
use super::machine_config::MachineConfig;
use super::names;

/// The hosts of a tool.
pub(super) struct Preset {
    pub(super) name: &'static str,
    /// The URLs of its configuration.
    read: fn(&MachineConfig) -> Vec<String>,
    /// The methods and paths that are allowed. If there are none, all.
    pub(super) requests: &'static [(&'static str, &'static str)],
}

/// What git sends to fetch.
const GIT_FETCH: &[(&str, &str)] =
    &[("GET", "/**/info/refs?service=git-upload-pack"), ("POST", "/**/git-upload-pack")];

pub(super) const PRESETS: &[Preset] = &[
    Preset { name: "npm", read: npm, requests: &[] },
    Preset { name: "pip", read: pip, requests: &[] },
    Preset { name: "uv", read: uv, requests: &[] },
    Preset { name: "cargo", read: cargo, requests: &[] },
    Preset { name: "go", read: go, requests: &[] },
    Preset { name: "maven", read: maven, requests: &[] },
    Preset { name: "apt", read: apt, requests: &[] },
    Preset { name: "git-read", read: git, requests: GIT_FETCH },
];

/// A preset, and the host that is named instead of those of the configuration.
pub(super) struct Selected<'a> {
    pub(super) preset: &'static Preset,
    host: Option<&'a str>,
}

/// The preset with a name. `git-read:HOST` names a host.
pub(super) fn find(text: &str) -> Result<Selected<'_>, String> {
    let (name, named) = match text.split_once(':') {
        Some((name, host)) => (name, Some(host)),
        None => (text, None),
    };
    let found = PRESETS.iter().find(|preset| preset.name == name);
    let preset = found.ok_or_else(|| format!("unknown preset {text:?}; available: {}", names()))?;
    let is_host = |named: &str| host(&format!("https://{named}")).is_some() && !named.contains('/');
    match named {
        Some(_) if preset.requests.is_empty() => Err(format!(
            "{text:?}: hosts of {name} come from its configuration; add a rule for others"
        )),
        Some(named) if !is_host(named) => Err(format!("{text:?}: {named:?} is not a host")),
        _ => Ok(Selected { preset, host: named }),
    }
}

impl Selected<'_> {
    /// Its hosts on a machine, with their ports.
    pub(super) fn hosts(&self, machine: &MachineConfig) -> Vec<String> {
        let urls = match self.host {
            Some(named) => vec![format!("https://{named}")],
            None => (self.preset.read)(machine),
        };
        let mut hosts: Vec<String> = urls.iter().filter_map(|url| host(url)).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// `host:port` of a URL. `None` if it is none of HTTP.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().trim_matches(['"', '\'']).split_once("://")?;
    let default = match scheme.rsplit('+').next()? {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, default),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    // Maven blocks plain HTTP by a mirror at this address, which is this machine.
    let is_host = !host.is_empty() && host != "0.0.0.0" && host.chars().all(is_plain);
    is_host.then(|| format!("{}:{port}", host.to_ascii_lowercase()))
}

/// The values of `key = value` lines for which the key is wanted.
fn values(texts: &[String], is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines());
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        is_wanted(key.trim()).then(|| value.trim().to_owned())
    };
    lines.filter_map(value).collect()
}

/// Words that a value separates by blanks or commas.
fn words(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let split = |value: String| -> Vec<String> {
        let words = value.split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | '[' | ']'));
        words.map(str::to_owned).collect()
    };
    values.into_iter().flat_map(split).collect()
}

/// Variables that npm, and tools that replace it, set for the programs that they start.
const SET_BY_NPM: [&str; 5] = [
    "npm_lifecycle_event",
    "npm_execpath",
    "npm_command",
    "npm_config_user_agent",
    "npm_package_json",
];

/// The variable that pipenv sets for the programs that it starts.
const SET_BY_PIPENV: [&str; 1] = ["PIPENV_ACTIVE"];

fn npm(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".npmrc"], &["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"]);
    // npm exports its configuration, including that of the workspace, to the programs that it starts.
    let variables = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];
    let mut urls: Vec<String> =
        variables.iter().filter_map(|name| machine.variable_unless(&SET_BY_NPM, name)).collect();
    urls.extend(values(&texts, |key| key == "registry" || key.ends_with(":registry")));
    // The files of packages may be on another host of the registry, which has a token of its own.
    let lines = texts.iter().flat_map(|text| text.lines());
    let keys = lines.filter_map(|line| Some(line.split_once('=')?.0.trim()));
    let places = keys.filter_map(|key| key.strip_prefix("//"));
    // The key is `//HOST/PATH/:SETTING`.
    let places = places.filter_map(|place| Some(place.split_once('/')?.0));
    urls.extend(places.map(|host| format!("https://{host}")));
    urls
}

fn pip(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".config/pip/pip.conf", ".pip/pip.conf"], &["etc/pip.conf"]);
    // pipenv reads variables from `.env` in the workspace.
    let variable = |name: &&str| machine.variable_unless(&SET_BY_PIPENV, name);
    let variables = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"];
    let mut urls: Vec<String> = variables.iter().filter_map(variable).collect();
    // More URLs may follow on lines of their own.
    let lines = texts.iter().flat_map(|text| text.lines());
    let continued = lines.filter(|line| line.starts_with(char::is_whitespace));
    urls.extend(continued.map(str::to_owned));
    let keys = ["index-url", "extra-index-url", "find-links"];
    urls.extend(values(&texts, |key| keys.contains(&key)));
    // Hosts without a scheme, from which pip also downloads files.
    let mut trusted = values(&texts, |key| key == "trusted-host");
    trusted.extend(variable(&"PIP_TRUSTED_HOST"));
    urls.extend(words(trusted).iter().map(|host| format!("https://{host}")));
    words(urls)
}

fn uv(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".config/uv/uv.toml"], &["etc/uv/uv.toml"]);
    let variables =
        ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"];
    // An index may be `NAME=URL`.
    let mut urls: Vec<String> = variables
        .iter()
        .filter_map(|name| machine.variable(name))
        .map(|index| index.replace('=', " "))
        .collect();
    let keys = ["index-url", "url", "extra-index-url", "find-links"];
    urls.extend(values(&texts, |key| keys.contains(&key)));
    words(urls)
}

fn cargo(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".cargo/config.toml", ".cargo/config"], &[]);
    values(&texts, |key| matches!(key, "registry" | "index"))
}

fn go(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".config/go/env"], &[]);
    let setting = |name: &str| {
        let in_file = || values(&texts, |key| key == name).pop();
        machine.variable(name).or_else(in_file)
    };
    let mut urls = words(setting("GOPROXY"));
    // A proxy mostly serves the checksums, too.
    if let Some(database) = setting("GOSUMDB").filter(|database| database != "off") {
        let name = database.split(['+', ' ']).next().unwrap_or_default();
        urls.push(format!("https://{name}"));
        urls.extend(words([database]));
    }
    urls
}

fn maven(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".m2/settings.xml"], &["etc/maven/settings.xml"]);
    let texts: Vec<String> = texts.iter().map(|text| without_comments(text)).collect();
    let urls = |text: &String| -> Vec<String> {
        let parts = text.split("<url>").skip(1);
        parts.filter_map(|part| Some(part.split_once("</url>")?.0.to_owned())).collect()
    };
    texts.iter().flat_map(urls).collect()
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept += before;
        rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
    }
    kept + rest
}

fn apt(machine: &MachineConfig) -> Vec<String> {
    let mut texts = machine.files(&[], &["etc/apt/sources.list"]);
    texts.extend(machine.files_in("etc/apt/sources.list.d"));
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.trim_start().starts_with('#')).map(str::to_owned);
    words(lines)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use super::*;

    /// The hosts of a preset on a machine with these files, of which the home is `home`, and these variables.
    fn hosts(name: &str, files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let known = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables: HashMap<String, String> = variables.iter().map(known).collect();
        let machine = MachineConfig {
            root: root.path().to_owned(),
            home: Some(root.path().join("home")),
            variable: Box::new(move |name| variables.get(name).cloned()),
            workspace: vec![root.path().canonicalize().unwrap().join("home/ws")],
        };
        find(name).unwrap().hosts(&machine)
    }

    #[test]
    fn hosts_are_those_of_the_configuration() {
        let npmrc = "registry=https://mirror.example/npm/\n@a:registry = http://a.example:4873/\n";
        for (name, files, variables, expected) in [
            (
                "npm",
                vec![("home/.npmrc", npmrc)],
                vec![],
                vec!["a.example:4873", "mirror.example:443"],
            ),
            (
                "npm",
                vec![],
                vec![("npm_config_registry", "http://m.example")],
                vec!["m.example:80"],
            ),
            (
                "pip",
                vec![("etc/pip.conf", "[global]\nindex-url = https://u:p@m.example/simple\n")],
                vec![("PIP_EXTRA_INDEX_URL", "https://x.example https://y.example:8443")],
                vec!["m.example:443", "x.example:443", "y.example:8443"],
            ),
            // Hosts of files, which are not those of the index.
            (
                "pip",
                vec![(
                    "etc/pip.conf",
                    "[global]\nindex-url = https://m.example/simple\ntrusted-host = files.example more.example:8443\n",
                )],
                vec![("PIP_FIND_LINKS", "https://links.example/x /local")],
                vec![
                    "files.example:443",
                    "links.example:443",
                    "m.example:443",
                    "more.example:8443",
                ],
            ),
            (
                "npm",
                vec![(
                    "home/.npmrc",
                    "registry=https://m.example/\n//files.example/npm/:_authToken=x\n// a comment\n",
                )],
                vec![],
                vec!["files.example:443", "m.example:443"],
            ),
            (
                "uv",
                vec![(
                    "home/.config/uv/uv.toml",
                    "[[index]]\nurl = \"https://x.example/simple\"\n",
                )],
                vec![("UV_DEFAULT_INDEX", "https://m.example/simple")],
                vec!["m.example:443", "x.example:443"],
            ),
            (
                "cargo",
                vec![(
                    "home/.cargo/config.toml",
                    "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = \"sparse+https://m.example/\"\n",
                )],
                vec![],
                vec!["m.example:443"],
            ),
            ("go", vec![], vec![("GOPROXY", "https://m.example,direct")], vec!["m.example:443"]),
            (
                "maven",
                vec![(
                    "home/.m2/settings.xml",
                    "<!-- <url>https://no.example</url> --><mirrors><mirror><url>https://m.example/m2</url></mirror><mirror><url>http://0.0.0.0/</url></mirror></mirrors>",
                )],
                vec![],
                vec!["m.example:443"],
            ),
            (
                "apt",
                vec![
                    (
                        "etc/apt/sources.list",
                        "# deb http://no.example x\ndeb [a=b] http://m.example/debian x main\n",
                    ),
                    ("etc/apt/sources.list.d/x.sources", "Types: deb\nURIs: https://x.example/\n"),
                ],
                vec![],
                vec!["m.example:80", "x.example:443"],
            ),
            (
                "git-read",
                vec![
                    (
                        "home/.gitconfig",
                        "[url \"https://m.example/\"]\n\tinsteadOf = https://o.example/\n[user]\n\tname = \"x\"\n",
                    ),
                    ("etc/gitconfig", "[credential \"https://c.example:8443\"]\n\thelper = x\n"),
                ],
                vec![],
                vec!["c.example:8443", "m.example:443", "o.example:443"],
            ),
            ("git-read:Forge.example", vec![], vec![], vec!["forge.example:443"]),
            ("apt", vec![], vec![], vec![]),
            // Started by a tool that exports the configuration of the workspace.
            (
                "npm",
                vec![("home/.npmrc", npmrc)],
                vec![
                    ("npm_config_registry", "https://evil.example"),
                    ("npm_lifecycle_event", "npx"),
                ],
                vec!["a.example:4873", "mirror.example:443"],
            ),
            (
                "pip",
                vec![],
                vec![("PIP_INDEX_URL", "https://evil.example"), ("PIPENV_ACTIVE", "1")],
                vec![],
            ),
            // A file in the workspace does not count, also by way of a symlink.
            ("apt", vec![("home/ws/sources.list", "deb http://evil.example x\n")], vec![], vec![]),
        ] {
            assert_eq!(hosts(name, &files, &variables), expected, "{name}");
        }
    }

    #[test]
    fn without_a_configuration_no_host_is_known() {
        for preset in PRESETS {
            assert_eq!(hosts(preset.name, &[], &[]), [] as [&str; 0], "{}", preset.name);
        }
    }

    #[test]
    fn only_urls_of_http_have_hosts() {
        for odd in [
            "direct",
            "off",
            "file:///x",
            "https://",
            "https://a b",
            "https://*/",
            "git://a.example",
        ] {
            assert_eq!(host(odd), None, "{odd}");
        }
        assert_eq!(host("\"HTTPS://A.example/\"").as_deref(), None, "schemes are in lower case");
    }
}
