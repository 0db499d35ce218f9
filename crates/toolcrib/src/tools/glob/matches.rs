//! Finds matching files and sorts them by age.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_search::{
    Candidate, Deadline, FileId, Glob, Listing, Pruned, SplitGlob, Walk, walk_ignored,
};

use crate::cx::{Cx, SearchScope};
use crate::error::{Error, ErrorKind};

/// The arguments, parsed.
pub(super) struct GlobQuery<'a> {
    pub(super) pattern: &'a str,
    pub(super) base: PathBuf,
    /// The pattern relative to the base.
    pub(super) split: SplitGlob,
    pub(super) hidden: bool,
    pub(super) ignored: bool,
    pub(super) limit: usize,
}

/// The result.
pub(super) struct Matches {
    /// The searched directory.
    pub(super) scope: SearchScope,
    /// Newest first, as replies show them, at most as many as the limit.
    pub(super) files: Vec<String>,
    pub(super) total: usize,
    pub(super) complete: bool,
    /// Number of files compared with the pattern.
    pub(super) checked: usize,
    /// Number of matching hidden files, and the first of them.
    pub(super) hidden: usize,
    pub(super) first_hidden: Option<String>,
    pub(super) pruned: Pruned,
    /// The pattern that was used because nothing matched the given one.
    pub(super) instead: Option<String>,
    /// Matching directories, which Glob does not list.
    pub(super) directories: Vec<String>,
    /// Why the start directory could not be searched.
    pub(super) start_error: Option<String>,
    pub(super) among_ignored: IgnoredMatches,
}

/// The result of a short search in the ignored files.
pub(super) enum IgnoredMatches {
    /// Not searched to the end.
    Unknown,
    Nothing,
    /// Number of matches, and the first of them.
    Some(usize, String),
    /// The same, if all matches are also hidden.
    SomeHidden(usize, String),
}

/// Time limit of the search in ignored files.
const IGNORED_SEARCH_TIMEOUT: Duration = Duration::from_millis(300);

/// Number of directories to name.
const NAMED_DIRECTORIES: usize = 3;

/// The directory that the literal prefix of a pattern names.
pub(super) fn start(base: &Path, prefix: &str) -> PathBuf {
    match prefix {
        "" => base.to_owned(),
        prefix if base == Path::new(".") => prefix.into(),
        prefix => base.join(prefix),
    }
}

pub(super) fn find(
    cx: &Cx<'_>,
    base: &SearchScope,
    query: &GlobQuery<'_>,
) -> Result<Matches, Error> {
    let cancel = cx.cancel();
    let cancelled = || cancel.is_cancelled();
    let stop = Deadline::new(cx.search_deadline(), &cancelled);
    let search = Search { cx, query, stop: &stop };
    let plain = search.plain_file()?;
    if query.split.rest.is_none()
        && let Some(plain) = plain
    {
        return Ok(plain);
    }
    let mut matches = search.pattern(base)?;
    if let Some(plain) = plain {
        matches.put_first(plain);
    }
    if matches.total == 0 && matches.hidden == 0 && matches.complete {
        matches = search.at_any_depth(base)?.unwrap_or(matches);
    }
    if matches.total == 0 && matches.pruned.ignored() > 0 && !query.ignored {
        matches.among_ignored = search.among_ignored(&matches);
    }
    Ok(matches)
}

struct Search<'a> {
    cx: &'a Cx<'a>,
    query: &'a GlobQuery<'a>,
    stop: &'a Deadline<'a>,
}

