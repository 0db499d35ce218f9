//! Walking, choosing, and putting the newest first.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_search::{
    Candidate, Deadline, FileId, Glob, Listing, Pruned, SplitGlob, Walk, walk_ignored,
};

use crate::cx::{Cx, SearchScope};
use crate::error::{Error, ErrorKind};

/// What is asked for.
pub(super) struct Asked<'a> {
    pub(super) pattern: &'a str,
    pub(super) base: PathBuf,
    /// The pattern from the base on.
    pub(super) split: SplitGlob,
    pub(super) hidden: bool,
    pub(super) ignored: bool,
    pub(super) limit: usize,
}

/// What there is.
pub(super) struct Matches {
    /// Where it was looked for.
    pub(super) ground: SearchScope,
    /// As replies show them, the newest first; no more than were asked for.
    pub(super) files: Vec<String>,
    pub(super) total: usize,
    pub(super) complete: bool,
    /// How many files were looked at.
    pub(super) looked_at: usize,
    /// Hidden ones that match, and the first of them.
    pub(super) hidden: usize,
    pub(super) first_hidden: Option<String>,
    pub(super) pruned: Pruned,
    /// The pattern that was taken instead, since nothing fits the one that was given.
    pub(super) instead: Option<String>,
    /// Directories that match, which are not for Glob.
    pub(super) directories: Vec<String>,
    /// Why there was nowhere to look.
    pub(super) nowhere: Option<String>,
    /// What is among the ignored.
    pub(super) among_ignored: Among,
}

/// What a short look at what is ignored shows.
pub(super) enum Among {
    /// Nobody looked.
    Unknown,
    Nothing,
    /// So many, and the first of them.
    Some(usize, String),
}

/// So long it takes at most to find out what is among the ignored.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// So many directories are named.
const NAMED_DIRECTORIES: usize = 3;

pub(super) fn find(cx: &Cx<'_>, base: &SearchScope, asked: &Asked<'_>) -> Result<Matches, Error> {
    let cancel = cx.cancel();
    let cancelled = || cancel.is_cancelled();
    let stop = Deadline::new(cx.search_deadline(), &cancelled);
    let search = Search { cx, asked, stop: &stop };
    let plain = search.plain_file()?;
    if asked.split.rest.is_none()
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
    if matches.total == 0 && matches.pruned.ignored() > 0 && !asked.ignored {
        matches.among_ignored = search.among_ignored(&matches);
    }
    Ok(matches)
}

struct Search<'a> {
    cx: &'a Cx<'a>,
    asked: &'a Asked<'a>,
    stop: &'a Deadline<'a>,
}

