//! The lines that a change replaced, so that the change can be reverted to the byte.

use serde::{Deserialize, Serialize};

/// Larger changes are not recorded: the text may be a single line of any length.
const MAX_BYTES: usize = 1 << 18;

/// Lines of a text, before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextSplice {
    before: String,
    after: String,
}

impl TextSplice {
    /// The difference of two texts: the lines between their common beginning and their common end. `None` if the change
    /// added no line, so that it could not be found again, or if it is too large.
    pub(super) fn between(before: &str, after: &str) -> Option<TextSplice> {
        let splice = TextSplice::of(before, after)?;
        let is_usable =
            !splice.after.is_empty() && splice.before.len() + splice.after.len() <= MAX_BYTES;
        is_usable.then_some(splice)
    }

    /// The difference of two texts as marked lines.
    pub(super) fn diff(before: &str, after: &str) -> String {
        let Some(TextSplice { before, after }) = TextSplice::of(before, after) else {
            return String::new();
        };
        let removed = before.lines().map(|line| format!("-{line}"));
        let lines = removed.chain(after.lines().map(|line| format!("+{line}")));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn of(before: &str, after: &str) -> Option<TextSplice> {
        let start = common_bytes(before.split_inclusive('\n'), after.split_inclusive('\n'));
        let (before, after) = (before.get(start..)?, after.get(start..)?);
        let end =
            common_bytes(before.split_inclusive('\n').rev(), after.split_inclusive('\n').rev());
        let before = before.get(..before.len() - end)?.to_owned();
        let after = after.get(..after.len() - end)?.to_owned();
        Some(TextSplice { before, after })
    }

    /// The text before the change. `None` if the changed lines are not exactly once in it.
    pub(super) fn revert(&self, text: &str) -> Option<String> {
        let mut places = text.match_indices(&self.after);
        let (start, _) = places.next()?;
        let is_line =
            text.get(..start).is_some_and(|above| above.is_empty() || above.ends_with('\n'));
        let is_only = places.next().is_none();
        let end = start + self.after.len();
        (is_line && is_only).then(|| text[..start].to_owned() + &self.before + &text[end..])
    }
}

/// The length of the lines that both begin with.
fn common_bytes<'a>(
    one: impl Iterator<Item = &'a str>,
    other: impl Iterator<Item = &'a str>,
) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(line, _)| line.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_reverted(before: &str, after: &str) {
        let splice = TextSplice::between(before, after).unwrap();
        assert_eq!(splice.revert(after).as_deref(), Some(before), "{splice:?}");
    }

    #[test]
    fn a_change_is_reverted_to_the_byte() {
        for (before, after) in [
            ("", "a\n"),
            ("{}", "{\"a\": 1}\n"),
            ("a\nc\n", "a\nb\nc\n"),
            ("a\n\tc", "a\n\tc,\n\tb\n"),
            ("a\r\nb\r\n", "a\r\nx\nb\r\n"),
            ("a\na\n", "a\na\na\nx\n"),
        ] {
            assert_reverted(before, after);
        }
    }

    #[test]
    fn other_lines_may_have_changed_since() {
        let splice = TextSplice::between("a\nb\nc\n", "a\nb,\nx\nc\n").unwrap();
        assert_eq!(splice.revert("new\na2\nb,\nx\nc\nd\n").as_deref(), Some("new\na2\nb\nc\nd\n"));
        for text in ["a\nb,\nx2\nc\n", "b,\nx\nb,\nx\n", "ab,\nx\nc\n", ""] {
            assert_eq!(splice.revert(text), None, "{text}");
        }
    }

    #[test]
    fn a_removal_and_a_large_change_have_no_splice() {
        assert_eq!(TextSplice::between("a\nb\n", "a\n"), None);
        assert_eq!(TextSplice::between("a", &"b".repeat(MAX_BYTES)), None);
        assert_eq!(TextSplice::between("a", "a"), None);
    }
}
