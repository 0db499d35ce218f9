//! The reply without matches: the number of files searched, skipped files, and alternatives.

use std::time::{Duration, Instant};

use toolcrib_search::{
    Listing, MatchOptions, Pattern, PatternOptions, PatternSyntax, Searched, grep, walk_ignored,
};
use toolcrib_text::{truncate_line, visible_name};

use super::search::{Search, Unsearched, choose};
use super::{OutputMode, definitions};
use crate::message_names::GLOB;
use crate::phrases::counted;
use crate::reply::Reply;

/// A second search takes at most half the time of the first, within these limits. It usually takes one or two
/// milliseconds; on a busy machine it should give the same result.
const MIN_SECOND_SEARCH: Duration = Duration::from_millis(150);
const MAX_SECOND_SEARCH: Duration = Duration::from_millis(300);

/// Characters of the pattern to repeat.
const PATTERN_CHARS: usize = 200;

pub(super) fn reply(search: &Search<'_>, searched: &Searched) -> Reply {
    let query = search.query;
    let pattern = truncate_line(&visible_name(query.text.as_bytes()), PATTERN_CHARS);
    let mut text = search.header();
    let is_complete = search.listing.complete && searched.complete;
    text += &match (searched.searched, query.scope.is_file()) {
        (0, true) => format!("Not searched for `{pattern}`.\n"),
        (0, false) => format!("No file was searched for `{pattern}`.\n"),
        (files, _) if !is_complete => format!(
            "Incomplete search: no match for `{pattern}` in the first {}.\n",
            counted(files, "file")
        ),
        (files, _) if searched.undecided > 0 => format!(
            "No match for `{pattern}` in the decided lines of {}.\n",
            counted(files, "file")
        ),
        (files, _) => format!("No match for `{pattern}` in {}.\n", counted(files, "file")),
    };
    let mut notes = skipped(search, searched);
    notes.extend(suggestions(search));
    notes.extend(search.unsearched_notes(searched));
    for note in notes {
        text += &format!("[{note}]\n");
    }
    search
        .facts(Reply::new(text), searched)
        .with("total_matches", 0)
        .with("returned_matches", 0)
        .with("shown", 0)
        .with("complete", search.is_complete(searched))
}

/// The reply if the offset is past the last match.
pub(super) fn past_the_end(
    search: &Search<'_>,
    searched: &Searched,
    noun: &str,
    total: u64,
    is_total: bool,
) -> Reply {
    let at_least = if is_total { "" } else { "at least " };
    let text = format!(
        "Nothing at offset {}: there are {at_least}{}, the first at offset 0.\n",
        search.query.offset,
        counted(total, noun)
    );
    search
        .facts(Reply::new(search.header() + &text), searched)
        .with(if is_total { "total" } else { "at_least" }, total)
        .with("returned_matches", 0)
        .with("shown", 0)
        .with("complete", search.is_complete(searched))
}

/// Notes about skipped files.
fn skipped(search: &Search<'_>, searched: &Searched) -> Vec<String> {
    let mut notes = Vec::new();
    let skipped = &searched.skipped;
    if search.files.is_empty() && search.unsearched.hidden == 0 && !search.query.filter.wants_all()
    {
        let fields = search.query.filtered_by;
        notes.push(format!("no file matches {fields}; {GLOB} lists files"));
    }
    if skipped.binary > 0 {
        notes.push(format!("{} skipped: not text", counted(skipped.binary, "file")));
    }
    if search.unsearched.hidden > 0 {
        notes.push(format!(
            "{} skipped; use hidden: true",
            counted(search.unsearched.hidden, "hidden file")
        ));
    }
    notes
}

