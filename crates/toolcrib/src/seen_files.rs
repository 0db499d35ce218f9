//! The content that a session has seen of a file, identified by hash, not by time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

use toolcrib_fs::{Content, ContentHash, ContentHasher};
use toolcrib_text::changed_lines;

/// Content hashes by resolved path. `None` if the file did not exist.
pub(crate) type Basis = HashMap<PathBuf, Option<ContentHash>>;

/// Longer files have no line hashes.
const MAX_LINES: usize = 50_000;

/// Line ranges named in a reply.
const MAX_RANGES: usize = 10;

/// More parts than a session reads of one file. Further parts do not count as seen.
const MAX_PARTS: usize = 1_000;

/// Content of a file when the session last saw it, and the lines that the session was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) hash: ContentHash,
    lines: Option<Vec<u64>>,
    shown: Shown,
    /// Number of lines, if lines were shown.
    total: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    Whole,
    /// Line ranges (first, last), sorted.
    Parts(Vec<(u64, u64)>),
}

impl Seen {
    /// For a file of which nothing was shown.
    pub(crate) fn of(content: &Content) -> Seen {
        let mut builder = SeenBuilder::default();
        builder.feed(content);
        builder.finish()
    }

    /// For a file that was shown completely.
    pub(crate) fn whole(content: &Content) -> Seen {
        Seen::of(content).into_whole()
    }

    /// Marks the file as shown completely.
    pub(crate) fn into_whole(self) -> Seen {
        Seen { shown: Shown::Whole, ..self }
    }

    /// Adds the lines shown before, if the content is the same, and these lines of `total`.
    pub(crate) fn with_lines(
        mut self,
        before: Option<Seen>,
        lines: impl Iterator<Item = u64>,
        total: u64,
    ) -> Seen {
        let mut parts = match before.filter(|before| before.hash == self.hash) {
            Some(Seen { shown: Shown::Whole, .. }) => return self.into_whole(),
            Some(Seen { shown: Shown::Parts(parts), .. }) => parts,
            None => Vec::new(),
        };
        for line in lines {
            match parts.last_mut() {
                Some((_, last)) if *last + 1 == line => *last = line,
                _ => parts.push((line, line)),
            }
        }
        parts.sort_unstable();
        parts.dedup_by(|next, part| {
            let joined = next.0 <= part.1.saturating_add(1);
            part.1 = if joined { part.1.max(next.1) } else { part.1 };
            joined
        });
        parts.truncate(MAX_PARTS);
        self.total = Some(total);
        let is_whole = total == 0 || matches!(parts[..], [(1, last)] if last >= total);
        self.shown = if is_whole { Shown::Whole } else { Shown::Parts(parts) };
        self
    }

    /// Whether these lines were shown: `limit` lines from `offset` on, as in a call of Read.
    pub(crate) fn has_shown(&self, offset: i64, limit: u64) -> bool {
        let (Shown::Parts(parts), Some(total)) = (&self.shown, self.total) else {
            return self.is_whole();
        };
        let first = match offset {
            0.. => offset.unsigned_abs().max(1),
            _ => total.saturating_sub(offset.unsigned_abs()) + 1,
        };
        let last = first.saturating_add(limit).saturating_sub(1).min(total);
        first <= last && parts.iter().any(|part| part.0 <= first && last <= part.1)
    }

    /// Whether all lines were shown.
    pub(crate) fn is_whole(&self) -> bool {
        self.shown == Shown::Whole
    }

    /// The shown lines, in words. `None` if none or all were shown.
    pub(crate) fn parts(&self) -> Option<String> {
        match &self.shown {
            Shown::Parts(parts) if !parts.is_empty() => Some(ranges_text(parts)),
            _ => None,
        }
    }

    /// The lines of `now` that differ from the seen content, in words. `None` if the file is too long for line
    /// hashes.
    pub(crate) fn changed_lines(&self, now: &Seen) -> Option<String> {
        let ranges = self.changed_ranges(now)?;
        (!ranges.is_empty()).then(|| ranges_text(&ranges))
    }

    /// The first and last lines of the parts of `now` that differ from the seen content. `None` if the file is too
    /// long for line hashes.
    pub(crate) fn changed_ranges(&self, now: &Seen) -> Option<Vec<(u64, u64)>> {
        Some(changed_lines(self.lines.as_ref()?, now.lines.as_ref()?))
    }
}

/// Line ranges in words.
pub(crate) fn ranges_text(ranges: &[(u64, u64)]) -> String {
    let mut words: Vec<String> = ranges
        .iter()
        .take(MAX_RANGES)
        .map(
            |(from, to)| {
                if from == to { format!("line {from}") } else { format!("lines {from}-{to}") }
            },
        )
        .collect();
    if ranges.len() > MAX_RANGES {
        words.push("and more".to_owned());
    }
    words.join(", ")
}

/// Builds a [`Seen`] from chunks of a file.
#[derive(Default)]
pub(crate) struct SeenBuilder {
    hasher: ContentHasher,
    lines: LineHashes,
}

impl SeenBuilder {
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.hasher.feed(chunk);
        self.lines.feed(chunk);
    }

    pub(crate) fn finish(self) -> Seen {
        let shown = Shown::Parts(Vec::new());
        Seen { hash: self.hasher.finish(), lines: self.lines.finish(), shown, total: None }
    }
}

/// One hash per line.
#[derive(Default)]
struct LineHashes {
    lines: Vec<u64>,
    line: DefaultHasher,
    in_line: bool,
}

impl LineHashes {
    fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.lines.len() > MAX_LINES {
                return;
            }
            let (line, after) = rest.split_at(end + 1);
            self.line.write(line);
            self.end_line();
            rest = after;
        }
        self.line.write(rest);
        self.in_line = !rest.is_empty() || (self.in_line && chunk.is_empty());
    }

    /// The hashes. `None` if there are too many lines.
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
    fn changed_lines_are_reported() {
        let seen = Seen::of(&b"1\n2\n3\n4\n".into());
        let now = Seen::of(&b"1\n2\nthree\n4\n5\n6\n".into());
        assert_eq!(seen.changed_lines(&now).as_deref(), Some("line 3, lines 5-6"));
        let mut builder = SeenBuilder::default();
        b"1\n2\n3\n4\n".chunks(3).for_each(|chunk| builder.feed(chunk));
        assert_eq!(builder.finish(), seen, "chunks make no difference");
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let content: Content = b"1\n2\n3\n4\n5\n".into();
        let show = |before: Option<Seen>, lines: std::ops::RangeInclusive<u64>| {
            Seen::of(&content).with_lines(before, lines, 5)
        };
        let first = show(None, 1..=2);
        assert_eq!((first.is_whole(), first.parts().as_deref()), (false, Some("lines 1-2")));
        let last = show(Some(first.clone()), 5..=5);
        assert_eq!(last.parts().as_deref(), Some("lines 1-2, line 5"));
        for (offset, limit, expected) in
            [(1, 2, true), (2, 1, true), (1, 3, false), (-1, 2_000, true), (3, 1, false)]
        {
            assert_eq!(last.has_shown(offset, limit), expected, "{offset}, {limit}");
        }
        assert!(show(Some(last.clone()), 2..=4).is_whole());
        assert!(show(Some(show(Some(last), 3..=5)), 1..=1).is_whole());
        let other = Seen::of(&b"1\n2\n3\n4\nfive\n".into());
        assert_eq!(other.with_lines(Some(first), 3..=5, 5).parts().as_deref(), Some("lines 3-5"));
    }
}
