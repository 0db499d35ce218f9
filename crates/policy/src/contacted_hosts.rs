//! Hosts that are named in the words of a command.

use std::net::IpAddr;

use crate::command::{Command, Word};

/// A host in the words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedHost {
    pub(crate) name: String,
    /// `None` if the words do not tell.
    pub(crate) port: Option<u16>,
}

impl NamedHost {
    /// `host:port`, or the host alone.
    pub(crate) fn shown(&self) -> String {
        target(&self.name, self.port)
    }
}

/// Whether a name or an address always means loopback. A command with a network namespace of its own leaves it by none
/// of them.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    match address.unwrap_or(&host).parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// `host:port`, or the host alone.
pub(crate) fn target(host: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Programs that connect to the URLs in their arguments. Other programs often only mention URLs.
const CLIENTS: [&str; 17] = [
    "aria2c", "curl", "git", "http", "https", "lynx", "npm", "npx", "pip", "pip3", "rsync", "scp",
    "sftp", "ssh", "w3m", "wget", "yarn",
];

/// Those that connect to no host but the ones in their arguments.
const ONLY_NAMED_HOSTS: [&str; 7] = ["aria2c", "curl", "http", "https", "lynx", "w3m", "wget"];

/// Subcommands of git that connect.
const GIT_SUBCOMMANDS: [&str; 6] = ["clone", "fetch", "ls-remote", "pull", "push", "submodule"];

/// Programs that take `user@host:path`.
const SSH_CLIENTS: [&str; 4] = ["git", "rsync", "scp", "sftp"];

/// The hosts that a command is going to connect to, as far as its words tell.
pub(crate) fn contacted_hosts(command: &Command) -> Vec<NamedHost> {
    let words: Vec<&str> = command.words.iter().map(Word::shown).collect();
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let program = program.rsplit('/').next().unwrap_or(program);
    let is_git = program == "git";
    if !CLIENTS.contains(&program)
        || is_git && !arguments.iter().any(|word| GIT_SUBCOMMANDS.contains(word))
    {
        return Vec::new();
    }
    let mut hosts = hosts_in(arguments.iter().copied());
    if SSH_CLIENTS.contains(&program) {
        hosts.extend(arguments.iter().filter_map(|word| ssh_host(word)));
    }
    // A part that is known only when the command runs is decided on when it connects.
    let is_known = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    hosts.retain(|host| host.name.chars().all(is_known));
    hosts
}

/// Whether a command connects only to loopback, as far as its words tell.
pub fn contacts_only_loopback(command: &Command) -> bool {
    let program = command.words.first().map(Word::shown).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or(program);
    // Hosts that are known only when the command runs count, too.
    let named = hosts_in(command.words.iter().map(Word::shown));
    ONLY_NAMED_HOSTS.contains(&program)
        && !named.is_empty()
        && named.iter().all(|host| is_loopback(&host.name))
}

/// The hosts of the URLs in some words.
pub(crate) fn hosts_in<'a>(words: impl Iterator<Item = &'a str>) -> Vec<NamedHost> {
    // Few words have a URL, and a colon is found faster than the parts of a word.
    let may_have_url = words.filter(|word| word.contains(':'));
    may_have_url.flat_map(str::split_whitespace).filter_map(url_host).collect()
}

fn url_host(word: &str) -> Option<NamedHost> {
    let (scheme, rest) = word.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let end = if authority.starts_with('[') { authority.find(']')? + 1 } else { 0 };
    let end = authority[end..].find(':').map_or(authority.len(), |colon| end + colon);
    let (host, port) = (&authority[..end], authority[end..].trim_start_matches(':'));
    let scheme = scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    // A port that is not a number, such as `$PORT`, is known only when the command runs.
    let port = if port.is_empty() { default_port(scheme) } else { port.parse().ok() };
    (!name.is_empty()).then_some(NamedHost { name, port })
}

/// The host of `user@host:path`.
fn ssh_host(word: &str) -> Option<NamedHost> {
    let (before, path) = word.split_once(':')?;
    let (_, host) = before.split_once('@')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_host = !host.is_empty() && host.chars().all(is_name) && !path.starts_with("//");
    is_host.then(|| NamedHost { name: host.to_ascii_lowercase(), port: Some(22) })
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ssh" | "sftp" => Some(22),
        "git" => Some(9418),
        "ftp" => Some(21),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{ShellContext, analyze_command};

    #[test]
    fn finds_hosts_in_urls() {
        let words =
            ["https://Me@Example.com:80/x", "x", "ssh://a.b.", "://", "git+https://c.d/x", "x://e"];
        let found = hosts_in(words.into_iter());
        let shown: Vec<String> = found.iter().map(NamedHost::shown).collect();
        assert_eq!(shown, ["example.com:80", "a.b:22", "c.d:443", "e"]);
    }

    #[test]
    fn a_port_that_is_not_a_number_is_not_known() {
        for (word, expected) in [
            ("http://a.example:${PORT}/x", Some(("a.example", None))),
            ("https://a.example:${PORT:-8080}/x", Some(("a.example", None))),
            ("https://a.example:$((1", Some(("a.example", None))),
            ("https://a.example:99999/", Some(("a.example", None))),
            ("https://a.example:/", Some(("a.example", Some(443)))),
            ("http://[::1]:$PORT/", Some(("[::1]", None))),
            ("http://[::1]/", Some(("[::1]", Some(80)))),
            ("http://[::1", None),
        ] {
            let found = hosts_in([word].into_iter());
            let found = found.first().map(|host| (host.name.as_str(), host.port));
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn loopback_has_several_names() {
        for host in [
            "localhost",
            "LocalHost.",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "[::1]",
            "0.0.0.0",
            "[::]",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "localhost.example",
            "mylocalhost",
            "127.0.0.1.example",
            "128.0.0.1",
            "10.0.0.1",
            "[::2]",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn only_clients_connect() {
        let context = ShellContext { directory: "/w".into(), home: None, roots: vec!["/w".into()] };
        let contacted = |script: &str| -> Vec<String> {
            let analysis = analyze_command(script, &context);
            analysis.commands.iter().flat_map(contacted_hosts).map(|host| host.shown()).collect()
        };
        assert_eq!(contacted("curl -s https://a.example/x | jq ."), ["a.example:443"]);
        assert_eq!(contacted("/usr/bin/wget http://[::1]:8080/"), ["[::1]:8080"]);
        assert_eq!(contacted("git clone git@a.example:b/c.git"), ["a.example:22"]);
        assert_eq!(contacted("git fetch https://a.example/x"), ["a.example:443"]);
        for script in [
            "grep -r https://a.example .",
            "git commit -m 'see https://a.example'",
            "git log a@b:c",
            "curl https://$(cat host)/x",
        ] {
            assert!(contacted(script).is_empty(), "{script}");
        }
    }
}