impl Search<'_> {
    /// The file whose path is the pattern itself, wildcards or not: `app/[id]/page.tsx`.
    fn plain_file(&self) -> Result<Option<Matches>, Error> {
        let rest = self.query.split.rest.as_deref().unwrap_or_default();
        // Joining an empty path would add a slash, which only a directory may have.
        let path = match rest {
            "" => self.query.start().to_owned(),
            rest => self.query.start().join(rest),
        };
        if rest.contains('*') || path.as_os_str().len() > 4_000 {
            return Ok(None);
        }
        let scope = match self.cx.search_scope(&path) {
            Ok(scope) if scope.is_file() => scope,
            Err(error) if error.kind() == ErrorKind::OutsideWorkspace => return Err(error),
            _ => return Ok(None),
        };
        let shown = self.cx.show_in(&scope.tree, scope.start());
        Ok(Some(Matches { files: vec![shown], total: 1, checked: 1, ..Matches::nothing(scope) }))
    }

    /// The files that match the pattern.
    fn pattern(&self, base: &SearchScope) -> Result<Matches, Error> {
        let split = &self.query.split;
        let scope = match self.cx.search_scope(self.query.start()) {
            Ok(scope) => scope,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let start_error = format!("{}. {}", error.message(), error.hint_text());
                let scope = base.clone();
                return Ok(Matches { start_error: Some(start_error), ..Matches::nothing(scope) });
            }
            Err(error) => return Err(error),
        };
        match &split.rest {
            Some(rest) if !scope.is_file() => {
                self.listed(scope, rest, split.names_hidden() || self.query.hidden)
            }
            Some(_) => Ok(Matches::nothing(scope)),
            None => {
                let shown = self.cx.show_in(&scope.tree, scope.start());
                Ok(Matches { directories: vec![shown], ..Matches::nothing(scope) })
            }
        }
    }

    /// The files that match the pattern at any depth, unless the pattern covers that.
    fn at_any_depth(&self, base: &SearchScope) -> Result<Option<Matches>, Error> {
        let split = &self.query.split;
        let rest = split.rest.as_deref().unwrap_or_default();
        if rest.starts_with("**") || base.is_file() {
            return Ok(None);
        }
        let whole = Path::new(&split.prefix).join(rest);
        let pattern = format!("**/{}", whole.to_string_lossy().trim_matches('/'));
        let scope = base.clone();
        let hidden = SplitGlob::of(&pattern).names_hidden() || self.query.hidden;
        let found = self.listed(scope, &pattern, hidden)?;
        Ok((found.total > 0).then(|| Matches { instead: Some(pattern), ..found }))
    }

    fn listed(&self, scope: SearchScope, pattern: &str, hidden: bool) -> Result<Matches, Error> {
        let glob = glob(pattern)?;
        let listing = self.cx.list_tree(&self.walk(&scope, self.query.ignored, self.stop));
        let mut matches = Matches::nothing(scope);
        let start = matches.scope.start().to_owned();
        matches.checked = listing.count();
        let may_have = |names: &[u8]| glob.may_fit_among(names);
        let files = listing.choose(may_have, |file| {
            if !fits(&glob, file)
                || (file.is_link() && !self.cx.leads_to_file(&matches.scope.tree, file.path()))
            {
                return false;
            }
            if file.is_hidden() && !hidden {
                matches.hidden += 1;
                if matches.first_hidden.is_none() {
                    let shown = self.cx.show_in(&matches.scope.tree, file.path());
                    matches.first_hidden = Some(shown);
                }
                return false;
            }
            true
        });
        matches.total = files.len();
        matches.complete = listing.complete;
        matches.pruned = listing.pruned();
        if matches.total == 0 {
            let fits = |path: &Path| glob.fits(path.strip_prefix(&start).unwrap_or(path));
            let directories = listing.choose_directories(NAMED_DIRECTORIES, fits);
            let shown = directories.iter().map(|path| self.cx.show_in(&matches.scope.tree, path));
            matches.directories = shown.collect();
        }
        let newest = self.newest(&matches.scope, &listing, &files);
        matches.files =
            newest.iter().map(|path| self.cx.show_in(&matches.scope.tree, path)).collect();
        Ok(matches)
    }

    fn walk<'b>(
        &'b self,
        scope: &'b SearchScope,
        ignored: bool,
        stop: &'b Deadline<'b>,
    ) -> Walk<'b> {
        let (tree, start) = (&scope.tree, scope.start());
        Walk { tree, start, ignored, named: &[], own: &scope.hidden, stop }
    }

    /// The newest files up to the limit. Files of the same age are sorted by path.
    fn newest(&self, scope: &SearchScope, listing: &Listing, files: &[FileId]) -> Vec<PathBuf> {
        let modified = toolcrib_search::mtimes(&scope.tree, listing, files);
        let mut stamped: Vec<_> = modified.into_iter().zip(0..).collect();
        let newest_first = |stamped: &(_, usize)| (Reverse(stamped.0), stamped.1);
        if stamped.len() > self.query.limit {
            stamped.select_nth_unstable_by_key(self.query.limit, newest_first);
            stamped.truncate(self.query.limit);
        }
        stamped.sort_unstable_by_key(newest_first);
        stamped.into_iter().map(|(_, at)| listing.path(files[at])).collect()
    }

    /// Searches the ignored files for matches.
    fn among_ignored(&self, matches: &Matches) -> IgnoredMatches {
        let Some(rest) = &self.query.split.rest else { return IgnoredMatches::Unknown };
        let Ok(glob) = glob(rest) else { return IgnoredMatches::Unknown };
        let stop = self.stop.not_after(Instant::now() + IGNORED_SEARCH_TIMEOUT);
        let usual = self.cx.list_tree(&self.walk(&matches.scope, false, &stop));
        let listing = walk_ignored(&self.walk(&matches.scope, true, &stop), &usual);
        let may_have = |names: &[u8]| glob.may_fit_among(names);
        let lists_hidden = self.query.split.names_hidden() || self.query.hidden;
        let (mut hidden, mut first_hidden) = (0, None);
        let files = listing.choose(may_have, |file| {
            if !fits(&glob, file) {
                return false;
            }
            if file.is_hidden() && !lists_hidden {
                hidden += 1;
                first_hidden.get_or_insert_with(|| file.path().to_owned());
                return false;
            }
            true
        });
        let show = |path: &Path| self.cx.show_in(&matches.scope.tree, path);
        match (files.first(), first_hidden) {
            (Some(first), _) => IgnoredMatches::Some(files.len(), show(&listing.path(*first))),
            (None, Some(first)) => IgnoredMatches::SomeHidden(hidden, show(&first)),
            (None, None) if listing.complete => IgnoredMatches::Nothing,
            (None, None) => IgnoredMatches::Unknown,
        }
    }
}

