//! Three-way merge by lines.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp};

use crate::encoding::Encoding;

/// Two changes that touch the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The line of `ours`, from 1, where the first conflict begins.
    pub line: u64,
}

/// Time limit for the search for the smallest difference. A larger difference can only cause additional
/// conflicts.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// Lines of `base` that one side has replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk {
    base: Range<usize>,
    side: Range<usize>,
    /// All lines of `base` that the change may affect. Where lines repeat, an added or removed line can be
    /// attributed to a position a few lines up or down.
    reach: Range<usize>,
}

/// Applies the change from `base` to `theirs` to `ours`, which was derived from `base` too. If both change
/// the same or adjacent lines differently, that is a conflict. Nothing is guessed.
///
/// Where lines repeat, a difference is not unique. So the merge is computed twice, from the front and from
/// the back. If the results differ, that is a conflict too.
///
/// Texts in UTF-16 are merged by their own lines: a byte of a line feed can be a part of another character.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    let encoding = Encoding::of_known(ours, None);
    let decode =
        |text| encoding.decode(text).filter(|_| Encoding::of_known(text, None) == encoding);
    if encoding.is_utf16()
        && let (Some(base), Some(ours), Some(theirs)) = (decode(base), decode(ours), decode(theirs))
    {
        let merged = merge_bytes(&base, &ours, &theirs)?;
        let encoded = std::str::from_utf8(&merged).ok().and_then(|text| encoding.encode(text).ok());
        // UTF-16 has every character.
        return encoded.ok_or(Conflict { line: 1 });
    }
    merge_bytes(base, ours, theirs)
}

fn merge_bytes(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    let lines =
        |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |&byte| byte == b'\n').collect() };
    let mut sides = [lines(base), lines(ours), lines(theirs)];
    let merged = merge_lines(&sides[0], &sides[1], &sides[2])?;
    sides.iter_mut().for_each(|side| side.reverse());
    let mut again = merge_lines(&sides[0], &sides[1], &sides[2]).map_err(|found| Conflict {
        line: (sides[1].len() as u64 + 1).saturating_sub(found.line).max(1),
    })?;
    again.reverse();
    if again == merged {
        return Ok(merged.concat());
    }
    let first = merged.iter().zip(&again).take_while(|(one, other)| one == other).count();
    Err(Conflict { line: first as u64 + 1 })
}

fn merge_lines<'a>(
    base: &[&'a [u8]],
    ours: &[&'a [u8]],
    theirs: &[&'a [u8]],
) -> Result<Vec<&'a [u8]>, Conflict> {
    let (mine, yours) = (hunks(base, ours), hunks(base, theirs));
    let (mut mine, mut yours) = (mine.iter().peekable(), yours.iter().peekable());
    let mut merged = Vec::new();
    let mut at = 0;
    loop {
        let (hunk, side) = match (mine.peek(), yours.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if touch(&one.reach, &other.reach) => {
                let same =
                    one.base == other.base && ours[one.side.clone()] == theirs[other.side.clone()];
                if !same {
                    return Err(Conflict { line: one.side.start as u64 + 1 });
                }
                yours.next();
                (mine.next(), ours)
            }
            (Some(one), Some(other)) if other.base.start < one.base.start => (yours.next(), theirs),
            (Some(_), _) => (mine.next(), ours),
            (None, Some(_)) => (yours.next(), theirs),
        };
        let Some(hunk) = hunk else { break };
        merged.extend_from_slice(&base[at..hunk.base.start]);
        merged.extend_from_slice(&side[hunk.side.clone()]);
        at = hunk.base.end;
    }
    merged.extend_from_slice(&base[at..]);
    Ok(merged)
}

/// Whether two ranges overlap or touch. An insertion is an empty range.
fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn hunks(base: &[&[u8]], side: &[&[u8]]) -> Vec<Hunk> {
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, base, side, deadline);
    let mut ranges: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (old, new) = (op.old_range(), op.new_range());
        match ranges.last_mut() {
            Some((base, side)) if base.end == old.start && side.end == new.start => {
                (base.end, side.end) = (old.end, new.end);
            }
            _ => ranges.push((old, new)),
        }
    }
    let hunk = |(old, new): (Range<usize>, Range<usize>)| {
        // Pure removals and insertions can slide. Replacements cannot.
        let (up, down) = match (old.is_empty(), new.is_empty()) {
            (false, true) => slide(base, &old),
            (true, false) => slide(side, &new),
            _ => (0, 0),
        };
        let reach = old.start.saturating_sub(up)..(old.end + down).min(base.len());
        Hunk { base: old, side: new, reach }
    };
    ranges.into_iter().map(hunk).collect()
}

