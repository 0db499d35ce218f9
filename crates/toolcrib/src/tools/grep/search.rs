//! The search of Grep: files, their order, and their matches.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use toolcrib_fs::{BulkReader, Stamp, WholeRead};
use toolcrib_search::{
    Deadline, FileId, Grep, LineMatches, Listing, MatchOptions, Pattern, PatternSyntax, Pruned,
    Rank, Searched, Walk, grep, grep_ignored,
};

use super::Sort;
use super::query::GrepQuery;
use crate::cancel_and_progress::Progress;
use crate::cx::Cx;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::search_decoder::SearchDecoder;
use crate::tools::skipped_files::SkippedFiles;

/// A search with its sorted list of files.
pub(super) struct Search<'a> {
    pub(super) cx: &'a Cx<'a>,
    pub(super) query: &'a GrepQuery,
    pub(super) began: Instant,
    pub(super) stop: Deadline<'a>,
    pub(super) listing: Listing,
    pub(super) files: Arc<[FileId]>,
    pub(super) pruned: Pruned,
    pub(super) unsearched: Unsearched,
}

/// Numbers of files that were not searched.
#[derive(Default)]
pub(super) struct Unsearched {
    pub(super) hidden: u64,
    /// Denied by the user's rules.
    pub(super) denied: u64,
}

pub(super) struct Found {
    pub(super) file: FileId,
    pub(super) hits: LineMatches,
    pub(super) stamp: Stamp,
}

/// Files between progress reports.
const PROGRESS_FILES: u64 = 5_000;

