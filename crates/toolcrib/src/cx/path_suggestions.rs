//! Suggests existing paths for a path that does not exist.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::{BulkReader, FileKind, ResolvedPath, RootKind};
use toolcrib_search::{Deadline, Listing, Walk};
use toolcrib_text::visible_name;

use super::Cx;
use crate::message_names::LS;
use crate::suggest::{bare_name, entry_names, similar_files, without_line};

/// Number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// Time limit for searching the tree. If the listing cache has the tree, the search takes less than a
/// millisecond.
const SEARCH_TIMEOUT: Duration = Duration::from_millis(200);

/// Limit of similarly named directories that are tried.
const MAX_TRIED_DIRECTORIES: usize = 3;

impl Cx<'_> {
    /// Hint for a path that does not exist: the most likely paths first.
    pub(super) fn suggestions_hint(&self, place: &ResolvedPath) -> String {
        let Some(parent) = place.parent() else {
            return "No directory above it is visible.".to_owned();
        };
        let parent_exists = parent.kind() == Some(FileKind::Directory);
        let similar = match self.bare_path(place) {
            Some(found) => vec![found],
            None if parent_exists => self.similar_entries(place, &parent),
            None => self.in_similar_directories(place),
        };
        let is_in_workspace = place.root().kind() == RootKind::Workspace;
        let found = if similar.is_empty() && is_in_workspace {
            self.same_name_in_tree(place)
        } else {
            similar
        };
        let session_note = match place.root().kind() {
            RootKind::Session => {
                format!(" {} is private to this session.", place.root().path().display())
            }
            RootKind::Workspace | RootKind::System => String::new(),
        };
        let hint = match found.as_slice() {
            [] if parent_exists => {
                format!("No similar name was found. {LS} lists the directory.")
            }
            [] => format!("The directory {} does not exist either.", self.show_place(&parent)),
            [only] => format!("Did you mean {only}?"),
            several => format!("Did you mean one of: {}?", several.join(", ")),
        };
        hint + &session_note
    }

    /// The path without quotes, invisible characters and a line number, if it exists.
    fn bare_path(&self, place: &ResolvedPath) -> Option<String> {
        let mut bare = place.root().path().to_owned();
        for part in place.relative().components() {
            let Component::Normal(name) = part else { return None };
            match bare_name(name.to_str()?).as_str() {
                // A quote before an absolute path, which was taken for a name in the session's directory.
                "" => bare = PathBuf::from("/"),
                name => bare.push(name),
            }
        }
        let name = bare.file_name()?.to_str()?;
        let unnumbered = without_line(name).map(|name| bare.with_file_name(name));
        let exists = |path: PathBuf| {
            let directory = self.session.directory();
            let found = self.services.paths.workspace.resolve(directory, &path).ok()?;
            let is_seen = found.kind().is_some() && self.hidden_reason(&found.path()).is_none();
            is_seen.then(|| self.show_place(&found))
        };
        std::iter::once(bare.clone()).chain(unnumbered).find_map(exists)
    }

    /// Entries with a similar name in the same directory.
    fn similar_entries(&self, place: &ResolvedPath, parent: &ResolvedPath) -> Vec<String> {
        let shown = |name: &OsString| {
            let name = visible_name(name.as_encoded_bytes());
            match self.show_place(parent).as_str() {
                "." => name,
                directory => format!("{}/{name}", directory.trim_end_matches('/')),
            }
        };
        similar_in(parent, place.relative().file_name(), MAX_SUGGESTIONS)
            .iter()
            .map(shown)
            .collect()
    }

    /// The same path below a directory whose name is similar to that of the first missing one.
    fn in_similar_directories(&self, place: &ResolvedPath) -> Vec<String> {
        let mut missing = place.clone();
        let (above, rest) = loop {
            let Some(parent) = missing.parent() else { return Vec::new() };
            if parent.kind() == Some(FileKind::Directory) {
                let rest = place.relative().strip_prefix(missing.relative()).ok();
                break (parent, rest.unwrap_or(Path::new("")).to_owned());
            }
            missing = parent;
        };
        let like = similar_in(&above, missing.relative().file_name(), MAX_TRIED_DIRECTORIES);
        let exists = |name: OsString| {
            let path = Path::new(&name).join(&rest);
            let found = self.services.paths.resolve(self.session, &above, &path).ok()?;
            let is_seen = found.kind().is_some() && self.hidden_reason(&found.path()).is_none();
            is_seen.then(|| self.show_place(&found))
        };
        like.into_iter().filter_map(exists).collect()
    }

    /// Files with the same name anywhere below the root, or with a name that differs only in case. The same name
    /// comes first, then files that share more directories with the given path.
    fn same_name_in_tree(&self, place: &ResolvedPath) -> Vec<String> {
        let Some(name) = place.relative().file_name() else { return Vec::new() };
        // Backslashes separate the names of a path from Windows.
        let bytes = name.as_encoded_bytes();
        let after = bytes.iter().rposition(|byte| *byte == b'\\').map_or(0, |at| at + 1);
        let name = OsStr::from_bytes(&bytes[after..]);
        let bare = name.to_str().map(bare_name);
        let bare = bare.as_deref().map(|name| without_line(name).unwrap_or(name));
        let name = bare.filter(|name| !name.is_empty()).map_or(name, OsStr::new);
        let Ok(top) =
            self.services.paths.workspace.resolve(self.session.directory(), Path::new("."))
        else {
            return Vec::new();
        };
        let tree = BulkReader::around(&top);
        let cancel = self.cancel();
        let cancelled = || cancel.is_cancelled();
        let stop = Deadline::new(Instant::now() + SEARCH_TIMEOUT, &cancelled);
        let hidden = self.services.paths.hidden.all();
        let walk = Walk {
            tree: &tree,
            start: top.relative(),
            ignored: false,
            named: &[],
            own: &hidden,
            stop: &stop,
        };
        let listing: Listing = self.list_tree(&walk);
        let mut found: Vec<PathBuf> = Vec::new();
        listing.choose(
            |_| !stop.is_over(),
            |file| {
                let candidate = Path::new(file.path()).file_name();
                if candidate.is_some_and(|candidate| is_same_but_for_case(candidate, name))
                    && found.len() < MAX_FOUND
                    && !self.keeps_back(&tree, file.path())
                {
                    found.push(file.path().to_owned());
                }
                false
            },
        );
        let shared = |path: &PathBuf| {
            let given: Vec<_> = place.relative().components().collect();
            path.components().filter(|part| given.contains(part)).count()
        };
        let rank = |path: &PathBuf| {
            let has_other_case = path.file_name() != Some(name);
            (has_other_case, std::cmp::Reverse(shared(path)), path.components().count())
        };
        found.sort_by_key(rank);
        found.iter().take(MAX_SUGGESTIONS).map(|path| self.show_in(&tree, path)).collect()
    }
}

