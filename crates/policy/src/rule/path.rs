//! Patterns of paths.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::command::Surroundings;
use crate::name_pattern::name_fits;
use crate::protected_names::folded;

/// `src/**/*.rs`, `**/.env`, `~/notes`, `/etc`: names divided by `/`. In a name, `*` stands for any
/// letters and `?` for one; `**` as a name stands for any number of names. It fits what it names and all
/// that is beneath. Without `/` or `~/` at its beginning it is in each directory of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    from: From,
    names: Vec<String>,
    /// The same as some file system may take them.
    folded: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Roots,
    Home,
    Top,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<PathPattern, String> {
        let (from, rest) = match text {
            "/" => return Ok(PathPattern::new(From::Top, Vec::new())),
            "~" => return Ok(PathPattern::new(From::Home, Vec::new())),
            _ if text.starts_with("~/") => (From::Home, &text[2..]),
            _ if text.starts_with('/') => (From::Top, &text[1..]),
            _ => (From::Roots, text.strip_prefix("./").unwrap_or(text)),
        };
        let names: Vec<String> =
            rest.strip_suffix('/').unwrap_or(rest).split('/').map(str::to_owned).collect();
        let problem = |name: &String| match name.as_str() {
            "" => Some("it has an empty name in it, which no path has"),
            "." | ".." => Some("paths are compared without `.` and `..`"),
            name if name.starts_with('~') => Some("`~` is home only at the beginning, as `~/`"),
            name if name.contains("**") && name != "**" => {
                Some("`**` stands for whole names, alone between two `/`")
            }
            _ => None,
        };
        match names.iter().find_map(problem) {
            Some(problem) => Err(format!("{text:?} can match nothing: {problem}")),
            None => Ok(PathPattern::new(from, names)),
        }
    }

    fn new(from: From, names: Vec<String>) -> PathPattern {
        let folded = names.iter().map(|name| folded(name)).collect();
        PathPattern { from, names, folded }
    }

    /// Whether it can be about what lies outside the workspace.
    pub(super) fn is_absolute(&self) -> bool {
        self.from != From::Roots
    }

    /// The path that it names, if it is one, and from where it begins is known.
    pub(crate) fn only_path(&self, home: Option<&Path>) -> Option<PathBuf> {
        let begins = match self.from {
            From::Roots => return None,
            From::Home => home?.to_owned(),
            From::Top => PathBuf::from("/"),
        };
        let stands_for_many = |name: &String| name.contains(['*', '?']);
        let one = !self.names.is_empty() && !self.names.iter().any(stands_for_many);
        one.then(|| self.names.iter().fold(begins, |path, name| path.join(name)))
    }

    pub(super) fn fits(&self, path: &Path, around: &Surroundings, folds: bool) -> bool {
        let fits = |base: &Path| {
            let Ok(rest) = path.strip_prefix(base) else { return false };
            let fold = |name: &str| if folds { folded(name) } else { name.to_owned() };
            let names: Vec<String> =
                rest.iter().map(|name| fold(&name.to_string_lossy())).collect();
            names_fit(if folds { &self.folded } else { &self.names }, &names)
        };
        match self.from {
            From::Roots => around.roots.iter().any(|root| fits(root)),
            From::Home => around.home.iter().any(|home| fits(home)),
            From::Top => fits(Path::new("/")),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = match self.from {
            From::Roots => "",
            From::Home => "~/",
            From::Top => "/",
        };
        write!(f, "{begins}{}", self.names.join("/"))
    }
}

/// Whether the names begin as the pattern says. Only the last `**` is ever tried again, so that the time
/// is the product of the two lengths at most.
fn names_fit(pattern: &[String], names: &[String]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    loop {
        match pattern.get(p) {
            None => return true,
            Some(name) if name == "**" => {
                star = Some((p, n));
                p += 1;
            }
            Some(one) if names.get(n).is_some_and(|name| name_fits(one, name)) => {
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

    #[test]
    fn patterns_fit_what_they_name_and_what_is_beneath() {
        let around = Surroundings {
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
            assert_eq!(parsed.fits(Path::new(path), &around, false), expected, "{pattern} {path}");
        }
        let env = PathPattern::parse("**/.env").unwrap();
        assert!(
            env.fits(Path::new("/w/ws/.ENV"), &around, true),
            "by every spelling, if forbidden"
        );
        assert!(!env.fits(Path::new("/w/ws/.ENV"), &around, false));
    }

    #[test]
    fn a_pattern_may_be_the_name_of_one_path() {
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
    fn a_pattern_that_can_match_nothing_is_none() {
        for pattern in ["", "a//b", "//x", "../x", "a/./b", "a/**b", "a/~"] {
            let error = PathPattern::parse(pattern).unwrap_err();
            assert!(error.contains("can match nothing"), "{error}");
        }
    }
}
