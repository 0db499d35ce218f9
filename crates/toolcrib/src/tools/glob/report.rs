//! The reply of Glob.

use toolcrib_text::visible_name;

use super::matches::{GlobQuery, IgnoredMatches, Matches};
use crate::cx::Cx;
use crate::message_names::LS;
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tools::skipped_files::SkippedFiles;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

pub(super) fn reply(cx: &Cx<'_>, query: &GlobQuery<'_>, matches: Matches) -> Reply {
    let skipped_files = SkippedFiles { cx, scope: &matches.scope, pruned: &matches.pruned };
    let room = cx.limits().reply_chars.saturating_sub(NOTE_CHARS);
    let mut text = String::new();
    let mut chars = 0;
    let mut files = Vec::new();
    for file in &matches.files {
        chars += file.chars().count() + 1;
        if chars > room && !files.is_empty() {
            break;
        }
        text += file;
        text.push('\n');
        files.push(file.clone());
    }
    let notes = match matches.total {
        0 => {
            text = no_match_text(query, &matches);
            no_match_notes(query, &matches, &skipped_files)
        }
        _ => notes(query, &matches, files.len(), &skipped_files),
    };
    for note in &notes {
        text += &format!("[{note}]\n");
    }
    let complete = matches.complete
        && files.len() == matches.total
        && matches.pruned.unreadable + matches.pruned.too_deep == 0;
    let total = if matches.complete { "total" } else { "at_least" };
    Reply::new(text)
        .with("pattern", query.pattern)
        .with("path", cx.show_in(&matches.scope.tree, matches.scope.start()))
        .with("count", files.len())
        .with("shown", files.len())
        .with(total, matches.total)
        .with("complete", complete)
        .with("truncated", files.len() < matches.total)
        .with("files_looked_at", matches.checked)
        .with("hidden_matches", matches.hidden)
        .with("left_out", skipped_files.facts())
        .with("files", files)
}

fn notes(
    query: &GlobQuery<'_>,
    matches: &Matches,
    shown: usize,
    skipped_files: &SkippedFiles<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(instead) = &matches.instead {
        notes
            .push(format!("nothing matches `{}`; these match `{instead}`", visible(query.pattern)));
    }
    let more = matches.total - shown;
    if more > 0 {
        let at_least = if matches.complete { "" } else { "at least " };
        let how = match query.limit {
            limit if limit < 1_000 && shown == limit => "raise limit, or use ".to_owned(),
            _ => "use ".to_owned(),
        };
        notes.push(format!(
            "{at_least}{} (older): {how}a narrower pattern or path",
            counted(more as u64, "more file")
        ));
    }
    notes.extend(hidden_note(matches));
    notes.extend(unfinished(matches));
    notes.extend(skipped_files.unsearched_notes());
    notes
}

/// The note about a list of patterns: a comma separates them only in braces.
fn comma_note(pattern: &str) -> Option<String> {
    let parts: Vec<&str> = pattern.split(',').map(str::trim).collect();
    let is_list = parts.len() > 1 && parts.iter().all(|part| part.contains(['*', '?', '.']));
    let braced = parts.join(",");
    (is_list && !pattern.contains(['{', '[']))
        .then(|| format!("one pattern for several: `{{{}}}`", visible(&braced)))
}

fn no_match_text(query: &GlobQuery<'_>, matches: &Matches) -> String {
    let pattern = visible(query.pattern);
    match &matches.start_error {
        Some(start_error) => format!("No file matches `{pattern}`: {start_error}\n"),
        None if matches.checked == 0 => format!("No file matches `{pattern}`.\n"),
        None => {
            let all = counted(matches.checked as u64, "file");
            format!("No file matches `{pattern}`; {all} checked.\n")
        }
    }
}

fn no_match_notes(
    query: &GlobQuery<'_>,
    matches: &Matches,
    skipped_files: &SkippedFiles<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(comma_note(query.pattern));
    notes.extend(hidden_note(matches));
    if let Some(ignored) = skipped_files.ignored() {
        notes.push(match &matches.among_ignored {
            IgnoredMatches::Unknown => {
                format!("{ignored} skipped; ignored: true searches {}", skipped_files.pronoun())
            }
            IgnoredMatches::Nothing => {
                format!("{ignored} skipped; nothing in {} matches either", skipped_files.pronoun())
            }
            IgnoredMatches::Some(all, first) => {
                format!("{ignored} skipped; ignored: true finds {}", and_more(first, *all))
            }
            IgnoredMatches::SomeHidden(all, first) => format!(
                "{ignored} skipped; hidden: true, ignored: true finds {}",
                and_more(first, *all)
            ),
        });
    }
    if let Some(directory) = matches.directories.first() {
        notes.push(match directory.as_str() {
            "." => "it is a directory; **/* finds the files in it".to_owned(),
            name => {
                format!("{name} is a directory; {name}/** finds the files in it, {LS} lists it")
            }
        });
    }
    notes.extend(unfinished(matches));
    notes.extend(skipped_files.unsearched_notes());
    notes
}

/// The first of some files, and the number of the others.
fn and_more(first: &str, all: usize) -> String {
    match all {
        1 => first.to_owned(),
        _ => format!("{first} and {} more", all - 1),
    }
}

fn hidden_note(matches: &Matches) -> Option<String> {
    let first = matches.first_hidden.as_ref()?;
    Some(match matches.hidden {
        1 => format!("{first} matches and is hidden; hidden: true shows it"),
        all => {
            format!("{first} and {} more match and are hidden; hidden: true shows them", all - 1)
        }
    })
}

fn unfinished(matches: &Matches) -> Option<String> {
    (!matches.complete).then(|| {
        "out of time before all directories were searched: use a narrower path, or a pattern that begins with a directory".to_owned()
    })
}

fn visible(pattern: &str) -> String {
    visible_name(pattern.as_bytes())
}
