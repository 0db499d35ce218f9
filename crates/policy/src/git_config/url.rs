//! Repository URLs that make git use only its built-in transports.

/// Whether a URL uses one of git's built-in transports.
///
/// `ext::command` and `name::address` run `git-remote-name`, and so does an unknown scheme. A local path is
/// harmless: a push to it runs the hooks of that repository, and hooks are protected in every repository.
pub(super) fn uses_builtin_transport(address: &[u8]) -> bool {
    let Ok(address) = std::str::from_utf8(address) else { return false };
    if address.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    match address.split_once("://") {
        // Git compares schemes case-sensitively.
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

/// A local path has no colon before its first slash.
fn is_path(address: &str) -> bool {
    let first = address.split('/').next().unwrap_or_default();
    !address.is_empty() && !first.contains(':') && !address.starts_with('-')
}

/// `user@host:path`.
fn is_scp_like(address: &str) -> bool {
    let Some((authority, path)) = address.split_once(':') else { return false };
    // `host::path` names a transport, and a single letter is a drive on Windows.
    !path.is_empty()
        && !path.starts_with([':', '-'])
        && authority.len() > 1
        && is_authority(Some(authority), false)
}

/// `user@host:port`, without characters that have a meaning for a shell or ssh. For HTTP the part before
/// the `@` may contain a password.
fn is_authority(authority: Option<&str>, has_password: bool) -> bool {
    let authority = authority.unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let is_user = |c: char| is_plain(c) || has_password && "%:+!$*=,".contains(c);
    let (host, port) = match host.strip_prefix('[') {
        Some(address) => {
            let Some((address, port)) = address.split_once(']') else { return false };
            if !address.chars().all(|c| c.is_ascii_hexdigit() || c == ':') {
                return false;
            }
            ("v6", port.strip_prefix(':').unwrap_or(port))
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    !user.starts_with('-')
        && user.chars().all(is_user)
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(is_plain)
        && port.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::uses_builtin_transport;

    #[test]
    fn accepts_only_builtin_transports() {
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
            assert!(uses_builtin_transport(address.as_bytes()), "{address}");
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
            assert!(!uses_builtin_transport(address.as_bytes()), "{address}");
        }
    }
}
