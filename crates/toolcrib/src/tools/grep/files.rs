//! The reply with matching files.

use toolcrib_search::MatchOptions;

use super::Sort;
use super::no_matches;
use super::search::{Found, Search};
use crate::phrases::{more_note, range_text};
use crate::reply::Reply;

/// Hits to count in a file for its relevance. More hits do not make it more relevant.
const COUNTED_HITS: u64 = 100;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

pub(super) fn reply(search: &Search<'_>) -> Reply {
    let query = search.query;
    let by_relevance = query.sort == Sort::Relevance;
    let wanted = query.offset.saturating_add(query.limit);
    let mut found: Vec<Found> = Vec::new();
    let keep = MatchOptions::count(if by_relevance { COUNTED_HITS } else { 1 });
    let searched = search.run(keep, |one| {
        found.push(one);
        by_relevance || found.len() as u64 <= wanted
    });
    if by_relevance {
        found = search.by_relevance(found);
    }
    if found.is_empty() {
        return no_matches::reply(search, &searched);
    }
    let total = found.len() as u64;
    let is_total = (by_relevance || total <= wanted) && search.is_complete(&searched);
    if query.offset >= total {
        return no_matches::past_the_end(search, &searched, "file", total, is_total);
    }
    let first = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let room = search.cx.limits().reply_chars.saturating_sub(NOTE_CHARS);
    let mut text = search.header();
    let (mut files, mut chars) = (Vec::new(), 0);
    for one in found.iter().skip(first).take(most) {
        let path = search.show(one.file);
        chars += path.chars().count() + 1;
        if chars > room && !files.is_empty() {
            break;
        }
        text += &path;
        text.push('\n');
        files.push(path);
    }
    let next = query.offset + files.len() as u64;
    if next < total {
        let range = range_text("file", query.offset + 1, next);
        text += &more_note(&range, next, is_total.then_some(total));
    }
    for unsearched_notes in search.unsearched_notes(&searched) {
        text += &format!("[{unsearched_notes}]\n");
    }
    let key = if is_total { "total" } else { "at_least" };
    search
        .facts(Reply::new(text), &searched)
        .with("shown", files.len())
        .with(key, total)
        .with("returned_matches", files.len())
        .with("complete", next >= total && search.is_complete(&searched))
        .with("files", files)
}
