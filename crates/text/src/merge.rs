//! Two changes of one text, put together line by line.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp};

/// Two changes that touch the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The line of `ours`, from 1, at which the first of them begins.
    pub line: u64,
}

/// How long to look for the smallest difference; after that a larger one is taken, which can only make
/// a conflict out of what was none.
const PATIENCE: Duration = Duration::from_millis(500);

/// Lines of `base` that one side has replaced by lines of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk {
    base: Range<usize>,
    side: Range<usize>,
    /// All lines of `base` that it might as well have touched: where lines repeat, one of them gone or
    /// come can be read a few lines up or down.
    reach: Range<usize>,
}

/// Brings the change from `base` to `theirs` into `ours`, which has also come from `base`. Where the two
/// touch the same lines, or lines next to each other, and not in the same way, there is no answer, and
/// nothing is guessed.
///
/// Where lines repeat, a change can be read in more than one way. So it is read twice, from the front and
/// from the back; unless both come to the same, there is no answer either.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
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

/// Whether two ranges overlap or meet: an insertion has no lines of its own, only a place.
fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn hunks(base: &[&[u8]], side: &[&[u8]]) -> Vec<Hunk> {
    let deadline = Some(Instant::now() + PATIENCE);
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
        // Lines that are only gone, or only come, slide; lines that became others do not.
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

/// How far a run of lines could be moved up and down with the text staying the same.
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
    fn changes_of_different_lines_go_together_and_of_the_same_do_not() {
        let base = b"1\n2\n3\n4\n5\n";
        let merged = merge(base, b"1\n2\n3\n4\nfive\n", b"one\n2\n3\n4\n5\n");
        assert_eq!(merged, Ok(b"one\n2\n3\n4\nfive\n".to_vec()));
        let conflict = merge(base, b"1\n2\nX\n4\n5\n", b"1\n2\nY\n4\n5\n").unwrap_err();
        assert_eq!(conflict, Conflict { line: 3 });
        let both = merge(base, b"1\n2\nX\n4\n5\n", b"1\n2\nX\n4\n5\n");
        assert_eq!(both, Ok(b"1\n2\nX\n4\n5\n".to_vec()), "the same change twice is one");
    }

    #[test]
    fn bytes_of_any_encoding_survive() {
        let merged = merge(b"a\xe9\nb\nc\r\nd\n", b"a\xe9\nb\nc\r\nD\n", b"A\xe9\nb\nc\r\nd\n");
        assert_eq!(merged, Ok(b"A\xe9\nb\nc\r\nD\n".to_vec()));
        let markers = merge(b"<<<<<<<\na\nb\nc\n", b"<<<<<<<\na\nb\nC\n", b"x\na\nb\nc\n");
        assert_eq!(markers, Ok(b"x\na\nb\nC\n".to_vec()));
    }

    /// Whatever we merge, git merges to the same; where git sees a conflict, so do we. (We may see one
    /// where git sees none.)
    #[test]
    #[allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "git is the oracle, and wants files"
    )]
    fn nothing_is_merged_that_git_would_not_merge_so() {
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
