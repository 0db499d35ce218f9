//! Patterns for the path and the query of a URL.

use super::argv::words_match;

/// A pattern such as `/v1/items/*`, `/docs/**` or `/**/info/refs?service=git-upload-pack`. In a segment, `*` matches
/// any characters; the segment `**` matches any number of segments. `?` begins the query, which must be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UrlPathPattern {
    segments: Vec<String>,
    /// In lower case, for restrictions.
    lower: Vec<String>,
    /// `None` for every query.
    query: Option<String>,
}

/// An encoded slash. Servers disagree on whether it separates segments.
const SLASH: &str = "%2F";

impl UrlPathPattern {
    pub(super) fn parse(text: &str) -> Result<UrlPathPattern, String> {
        let invalid = |problem: &str| Err(format!("{text:?} can match nothing: {problem}"));
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (text, None),
        };
        let Some(rest) = path.strip_prefix('/') else {
            return invalid("the path of a URL begins with `/`");
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains(['\\', '#']) {
            return invalid(
                "the path of a URL has printable ASCII characters; encode others as %XX",
            );
        }
        if path.contains("//") {
            return invalid("it has an empty segment, and such requests are refused");
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|_| !rest.is_empty()) {
            match segment {
                "." | ".." => return invalid("requests with `.` or `..` are refused"),
                _ if segment.contains("**") && segment != "**" => {
                    return invalid("`**` matches whole segments and must stand alone between two `/`");
                }
                _ => segments.push(with_upper_case_escapes(segment).ok_or_else(|| {
                    format!(
                        "{text:?} can match nothing: encode as %XX only what needs it; letters, digits and `-._~` do not"
                    )
                })?),
            }
        }
        let lower = segments.iter().map(|segment| segment.to_ascii_lowercase()).collect();
        Ok(UrlPathPattern { segments, lower, query })
    }

    /// Whether it has a query.
    pub(super) fn has_query(&self) -> bool {
        self.query.is_some()
    }

    /// Whether it matches a request that is to be allowed: the whole path, however a server reads an encoded slash.
    pub(super) fn allows(&self, path: &str, query: Option<&str>) -> bool {
        let names_slash = self.segments.iter().any(|segment| segment.contains(SLASH));
        let matches = |path: &str| words_match(&self.segments, &segments(path), false);
        self.query.as_deref().is_none_or(|wanted| query == Some(wanted))
            && matches(path)
            && (names_slash || !path.contains(SLASH) || matches(&path.replace(SLASH, "/")))
    }

    /// Whether it matches a request that is to be refused: the path or something beneath it, in any spelling that a
    /// server may read as the same.
    pub(super) fn restricts(&self, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let split = path.replace(&SLASH.to_ascii_lowercase(), "/");
        [path, split].iter().any(|path| {
            // Some servers ignore parameters of segments: `/admin;x` is `/admin`.
            let plain = |segment| str::split(segment, ';').next().unwrap_or_default();
            let segments = segments(path);
            let bare: Vec<&str> = segments.iter().copied().map(plain).collect();
            words_match(&self.lower, &segments, true) || words_match(&self.lower, &bare, true)
        })
    }
}

impl std::fmt::Display for UrlPathPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}", self.segments.join("/"))?;
        self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// The segments of a normalized path. A final slash makes no difference.
fn segments(path: &str) -> Vec<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').filter(|_| !path.is_empty()).collect()
}

/// The segment as requests have it. `None` if it has an invalid or needless escape.
fn with_upper_case_escapes(segment: &str) -> Option<String> {
    let mut parts = segment.split('%');
    let mut made = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(code, 16).ok().filter(|_| !code.starts_with('+'))?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            return None;
        }
        made += &format!("%{byte:02X}{rest}");
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> UrlPathPattern {
        UrlPathPattern::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn allowed_paths_match_as_a_whole() {
        for (text, path, expected) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/v1/items", "/v1/items", true),
            ("/v1/items", "/v1/items/", true),
            ("/v1/items", "/v1/items/5", false),
            ("/v1/items", "/V1/items", false),
            ("/v1/items/*", "/v1/items/5", true),
            ("/v1/items/*", "/v1/items", false),
            ("/v1/items/*", "/v1/items/5/x", false),
            ("/v1/**", "/v1", true),
            ("/v1/**", "/v1/a/b", true),
            ("/**", "/", true),
            ("/**/git-upload-pack", "/a/b.git/git-upload-pack", true),
            ("/**/git-upload-pack", "/git-upload-pack/b/git-receive-pack", false),
            // One segment for some servers, two for others.
            ("/*", "/@a%2Fb", false),
            ("/**", "/@a%2Fb", true),
            ("/x/a%2fb/*", "/x/a%2Fb/c", true),
            ("/x/a%2fb/*", "/x/a/b/c", false),
        ] {
            assert_eq!(pattern(text).allows(path, None), expected, "{text} {path}");
        }
        let query = pattern("/info/refs?service=git-upload-pack");
        assert!(query.allows("/info/refs", Some("service=git-upload-pack")));
        for other in
            [None, Some(""), Some("service=git-receive-pack"), Some("service=git-upload-pack&x")]
        {
            assert!(!query.allows("/info/refs", other), "{other:?}");
        }
        assert!(pattern("/info/refs").allows("/info/refs", Some("x=y")));
    }

    #[test]
    fn restrictions_match_widely() {
        for (text, path, expected) in [
            ("/admin", "/admin", true),
            ("/admin", "/admin/users", true),
            ("/admin", "/ADMIN/", true),
            ("/admin", "/admin;x=1/users", true),
            ("/admin", "/admin%2Fusers", true),
            ("/a/b", "/a%2Fb", true),
            ("/admin", "/administrator", false),
            ("/**/admin", "/x/y/admin/z", true),
            ("/", "/anything", true),
        ] {
            assert_eq!(pattern(text).restricts(path), expected, "{text} {path}");
        }
    }

    #[test]
    fn impossible_patterns_are_errors() {
        for text in [
            "", "a", "*", "//", "/a//b", "/./a", "/a/..", "/a**", "/a b", "/ä", "/a\\b", "/%41",
            "/%2", "/%zz", "/%+1", "/a#b",
        ] {
            assert!(UrlPathPattern::parse(text).is_err(), "{text}");
        }
        assert_eq!(pattern("/a/%2f?b=c").to_string(), "/a/%2F?b=c");
    }
}
