//! Addresses of repositories with which git starts nothing but its own transports.

/// Whether an address names a repository by a transport of git itself.
///
/// `ext::command` and `name_pattern::address` run `git-remote-name`, as does a scheme that git does not know.
/// A path on this machine is harmless: a push to it runs the hooks of the repository there, and hooks
/// are protected wherever a repository lies.
pub(super) fn has_own_transport(address: &[u8]) -> bool {
    let Ok(address) = std::str::from_utf8(address) else { return false };
    if address.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    match address.split_once("://") {
        // Git compares schemes with their case.
        Some(("http" | "https", rest)) => is_authority(rest.split('/').next(), true),
        Some(("ssh" | "git" | "git+ssh" | "ssh+git", rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            is_authority(Some(authority), false) && !path.starts_with('-')
        }
        Some(("file", path)) => path.starts_with('/'),
        Some(_) => false,
        None => is_path(address) || is_scp_like(address),
    }
}

/// A path on this machine has no colon before its first slash.
fn is_path(address: &str) -> bool {
    let first = address.split('/').next().unwrap_or_default();
    !address.is_empty() && !first.contains(':') && !address.starts_with('-')
}

/// `user@host:path`.
fn is_scp_like(address: &str) -> bool {
    let Some((authority, path)) = address.split_once(':') else { return false };
    // `host::path` names a transport, and one letter is a drive on Windows.
    !path.is_empty()
        && !path.starts_with([':', '-'])
        && authority.len() > 1
        && is_authority(Some(authority), false)
}

/// `user@host:port`, of letters that neither a shell nor ssh takes for anything else. The part before
/// the `@` may be a password for HTTP.
fn is_authority(authority: Option<&str>, has_password: bool) -> bool {
    let authority = authority.unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    let is_user = |letter: char| is_plain(letter) || has_password && "%:+!$*=,".contains(letter);
    let (host, port) = match host.strip_prefix('[') {
        Some(address) => {
            let Some((address, port)) = address.split_once(']') else { return false };
            if !address.chars().all(|letter| letter.is_ascii_hexdigit() || letter == ':') {
                return false;
            }
            ("v6", port.strip_prefix(':').unwrap_or(port))
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    !user.starts_with('-')
        && user.chars().all(is_user)
        && host.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && host.chars().all(is_plain)
        && port.chars().all(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::has_own_transport;

    #[test]
    fn only_known_transports() {
        for address in [
            "https://github.com/a/b.git",
            "https://user:p%40ss@example.org:8443/a",
            "http://[::1]:80/a",
            "ssh://git@example.org:22/a/b",
            "ssh://example.org/~me/a",
            "git://example.org/a",
            "git@github.com:a/b.git",
            "host.example:a",
            "../a.git",
            "/srv/a:b.git",
            "file:///srv/a.git",
        ] {
            assert!(has_own_transport(address.as_bytes()), "{address}");
        }
        for address in [
            "",
            "ext::sh -c id",
            "ext::sh -c id://x/",
            "fd::3",
            "foo://example.org/a",
            "HTTPS://example.org/a",
            "https::file://x",
            "ssh://-oProxyCommand=x/a",
            "ssh://%2DoProxyCommand=x/a",
            "ssh://user@-host/a",
            "ssh://-user@host/a",
            "ssh:///a",
            "-oProxyCommand=x:a",
            "user@-host:a",
            "host:-a",
            "ssh://host/-a",
            "c:evil",
            "-path",
            "file://host/a",
            "https:///a",
            "https://host\n/a",
            "host;id:a",
            "$(id):a",
        ] {
            assert!(!has_own_transport(address.as_bytes()), "{address}");
        }
    }
}
