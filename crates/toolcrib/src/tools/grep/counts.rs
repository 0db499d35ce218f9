//! The reply with the number of matches in each file.

use toolcrib_search::MatchOptions;

use super::Sort;
use super::no_matches;
use super::search::{Found, Search};
use crate::phrases::counted;
use crate::reply::Reply;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

/// Counts are exact, so every file is searched to its end.
pub(super) fn reply(search: &Search<'_>) -> Reply {
    let asked = search.asked;
    let mut found: Vec<Found> = Vec::new();
    let looked = search.run(MatchOptions::count(u64::MAX), |one| {
        found.push(one);
        true
    });
    if asked.sort == Sort::Relevance {
        found = search.by_relevance(found);
    }
    if found.is_empty() {
        return no_matches::reply(search, &looked);
    }
    let (files, total) = (found.len() as u64, found.iter().map(|one| one.hits.count).sum::<u64>());
    let saw_all = search.saw_all(&looked);
    if asked.offset >= files {
        return no_matches::past_the_end(search, &looked, "file", files, saw_all);
    }
    let first = usize::try_from(asked.offset).unwrap_or(usize::MAX);
    let most = usize::try_from(asked.limit).unwrap_or(usize::MAX);
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
    let next = asked.offset + shown;
    let at_least = if saw_all { "" } else { "at least " };
    let (matches, all) = (counted(total, "match"), counted(files, "file"));
    text += &match next < files {
        false if files == 1 => String::new(),
        false => format!("[{at_least}{matches} in {all}]\n"),
        true => format!(
            "[{at_least}{matches} in {all}; files {}-{next} shown; for more, offset: {next}]\n",
            asked.offset + 1
        ),
    };
    for unseen in search.unseen(&looked) {
        text += &format!("[{unseen}]\n");
    }
    let key = if saw_all { "total_matches" } else { "at_least" };
    search
        .facts(Reply::new(text), &looked)
        .with(key, total)
        .with("files_with_matches", files)
        .with("shown", shown)
        .with("returned_matches", shown)
        .with("complete", next >= files && saw_all)
}
