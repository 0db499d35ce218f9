//! Host patterns, and the hosts in the URLs of a text.

use crate::name_pattern::name_matches;

/// `example.com`, or `*.example.com` for all its subdomains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern(String);

impl HostPattern {
    pub(super) fn parse(text: &str) -> Result<HostPattern, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*' | '_');
        if text.is_empty() || !text.chars().all(is_plain) {
            return Err(format!(
                "{text:?} can match nothing: a host is a name such as `example.com` or `*.example.com`, \
                 without scheme, port or path"
            ));
        }
        Ok(HostPattern(text.to_ascii_lowercase()))
    }

    pub(super) fn matches(&self, host: &str) -> bool {
        name_matches(&self.0, host)
    }
}

/// The hosts of the URLs in some words.
pub(crate) fn hosts_in<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let host = |word: &str| {
        let (_, rest) = word.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit('@').next()?.split(':').next()?;
        Some(host.trim_end_matches('.').to_ascii_lowercase()).filter(|host| !host.is_empty())
    };
    words.flat_map(str::split_whitespace).filter_map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hosts_in_urls() {
        let found = hosts_in(["https://Me@Example.com:80/x", "x", "ssh://a.b.", "://"].into_iter());
        assert_eq!(found, ["example.com", "a.b"]);
        assert!(HostPattern::parse("*.b").unwrap().matches("a.b"));
        assert!(HostPattern::parse("https://x").is_err());
    }
}
