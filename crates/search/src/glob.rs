//! Patterns of paths: `**`, `*`, `?`, `[abc]` and braces.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::basename_glob::{LastName, is_at_any_depth};

/// A pattern of paths. `*` and `?` stay within a name, `**` does not.
#[derive(Debug, Clone)]
pub struct Glob {
    set: GlobSet,
    /// What it says about the last name, if that is simple.
    last_name: Option<LastName>,
    /// Whether it says nothing else.
    is_name: bool,
}

/// Why a pattern is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobError(String);

/// A pattern taken apart: the names that lead to where looking begins, and the pattern of what is beneath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitGlob {
    /// Plain names, joined by slashes; empty where the pattern begins with none.
    pub prefix: String,
    /// What follows; nothing, if the pattern is a plain path.
    pub rest: Option<String>,
}

/// Longer than any pattern that somebody means.
const MAX_PATTERN_CHARS: usize = 4_096;

/// So many braces are more than anybody means, and each takes memory.
const MAX_BRACES: usize = 64;

impl Glob {
    /// Understands a pattern.
    pub fn new(pattern: &str) -> Result<Glob, GlobError> {
        Glob::any_of([pattern])
    }

    /// What any of several patterns fits.
    pub(crate) fn any_of<'a>(
        patterns: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Result<Glob, GlobError> {
        let mut set = GlobSetBuilder::new();
        let last_name = LastName::of(patterns.clone());
        let is_name = patterns.clone().into_iter().all(is_at_any_depth);
        for pattern in patterns {
            check_bounds(pattern)?;
            let glob = GlobBuilder::new(pattern)
                .literal_separator(true)
                .backslash_escape(true)
                .empty_alternates(true)
                .build()
                .map_err(|error| GlobError(error.kind().to_string()))?;
            set.add(glob);
        }
        let set = set.build().map_err(|_| GlobError("it is too large".to_owned()))?;
        Ok(Glob { set, last_name, is_name })
    }

    /// Whether a path fits.
    pub fn fits(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Whether a path may fit that ends with one of these names, which are written one after the other.
    pub fn may_fit_among(&self, names: &[u8]) -> bool {
        self.last_name.as_ref().is_none_or(|last| last.may_be_among(names))
    }

    /// Whether a path with this last name fits, whatever is before it; nothing, if that matters.
    pub fn fits_name(&self, name: &OsStr) -> Option<bool> {
        match self.last_name.as_ref()?.fits(name.as_bytes()) {
            true => self.is_name.then_some(true),
            false => Some(false),
        }
    }
}

fn check_bounds(pattern: &str) -> Result<(), GlobError> {
    if pattern.len() > MAX_PATTERN_CHARS {
        return Err(GlobError(format!("it has more than {MAX_PATTERN_CHARS} characters")));
    }
    if pattern.matches('{').count() > MAX_BRACES {
        return Err(GlobError(format!("it has more than {MAX_BRACES} braces")));
    }
    Ok(())
}

impl SplitGlob {
    /// Takes a pattern apart.
    pub fn of(pattern: &str) -> SplitGlob {
        let mut pattern = pattern;
        while let Some(rest) = pattern.strip_prefix("./") {
            pattern = rest.trim_start_matches('/');
        }
        let names: Vec<&str> = pattern.split('/').collect();
        let plain = names.iter().take_while(|name| !has_wildcard(name)).count();
        let prefix = names[..plain].join("/");
        // A path from the top: the first name is empty, and so would the prefix be.
        let prefix = if plain == 1 && pattern.starts_with('/') { "/".to_owned() } else { prefix };
        let rest = names[plain..].join("/");
        SplitGlob { prefix, rest: (!rest.is_empty()).then_some(rest) }
    }

    /// Whether the pattern spells out a name that begins with a dot, and so means hidden ones too.
    pub fn names_hidden(&self) -> bool {
        let Some(rest) = &self.rest else { return true };
        rest.starts_with('.') || ["/.", "{.", ",."].iter().any(|dotted| rest.contains(dotted))
    }
}

fn has_wildcard(name: &str) -> bool {
    name.contains(['*', '?', '[', '{', '\\'])
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GlobError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_begins_with_plain_names() {
        let split = |pattern: &str| {
            let split = SplitGlob::of(pattern);
            (split.prefix, split.rest)
        };
        let of = |prefix: &str, rest: &str| (prefix.to_owned(), Some(rest.to_owned()));
        assert_eq!(split("src/**/*.rs"), of("src", "**/*.rs"));
        assert_eq!(split("./a/b/*.{c,h}"), of("a/b", "*.{c,h}"));
        assert_eq!(split("*.rs"), of("", "*.rs"));
        assert_eq!(split("/x/y*"), of("/x", "y*"));
        assert_eq!(split("/*"), of("/", "*"));
        assert_eq!(split("../x/*"), of("../x", "*"));
        assert_eq!(split("a/b.rs"), ("a/b.rs".to_owned(), None));
        assert_eq!(split("app/[id]/page.tsx"), of("app", "[id]/page.tsx"));
    }

    #[test]
    fn stars_stay_within_names_and_braces_are_choices() {
        let fits = |pattern: &str, path: &str| Glob::new(pattern).unwrap().fits(Path::new(path));
        assert!(fits("*.rs", "a.rs") && !fits("*.rs", "a/b.rs"));
        assert!(fits("**/*.rs", "a.rs") && fits("**/*.rs", "a/b/c.rs"));
        assert!(fits("a/**/b", "a/b") && fits("a/**/b", "a/x/y/b"));
        assert!(fits("*.{ts,tsx}", "x.tsx") && fits("x{,.bak}", "x"));
        assert!(fits("[ab]?", "bc") && !fits("[!ab]?", "bc"));
        assert!(Glob::new("[").is_err() && Glob::new("{a").is_err());
        assert!(Glob::new(&"{a,b}".repeat(1_000)).is_err());
    }
}
