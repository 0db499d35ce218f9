//! Selects the files that a search reads, by path globs and by file type.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use ignore::types::{Types, TypesBuilder};

use crate::path_glob::{Glob, GlobError, SplitGlob};

/// A selection of files.
#[derive(Debug, Default)]
pub struct FileFilter {
    include: Option<Glob>,
    exclude: Option<Glob>,
    types: Option<Types>,
    named: Vec<PathBuf>,
}

/// Why a filter cannot be built.
#[derive(Debug)]
pub enum FilterError {
    /// An invalid glob, with the reason.
    Glob(String, GlobError),
    /// An unknown file type.
    Type,
}

impl FileFilter {
    /// Builds a filter from a comma-separated list of globs, in which `!` excludes, and from one of ripgrep's
    /// file types.
    ///
    /// A glob applies at every depth unless it begins with a slash. A glob that names a directory selects
    /// everything in it.
    pub fn new(globs: Option<&str>, file_type: Option<&str>) -> Result<FileFilter, FilterError> {
        let mut filter = FileFilter::default();
        let (mut include, mut exclude) = (Vec::new(), Vec::new());
        for glob in globs.into_iter().flat_map(split_list) {
            match glob.strip_prefix('!') {
                Some(unwanted) => exclude.extend(expand_glob(unwanted)),
                None => {
                    include.extend(expand_glob(glob));
                    let prefix = SplitGlob::of(glob.trim_start_matches('/')).prefix;
                    if !prefix.is_empty() && !prefix.split('/').any(|name| name == "..") {
                        filter.named.push(prefix.trim_end_matches('/').into());
                    }
                }
            }
        }
        let build = |patterns: Vec<String>| {
            if patterns.is_empty() {
                Ok(None)
            } else {
                Glob::any_of(patterns.iter().map(String::as_str))
                    .map(Some)
                    .map_err(|error| FilterError::Glob(globs.unwrap_or_default().to_owned(), error))
            }
        };
        filter.include = build(include)?;
        filter.exclude = build(exclude)?;
        filter.types = file_type.map(select_type).transpose()?;
        Ok(filter)
    }

    /// Whether a file is selected. `path` is relative to the start of the search.
    pub fn wants(&self, path: &Path) -> bool {
        self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
            && self.include.as_ref().is_none_or(|glob| glob.fits(path))
            && !self.exclude.as_ref().is_some_and(|glob| glob.fits(path))
    }

    /// Whether any of these names could be selected. The names are concatenated without separators.
    pub fn may_want_among(&self, names: &[u8]) -> bool {
        self.include.as_ref().is_none_or(|glob| glob.may_fit_among(names))
    }

    /// Whether a file of this name is selected in every directory. `None` if that depends on the directory.
    pub fn wants_name(&self, name: &OsStr) -> Option<bool> {
        let is_of_type =
            self.types.as_ref().is_none_or(|types| types.matched(name, false).is_whitelist());
        let is_included = self.include.as_ref().map_or(Some(true), |glob| glob.fits_name(name));
        let is_excluded = self.exclude.as_ref().map_or(Some(false), |glob| glob.fits_name(name));
        match (is_of_type, is_included, is_excluded) {
            (false, ..) | (_, Some(false), _) | (.., Some(true)) => Some(false),
            (true, Some(true), Some(false)) => Some(true),
            (true, ..) => None,
        }
    }

    /// Whether every file is selected.
    pub fn wants_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.types.is_none()
    }

    /// The literal paths in its globs. No ignore file hides them.
    pub fn named(&self) -> &[PathBuf] {
        &self.named
    }
}

/// The names of all file types.
pub fn type_names() -> Vec<String> {
    let mut types = TypesBuilder::new();
    types.add_defaults();
    types.definitions().into_iter().map(|definition| definition.name().to_owned()).collect()
}

fn select_type(name: &str) -> Result<Types, FilterError> {
    let mut types = TypesBuilder::new();
    types.add_defaults();
    types.select(name).build().map_err(|_| FilterError::Type)
}

/// Splits a list of globs at commas outside braces, and at whitespace if every part has a star.
fn split_list(list: &str) -> Vec<&str> {
    let separators: &[char] = if list.split_whitespace().all(|part| part.contains('*')) {
        &[',', ' ', '\n', '\t']
    } else {
        &[',']
    };
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 && separators.contains(&c) => {
                parts.push(&list[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn expand_glob(glob: &str) -> Vec<String> {
    let glob = glob.trim_start_matches("./");
    let anchored = match glob.strip_prefix('/') {
        Some(anchored) => anchored.to_owned(),
        None if glob.starts_with("**/") => glob.to_owned(),
        None => format!("**/{glob}"),
    };
    match anchored.strip_suffix('/') {
        Some(directory) => vec![format!("{directory}/**")],
        None if SplitGlob::of(glob).rest.is_none() => vec![format!("{anchored}/**"), anchored],
        None => vec![anchored],
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Glob(glob, error) => write!(f, "{glob} is not a valid pattern: {error}"),
            FilterError::Type => f.write_str("unknown file type"),
        }
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(globs: &str, path: &str) -> bool {
        FileFilter::new(Some(globs), None).unwrap().wants(Path::new(path))
    }

    #[test]
    fn globs_match_at_every_depth_unless_they_begin_with_a_slash() {
        assert!(wants("*.rs", "a/b.rs") && wants("src/*.rs", "x/src/b.rs"));
        assert!(wants("/src/*.rs", "src/b.rs") && !wants("/src/*.rs", "x/src/b.rs"));
        assert!(
            wants("src", "x/src/deep/b") && wants("src/", "src/b") && wants("a.txt", "x/a.txt")
        );
    }

    #[test]
    fn lists_and_exclusions() {
        assert!(wants("*.ts, *.tsx", "x.tsx") && wants("*.ts *.tsx", "x.ts"));
        assert!(wants("*.{ts,tsx}", "x.tsx") && !wants("*.ts,!*.d.ts", "x.d.ts"));
        assert!(wants("!*.md", "x.rs") && wants("my file.txt", "my file.txt"));
    }

    #[test]
    fn types_are_known_by_name() {
        let rust = FileFilter::new(None, Some("rust")).unwrap();
        assert!(rust.wants(Path::new("a/b.rs")) && !rust.wants(Path::new("b.py")));
        assert!(matches!(FileFilter::new(None, Some("nonsense")), Err(FilterError::Type)));
        assert!(type_names().len() > 100);
    }
}
