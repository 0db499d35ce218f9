//! A machine that is reached over ssh, and a directory on it.

use std::str::FromStr;

/// The maximum length of a host with its directory, in bytes: longer than any path.
const MAX_BYTES: usize = 8_192;

/// The maximum length of a server name: clients put it before the names of tools, and models accept names of 64
/// characters.
const MAX_NAME_CHARS: usize = 40;

/// `[USER@]HOST[:DIR]` or `ssh://[USER@]HOST[:PORT][/DIR]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteHost {
    /// The host as ssh accepts it, with user and port.
    pub(crate) destination: String,
    /// The directory there. A relative one is below the home directory.
    pub(crate) directory: Option<String>,
    /// All of it, as the user named it.
    pub(crate) text: String,
    /// The host without user and port.
    host: String,
}

impl RemoteHost {
    /// The name of its server in the configuration of a client.
    pub(crate) fn server_name(&self) -> Result<String, String> {
        let plain = |letter: char| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => letter,
            _ => '-',
        };
        let name: String = self.host.chars().map(plain).collect();
        let name = format!("toolcrib-{}", name.trim_matches('-'));
        if name.len() > MAX_NAME_CHARS {
            return Err(format!(
                "{} is too long for the name of a server. Give it a short name in ~/.ssh/config: `Host box` and `HostName {}`",
                self.host, self.host
            ));
        }
        Ok(name)
    }
}

impl FromStr for RemoteHost {
    type Err = String;

    fn from_str(text: &str) -> Result<RemoteHost, String> {
        if text.len() > MAX_BYTES {
            return Err("too long".to_owned());
        }
        let (user, host, port, directory) = match text.strip_prefix("ssh://") {
            Some(address) => split_address(address)?,
            None => split_words(text)?,
        };
        check_word("user", user.unwrap_or("user"), "._-+@")?;
        check_word("host", host, "._-:%")?;
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let destination = match port {
            Some(port) if host.contains(':') => format!("ssh://{user}[{host}]:{port}"),
            Some(port) => format!("ssh://{user}{host}:{port}"),
            None => format!("{user}{host}"),
        };
        let directory = directory.map(remote_path).transpose()?;
        Ok(RemoteHost { destination, directory, text: text.to_owned(), host: host.to_owned() })
    }
}

type Parts<'a> = (Option<&'a str>, &'a str, Option<u16>, Option<&'a str>);

/// The parts of `[USER@]HOST[:PORT][/DIR]`.
fn split_address(address: &str) -> Result<Parts<'_>, String> {
    let (place, directory) = match address.find('/') {
        Some(at) => (&address[..at], Some(&address[at..])),
        None => (address, None),
    };
    let (user, place) = split_user(place);
    let (host, port) = split_host(place)?;
    let port = port.map(|port| port.parse().map_err(|_| format!("{port} is not a port")));
    Ok((user, host, port.transpose()?, directory.filter(|directory| *directory != "/")))
}

/// The parts of `[USER@]HOST[:DIR]`. The directory may have any character.
fn split_words(text: &str) -> Result<Parts<'_>, String> {
    let end_of_user = match (text.find('['), text.find(':')) {
        (Some(bracket), Some(colon)) if bracket < colon => bracket,
        (_, Some(colon)) => colon,
        (bracket, None) => bracket.unwrap_or(text.len()),
    };
    let at = text[..end_of_user].rfind('@');
    let (user, place) = match at {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    let (host, directory) = split_host(place)?;
    Ok((user, host, None, directory.filter(|directory| !directory.is_empty())))
}

fn split_user(place: &str) -> (Option<&str>, &str) {
    match place.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, place),
    }
}

/// A host, in brackets if it is an IPv6 address, and what follows the colon after it.
fn split_host(place: &str) -> Result<(&str, Option<&str>), String> {
    let Some(inside) = place.strip_prefix('[') else {
        return Ok(match place.split_once(':') {
            Some((host, rest)) => (host, Some(rest)),
            None => (place, None),
        });
    };
    let (host, rest) = inside.split_once(']').ok_or("`[` without `]`")?;
    match (rest, rest.strip_prefix(':')) {
        ("", _) => Ok((host, None)),
        (_, Some(rest)) => Ok((host, Some(rest))),
        _ => Err(format!("expected `:` after `[{host}]`")),
    }
}