impl Search<'_> {
    /// The file that the pattern names letter by letter, wildcards or not: `app/[id]/page.tsx`.
    fn plain_file(&self) -> Result<Option<Matches>, Error> {
        let rest = self.asked.split.rest.as_deref().unwrap_or_default();
        // To join nothing would add a slash, and only a directory is named with one.
        let path = match rest {
            "" => self.asked.start().to_owned(),
            rest => self.asked.start().join(rest),
        };
        if rest.contains('*') || path.as_os_str().len() > 4_000 {
            return Ok(None);
        }
        let ground = match self.cx.search_scope(&path) {
            Ok(ground) if ground.is_file() => ground,
            Err(error) if error.kind() == ErrorKind::OutsideWorkspace => return Err(error),
            _ => return Ok(None),
        };
        let shown = self.cx.show_in(&ground.tree, ground.start());
        Ok(Some(Matches { files: vec![shown], total: 1, looked_at: 1, ..Matches::nothing(ground) }))
    }

    /// What fits the pattern.
    fn pattern(&self, base: &SearchScope) -> Result<Matches, Error> {
        let split = &self.asked.split;
        let ground = match self.cx.search_scope(self.asked.start()) {
            Ok(ground) => ground,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let nowhere = format!("{}. {}", error.message(), error.hint_text());
                let ground = base.clone();
                return Ok(Matches { nowhere: Some(nowhere), ..Matches::nothing(ground) });
            }
            Err(error) => return Err(error),
        };
        match &split.rest {
            Some(rest) if !ground.is_file() => {
                self.listed(ground, rest, split.names_hidden() || self.asked.hidden)
            }
            Some(_) => Ok(Matches::nothing(ground)),
            None => {
                let shown = self.cx.show_in(&ground.tree, ground.start());
                Ok(Matches { directories: vec![shown], ..Matches::nothing(ground) })
            }
        }
    }

    /// What fits the pattern deeper down, if it did not ask for that.
    fn at_any_depth(&self, base: &SearchScope) -> Result<Option<Matches>, Error> {
        let split = &self.asked.split;
        let rest = split.rest.as_deref().unwrap_or_default();
        if rest.starts_with("**") || base.is_file() {
            return Ok(None);
        }
        let whole = Path::new(&split.prefix).join(rest);
        let pattern = format!("**/{}", whole.to_string_lossy().trim_matches('/'));
        let ground = base.clone();
        let hidden = SplitGlob::of(&pattern).names_hidden() || self.asked.hidden;
        let found = self.listed(ground, &pattern, hidden)?;
        Ok((found.total > 0).then(|| Matches { instead: Some(pattern), ..found }))
    }

    fn listed(&self, ground: SearchScope, pattern: &str, hidden: bool) -> Result<Matches, Error> {
        let glob = glob(pattern)?;
        let listing = self.cx.list_tree(&self.walk(&ground, self.asked.ignored, self.stop));
        let mut matches = Matches::nothing(ground);
        let start = matches.ground.start().to_owned();
        matches.looked_at = listing.count();
        let may_have = |names: &[u8]| glob.may_fit_among(names);
        let files = listing.choose(may_have, |file| {
            if !fits(&glob, file)
                || (file.is_link() && !self.cx.leads_to_file(&matches.ground.tree, file.path()))
            {
                return false;
            }
            if file.is_hidden() && !hidden {
                matches.hidden += 1;
                if matches.first_hidden.is_none() {
                    let shown = self.cx.show_in(&matches.ground.tree, file.path());
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
            let shown = directories.iter().map(|path| self.cx.show_in(&matches.ground.tree, path));
            matches.directories = shown.collect();
        }
        let newest = self.newest(&matches.ground, &listing, &files);
        matches.files =
            newest.iter().map(|path| self.cx.show_in(&matches.ground.tree, path)).collect();
        Ok(matches)
    }

    fn walk<'b>(
        &'b self,
        ground: &'b SearchScope,
        ignored: bool,
        stop: &'b Deadline<'b>,
    ) -> Walk<'b> {
        let (tree, start) = (&ground.tree, ground.start());
        Walk { tree, start, ignored, named: &[], own: &ground.hidden, stop }
    }

    /// The newest files, as many as were asked for; by their paths where two are of the same moment.
    fn newest(&self, ground: &SearchScope, listing: &Listing, files: &[FileId]) -> Vec<PathBuf> {
        let modified = listing.modified(&ground.tree, files);
        let mut stamped: Vec<_> = modified.into_iter().zip(0..).collect();
        let newest_first = |stamped: &(_, usize)| (Reverse(stamped.0), stamped.1);
        if stamped.len() > self.asked.limit {
            stamped.select_nth_unstable_by_key(self.asked.limit, newest_first);
            stamped.truncate(self.asked.limit);
        }
        stamped.sort_unstable_by_key(newest_first);
        stamped.into_iter().map(|(_, at)| listing.path(files[at])).collect()
    }

    /// Whether something that was left out would have been found.
    fn among_ignored(&self, matches: &Matches) -> Among {
        let Some(rest) = &self.asked.split.rest else { return Among::Unknown };
        let Ok(glob) = glob(rest) else { return Among::Unknown };
        let stop = self.stop.not_after(Instant::now() + SECOND_LOOK);
        let usual = self.cx.list_tree(&self.walk(&matches.ground, false, &stop));
        let listing = walk_ignored(&self.walk(&matches.ground, true, &stop), &usual);
        let may_have = |names: &[u8]| glob.may_fit_among(names);
        let is_shown = |file: &Candidate<'_>| !file.is_hidden() || self.asked.hidden;
        let files = listing.choose(may_have, |file| is_shown(file) && fits(&glob, file));
        match files.first() {
            Some(first) => {
                let shown = self.cx.show_in(&matches.ground.tree, &listing.path(*first));
                Among::Some(files.len(), shown)
            }
            None if listing.complete => Among::Nothing,
            None => Among::Unknown,
        }
    }
}

impl Asked<'_> {
    /// Where the plain names of the pattern lead.
    fn start(&self) -> PathBuf {
        match (self.split.prefix.as_str(), &self.base) {
            ("", base) => base.clone(),
            (prefix, base) if base == Path::new(".") => prefix.into(),
            (prefix, base) => base.join(prefix),
        }
    }
}

impl Matches {
    /// Puts the file that was named letter by letter before those that fit.
    fn put_first(&mut self, plain: Matches) {
        let before = self.files.len();
        self.files.retain(|file| !plain.files.contains(file));
        if self.files.len() == before {
            self.total += 1;
        }
        self.files.splice(0..0, plain.files);
    }

    fn nothing(ground: SearchScope) -> Matches {
        Matches {
            ground,
            files: Vec::new(),
            total: 0,
            complete: true,
            looked_at: 0,
            hidden: 0,
            first_hidden: None,
            pruned: Pruned::default(),
            instead: None,
            directories: Vec::new(),
            nowhere: None,
            among_ignored: Among::Unknown,
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
