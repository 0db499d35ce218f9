//! Why a text is not in a file, as far as that can be told.

use toolcrib_text::{
    Endings, Survey, find_all, line_number_at, nearest_block, show_invisible, visible,
};

use crate::error::{Error, ErrorKind};

/// Lines of the nearest block that are shown; the whole error stays under 40.
const MAX_BLOCK_LINES: usize = 20;
/// Characters of a line that are shown.
const MAX_CHARS: usize = 200;
/// A shorter text is in many files anyway; that it is there says nothing.
const TELLING_CHARS: usize = 4;

/// The error for an `old` that is nowhere in the file.
pub(super) fn explain(shown: &str, text: &[u8], survey: &Survey, old: &str, new: &str) -> Error {
    let terminator = survey.terminator();
    let applied = find_all(text, new.as_bytes());
    if let Some(&at) = applied.first()
        && new.trim().chars().count() >= TELLING_CHARS
    {
        let line = line_number_at(text, at, terminator);
        let message =
            format!("`old_string` is not in {shown}, and `new_string` already is, at line {line}");
        return Error::new(ErrorKind::AlreadyApplied, message)
            .hint("Nothing was done. If this is the change you meant, go on; it was made before.")
            .with("line", line);
    }
    let error = Error::new(ErrorKind::NoMatch, format!("`old_string` is not in {shown}"));
    match describe_nearest(text, old, terminator) {
        Some((detail, blanks_only)) => error.detail(detail).hint(hint(old, survey, blanks_only)),
        None => error.detail("Nothing in the file is like it.").hint(hint(old, survey, false)),
    }
}

/// The block that is most like the text, the first line that differs, and whether it differs in
/// blanks alone.
fn describe_nearest(text: &[u8], old: &str, terminator: u8) -> Option<(String, bool)> {
    let nearest = nearest_block(text, old.as_bytes(), terminator)?;
    let mut detail = format!("The nearest text begins at line {}:\n", nearest.first_line);
    for (number, line) in (nearest.first_line..).zip(&nearest.lines).take(MAX_BLOCK_LINES) {
        detail += &format!("{number:>6}\t{}\n", clip(&visible(line)));
    }
    if nearest.lines.len() > MAX_BLOCK_LINES {
        detail += &format!("[{} more lines]\n", nearest.lines.len() - MAX_BLOCK_LINES);
    }
    let (line, expected, found) = nearest.differs;
    let standing = found.map_or("(the file ends here)".to_owned(), |f| clip(&show_invisible(f)));
    detail += &format!(
        "It differs first at line {line}:\n  old_string: {}\n  the file:   {standing}\n",
        clip(&show_invisible(expected))
    );
    let blanks_only = found.is_some_and(|found| without_blanks(found) == without_blanks(expected));
    Some((detail, blanks_only))
}

fn hint(old: &str, survey: &Survey, blanks_only: bool) -> String {
    let numbered = old.lines().all(|line| {
        let line = line.trim_start();
        line.split_once(['\t', '→']).is_some_and(|(n, _)| n.parse::<u64>().is_ok())
    });
    if numbered {
        return "`old_string` seems to hold the line numbers that Read shows: leave them out."
            .to_owned();
    }
    if survey.endings() == Endings::Mixed && old.contains('\n') {
        return "The file has both LF and CRLF line endings: try one line, or lines with one kind of ending."
            .to_owned();
    }
    if blanks_only {
        return "Only blanks differ (→ is a tab, · a space at the end): copy them from the file."
            .to_owned();
    }
    "Nothing was done. Read the place and copy the text as it stands.".to_owned()
}

fn without_blanks(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…[+{} characters]", &text[..cut], text[cut..].chars().count()),
    }
}
