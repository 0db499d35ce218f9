//! The reply with the definitions of a name.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolcrib_fs::BulkReader;
use toolcrib_search::{MatchOptions, Searched, map_in_order};
use toolcrib_syntax::{Class, Definition, MAX_BYTES, Outline};
use toolcrib_text::visible;

use super::no_matches;
use super::query::last_name;
use super::search::{Found, Search, bytes};
use crate::outlines::Outlines;
use crate::phrases::{counted, more_note, range_text};
use crate::reply::Reply;
use crate::source_syntax::{ParseBudget, Unparsed, base_name, may_have_definitions};
use crate::suggest::similar_names;

/// Megabytes and time for one file: several times the largest that is parsed.
const MEGABYTES: u64 = 10;
const MAX_TIME: Duration = Duration::from_secs(5);

/// Hits that are examined in a file for one that looks like a definition.
const COUNTED_HITS: u64 = 100;

/// Time, files and names for similar names, and how many are shown.
const SIMILAR_TIME: Duration = Duration::from_millis(300);
const SIMILAR_FILES: usize = 2_000;
const SIMILAR_NAMES: usize = 100_000;
const NAMED_SIMILAR: usize = 3;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

/// A definition in a reply.
struct Entry {
    file: String,
    line: u64,
    /// Lines, names around it, and signature.
    text: String,
    class: Class,
}

/// The definitions found, and the files that could not be examined.
#[derive(Default)]
struct Definitions {
    entries: Vec<Entry>,
    unsupported: u64,
    unparsed: u64,
    out_of_time: u64,
    /// Files with syntax errors that can concern the definitions, and the first line of each.
    broken: Vec<(String, u64)>,
}

/// Files with syntax errors that a reply names.
const MAX_BROKEN: usize = 3;

/// The definitions of a name in one file.
struct InFile {
    entries: Vec<Entry>,
    /// The line of a syntax error that can concern them.
    error_line: Option<u64>,
}

pub(super) fn reply(search: &Search<'_>) -> Reply {
    let mut found: Vec<Found> = Vec::new();
    let searched = search.run(MatchOptions::count(COUNTED_HITS), |one| {
        found.push(one);
        true
    });
    if found.is_empty() {
        return no_matches::reply(search, &searched);
    }
    // The likely files first, for the case that there is no time for all.
    found.sort_by_key(|one| !one.hits.definition);
    let mut all = examine(search, &found);
    // The name may be used in many files whose errors do not matter.
    let has_entries = !all.entries.is_empty();
    let is_listed = |file: &str| all.entries.iter().any(|entry| entry.file == file);
    let broken = std::mem::take(&mut all.broken).into_iter();
    let broken = broken.filter(|(file, _)| !has_entries || is_listed(file));
    all.broken = broken.take(MAX_BROKEN).collect();
    // Declarations and members are shown if there is no definition.
    let rank = |entry: &Entry| entry.class.rank();
    let best = all.entries.iter().map(rank).min();
    all.entries.retain(|entry| Some(rank(entry)) == best);
    all.entries.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
    page(search, &searched, &all, found.len() as u64)
}

/// Names that are similar to one that occurs in no file, with the place of one definition of each.
pub(super) fn similar_names_note(search: &Search<'_>) -> Option<String> {
    let stop = search.stop.not_after(Instant::now() + SIMILAR_TIME);
    let candidates: Vec<Candidate> = search
        .files
        .iter()
        .take(SIMILAR_FILES)
        .map(|file| Candidate { path: search.listing.path(*file), shown: search.show(*file) })
        .filter(|one| may_have_definitions(base_name(&one.shown)))
        .collect();
    let (tree, outlines) = (&search.query.scope.tree, search.cx.outlines());
    let work = |(): &mut (), one: &Candidate| -> Vec<(String, u64)> {
        if stop.is_over() {
            return Vec::new();
        }
        let Some(bytes) = bytes(tree, &one.path, MAX_BYTES as u64) else { return Vec::new() };
        let budget = ParseBudget::megabytes(MEGABYTES, SIMILAR_TIME);
        let Ok(outline) = outlines.of_file(base_name(&one.shown), &bytes, &budget) else {
            return Vec::new();
        };
        let defined = outline.definitions.iter().filter(|one| !one.name.is_empty());
        defined.map(|one| (one.name.clone(), one.first_line)).collect()
    };
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    map_in_order(
        &candidates,
        || (),
        work,
        |one, names| {
            for (name, line) in names {
                places.entry(name).or_insert_with(|| format!("{}:{line}", one.shown));
            }
            places.len() < SIMILAR_NAMES
        },
    );
    let name = last_name(&search.query.text);
    let similar = similar_names(name, places.keys().map(String::as_str), NAMED_SIMILAR);
    let named = |name: &&str| {
        let place = places.get(*name).map_or("", String::as_str);
        format!("{} ({place})", visible(name.as_bytes()))
    };
    let named: Vec<String> = similar.iter().map(named).collect();
    (!named.is_empty()).then(|| format!("similar definitions: {}", named.join(", ")))
}

/// A file that has the name.
struct Candidate {
    path: PathBuf,
    shown: String,
}

/// Why a file was not examined. `None` if the time was over.
type Unexamined = Option<Unparsed>;

