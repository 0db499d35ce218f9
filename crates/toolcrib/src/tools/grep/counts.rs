//! The reply with the number of matches in each file.

use toolcrib_search::MatchOptions;

use super::Sort;
use super::no_matches;
use super::search::{Found, Search};
use crate::phrases::{counted, range_text};
use crate::reply::Reply;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

/// Counts are exact, so every file is searched to its end.
pub(super) fn reply(search: &Search<'_>) -> Reply {
    let query = search.query;
    let mut found: Vec<Found> = Vec::new();
    let searched = search.run(MatchOptions::count(u64::MAX), |one| {
        found.push(one);
        true
    });
    if query.sort == Sort::Relevance {
        found = search.by_relevance(found);
    }
    if found.is_empty() {
        return no_matches::reply(search, &searched);
    }
    let (files, total) = (found.len() as u64, found.iter().map(|one| one.hits.count).sum::<u64>());
    let is_complete = search.is_complete(&searched);
    if query.offset >= files {
        return no_matches::past_the_end(search, &searched, "file", files, is_complete);
    }
    let first = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let room = search.cx.limits().reply_chars.saturating_sub(NOTE_CHARS);
    let mut text = search.header();
    let (mut shown, mut chars) = (0_u64, 0);
    for one in found.iter().skip(first).take(most) {
        let line = format!("{}:{}\n", search.show(one.file), one.hits.count);
        chars += line.chars().count();
        if chars > room && shown > 0 {
            break;
        }
        text += &line;
        shown += 1;
    }
    let next = query.offset + shown;
    let at_least = if is_complete { "" } else { "at least " };
    let (matches, all) = (counted(total, "match"), counted(files, "file"));
    if next < files {
        let range = range_text("file", query.offset + 1, next);
        text +=
            &format!("[{at_least}{matches} in {all}; {range} shown; for more, offset: {next}]\n");
    } else if files != 1 {
        text += &format!("[{at_least}{matches} in {all}]\n");
    }
    for unsearched_notes in search.unsearched_notes(&searched) {
        text += &format!("[{unsearched_notes}]\n");
    }
    let key = if is_complete { "total_matches" } else { "at_least" };
    search
        .facts(Reply::new(text), &searched)
        .with(key, total)
        .with("files_with_matches", files)
        .with("shown", shown)
        .with("returned_matches", shown)
        .with("complete", next >= files && is_complete)
}
