//! Why a text is not in a file, as far as that can be told.

use toolcrib_text::{
    Line, Nearest, Survey, clip_line, find_all, line_numbers, nearest_block, show_invisible,
    visible, without_line_numbers,
};

use crate::error::{Error, ErrorKind};

/// Lines of the nearest block that are shown; the whole error stays under 40.
const MAX_BLOCK_LINES: usize = 20;
/// Characters of a line that are shown.
const MAX_CHARS: usize = 200;
/// A shorter text is in many files anyway; that it is there says little.
const TELLING_CHARS: usize = 16;

/// The error for an `old` that is nowhere in the file.
pub(super) fn explain(shown: &str, text: &[u8], old: &str, new: &str) -> Error {
    let survey = &Survey::of(text);
    let terminator = survey.terminator();
    let applied = applied_line(text, survey, new);
    let nearest = nearest_block(text, old.as_bytes(), terminator);
    let detail = nearest.as_ref().map_or("Nothing in the file is like it.".to_owned(), describe);
    let telling = new.contains('\n') || new.trim().chars().count() >= TELLING_CHARS;
    match applied {
        Some(line) if telling => {
            let message = format!(
                "`old_string` is not in {shown}, and `new_string` already is, at line {line}"
            );
            Error::new(ErrorKind::AlreadyApplied, message)
                .detail(detail)
                .hint("Nothing was done. If that line is the change you meant, it was made before: go on.")
                .with("line", line)
        }
        applied => {
            let there = applied
                .map_or(String::new(), |line| format!(" (`new_string` is there, at line {line})"));
            let message = format!("`old_string` is not in {shown}{there}");
            Error::new(ErrorKind::NoMatch, message).detail(detail).hint(hint(
                old,
                survey,
                nearest.as_ref(),
            ))
        }
    }
}

/// The line at which the new text already stands, first.
fn applied_line(text: &[u8], survey: &Survey, new: &str) -> Option<u64> {
    let new = survey.endings().adapt(new);
    let place = *find_all(text, new.as_bytes()).first()?;
    line_numbers(text, &[place], survey.terminator()).first().copied()
}

/// The block that is most like the text, and the first line that differs.
fn describe(nearest: &Nearest<'_>) -> String {
    let mut detail = format!("The nearest text begins at line {}:\n", nearest.first_line);
    for (number, line) in
        (nearest.first_line.cast_signed()..).zip(&nearest.lines).take(MAX_BLOCK_LINES)
    {
        let text = clip_line(&visible(line), MAX_CHARS);
        detail += &Line { number, text, left_out: 0 }.render();
    }
    if nearest.lines.len() > MAX_BLOCK_LINES {
        detail += &format!("[{} more lines]\n", nearest.lines.len() - MAX_BLOCK_LINES);
    }
    let (line, expected, found) = nearest.differs;
    let show = |line: &[u8]| match line {
        [] => "(an empty line)".to_owned(),
        line => clip_line(&show_invisible(line), MAX_CHARS),
    };
    let standing = found.map_or("(the file ends here)".to_owned(), show);
    detail
        + &format!(
            "It differs first at line {line}:\n  old_string: {}\n  the file:   {standing}\n",
            show(expected)
        )
}

fn hint(old: &str, survey: &Survey, nearest: Option<&Nearest<'_>>) -> String {
    let numbered = without_line_numbers(old).is_some();
    let blanks_only = nearest.is_some_and(|nearest| {
        let (_, expected, found) = nearest.differs;
        found.is_some_and(|found| without_blanks(found) == without_blanks(expected))
    });
    let hint = if numbered {
        "`old_string` seems to hold line numbers, and not those of the place: leave them out."
    } else if survey.nuls > 2 {
        "The file has NUL bytes; it may be UTF-16 or no text at all."
    } else if blanks_only {
        "Only blanks differ (→ is a tab, · a space at the end): copy them from the file."
    } else {
        "Read the place and copy the text as it stands."
    };
    format!("Nothing was done. {hint}")
}

fn without_blanks(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}
