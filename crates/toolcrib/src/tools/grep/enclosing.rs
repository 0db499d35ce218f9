//! Names the definitions that the shown lines are in.

use std::borrow::Cow;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_fs::in_parallel;
use toolcrib_search::{Decoded, Decoder, FileId, LineMatches, ShownLine};
use toolcrib_syntax::{Definition, MAX_BYTES, Outline};
use toolcrib_text::visible;

use super::search::{Found, Search};
use crate::phrases::counted;
use crate::search_decoder::SearchDecoder;
use crate::source_syntax::{ParseBudget, Unparsed, has_definitions};

/// Megabytes and time for all files of a reply: about a quarter of a second.
const MEGABYTES: u64 = 1;
const MAX_TIME: Duration = Duration::from_secs(1);

/// With more threads, starting them would take longer than what they save.
const MAX_THREADS: usize = 8;

/// Characters of a name with those around it. The end is kept.
const MAX_CHARS: usize = 120;

/// Names the definitions of the files of a reply.
pub(super) struct Enclosing {
    budget: ParseBudget,
    /// Files whose definitions are not known.
    unnamed: u64,
}

/// The definition that each shown line of a file is in, in words. Empty for lines outside definitions.
pub(super) type Names = Vec<String>;

impl Enclosing {
    pub(super) fn new() -> Enclosing {
        Enclosing { budget: ParseBudget::megabytes(MEGABYTES, MAX_TIME), unnamed: 0 }
    }

    /// Parses these files on all cores, so that their definitions are known when their lines are shown.
    pub(super) fn parse<'f>(search: &Search<'_>, files: impl Iterator<Item = &'f Found>) {
        if !search.query.numbers {
            return;
        }
        let mut bytes = 0;
        let is_within_budget = |one: &&Found| {
            bytes += one.stamp.size;
            bytes <= MEGABYTES << 20
        };
        let files: Vec<PathBuf> = files
            .take_while(is_within_budget)
            .map(|one| search.listing.path(one.file))
            .filter(|path| source_name(path).is_some())
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (tree, outlines) = (&search.query.scope.tree, search.cx.outlines());
        let (stop, until) = (&search.stop, Instant::now() + MAX_TIME);
        let parse = |path: &PathBuf| {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.is_over() {
                return Ok::<(), Infallible>(());
            }
            let bytes = super::search::bytes(tree, path, MAX_BYTES as u64);
            if let Some((name, bytes)) = source_name(path).zip(bytes) {
                let budget = ParseBudget::megabytes(MEGABYTES, left);
                // A failure is noticed again when the file is shown.
                let _ = outlines.of_file(name, &bytes, &budget);
            }
            Ok(())
        };
        let Ok(()) = in_parallel(threads.min(MAX_THREADS), &files, parse);
    }

    /// The definitions of the shown lines. `None` if they are not known.
    pub(super) fn names(
        &mut self,
        search: &Search<'_>,
        file: FileId,
        hits: &LineMatches,
    ) -> Option<Names> {
        let path = search.listing.path(file);
        let name = source_name(&path).filter(|_| search.query.numbers)?;
        let named = super::search::bytes(&search.query.scope.tree, &path, MAX_BYTES as u64)
            .ok_or(Unparsed::TooLarge);
        let named = named.and_then(|bytes| {
            let outline = search.cx.outlines().of_file(name, &bytes, &self.budget)?;
            Ok(has_lines(&bytes, &hits.lines).then(|| names(&outline, &hits.lines)))
        });
        match named {
            Ok(Some(names)) => Some(names),
            Ok(None) | Err(Unparsed::TooLarge | Unparsed::OverBudget) => {
                self.unnamed += 1;
                None
            }
            Err(Unparsed::Language | Unparsed::Binary) => None,
        }
    }

    /// The note about files whose definitions are not known.
    pub(super) fn note(&self) -> String {
        match self.unnamed {
            0 => String::new(),
            files => format!("[definitions not named in {}]\n", counted(files, "file")),
        }
    }
}

/// The name of a file without directories, if its language is supported.
fn source_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str().filter(|name| has_definitions(name))
}

/// Whether the bytes have the shown lines: the file may have changed since it was searched.
fn has_lines(bytes: &[u8], shown: &[ShownLine]) -> bool {
    let Some(text) = text_of(bytes) else { return false };
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    shown.iter().filter(|line| line.hit.is_some()).all(|line| {
        let first = line.text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let at = usize::try_from(line.number - 1).unwrap_or(usize::MAX);
        let first = first.trim_ascii_end();
        lines.get(at).is_some_and(|line| {
            first.is_empty() || line.windows(first.len()).any(|part| part == first)
        })
    })
}

/// The text of a file, as it was searched. Finding the encoding takes longer than the search, so plain text is recognized
/// first.
fn text_of(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let has = |byte| memchr::memchr(byte, bytes).is_some();
    if has(b'\n') && !has(0) && std::str::from_utf8(bytes).is_ok() {
        return Some(bytes.into());
    }
    match SearchDecoder.read(bytes) {
        Decoded::Text(text, _) => Some(text),
        Decoded::Binary => None,
    }
}

/// The definition of each line. A context line has that of the next match in its group, or of the previous one.
fn names(outline: &Outline, shown: &[ShownLine]) -> Names {
    let mut names = vec![String::new(); shown.len()];
    let hits: Vec<(usize, u64)> = (0..)
        .zip(shown)
        .filter(|(_, line)| line.hit.is_some())
        .map(|(at, line)| (at, line.number))
        .collect();
    let around = |line: u64| outline.around(line);
    let same = |one: &(usize, u64), next: &(usize, u64)| {
        around(one.1).map(std::ptr::from_ref) == around(next.1).map(std::ptr::from_ref)
    };
    for group in hits.chunk_by(same) {
        let Some((_, first)) = group.first() else { continue };
        let Some(mut one) = around(*first) else { continue };
        // The line with the name need not be introduced by it.
        if group.iter().all(|(_, line)| (one.first_line..=one.name_line).contains(line)) {
            match outline.outer(one) {
                Some(outer) => one = outer,
                None => continue,
            }
        }
        for (at, _) in group {
            names[*at] = described(outline, one);
        }
    }
    spread(&mut names, shown);
    names
}

/// Gives context lines the definition of a match beside them.
fn spread(names: &mut [String], shown: &[ShownLine]) {
    for at in (0..shown.len().saturating_sub(1)).rev() {
        let is_adjacent = shown[at].number + 1 == shown[at + 1].number;
        if shown[at].hit.is_none() && is_adjacent {
            names[at] = names[at + 1].clone();
        }
    }
    for at in 1..shown.len() {
        let is_last = shown.get(at + 1).is_none_or(|next| shown[at].number + 1 != next.number);
        let follows = shown[at - 1].number + 1 == shown[at].number;
        if shown[at].hit.is_none() && follows && (is_last || names[at].is_empty()) {
            names[at] = names[at - 1].clone();
        }
    }
}

fn described(outline: &Outline, one: &Definition) -> String {
    let path = visible(outline.path(one).as_bytes());
    let extra = path.chars().count().saturating_sub(MAX_CHARS);
    match extra {
        0 => path,
        _ => format!("…{}", path.chars().skip(extra + 1).collect::<String>()),
    }
}
