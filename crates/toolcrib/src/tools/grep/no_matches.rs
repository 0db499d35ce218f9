//! The reply without matches: the number of files searched, skipped files, and alternatives.

use std::time::{Duration, Instant};

use toolcrib_search::{
    Listing, MatchOptions, Pattern, PatternOptions, PatternSyntax, Searched, grep, walk_ignored,
};
use toolcrib_text::{truncate_line, visible_name};

use super::search::{Search, Unchosen, choose};
use crate::names::GLOB;
use crate::phrases::counted;
use crate::reply::Reply;

/// A second search takes at most half the time of the first, within these limits. It usually takes one or two
/// milliseconds; on a busy machine it should give the same result.
const LEAST_LOOK: Duration = Duration::from_millis(150);
const LONGEST_LOOK: Duration = Duration::from_millis(300);

/// Characters of the pattern to repeat.
const PATTERN_CHARS: usize = 200;

pub(super) fn reply(search: &Search<'_>, looked: &Searched) -> Reply {
    let asked = search.asked;
    let pattern = truncate_line(&visible_name(asked.text.as_bytes()), PATTERN_CHARS);
    let mut text = search.header();
    text += &match (looked.searched, asked.ground.is_file()) {
        (0, true) => format!("Not searched for `{pattern}`.\n"),
        (files, _) => format!("No match for `{pattern}` in {}.\n", counted(files, "file")),
    };
    let mut notes = skipped(search, looked);
    notes.extend(second_look(search));
    notes.extend(search.unseen(looked));
    for note in notes {
        text += &format!("[{note}]\n");
    }
    search
        .facts(Reply::new(text), looked)
        .with("total_matches", 0)
        .with("returned_matches", 0)
        .with("shown", 0)
        .with("complete", search.saw_all(looked))
}

/// The reply if the offset is past the last match.
pub(super) fn past_the_end(
    search: &Search<'_>,
    looked: &Searched,
    noun: &str,
    total: u64,
    is_total: bool,
) -> Reply {
    let at_least = if is_total { "" } else { "at least " };
    let text = format!(
        "Nothing at offset {}: there are {at_least}{}, the first at offset 0.\n",
        search.asked.offset,
        counted(total, noun)
    );
    search
        .facts(Reply::new(search.header() + &text), looked)
        .with(if is_total { "total" } else { "at_least" }, total)
        .with("returned_matches", 0)
        .with("shown", 0)
        .with("complete", search.saw_all(looked))
}

/// Notes about skipped files.
fn skipped(search: &Search<'_>, looked: &Searched) -> Vec<String> {
    let mut notes = Vec::new();
    let skipped = &looked.skipped;
    if search.files.is_empty() && search.unchosen.hidden == 0 && !search.asked.filter.wants_all() {
        notes.push(format!("no file matches glob and type; {GLOB} lists files"));
    }
    if skipped.binary > 0 {
        notes.push(format!("{} skipped: not text", counted(skipped.binary, "file")));
    }
    if skipped.large > 0 {
        let names = search.left_out().names(&skipped.large_names, skipped.large);
        let files = counted(skipped.large, "file");
        notes.push(match search.asked.ground.is_file() {
            true => format!("{names} is too large for multiline; search it without multiline"),
            false => {
                format!("{files} skipped as too large ({names}); give one as path to search it")
            }
        });
    }
    if search.unchosen.hidden > 0 {
        notes.push(format!(
            "{} skipped; use hidden: true",
            counted(search.unchosen.hidden, "hidden file")
        ));
    }
    notes
}

