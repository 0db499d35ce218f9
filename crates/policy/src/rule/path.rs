//! Path patterns.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use super::path_names::{Base, PathNames};
use crate::name_pattern::name_matches;
use crate::protected_names::normalized_name;

/// A path pattern such as `src/**/*.rs`, `**/.env`, `~/notes` or `/etc`. In a component, `*` matches any
/// characters and `?` matches one; the component `**` matches any number of components. A pattern matches
/// the named path and everything beneath it. Without a leading `/` or `~/` it is relative to each root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    base: Base,
    names: Vec<String>,
    /// The normalized names, for restrictions.
    normalized: Vec<String>,
    /// The place of the longest name without wildcards. A path without this name needs no further comparison.
    plain_name: Option<usize>,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<PathPattern, String> {
        let (from, rest) = match text {
            "/" => return Ok(PathPattern::new(Base::FilesystemRoot, Vec::new())),
            "~" => return Ok(PathPattern::new(Base::Home, Vec::new())),
            _ if text.starts_with("~/") => (Base::Home, &text[2..]),
            _ if text.starts_with('/') => (Base::FilesystemRoot, &text[1..]),
            _ => (Base::Roots, text.strip_prefix("./").unwrap_or(text)),
        };
        let names: Vec<String> =
            rest.strip_suffix('/').unwrap_or(rest).split('/').map(str::to_owned).collect();
        let problem = |name: &String| match name.as_str() {
            "" => Some("it has an empty component, and no path has one"),
            "." | ".." => Some("paths are compared without `.` and `..`"),
            name if name.starts_with('~') => {
                Some("`~` is the home directory only at the beginning, as `~/`")
            }
            name if name.contains("**") && name != "**" => {
                Some("`**` matches whole components and must stand alone between two `/`")
            }
            _ => None,
        };
        match names.iter().find_map(problem) {
            Some(problem) => Err(format!("{text:?} can match nothing: {problem}")),
            None => Ok(PathPattern::new(from, names)),
        }
    }

    fn new(from: Base, names: Vec<String>) -> PathPattern {
        let normalized = names.iter().map(|name| normalized_name(name).into_owned()).collect();
        let is_plain = |at: &usize| !names[*at].contains(['*', '?']);
        let plain_name = (0..names.len()).filter(is_plain).max_by_key(|at| names[*at].len());
        PathPattern { base: from, names, normalized, plain_name }
    }

    /// Whether it can match paths outside the workspace.
    pub(super) fn is_absolute(&self) -> bool {
        self.base != Base::Roots
    }

    /// The path, if the pattern has no wildcards and its base is known.
    pub(crate) fn only_path(&self, home: Option<&Path>) -> Option<PathBuf> {
        let base = match self.base {
            Base::Roots => return None,
            Base::Home => home?.to_owned(),
            Base::FilesystemRoot => PathBuf::from("/"),
        };
        let has_wildcard = |name: &String| name.contains(['*', '?']);
        let one = !self.names.is_empty() && !self.names.iter().any(has_wildcard);
        one.then(|| self.names.iter().fold(base, |path, name| path.join(name)))
    }

    /// Whether it matches a path; with `normalizes`, in every spelling.
    pub(super) fn matches(&self, path: &PathNames<'_>, normalizes: bool) -> bool {
        let pattern = if normalizes { &self.normalized } else { &self.names };
        let plain = self.plain_name.map(|at| pattern[at].as_str());
        path.beneath(self.base, normalizes).iter().any(|names| {
            plain.is_none_or(|plain| names.iter().any(|name| name == plain))
                && names_match(pattern, names)
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = match self.base {
            Base::Roots => "",
            Base::Home => "~/",
            Base::FilesystemRoot => "/",
        };
        write!(f, "{base}{}", self.names.join("/"))
    }
}

/// Whether the pattern matches a prefix of the names. Backtracks only to the last `**`, so the time is at
/// most proportional to the product of both lengths.
fn names_match(pattern: &[String], names: &[Cow<'_, str>]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    loop {
        match pattern.get(p) {
            None => return true,
            Some(name) if name == "**" => {
                star = Some((p, n));
                p += 1;
            }
            Some(one) if names.get(n).is_some_and(|name| name_matches(one, name)) => {
                p += 1;
                n += 1;
            }
            Some(_) => match star {
                Some((at, from)) if from < names.len() => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::ShellContext;

    #[test]
    fn patterns_match_the_named_path_and_everything_beneath() {
        let context = ShellContext {
            directory: "/w/ws".into(),
            home: Some("/home/me".into()),
            roots: vec!["/w/ws".into(), "/w/other".into()],
        };
        for (pattern, path, expected) in [
            ("**/.env", "/w/ws/.env", true),
            ("**/.env", "/w/ws/a/b/.env", true),
            ("**/.env", "/w/other/.env", true),
            ("**/.env", "/w/ws/.env/x", true),
            ("**/.env", "/w/ws/.envrc", false),
            ("**/.env", "/etc/.env", false),
            (".env", "/w/ws/.env", true),
            (".env", "/w/ws/a/.env", false),
            ("src/**/*.rs", "/w/ws/src/a.rs", true),
            ("src/**/*.rs", "/w/ws/src/a/b/c.rs", true),
            ("src/**/*.rs", "/w/ws/lib/a.rs", false),
            ("src/", "/w/ws/src/a", true),
            ("./src", "/w/ws/src", true),
            ("**", "/w/ws", true),
            ("**", "/w/ws/a", true),
            ("*", "/w/ws", false),
            ("/etc", "/etc/passwd", true),
            ("/etc/*.conf", "/etc/a.conf", true),
            ("/", "/x", true),
            ("~/.ssh", "/home/me/.ssh/id", true),
            ("~/.ssh", "/home/you/.ssh/id", false),
            ("a/**/b/**/c", "/w/ws/a/x/b/y/z/c", true),
            ("a/**/b/**/c", "/w/ws/a/x/c", false),
        ] {
            let parsed = PathPattern::parse(pattern).unwrap();
            let names = PathNames::new(Path::new(path), &context);
            assert_eq!(parsed.matches(&names, false), expected, "{pattern} {path}");
        }
        let env = PathPattern::parse("**/.env").unwrap();
        let spelled = PathNames::new(Path::new("/w/ws/.ENV"), &context);
        assert!(env.matches(&spelled, true), "by every spelling, if forbidden");
        assert!(!env.matches(&spelled, false));
    }

    #[test]
    fn a_pattern_without_wildcards_is_one_path() {
        let home = Path::new("/home/me");
        for (pattern, expected) in [
            ("~/.ssh", Some("/home/me/.ssh")),
            ("/etc/shadow", Some("/etc/shadow")),
            ("~/*/x", None),
            ("/", None),
            ("src", None),
        ] {
            let parsed = PathPattern::parse(pattern).unwrap();
            assert_eq!(parsed.only_path(Some(home)), expected.map(PathBuf::from), "{pattern}");
            assert_eq!(parsed.to_string(), pattern);
        }
        assert_eq!(PathPattern::parse("~/.ssh").unwrap().only_path(None), None);
    }

    #[test]
    fn rejects_patterns_that_can_match_nothing() {
        for pattern in ["", "a//b", "//x", "../x", "a/./b", "a/**b", "a/~"] {
            let error = PathPattern::parse(pattern).unwrap_err();
            assert!(error.contains("can match nothing"), "{error}");
        }
    }
}