/// Parses the files with the name, on all cores, until the time is over.
fn examine(search: &Search<'_>, found: &[Found]) -> Definitions {
    let candidate = |one: &Found| Candidate {
        path: search.listing.path(one.file),
        shown: search.show(one.file),
    };
    let candidates: Vec<Candidate> = found.iter().map(candidate).collect();
    let (tree, name, stop) = (&search.query.scope.tree, &search.query.text, &search.stop);
    let outlines = search.cx.outlines();
    let work = |(): &mut (), one: &Candidate| {
        if stop.is_over() { Err(None) } else { entries(tree, outlines, one, name).map_err(Some) }
    };
    let mut all = Definitions::default();
    let take = |one: &Candidate, result: Result<InFile, Unexamined>| {
        match result {
            Ok(found) => {
                all.broken.extend(found.error_line.map(|line| (one.shown.clone(), line)));
                all.entries.extend(found.entries);
            }
            Err(None) => all.out_of_time += 1,
            Err(Some(Unparsed::Language | Unparsed::Binary)) => all.unsupported += 1,
            Err(Some(Unparsed::TooLarge | Unparsed::OverBudget)) => all.unparsed += 1,
        }
        true
    };
    map_in_order(&candidates, || (), work, take);
    all
}

/// The definitions of a name in a file.
fn entries(
    tree: &BulkReader,
    outlines: &Outlines,
    one: &Candidate,
    name: &str,
) -> Result<InFile, Unparsed> {
    let shown = one.shown.as_str();
    if !may_have_definitions(base_name(shown)) {
        return Err(Unparsed::Language);
    }
    let bytes = bytes(tree, &one.path, MAX_BYTES as u64).ok_or(Unparsed::TooLarge)?;
    let budget = ParseBudget::megabytes(MEGABYTES, MAX_TIME);
    let outline = outlines.of_file(base_name(shown), &bytes, &budget)?;
    let path = shown.rsplit_once('.').map_or(shown, |(path, _)| path);
    let places: Vec<&str> = path.split('/').filter(|place| !place.is_empty()).collect();
    let found: Vec<&Definition> = outline.find(name, &places).map(|(_, one)| one).collect();
    let near = |one: &&Definition| outline.error_near(one.doc_line, one.last_line);
    // A name without a definition may have lost it.
    let lost = || outline.error_near(0, 0).filter(|_| found.is_empty());
    let error_line = found.iter().find_map(near).or_else(lost);
    let entries = found.iter().map(|one| Entry::new(shown, &outline, one)).collect();
    Ok(InFile { entries, error_line })
}

impl Entry {
    fn new(file: &str, outline: &Outline, one: &Definition) -> Entry {
        let around = outline.outer(one);
        let around = around.map_or(String::new(), |outer| format!("{} › ", outline.path(outer)));
        let mut words = one.signature.split(|c: char| !c.is_alphanumeric());
        let has_word = words.any(|word| word == one.word);
        let word = if has_word { String::new() } else { format!("{} ", one.word) };
        let lines = if one.first_line == one.last_line {
            one.first_line.to_string()
        } else {
            format!("{}-{}", one.first_line, one.last_line)
        };
        let described = visible(format!("{around}{word}{}", one.signature).as_bytes());
        let text = format!("{lines}: {described}\n");
        Entry { file: file.to_owned(), line: one.first_line, text, class: one.class }
    }
}

fn page(search: &Search<'_>, searched: &Searched, all: &Definitions, files: u64) -> Reply {
    let total = all.entries.len() as u64;
    let query = search.query;
    let complete = search.is_complete(searched) && all.out_of_time + all.unparsed == 0;
    if total > 0 && query.offset >= total {
        return no_matches::past_the_end(search, searched, "definition", total, complete);
    }
    let room = search.cx.limits().reply_chars.saturating_sub(NOTE_CHARS);
    let skip = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let (mut text, mut shown, mut chars) = (String::new(), 0, 0);
    let mut by_file: BTreeMap<&str, String> = BTreeMap::new();
    for entry in all.entries.iter().skip(skip).take(most) {
        chars += entry.text.chars().count() + entry.file.chars().count();
        if chars > room && shown > 0 {
            break;
        }
        *by_file.entry(&entry.file).or_default() += &entry.text;
        shown += 1;
    }
    for (at, (file, entries)) in by_file.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let _ = write!(text, "{gap}{file}\n{entries}");
    }
    if total == 0 {
        let name = visible(query.text.as_bytes());
        let files = counted(files, "file");
        let it = match last_name(&query.text) {
            last if last == query.text.trim().trim_end_matches("()") => "it".to_owned(),
            last => format!("`{}`", visible(last.as_bytes())),
        };
        let _ = writeln!(text, "No definition of `{name}`; {it} occurs in {files}.");
    }
    let next = query.offset + shown;
    if next < total {
        let range = range_text("definition", query.offset + 1, next);
        text += &more_note(&range, next, complete.then_some(total));
    }
    for note in notes(all, total).into_iter().chain(search.unsearched_notes(searched)) {
        let _ = writeln!(text, "[{note}]");
    }
    let key = if complete { "total" } else { "at_least" };
    search
        .facts(Reply::new(text), searched)
        .with(key, total)
        .with("returned_matches", shown)
        .with("shown", shown)
        .with("complete", next >= total && complete)
}

/// Notes about files that could not be examined.
fn notes(all: &Definitions, total: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if all.unsupported > 0 && total == 0 {
        let files = counted(all.unsupported, "file");
        notes.push(format!("{files} not parsed: language not supported"));
    }
    for (file, line) in &all.broken {
        notes.push(format!(
            "{file} does not parse at line {line}: its definitions may be incomplete"
        ));
    }
    if all.unparsed > 0 {
        let files = counted(all.unparsed, "file");
        notes.push(format!("{files} not parsed: too large"));
    }
    if all.out_of_time > 0 {
        let files = counted(all.out_of_time, "file");
        notes.push(format!("{files} not parsed: out of time; use a narrower path"));
    }
    notes
}