impl GlobQuery<'_> {
    /// The directory that the literal prefix of the pattern names.
    fn start(&self) -> PathBuf {
        start(&self.base, &self.split.prefix)
    }
}

impl Matches {
    /// Puts the literally named file before the others.
    fn put_first(&mut self, plain: Matches) {
        let before = self.files.len();
        self.files.retain(|file| !plain.files.contains(file));
        if self.files.len() == before {
            self.total += 1;
        }
        self.files.splice(0..0, plain.files);
    }

    fn nothing(scope: SearchScope) -> Matches {
        Matches {
            scope,
            files: Vec::new(),
            total: 0,
            complete: true,
            checked: 0,
            hidden: 0,
            first_hidden: None,
            pruned: Pruned::default(),
            instead: None,
            directories: Vec::new(),
            start_error: None,
            among_ignored: IgnoredMatches::Unknown,
        }
    }
}

fn fits(glob: &Glob, file: &mut Candidate<'_>) -> bool {
    glob.fits_name(file.name()).unwrap_or_else(|| glob.fits(file.path_beneath()))
}

fn glob(pattern: &str) -> Result<Glob, Error> {
    Glob::new(pattern).map_err(|error| {
        Error::invalid(format!("`pattern`: {pattern} is not a valid glob: {error}"))
            .hint("`[` and `{` begin a choice; write `[[]` or `[{]` for the literal characters.")
    })
}
