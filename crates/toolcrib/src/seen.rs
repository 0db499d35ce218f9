//! What a session has seen of a file: by what it said, never by when.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

use toolcrib_fs::{Content, ContentHash, ContentHasher};
use toolcrib_text::changed_lines;

/// What files said, by their real paths; nothing, where there was none.
pub(crate) type Basis = HashMap<PathBuf, Option<ContentHash>>;

/// Of longer files only the whole is remembered, not each line.
const MAX_LINES: usize = 50_000;

/// Ranges of lines that are named.
const MAX_RANGES: usize = 10;

/// What a file said when a session last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) hash: ContentHash,
    lines: Option<Vec<u64>>,
}

impl Seen {
    pub(crate) fn of(content: &Content) -> Seen {
        let mut lines = LineHashes::default();
        lines.feed(content);
        Seen { hash: content.hash(), lines: lines.finish() }
    }

    /// The lines of `now` that are not as they were seen, in words; nothing, if that cannot be told.
    pub(crate) fn where_changed(&self, now: &Seen) -> Option<String> {
        let ranges = changed_lines(self.lines.as_ref()?, now.lines.as_ref()?);
        let mut words: Vec<String> = ranges
            .iter()
            .take(MAX_RANGES)
            .map(|(from, to)| match from == to {
                true => format!("line {from}"),
                false => format!("lines {from}-{to}"),
            })
            .collect();
        if ranges.len() > MAX_RANGES {
            words.push("and more".to_owned());
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Sees a file in chunks.
#[derive(Default)]
pub(crate) struct Seeing {
    hasher: ContentHasher,
    lines: LineHashes,
}

impl Seeing {
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.hasher.feed(chunk);
        self.lines.feed(chunk);
    }

    pub(crate) fn finish(self) -> Seen {
        Seen { hash: self.hasher.finish(), lines: self.lines.finish() }
    }
}

/// A number for each line, that stands for what it says.
#[derive(Default)]
struct LineHashes {
    lines: Vec<u64>,
    line: DefaultHasher,
    in_line: bool,
}

impl LineHashes {
    fn feed(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            if self.lines.len() > MAX_LINES {
                return;
            }
            self.line.write(part);
            self.in_line = part.last() != Some(&b'\n');
            if !self.in_line {
                self.end_line();
            }
        }
    }

    /// The numbers; nothing, if there are too many lines.
    fn finish(mut self) -> Option<Vec<u64>> {
        if self.in_line {
            self.end_line();
        }
        (self.lines.len() <= MAX_LINES).then_some(self.lines)
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line).finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_changed_are_told() {
        let seen = Seen::of(&b"1\n2\n3\n4\n".into());
        let now = Seen::of(&b"1\n2\nthree\n4\n5\n6\n".into());
        assert_eq!(seen.where_changed(&now).as_deref(), Some("line 3, lines 5-6"));
        let mut seeing = Seeing::default();
        b"1\n2\n3\n4\n".chunks(3).for_each(|chunk| seeing.feed(chunk));
        assert_eq!(seeing.finish(), seen, "chunks make no difference");
    }
}