/// Limit of same-named files that are compared.
const MAX_FOUND: usize = 1_000;

fn is_same_but_for_case(one: &OsStr, other: &OsStr) -> bool {
    match (one.to_str(), other.to_str()) {
        (Some(one), Some(other)) if !one.is_ascii() => one.to_lowercase() == other.to_lowercase(),
        _ => one.eq_ignore_ascii_case(other),
    }
}

/// The entries of a directory with a name like this one, at most `most`: those with the same visible characters, or
/// else the most similar ones.
fn similar_in(directory: &ResolvedPath, name: Option<&OsStr>, most: usize) -> Vec<OsString> {
    let Some(name) = name else { return Vec::new() };
    let Ok((names, _)) = entry_names(directory) else { return Vec::new() };
    let bare = |name: &OsStr| name.to_str().map(bare_name).filter(|name| !name.is_empty());
    if let Some(wanted) = bare(name) {
        let unnumbered = without_line(&wanted).unwrap_or(&wanted);
        let is_alike = |found: &&OsString| {
            bare(found).is_some_and(|found| found == wanted || found == unnumbered)
        };
        let alike: Vec<OsString> = names.iter().filter(is_alike).take(most).cloned().collect();
        if !alike.is_empty() {
            return alike;
        }
    }
    let shown = |name: &OsStr| visible_name(name.as_encoded_bytes());
    let names: Vec<(String, OsString)> =
        names.into_iter().map(|name| (shown(&name), name)).collect();
    let similar = similar_files(&shown(name), names.iter().map(|(shown, _)| shown.as_str()), most);
    let entry = |similar: &str| names.iter().find(|(shown, _)| shown == similar);
    similar.into_iter().filter_map(entry).map(|(_, name)| name.clone()).collect()
}
