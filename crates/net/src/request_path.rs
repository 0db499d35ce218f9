//! The path of an HTTP request, in the one spelling in which it is checked and forwarded.
//!
//! Servers read some paths differently: they resolve `..`, decode twice, merge slashes. A path that could mean another
//! one is refused, so that a rule sees what the server sees.

/// The longest path with its query.
const MAX_BYTES: usize = 16 << 10;

/// The path and the query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    path: String,
    query: Option<String>,
}

impl RequestPath {
    /// Parses the target of a request, without scheme and host.
    ///
    /// # Errors
    ///
    /// Fails with a description of a path that servers could read differently.
    pub fn parse(target: &str) -> Result<RequestPath, &'static str> {
        if target.len() > MAX_BYTES {
            return Err("is too long");
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err("has characters that a URL cannot have");
        }
        if !path.starts_with('/') {
            return Err("does not begin with a slash");
        }
        let path = normalized(path)?;
        // Servers disagree on whether an encoded slash separates segments, and on parameters of segments.
        let split = path.replace("%2F", "/").replace("%3B", ";");
        if split.contains("//") {
            return Err("has an empty segment");
        }
        let plain = |segment| str::split(segment, ';').next().unwrap_or_default();
        if split.split('/').any(|segment| segment.starts_with(';')) {
            return Err("has an empty segment");
        }
        if split.split('/').map(plain).any(|segment| matches!(segment, "." | "..")) {
            return Err("has a dot segment");
        }
        Ok(RequestPath { path, query: query.map(str::to_owned) })
    }

    /// The path: it begins with a slash, and encodes only what needs it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query as it was sent, without `?`.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The target to forward.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The path with upper-case escapes, and none for characters that need none.
fn normalized(path: &str) -> Result<String, &'static str> {
    let mut made = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => return Err("has a backslash"),
            '%' => {
                let byte = escaped_byte(rest).ok_or("has an invalid escape")?;
                rest = rest.get(2..).unwrap_or_default();
                match byte {
                    0..0x20 | 0x7f => return Err("has an encoded control character"),
                    b'\\' => return Err("has an encoded backslash"),
                    _ if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                        made.push(char::from(byte));
                    }
                    _ => made += &format!("%{byte:02X}"),
                }
            }
            c => made.push(c),
        }
    }
    let is_encoded_twice = made
        .match_indices("%25")
        .any(|(at, escape)| made.get(at + escape.len()..).and_then(escaped_byte).is_some());
    if is_encoded_twice { Err("is encoded twice") } else { Ok(made) }
}

/// The byte of two hexadecimal digits.
fn escaped_byte(text: &str) -> Option<u8> {
    let digits =
        text.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_have_one_spelling() {
        for (target, path, query) in [
            ("/", "/", None),
            ("/a/b?c=%41&d", "/a/b", Some("c=%41&d")),
            ("/%61%2db/", "/a-b/", None),
            ("/@types%2fnode", "/@types%2Fnode", None),
            ("/a%20b%c3%a4", "/a%20b%C3%A4", None),
            ("/100%25", "/100%25", None),
            ("/a...b/.hidden", "/a...b/.hidden", None),
            ("/x?y=../..//%00", "/x", Some("y=../..//%00")),
        ] {
            let parsed = RequestPath::parse(target).unwrap();
            assert_eq!((parsed.path(), parsed.query()), (path, query), "{target}");
            assert_eq!(RequestPath::parse(&parsed.target()).as_ref(), Ok(&parsed));
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for target in [
            "",
            "*",
            "a",
            "http://b/",
            "//",
            "//b/x",
            "/a//b",
            "/a/../b",
            "/a/..",
            "/./a",
            "/%2e%2e/b",
            "/.%2E/b",
            "/a/%2e",
            "/a%2f..%2fb",
            "/a%2F%2e%2e",
            "/%2fb",
            "/a%2f/b",
            "/a/..;x/b",
            "/;x/admin",
            "/a/;/b",
            "/%3bx/admin",
            "/a\\b",
            "/a%5cb",
            "/a%00",
            "/a%0d%0aX:y",
            "/a%7f",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%+1",
            "/%252e%252e/",
            "/%25%32%65",
            "/ä",
            "/a b",
            "/a#b",
            "/a\r\nX: y",
        ] {
            assert!(RequestPath::parse(target).is_err(), "{target}");
        }
        assert!(RequestPath::parse(&format!("/{}", "a".repeat(MAX_BYTES))).is_err());
    }

    proptest! {
        /// However a server decodes the path, it names nothing above itself.
        #[test]
        fn no_accepted_path_has_dot_segments(target in "/[a./%2fe5c;\\\\]{0,24}") {
            if let Ok(parsed) = RequestPath::parse(&target) {
                let mut decoded = parsed.path().to_owned();
                for _ in 0..3 {
                    for (from, to) in [("%2F", "/"), ("%2f", "/"), ("%2E", "."), ("%2e", "."), ("%5C", "/"), ("%5c", "/"), ("%25", "%")] {
                        decoded = decoded.replace(from, to);
                    }
                }
                let odd = decoded.split('/').any(|segment| matches!(segment, "." | ".."));
                prop_assert!(!odd && !decoded.contains("//"), "{target} {decoded}");
                prop_assert_eq!(RequestPath::parse(&parsed.target()), Ok(parsed));
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(target in ".{0,60}") {
            let _ = RequestPath::parse(&target);
            let _ = RequestPath::parse(&format!("/{target}"));
        }
    }
}