impl<'a> Search<'a> {
    /// Lists and sorts the files.
    pub(super) fn begin(
        cx: &'a Cx<'a>,
        query: &'a GrepQuery,
        cancelled: &'a (dyn Fn() -> bool + Sync),
        began: Instant,
    ) -> Search<'a> {
        let stop = Deadline::new(cx.search_deadline(), cancelled);
        let listing = list(cx, query, &stop);
        let mut unsearched = Unsearched::default();
        let files = choose(cx, query, &listing, query.hidden, &mut unsearched);
        let pruned = listing.pruned();
        let mut search = Search { cx, query, began, stop, listing, files, pruned, unsearched };
        if query.sort == Sort::Modified {
            search.newest_first();
        }
        search
    }

    /// Searches the files in order until `take` returns false.
    pub(super) fn run(
        &self,
        keep: MatchOptions,
        mut take: impl FnMut(Found) -> bool + Send,
    ) -> Searched {
        let progress = self.cx.progress_to();
        let total = Some(self.files.len() as u64);
        let mut done = 0;
        grep(&self.grep(&self.query.pattern, keep, &self.stop), &self.files, |file, hits, stamp| {
            done += 1;
            if done % PROGRESS_FILES == 0 {
                progress(Progress { done, total, message: "files with matches" });
            }
            take(Found { file, hits, stamp })
        })
    }

    /// Searches one file again.
    pub(super) fn again(&self, file: FileId, keep: MatchOptions) -> Option<LineMatches> {
        grep_ignored(&self.grep(&self.query.pattern, keep, &self.stop), file, keep)
    }

    /// The search with another pattern.
    pub(super) fn grep<'b>(
        &'b self,
        pattern: &'b Pattern,
        keep: MatchOptions,
        stop: &'b Deadline<'b>,
    ) -> Grep<'b> {
        let limits = self.cx.limits();
        let named = self.query.scope.is_file();
        Grep {
            tree: &self.query.scope.tree,
            listing: &self.listing,
            pattern,
            letters: &SearchDecoder,
            tables: self.cx.listing_caches(&self.query.scope.tree),
            // A file that `path` names is always searched: in windows, or whole if matches may span lines.
            max_bytes: if named && pattern.multiline() {
                limits.edit_bytes
            } else {
                limits.search_bytes
            },
            named,
            keep,
            stop,
        }
    }

    pub(super) fn rank(&self, found: &Found) -> Rank {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        Rank {
            definition: found.hits.definition,
            count: found.hits.count,
            age: Rank::age(found.stamp.modified.0, now),
            path_length: self.listing.path(found.file).as_os_str().len(),
        }
    }

    /// Sorts files by relevance. Files of equal rank stay sorted by path.
    pub(super) fn by_relevance(&self, found: Vec<Found>) -> Vec<Found> {
        let mut ranked: Vec<(Rank, Found)> =
            found.into_iter().map(|found| (self.rank(&found), found)).collect();
        ranked.sort_by(|(a, _), (b, _)| a.compare(b));
        ranked.into_iter().map(|(_, found)| found).collect()
    }

    pub(super) fn show(&self, file: FileId) -> String {
        self.cx.show_in(&self.query.scope.tree, &self.listing.path(file))
    }

    pub(super) fn skipped_files(&self) -> SkippedFiles<'_> {
        SkippedFiles { cx: self.cx, scope: &self.query.scope, pruned: &self.pruned }
    }

    /// The first line of the reply, if the pattern was interpreted as text.
    pub(super) fn header(&self) -> String {
        match self.query.pattern.understood() {
            PatternSyntax::AsText { why, column } => format!(
                "[not a regular expression ({why}, at column {column}): searched as plain text]\n"
            ),
            _ => String::new(),
        }
    }

    /// Notes about files and lines that could not be searched.
    pub(super) fn unsearched_notes(&self, searched: &Searched) -> Vec<String> {
        let mut unsearched_notes = self.skipped_files().unsearched_notes();
        let tree = &self.query.scope.tree;
        unsearched_notes
            .extend(self.cx.listing_caches(tree).and_then(|tables| tables.take_alarm(tree)));
        let skipped = &searched.skipped;
        if skipped.unreadable > 0 {
            let names = self.skipped_files().names(&skipped.unreadable_names, skipped.unreadable);
            unsearched_notes
                .push(format!("{} cannot be read: {names}", counted(skipped.unreadable, "file")));
        }
        unsearched_notes.extend(self.large(searched));
        unsearched_notes.extend(self.undecided(searched));
        if self.unsearched.denied > 0 {
            let files = counted(self.unsearched.denied, "file");
            unsearched_notes.push(format!("{files} skipped because of the user's rules"));
        }
        if !self.listing.complete || !searched.complete {
            unsearched_notes.push(format!(
                "out of time after {} of {}{}: use a narrower path or glob",
                searched.searched,
                counted(self.files.len() as u64, "file"),
                if self.listing.complete { "" } else { " and more" },
            ));
        }
        unsearched_notes
    }

    /// The note about files that are too large to search.
    fn large(&self, searched: &Searched) -> Option<String> {
        let skipped = &searched.skipped;
        if skipped.large == 0 {
            return None;
        }
        let names = self.skipped_files().names(&skipped.large_names, skipped.large);
        Some(if self.query.scope.is_file() {
            format!("{names} is too large for multiline; search it without multiline")
        } else {
            let files = counted(skipped.large, "file");
            format!("{files} skipped as too large ({names}); give one as path to search it")
        })
    }

    /// The note about lines on which the pattern backtracks too much.
    fn undecided(&self, searched: &Searched) -> Option<String> {
        if searched.undecided == 0 {
            return None;
        }
        let tree = &self.query.scope.tree;
        let named = searched.undecided_lines.iter().map(|(path, lines)| {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            format!("{}:{}", self.cx.show_in(tree, path), lines.join(","))
        });
        let mut named: Vec<String> = named.collect();
        let listed: u64 =
            searched.undecided_lines.iter().map(|(_, lines)| lines.len() as u64).sum();
        if listed < searched.undecided {
            named.push("…".to_owned());
        }
        // If matches can span lines, the result is unknown from the named line on.
        let from = if self.query.pattern.multiline() { "from " } else { "" };
        let why = match self.query.pattern.understood() {
            PatternSyntax::WithLookAround => {
                "the pattern backtracks too much there; use one without look-around"
            }
            _ => "the line is too long to search",
        };
        Some(format!(
            "undecided: {from}{} in {} ({}); {why}",
            counted(searched.undecided, "line"),
            counted(searched.undecided_files, "file"),
            named.join(", "),
        ))
    }

    /// Adds statistics and skipped files to the metadata.
    pub(super) fn facts(&self, reply: Reply, searched: &Searched) -> Reply {
        let skipped = &searched.skipped;
        reply
            .with("pattern", self.query.text.as_str())
            .with("offset", self.query.offset)
            .with("head_limit", self.query.limit)
            .with("files_searched", searched.searched)
            .with("undecided_lines", searched.undecided)
            .with(
                "files_skipped",
                json!({
                    "binary": skipped.binary,
                    "large": skipped.large,
                    "unreadable": skipped.unreadable,
                    "hidden": self.unsearched.hidden,
                    "ignored": self.pruned.ignored_files,
                    "ignored_directories": self.pruned.ignored_directories,
                }),
            )
    }

    /// Whether everything was searched.
    pub(super) fn is_complete(&self, searched: &Searched) -> bool {
        self.listing.complete
            && searched.complete
            && self.unsearched.denied == 0
            && searched.undecided == 0
            && searched.skipped.unreadable + searched.skipped.large == 0
            && self.pruned.unreadable + self.pruned.too_deep == 0
    }

    fn newest_first(&mut self) {
        let modified = toolcrib_search::mtimes(&self.query.scope.tree, &self.listing, &self.files);
        let mut stamped: Vec<_> = modified.into_iter().zip(self.files.iter().copied()).collect();
        stamped.sort_by_key(|(modified, _)| std::cmp::Reverse(*modified));
        self.files = stamped.into_iter().map(|(_, file)| file).collect();
    }
}

