//! The URL by which clients reach the server.

use std::fmt;

use super::server_names::is_host_and_port;

/// The URL of a server as its clients know it, without a path: `https://HOST[:PORT]`, or `http://` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    is_https: bool,
    /// The host, and the port if it is not the usual one.
    authority: String,
}

impl PublicUrl {
    /// Checks a URL. Fails with the reason.
    pub fn parse(text: &str) -> Result<PublicUrl, String> {
        let wrong = |why: &str| format!("`{text}`: {why}");
        let whole = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
        let (is_https, authority) =
            match (whole.strip_prefix("https://"), whole.strip_prefix("http://")) {
                (Some(rest), _) => (true, rest),
                (_, Some(rest)) => (false, rest),
                _ => return Err(wrong("the URL begins with https://")),
            };
        if !is_host_and_port(authority) {
            return Err(wrong("the URL is https://HOST or https://HOST:PORT, without a path"));
        }
        let usual = if is_https { ":443" } else { ":80" };
        let authority = authority.strip_suffix(usual).unwrap_or(authority).to_owned();
        let url = PublicUrl { is_https, authority };
        if !is_https && !url.is_own() {
            return Err(wrong("other machines would send tokens without encryption; use https://"));
        }
        Ok(url)
    }

    /// Whether clients use encryption.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host, with the port unless it is the usual one.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    fn is_own(&self) -> bool {
        let host = self.authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let host = host.map_or(self.authority.as_str(), |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_has_one_spelling_and_encryption() {
        for (text, expected) in [
            ("https://tools.example", "https://tools.example"),
            ("HTTPS://Tools.Example/", "https://tools.example"),
            ("https://tools.example:443", "https://tools.example"),
            ("https://tools.example:8443", "https://tools.example:8443"),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
            ("http://localhost:8765", "http://localhost:8765"),
            ("http://127.0.0.1:80", "http://127.0.0.1"),
            ("http://[::1]:8765", "http://[::1]:8765"),
        ] {
            assert_eq!(PublicUrl::parse(text).unwrap().to_string(), expected);
        }
        for (text, problem) in [
            ("tools.example", "begins with https"),
            ("https://", "begins with https"),
            ("https://tools.example/mcp", "without a path"),
            ("https://user@tools.example", "without a path"),
            ("https://tools.example?x", "without a path"),
            ("https://tools.example\"", "without a path"),
            ("https://tools.example:x", "without a path"),
            ("http://tools.example", "without encryption"),
            ("http://10.0.0.1:8765", "without encryption"),
            ("http://localhost.tools.example", "without encryption"),
        ] {
            let refusal = PublicUrl::parse(text).unwrap_err();
            assert!(refusal.contains(problem), "{text}: {refusal}");
        }
    }
}
