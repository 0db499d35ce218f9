//! The reply with matching lines.

use toolcrib_search::{FileId, LineMatches, MatchOptions, Searched, ShownLine};
use toolcrib_text::visible;

use super::Sort;
use super::enclosing::Enclosing;
use super::no_matches;
use super::search::{Found, Search};
use crate::phrases::{counted, more_note, range_text};
use crate::reply::Reply;
use crate::tools::invisible_notes::InvisibleCharacters;

/// Characters reserved for notes.
const NOTE_CHARS: usize = 1_000;

pub(super) fn reply(search: &Search<'_>) -> Reply {
    let query = search.query;
    let by_relevance = query.sort == Sort::Relevance;
    let end = query.offset.saturating_add(query.limit);
    let keep = MatchOptions {
        skip: 0,
        // With an offset it is not known in advance which lines are shown.
        most: if query.offset == 0 && !by_relevance { query.limit } else { 0 },
        // One more than is shown proves that there are more.
        count_to: if by_relevance { u64::MAX } else { end.saturating_add(1) },
        before: query.before,
        after: query.after,
    };
    let mut found: Vec<Found> = Vec::new();
    let mut total = 0;
    let searched = search.run(keep, |one| {
        total += one.hits.count;
        found.push(one);
        by_relevance || total <= end
    });
    if by_relevance {
        found = search.by_relevance(found);
    }
    if found.is_empty() {
        return no_matches::reply(search, &searched);
    }
    let is_total = (by_relevance || total <= end) && search.is_complete(&searched);
    if query.offset >= total {
        return no_matches::past_the_end(search, &searched, "match", total, is_total);
    }
    let mut page = Page {
        search,
        text: search.header(),
        chars: 0,
        room: search.cx.limits().reply_chars.saturating_sub(NOTE_CHARS),
        next: query.offset,
        files: 0,
        hidden: InvisibleCharacters::default(),
        enclosing: Enclosing::new(),
    };
    let mut before = 0;
    let on_page = found.iter().filter(|one| {
        let first = before;
        before += one.hits.count;
        before > query.offset && first < end
    });
    Enclosing::parse(search, on_page);
    page.fill(&found, keep);
    page.reply(&searched, total, is_total)
}

struct Page<'a> {
    search: &'a Search<'a>,
    text: String,
    chars: usize,
    room: usize,
    /// Index of the first hit that is not shown.
    next: u64,
    files: u64,
    hidden: InvisibleCharacters,
    enclosing: Enclosing,
}

impl Page<'_> {
    fn fill(&mut self, found: &[Found], kept: MatchOptions) {
        let (mut before, end) = (0, self.search.query.offset + self.search.query.limit);
        for one in found {
            let after = before + one.hits.count;
            if after > self.next && before < end {
                let skip = self.next - before;
                let most = end.min(after) - self.next;
                let whole = skip == 0 && most == one.hits.count && kept.most >= most;
                let again = if whole {
                    None
                } else {
                    self.search.again(one.file, MatchOptions { skip, most, ..kept })
                };
                if !self.file(one.file, again.as_ref().unwrap_or(&one.hits), before) {
                    return;
                }
                self.next = after.min(end);
            }
            before = after;
        }
    }

    /// Adds the lines of a file. Returns whether there is room for more. `before` is the number of hits in earlier
    /// files.
    fn file(&mut self, file: FileId, hits: &LineMatches, before: u64) -> bool {
        let gap = if self.files == 0 { "" } else { "\n" };
        let encoding = hits.encoding.map_or(String::new(), |name| format!(" [{name}]"));
        let mut text = format!("{gap}{}{encoding}\n", self.search.show(file));
        let mut chars = self.chars + text.chars().count();
        let (mut last, mut shown) = (None, 0);
        let names = self.enclosing.names(self.search, file, hits);
        let mut named = String::new();
        for (at, line) in hits.lines.iter().enumerate() {
            if last.is_some_and(|last| line.number > last + 1) && self.has_context() {
                text += "--\n";
            }
            last = Some(line.number);
            let mut rendered = self.line(line);
            self.hidden
                .examine(&rendered, || format!("{}:{}", self.search.show(file), line.number));
            let name =
                names.as_ref().and_then(|names| names.get(at)).filter(|name| **name != named);
            if let Some(name) = name {
                let introduced =
                    if name.is_empty() { "[top level]" } else { &format!("[in {name}]") };
                rendered = format!("{introduced}\n{rendered}");
                named.clone_from(name);
            }
            chars += rendered.chars().count();
            if chars > self.room && (shown > 0 || self.files > 0) {
                // The context of a hit is shown with it, or not at all.
                if let Some(hit) = line.hit {
                    self.next = before + hit;
                }
                if shown > 0 {
                    self.put(&text);
                }
                return false;
            }
            text += &rendered;
            if let Some(hit) = line.hit {
                shown += 1;
                self.next = before + hit + 1;
            }
        }
        self.put(&text);
        true
    }

    fn put(&mut self, text: &str) {
        self.chars += text.chars().count();
        self.text += text;
        self.files += 1;
    }

    fn has_context(&self) -> bool {
        self.search.query.before + self.search.query.after > 0
    }

    fn line(&self, line: &ShownLine) -> String {
        let mark = if line.hit.is_some() { ':' } else { '-' };
        let number = if self.search.query.numbers {
            format!("{}{mark}", line.number)
        } else {
            String::new()
        };
        let text = visible(&line.text);
        let more = match line.lines_left_out {
            0 => String::new(),
            lines => format!("[{} of this match]\n", counted(lines, "more line")),
        };
        if line.before + line.after == 0 {
            return format!("{number}{text}\n{more}");
        }
        let all = line.before + line.after + text.chars().count() as u64;
        let place = match line.hit {
            Some(_) => format!("[column {} of {all}] ", line.column),
            None => format!("[{all} characters] "),
        };
        let (from, to) =
            (if line.before > 0 { "…" } else { "" }, if line.after > 0 { "…" } else { "" });
        format!("{number}{place}{from}{text}{to}\n{more}")
    }

    fn reply(mut self, searched: &Searched, total: u64, is_total: bool) -> Reply {
        let search = self.search;
        let first = search.query.offset + 1;
        let shown = self.next.saturating_sub(search.query.offset);
        if self.next < total {
            let next = self.next;
            let range = range_text("match", first, next);
            self.text += &more_note(&range, next, is_total.then_some(total));
        }
        self.text += &self.hidden.note();
        self.text += &self.enclosing.note();
        for unsearched_notes in search.unsearched_notes(searched) {
            self.text += &format!("[{unsearched_notes}]\n");
        }
        let key = if is_total { "total_matches" } else { "at_least" };
        search
            .facts(self.hidden.facts(Reply::new(self.text)), searched)
            .with(key, total)
            .with("returned_matches", shown)
            .with("shown", shown)
            .with("files_shown", self.files)
            .with("complete", self.next >= total && search.is_complete(searched))
    }
}