/// Searches for the same text in ignored files, in another case, and as plain text.
fn second_look(search: &Search<'_>) -> Vec<String> {
    let asked = search.asked;
    let mut notes = Vec::new();
    let time = (search.began.elapsed() / 2).clamp(LEAST_LOOK, LONGEST_LOOK);
    let stop = search.stop.not_after(Instant::now() + time);
    let again = |text: &str, literal: bool, ignore_case: bool, multiline: bool| {
        let wanted = PatternOptions { pattern: text, literal, ignore_case, multiline };
        let pattern = Pattern::new(wanted, &asked.processes, &stop);
        look_for(search, &pattern.ok()?, None, &stop).0
    };
    let multiline = asked.pattern.multiline();
    let is_text =
        asked.literal || matches!(asked.pattern.understood(), PatternSyntax::AsText { .. });
    if !is_text && asked.text.contains("\\|") {
        let meant = asked.text.replace("\\|", "|");
        let found = again(&meant, false, asked.ignore_case, multiline)
            .map_or(String::new(), |first| format!("; {meant} is in {first}"));
        notes.push(format!("in this syntax | means \"or\" and \\| is a literal |{found}"));
    }
    if let Some(ignored) = search.left_out().ignored() {
        let walk = asked.walk(true, &[], &stop);
        let listing = walk_ignored(&walk, &search.listing);
        let (first, looked) = look_for(search, &asked.pattern, Some(&listing), &stop);
        notes.push(match first {
            Some(first) => format!("{ignored} skipped; ignored: true finds it in {first}"),
            None if listing.complete && !stop.is_over() && looked.complete => {
                format!("{ignored} skipped; {}", not_there_either(search, &looked))
            }
            None => format!("{ignored} skipped; ignored: true searches them"),
        });
    }
    if !is_text
        && regex_syntax_in(&asked.text)
        && let Some(first) = again(&asked.text, true, asked.ignore_case, multiline)
    {
        notes.push(format!("as plain text it is in {first}; use literal: true"));
    }
    if !is_text
        && !multiline
        && [".*", ".+", "\\s", "[^"].iter().any(|crossing| asked.text.contains(crossing))
        && let Some(first) = again(&asked.text, false, asked.ignore_case, true)
    {
        notes.push(format!("across lines it is in {first}; use multiline: true"));
    }
    if !asked.ignore_case
        && let Some(first) = again(&asked.text, asked.literal, true, multiline)
    {
        notes.push(format!("in another case it is in {first}; use \"-i\": true"));
    }
    notes
}

/// Describes the search in ignored files without a match. It claims "no match" only for files that were read.
fn not_there_either(search: &Search<'_>, looked: &Searched) -> String {
    let skipped = &looked.skipped;
    let mut unsearched = Vec::new();
    if skipped.large > 0 {
        let names = search.left_out().names(&skipped.large_names, skipped.large);
        unsearched
            .push(format!("{} too large ({names}), searched if given as path", skipped.large));
    }
    if skipped.binary > 0 {
        unsearched.push(format!("{} not text", skipped.binary));
    }
    if skipped.unreadable > 0 {
        unsearched.push(format!("{} unreadable", skipped.unreadable));
    }
    if looked.undecided > 0 {
        unsearched.push(counted(looked.undecided, "undecided line"));
    }
    match (unsearched.is_empty(), looked.searched) {
        (true, _) => "no match in them either".to_owned(),
        (false, 0) => format!("not searched either: {}", unsearched.join(", ")),
        (false, files) => {
            let files = counted(files, "file");
            format!("no match in {files} of them; not searched: {}", unsearched.join(", "))
        }
    }
}

/// The first matching file among the searched files or those of another listing, and the statistics of the search.
fn look_for(
    search: &Search<'_>,
    pattern: &Pattern,
    listing: Option<&Listing>,
    stop: &toolcrib_search::Deadline<'_>,
) -> (Option<String>, Searched) {
    let mut unchosen = Unchosen::default();
    let others = listing.map(|listing| choose(search.cx, search.asked, listing, &mut unchosen));
    let listing = listing.unwrap_or(&search.listing);
    let files = others.as_ref().unwrap_or(&search.files);
    let mut first = None;
    let mut asked = search.grep(pattern, MatchOptions::count(1), stop);
    asked.listing = listing;
    let mut looked = grep(&asked, files, |file, _, _| {
        first = Some(listing.path(file));
        false
    });
    looked.complete &= unchosen.hidden + unchosen.kept_back == 0;
    (first.map(|first| search.cx.show_in(&search.asked.ground.tree, &first)), looked)
}

fn regex_syntax_in(pattern: &str) -> bool {
    pattern.contains(['.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '^', '$', '|', '\\'])
}
