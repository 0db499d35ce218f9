//! Converts a commit to the `*** Begin Patch` format, as far as that format can express it.

use super::repository::{FileChange, Version};
use super::tree::Tree;

/// A patch in that format.
pub(super) struct Envelope {
    pub(super) text: String,
    /// The indices of the included changes.
    pub(super) included: Vec<usize>,
    /// Whether each hunk is unambiguous by its lines, or by its lines and the `@@` line.
    pub(super) is_plain: bool,
}

/// Converts these changes; `None` if none of them can be expressed.
pub(super) fn of(changes: &[&FileChange], base: &Tree) -> Option<Envelope> {
    let mut envelope = Envelope { text: String::new(), included: Vec::new(), is_plain: true };
    for (at, change) in changes.iter().enumerate() {
        if let Some((text, is_plain)) = file(change, base) {
            envelope.text += &text;
            envelope.included.push(at);
            envelope.is_plain &= is_plain;
        }
    }
    let text = format!("*** Begin Patch\n{}*** End Patch\n", envelope.text);
    (!envelope.included.is_empty()).then_some(Envelope { text, ..envelope })
}

/// The part for one file, and whether its hunks are unambiguous.
fn file(change: &FileChange, base: &Tree) -> Option<(String, bool)> {
    let diff = std::str::from_utf8(&change.diff).ok()?;
    let hunks = hunks(diff)?;
    match (change.status, &change.old, &change.new) {
        (b'A', None, Some(new)) if !new.is_executable() => {
            let lines: String = hunks.iter().flat_map(|hunk| &hunk.lines).copied().collect();
            Some((format!("*** Add File: {}\n{lines}", name(new)?), true))
        }
        (b'D', Some(old), None) => Some((format!("*** Delete File: {}\n", name(old)?), true)),
        (b'M' | b'R', Some(old), Some(new)) if old.mode == new.mode => {
            let mut text = format!("*** Update File: {}\n", name(old)?);
            if old.path != new.path {
                text += &format!("*** Move to: {}\n", name(new)?);
            }
            let was = std::str::from_utf8(&base.0.get(&old.path)?.bytes).ok()?;
            let lines: Vec<&str> = was.split_inclusive('\n').collect();
            let mut is_plain = true;
            for hunk in &hunks {
                let anchor = hunk.anchor(&lines);
                is_plain &= anchor.is_some();
                text += format!("@@ {}", anchor.unwrap_or_default()).trim_end();
                text.push('\n');
                text.extend(hunk.lines.iter().copied());
            }
            Some((text, is_plain))
        }
        _ => None,
    }
}

/// A name that is one line without surrounding whitespace.
fn name(version: &Version) -> Option<&str> {
    let name = std::str::from_utf8(&version.path).ok()?;
    (name.trim() == name && !name.contains(['\n', '\r'])).then_some(name)
}

struct Hunk<'a> {
    /// The number of lines before it.
    before: usize,
    /// The function that git shows for it.
    heading: &'a str,
    /// Its lines, each with its sign and line end.
    lines: Vec<&'a str>,
}

/// The hunks of a file's diff; `None` if a line has no newline, which the format cannot express.
fn hunks(diff: &str) -> Option<Vec<Hunk<'_>>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if let Some(header) = line.strip_prefix("@@ -") {
            let (numbers, heading) = header.split_once(" @@")?;
            let old = numbers.split(' ').next()?;
            let (start, count) = old.split_once(',').unwrap_or((old, "1"));
            let start: usize = start.parse().ok()?;
            let before = if count == "0" { start } else { start - 1 };
            hunks.push(Hunk { before, heading: heading.trim(), lines: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut() {
            if line.starts_with('\\') {
                return None;
            }
            hunk.lines.push(line);
        }
    }
    Some(hunks)
}

impl<'a> Hunk<'a> {
    /// The text for the `@@` line that makes the hunk unambiguous; `None` if that is not possible.
    fn anchor(&self, file: &[&str]) -> Option<&'a str> {
        let old: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| !line.starts_with('+'))
            .map(|line| &line[1..])
            .collect();
        if old.is_empty() {
            return file.is_empty().then_some("");
        }
        let places: Vec<usize> =
            (0..file.len()).filter(|&at| file[at..].starts_with(&old)).collect();
        if places.len() <= 1 {
            return Some("");
        }
        let named =
            |line: &&str| !self.heading.is_empty() && line.trim_start().starts_with(self.heading);
        let mut headings =
            file.iter().enumerate().filter(|(_, line)| named(line)).map(|(at, _)| at);
        let (heading, None) = (headings.next()?, headings.next()) else { return None };
        let first = places.into_iter().find(|&place| place > heading)?;
        (first == self.before).then_some(self.heading)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    fn version(path: &str) -> Option<Version> {
        Some(Version { path: path.into(), mode: "100644".into(), blob: String::new() })
    }

    #[test]
    fn locates_hunks_by_their_lines_or_by_the_preceding_line() {
        let text = "fn a\n x\n y\nfn b\n x\n y\n";
        let base = File { executable: false, bytes: text.into() };
        let base = Tree([(b"old".to_vec(), base)].into());
        let diff =
            "diff --git a/old b/new\n--- a/old\n+++ b/new\n@@ -5,2 +5,2 @@ fn b\n  x\n- y\n+ z\n";
        let change = FileChange {
            status: b'R',
            old: version("old"),
            new: version("new"),
            diff: diff.into(),
        };
        let envelope = of(&[&change], &base).unwrap();
        assert!(envelope.is_plain);
        assert_eq!(
            envelope.text,
            "*** Begin Patch\n*** Update File: old\n*** Move to: new\n@@ fn b\n  x\n- y\n+ z\n*** End Patch\n"
        );
    }

    #[test]
    fn omits_changes_that_the_format_cannot_express() {
        let diff = "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n";
        let change = FileChange { status: b'A', old: None, new: version("x"), diff: diff.into() };
        assert!(of(&[&change], &Tree::default()).is_none());
    }
}