/// Searches for the same text in ignored files, in another case, and as plain text.
fn suggestions(search: &Search<'_>) -> Vec<String> {
    let query = search.query;
    let mut notes = Vec::new();
    if query.mode == OutputMode::Definitions {
        notes.extend(definitions::similar_names_note(search));
        return notes;
    }
    let time = (search.began.elapsed() / 2).clamp(MIN_SECOND_SEARCH, MAX_SECOND_SEARCH);
    let stop = search.stop.not_after(Instant::now() + time);
    let again = |text: &str, literal: bool, ignore_case: bool, multiline: bool| {
        let wanted = PatternOptions { pattern: text, literal, ignore_case, multiline };
        let pattern = Pattern::new(wanted, &query.processes, &stop);
        first_match(search, &pattern.ok()?, None, &stop).file
    };
    let multiline = query.pattern.multiline();
    let is_text =
        query.literal || matches!(query.pattern.understood(), PatternSyntax::AsText { .. });
    if !is_text && query.text.contains("\\|") {
        let meant = query.text.replace("\\|", "|");
        let found = again(&meant, false, query.ignore_case, multiline)
            .map_or(String::new(), |first| format!("; {meant} is in {first}"));
        notes.push(format!("in this syntax | means \"or\" and \\| is a literal |{found}"));
    }
    if let Some(ignored) = search.skipped_files().ignored() {
        let walk = query.walk(true, &[], &stop);
        let listing = walk_ignored(&walk, &search.listing);
        let among = |hidden| first_match(search, &query.pattern, Some((&listing, hidden)), &stop);
        let mut flags = "ignored: true";
        let mut found = among(query.hidden);
        if found.file.is_none() && found.unsearched.hidden > 0 {
            flags = "hidden: true, ignored: true";
            found = among(true);
        }
        let is_complete = listing.complete
            && !stop.is_over()
            && found.searched.complete
            && found.unsearched.denied == 0;
        notes.push(match found.file {
            Some(first) => format!("{ignored} skipped; {flags} finds it in {first}"),
            None if is_complete => {
                format!("{ignored} skipped; {}", ignored_without_match(search, &found.searched))
            }
            None => {
                let them = search.skipped_files().pronoun();
                format!("{ignored} skipped; {flags} searches {them}")
            }
        });
    }
    if !is_text
        && regex_syntax_in(&query.text)
        && let Some(first) = again(&query.text, true, query.ignore_case, multiline)
    {
        notes.push(format!("as plain text it is in {first}; use literal: true"));
    }
    if !is_text
        && !multiline
        && [".*", ".+", "\\s", "[^"].iter().any(|crossing| query.text.contains(crossing))
        && let Some(first) = again(&query.text, false, query.ignore_case, true)
    {
        notes.push(format!("across lines it is in {first}; use multiline: true"));
    }
    if !query.ignore_case
        && let Some(first) = again(&query.text, query.literal, true, multiline)
    {
        notes.push(format!("in another case it is in {first}; use \"-i\": true"));
    }
    notes
}

/// Describes the search in ignored files without a match. It claims "no match" only for files that were read.
fn ignored_without_match(search: &Search<'_>, searched: &Searched) -> String {
    let skipped = &searched.skipped;
    let mut unsearched = Vec::new();
    if skipped.large > 0 {
        let names = search.skipped_files().names(&skipped.large_names, skipped.large);
        unsearched
            .push(format!("{} too large ({names}), searched if given as path", skipped.large));
    }
    if skipped.binary > 0 {
        unsearched.push(format!("{} not text", skipped.binary));
    }
    if skipped.unreadable > 0 {
        unsearched.push(format!("{} unreadable", skipped.unreadable));
    }
    if searched.undecided > 0 {
        unsearched.push(counted(searched.undecided, "undecided line"));
    }
    match (unsearched.is_empty(), searched.searched) {
        (true, _) => format!("no match in {} either", search.skipped_files().pronoun()),
        (false, 0) => format!("not searched either: {}", unsearched.join(", ")),
        (false, files) => {
            let files = counted(files, "file");
            let them = search.skipped_files().pronoun();
            format!("no match in {files} of {them}; not searched: {}", unsearched.join(", "))
        }
    }
}

/// The result of a second search.
struct SecondSearch {
    /// The first matching file.
    file: Option<String>,
    searched: Searched,
    /// Files that were not chosen.
    unsearched: Unsearched,
}

/// Searches again: the same files, or those of another listing, with hidden ones if the flag is set.
fn first_match(
    search: &Search<'_>,
    pattern: &Pattern,
    among: Option<(&Listing, bool)>,
    stop: &toolcrib_search::Deadline<'_>,
) -> SecondSearch {
    let mut unsearched = Unsearched::default();
    let others = among
        .map(|(listing, hidden)| choose(search.cx, search.query, listing, hidden, &mut unsearched));
    let listing = among.map_or(&search.listing, |(listing, _)| listing);
    let files = others.as_ref().unwrap_or(&search.files);
    let mut first = None;
    let mut query = search.grep(pattern, MatchOptions::count(1), stop);
    query.listing = listing;
    let searched = grep(&query, files, |file, _, _| {
        first = Some(listing.path(file));
        false
    });
    let file = first.map(|first| search.cx.show_in(&search.query.scope.tree, &first));
    SecondSearch { file, searched, unsearched }
}

fn regex_syntax_in(pattern: &str) -> bool {
    pattern.contains(['.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '^', '$', '|', '\\'])
}
