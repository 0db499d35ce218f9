//! Where each package manager is configured, and which hosts it uses without a configuration.

use super::machine::Machine;
use super::names;

/// The hosts of a package manager.
pub(super) struct Preset {
    pub(super) name: &'static str,
    /// The URLs that it uses without a configuration.
    defaults: &'static [&'static str],
    /// The URLs of its configuration.
    read: fn(&Machine) -> Configured,
}

/// The URLs of a configuration.
#[derive(Default)]
struct Configured {
    /// In place of the defaults.
    instead: Vec<String>,
    /// Besides them.
    besides: Vec<String>,
}

pub(super) const PRESETS: &[Preset] = &[
    Preset { name: "npm", defaults: &["https://registry.npmjs.org"], read: npm },
    Preset { name: "pip", defaults: PYTHON, read: pip },
    Preset { name: "uv", defaults: PYTHON, read: uv },
    Preset {
        name: "cargo",
        defaults: &["https://index.crates.io", "https://static.crates.io", "https://crates.io"],
        read: cargo,
    },
    Preset {
        name: "go",
        defaults: &["https://proxy.golang.org", "https://sum.golang.org"],
        read: go,
    },
    Preset {
        name: "maven",
        defaults: &["https://repo.maven.apache.org", "https://repo1.maven.org"],
        read: maven,
    },
    Preset { name: "apt", defaults: &[], read: apt },
];

const PYTHON: &[&str] = &["https://pypi.org", "https://files.pythonhosted.org"];

/// The preset with a name.
pub(super) fn find(name: &str) -> Result<&'static Preset, String> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.ok_or_else(|| format!("no hosts are known for {name:?}; there are: {}", names()))
}

