//! Path globs: `**`, `*`, `?`, `[abc]` and braces.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::basename_glob::{BasenameGlob, matches_at_any_depth};

/// A path glob. `*` and `?` match within one component, `**` matches across components.
#[derive(Debug, Clone)]
pub struct Glob {
    set: GlobSet,
    /// The condition on the last component, if that is simple.
    basename: Option<BasenameGlob>,
    /// Whether that is the only condition.
    is_basename_only: bool,
}

/// Why a glob is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobError(String);

/// A glob split into its leading literal components and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitGlob {
    /// Literal components, joined by slashes. Empty if the glob begins with a wildcard.
    pub prefix: String,
    /// The remaining glob. `None` if the glob is a literal path.
    pub rest: Option<String>,
}

/// Longer than any useful glob.
const MAX_PATTERN_CHARS: usize = 4_096;

/// More braces than any useful glob has. Each takes memory.
const MAX_BRACES: usize = 64;

impl Glob {
    /// Compiles a glob.
    pub fn new(pattern: &str) -> Result<Glob, GlobError> {
        Glob::any_of([pattern])
    }

    /// Compiles a glob that matches the paths that any of `patterns` matches.
    pub(crate) fn any_of<'a>(
        patterns: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Result<Glob, GlobError> {
        let mut set = GlobSetBuilder::new();
        let basename = BasenameGlob::from_globs(patterns.clone());
        let is_basename_only = patterns.clone().into_iter().all(matches_at_any_depth);
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
        Ok(Glob { set, basename, is_basename_only })
    }

    /// Whether a path matches.
    pub fn fits(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Whether a path could match that ends with one of these names. The names are concatenated without
    /// separators.
    pub fn may_fit_among(&self, names: &[u8]) -> bool {
        self.basename.as_ref().is_none_or(|basename| basename.may_match_any(names))
    }

    /// Whether a path with this last component matches in every directory. `None` if that depends on the
    /// directory.
    pub fn fits_name(&self, name: &OsStr) -> Option<bool> {
        if self.basename.as_ref()?.matches(name.as_bytes()) {
            self.is_basename_only.then_some(true)
        } else {
            Some(false)
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
    /// Splits a glob.
    pub fn of(pattern: &str) -> SplitGlob {
        let mut pattern = pattern;
        while let Some(rest) = pattern.strip_prefix("./") {
            pattern = rest.trim_start_matches('/');
        }
        let names: Vec<&str> = pattern.split('/').collect();
        let plain = names.iter().take_while(|name| !has_wildcard(name)).count();
        let prefix = names[..plain].join("/");
        // An absolute path: the first component is empty, and the prefix would be empty too.
        let prefix = if plain == 1 && pattern.starts_with('/') { "/".to_owned() } else { prefix };
        let rest = names[plain..].join("/");
        SplitGlob { prefix, rest: (!rest.is_empty()).then_some(rest) }
    }

    /// Whether the glob spells out a name that begins with a dot, and therefore includes hidden files.
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
    fn a_glob_is_split_after_its_literal_components() {
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
    fn stars_match_within_components_and_braces_are_alternatives() {
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