/// Refuses words that ssh, a proxy command of the user or a shell could understand as something else.
fn check_word(what: &str, word: &str, punctuation: &str) -> Result<(), String> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || punctuation.contains(letter);
    if word.is_empty() {
        Err(format!("the {what} is missing; expected [USER@]HOST[:DIR]"))
    } else if word.starts_with('-') {
        Err(format!("the {what} begins with `-`, so that ssh would take it for an option"))
    } else if let Some(letter) = word.chars().find(|&letter| !is_allowed(letter)) {
        Err(format!("the {what} has the character {letter:?}, which is not allowed there"))
    } else {
        Ok(())
    }
}

/// A path on a remote machine. `~/x` is relative to the home directory, where ssh starts commands.
pub(crate) fn remote_path(path: &str) -> Result<String, String> {
    if path.chars().any(char::is_control) {
        return Err("the path has a control character".to_owned());
    }
    match path.strip_prefix('~') {
        None => Ok(path.to_owned()),
        Some("" | "/") => Ok(".".to_owned()),
        Some(rest) => match rest.strip_prefix('/') {
            Some(below) => Ok(below.to_owned()),
            None => Err("only the own home directory can be named with `~`".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, String) {
        let host: RemoteHost = text.parse().unwrap();
        let name = host.server_name().unwrap();
        (host.destination, host.directory, name)
    }

    #[test]
    fn a_host_is_split_from_its_user_and_directory() {
        for (text, destination, directory, name) in [
            ("box", "box", None, "toolcrib-box"),
            ("me@Box.example.com", "me@Box.example.com", None, "toolcrib-box-example-com"),
            ("me@box:src/a b", "me@box", Some("src/a b"), "toolcrib-box"),
            ("box:", "box", None, "toolcrib-box"),
            ("box:~/src", "box", Some("src"), "toolcrib-box"),
            ("box:~", "box", Some("."), "toolcrib-box"),
            ("box:/a:b@c[d]'$(x)", "box", Some("/a:b@c[d]'$(x)"), "toolcrib-box"),
            ("me@corp@box:/x", "me@corp@box", Some("/x"), "toolcrib-box"),
            ("me@[fe80::1%eth0]:/x", "me@fe80::1%eth0", Some("/x"), "toolcrib-fe80--1-eth0"),
            ("ssh://me@box:2222/srv/x", "ssh://me@box:2222", Some("/srv/x"), "toolcrib-box"),
            ("ssh://[::1]:22", "ssh://[::1]:22", None, "toolcrib-1"),
            ("ssh://box/", "box", None, "toolcrib-box"),
        ] {
            let directory = directory.map(str::to_owned);
            assert_eq!(parts(text), (destination.to_owned(), directory, name.to_owned()), "{text}");
        }
    }

    #[test]
    fn words_that_ssh_or_a_shell_would_misunderstand_are_refused() {
        for text in [
            "",
            ":dir",
            "@box",
            "-oProxyCommand=x",
            "-oProxyCommand=x@box",
            "me@-box",
            "me@-box:/x",
            "a b",
            "box;id",
            "box$(id)",
            "$(id)@box",
            "box`id`",
            "box\nid",
            "bøx",
            "box:/a\nb",
            "box:~root/x",
            "[::1",
            "[::1]x",
            "ssh://box:99999/",
            "ssh://box:x",
            "ssh://-oProxyCommand=x/",
            "me/../@box",
        ] {
            assert!(text.parse::<RemoteHost>().is_err(), "{text:?}");
        }
        let long: RemoteHost = format!("{}.example.com", "x".repeat(40)).parse().unwrap();
        assert!(long.server_name().is_err());
        assert!("x".repeat(MAX_BYTES + 1).parse::<RemoteHost>().is_err());
    }
}
