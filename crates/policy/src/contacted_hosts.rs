//! Hosts that are named in the words of a command.

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

/// The hosts of the URLs in some words.
pub(crate) fn hosts_in<'a>(words: impl Iterator<Item = &'a str>) -> Vec<NamedHost> {
    words.flat_map(str::split_whitespace).filter_map(url_host).collect()
}

fn url_host(word: &str) -> Option<NamedHost> {
    let (scheme, rest) = word.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (authority, None),
    };
    let scheme = scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let port = port.or_else(|| default_port(scheme));
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