impl Preset {
    /// Its hosts on a machine, with their ports.
    pub(super) fn hosts(&self, machine: &Machine) -> Vec<String> {
        let Configured { instead, besides } = (self.read)(machine);
        let mut hosts: Vec<String> = instead.iter().filter_map(|url| host(url)).collect();
        if hosts.is_empty() {
            hosts.extend(self.defaults.iter().filter_map(|url| host(url)));
        }
        hosts.extend(besides.iter().filter_map(|url| host(url)));
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
    let is_host = !host.is_empty() && host.chars().all(is_plain);
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

fn npm(machine: &Machine) -> Configured {
    let texts = machine.files(&[".npmrc"], &["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"]);
    let variables = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];
    let mut instead: Vec<String> =
        variables.iter().filter_map(|name| machine.variable(name)).collect();
    instead.extend(values(&texts, |key| key == "registry"));
    Configured { instead, besides: values(&texts, |key| key.ends_with(":registry")) }
}

fn pip(machine: &Machine) -> Configured {
    let texts = machine.files(&[".config/pip/pip.conf", ".pip/pip.conf"], &["etc/pip.conf"]);
    let mut instead: Vec<String> = machine.variable("PIP_INDEX_URL").into_iter().collect();
    instead.extend(values(&texts, |key| key == "index-url"));
    let mut besides: Vec<String> = machine.variable("PIP_EXTRA_INDEX_URL").into_iter().collect();
    // More URLs may follow on lines of their own.
    let lines = texts.iter().flat_map(|text| text.lines());
    let continued = lines.filter(|line| line.starts_with(char::is_whitespace));
    besides.extend(continued.map(str::to_owned));
    besides.extend(values(&texts, |key| matches!(key, "extra-index-url" | "find-links")));
    Configured { instead, besides: words(besides) }
}

fn uv(machine: &Machine) -> Configured {
    let texts = machine.files(&[".config/uv/uv.toml"], &["etc/uv/uv.toml"]);
    let variables = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"];
    let mut instead: Vec<String> =
        variables.iter().filter_map(|name| machine.variable(name)).collect();
    instead.extend(values(&texts, |key| key == "index-url"));
    let mut besides: Vec<String> = ["UV_INDEX", "UV_EXTRA_INDEX_URL"]
        .iter()
        .filter_map(|name| machine.variable(name))
        .collect();
    // `NAME=URL`.
    for index in &mut besides {
        *index = index.replace('=', " ");
    }
    besides.extend(values(&texts, |key| matches!(key, "url" | "extra-index-url")));
    Configured { instead, besides: words(besides) }
}

fn cargo(machine: &Machine) -> Configured {
    let texts = machine.files(&[".cargo/config.toml", ".cargo/config"], &[]);
    let is_replaced = !values(&texts, |key| key == "replace-with").is_empty();
    let sources = values(&texts, |key| key == "registry");
    let indexes = values(&texts, |key| key == "index");
    match is_replaced {
        true => Configured { instead: sources, besides: indexes },
        false => Configured { instead: Vec::new(), besides: [sources, indexes].concat() },
    }
}

fn go(machine: &Machine) -> Configured {
    let texts = machine.files(&[".config/go/env"], &[]);
    let setting = |name: &str| {
        let in_file = || values(&texts, |key| key == name).pop();
        machine.variable(name).or_else(in_file)
    };
    let instead = words(setting("GOPROXY"));
    let mut besides = Vec::new();
    // A proxy mostly serves the checksums, too.
    if let Some(database) = setting("GOSUMDB").filter(|database| database != "off") {
        let name = database.split(['+', ' ']).next().unwrap_or_default();
        besides.push(format!("https://{name}"));
        besides.extend(words([database]));
    }
    Configured { instead, besides }
}

fn maven(machine: &Machine) -> Configured {
    let texts = machine.files(&[".m2/settings.xml"], &["etc/maven/settings.xml"]);
    let texts: Vec<String> = texts.iter().map(|text| without_comments(text)).collect();
    let urls = |text: &String| -> Vec<String> {
        let parts = text.split("<url>").skip(1);
        parts.filter_map(|part| Some(part.split_once("</url>")?.0.to_owned())).collect()
    };
    let urls: Vec<String> = texts.iter().flat_map(urls).collect();
    match texts.iter().any(|text| text.contains("<mirror>")) {
        true => Configured { instead: urls, besides: Vec::new() },
        false => Configured { instead: Vec::new(), besides: urls },
    }
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

fn apt(machine: &Machine) -> Configured {
    let mut texts = machine.files(&[], &["etc/apt/sources.list"]);
    texts.extend(machine.files_in("etc/apt/sources.list.d"));
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.trim_start().starts_with('#')).map(str::to_owned);
    Configured { instead: Vec::new(), besides: words(lines) }
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
        let machine = Machine {
            root: root.path().to_owned(),
            home: Some(root.path().join("home")),
            variable: Box::new(move |name| variables.get(name).cloned()),
            workspace: vec![root.path().canonicalize().unwrap().join("home/ws")],
        };
        find(name).unwrap().hosts(&machine)
    }

    #[test]
    fn mirrors_take_the_place_of_the_defaults() {
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
                    "<!-- <url>https://no.example</url> --><mirrors><mirror><url>https://m.example/m2</url></mirror></mirrors>",
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
            ("apt", vec![], vec![], vec![]),
            // A file in the workspace does not count, also by way of a symlink.
            ("apt", vec![("home/ws/sources.list", "deb http://evil.example x\n")], vec![], vec![]),
        ] {
            assert_eq!(hosts(name, &files, &variables), expected, "{name}");
        }
    }

    #[test]
    fn without_a_configuration_the_defaults_are_used() {
        for preset in PRESETS.iter().filter(|preset| preset.name != "apt") {
            let found = hosts(preset.name, &[], &[]);
            assert_eq!(found.len(), preset.defaults.len(), "{}", preset.name);
        }
        let scoped = hosts("npm", &[("home/.npmrc", "@a:registry=https://a.example")], &[]);
        assert_eq!(scoped.len(), 2, "{scoped:?}");
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