/// How far a run of lines can be moved up and down without changing the text.
fn slide(lines: &[&[u8]], run: &Range<usize>) -> (usize, usize) {
    let up = (1..=run.start).take_while(|by| lines[run.start - by] == lines[run.end - by]).count();
    let room = lines.len() - run.end;
    let down = (0..room).take_while(|by| lines[run.start + by] == lines[run.end + by]).count();
    (up, down)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_lines_merge_and_of_the_same_line_conflict() {
        let base = b"1\n2\n3\n4\n5\n";
        let merged = merge(base, b"1\n2\n3\n4\nfive\n", b"one\n2\n3\n4\n5\n");
        assert_eq!(merged, Ok(b"one\n2\n3\n4\nfive\n".to_vec()));
        let conflict = merge(base, b"1\n2\nX\n4\n5\n", b"1\n2\nY\n4\n5\n").unwrap_err();
        assert_eq!(conflict, Conflict { line: 3 });
        let both = merge(base, b"1\n2\nX\n4\n5\n", b"1\n2\nX\n4\n5\n");
        assert_eq!(both, Ok(b"1\n2\nX\n4\n5\n".to_vec()), "the same change twice is one");
    }

    #[test]
    fn wide_text_is_merged_by_its_own_lines() {
        for name in ["utf-16le", "utf-16be"] {
            let wide = |text: &str| Encoding::named(name).unwrap().encode(text).unwrap();
            // A byte of these characters is that of a line feed.
            let base = wide("1 \u{a0a}\u{a41}\u{410a}\n2\n3\n4\n5\n");
            let ours = wide("1 \u{a0a}\u{a41}\u{410a}\n2\n3\n4\nfive\u{a0a}\n");
            let theirs = wide("one\n2\n3\n4\n5\n");
            let both = wide("one\n2\n3\n4\nfive\u{a0a}\n");
            assert_eq!(merge(&base, &ours, &theirs), Ok(both));
            let other = wide("1 \u{a0a}\u{a41}\u{410a}\n2\n3\n4\nV\n");
            assert_eq!(merge(&base, &ours, &other), Err(Conflict { line: 5 }));
        }
    }

    #[test]
    fn bytes_of_any_encoding_survive() {
        let merged = merge(b"a\xe9\nb\nc\r\nd\n", b"a\xe9\nb\nc\r\nD\n", b"A\xe9\nb\nc\r\nd\n");
        assert_eq!(merged, Ok(b"A\xe9\nb\nc\r\nD\n".to_vec()));
        let markers = merge(b"<<<<<<<\na\nb\nc\n", b"<<<<<<<\na\nb\nC\n", b"x\na\nb\nc\n");
        assert_eq!(markers, Ok(b"x\na\nb\nC\n".to_vec()));
    }

    /// Every merge equals git's, and every conflict of git is a conflict here. There may be additional
    /// conflicts.
    #[test]
    #[allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "git is the oracle and needs files"
    )]
    fn every_merge_equals_that_of_git() {
        let directory = std::env::temp_dir().join(format!("toolcrib-merge-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for round in 0..400 {
            let base: Vec<u64> = (0..6 + next(4)).map(|_| next(4)).collect();
            let mut change = |lines: &[u64]| {
                let mut lines = lines.to_vec();
                for _ in 0..=next(2) {
                    let at = next(lines.len() as u64 + 1) as usize;
                    match next(3) {
                        0 if at < lines.len() => drop(lines.remove(at)),
                        1 if at < lines.len() => lines[at] = 9,
                        _ => lines.insert(at, next(4)),
                    }
                }
                lines
            };
            let (ours, theirs) = (change(&base), change(&base));
            let text = |lines: &[u64]| -> Vec<u8> {
                lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
            };
            let (base, ours, theirs) = (text(&base), text(&ours), text(&theirs));
            for (name, content) in [("base", &base), ("ours", &ours), ("theirs", &theirs)] {
                std::fs::write(directory.join(name), content).unwrap();
            }
            let git = std::process::Command::new("git")
                .args(["merge-file", "-p", "ours", "base", "theirs"])
                .current_dir(&directory)
                .output()
                .unwrap();
            if let Ok(merged) = merge(&base, &ours, &theirs) {
                let shown = |text: &[u8]| String::from_utf8_lossy(text).replace('\n', "");
                let (b, o, t) = (shown(&base), shown(&ours), shown(&theirs));
                assert!(git.status.success(), "round {round}: {b} {o} {t}: git sees a conflict");
                assert_eq!(shown(&merged), shown(&git.stdout), "round {round}: {b} {o} {t}");
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