/// The content of a file, by its path from the root. `None` if it cannot be read, or is larger than `most`.
pub(super) fn bytes(tree: &BulkReader, path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let directory = tree.directory(path.parent()?).ok()?;
    let read = directory.take(path.file_name()?, most, &mut bytes);
    matches!(read, Ok(WholeRead::Whole(_))).then_some(bytes)
}

/// Lists the files below the start directory.
fn list(cx: &Cx<'_>, query: &GrepQuery, stop: &Deadline<'_>) -> Listing {
    if query.scope.is_file() {
        Listing::of_file(query.scope.start())
    } else {
        cx.list_tree(&query.walk(query.ignored, &query.named(), stop))
    }
}

impl GrepQuery {
    pub(super) fn walk<'b>(
        &'b self,
        ignored: bool,
        named: &'b [PathBuf],
        stop: &'b Deadline<'b>,
    ) -> Walk<'b> {
        let (tree, start) = (&self.scope.tree, self.scope.start());
        Walk { tree, start, ignored, named, own: &self.scope.hidden, stop }
    }

    /// Paths that the arguments name explicitly, which ignore rules do not hide.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        self.filter.named().iter().map(|named| self.scope.start().join(named)).collect()
    }
}

/// The files to search, with hidden ones if `hidden`. Symlinks are excluded: their targets have their own entries.
pub(super) fn choose(
    cx: &Cx<'_>,
    query: &GrepQuery,
    listing: &Listing,
    hidden: bool,
    unsearched: &mut Unsearched,
) -> Arc<[FileId]> {
    let named = query.scope.is_file();
    let filter = &query.filter;
    if !named && hidden && filter.wants_all() && !cx.keeps_any_back() {
        return listing.files();
    }
    let may_have = |names: &[u8]| named || filter.may_want_among(names);
    let chosen = listing.choose(may_have, |file| {
        if named {
            return true;
        }
        let is_wanted = !file.is_link()
            && (filter.wants_name(file.name()))
                .unwrap_or_else(|| filter.wants(file.path_beneath()));
        if !is_wanted {
            return false;
        }
        if file.is_hidden() && !hidden {
            unsearched.hidden += 1;
            return false;
        }
        if cx.keeps_any_back() && cx.keeps_back(&query.scope.tree, file.path()) {
            unsearched.denied += 1;
            return false;
        }
        true
    });
    chosen.into()
}
