//! Errors of patches, with hints.

use std::borrow::Cow;
use std::path::Path;

use toolcrib_text::{
    Divergence, Hunk, MatchLevel, Misfit, Patch, PatchError, PatchErrorKind, TextProperties, Why,
    show_invisible, truncate_line, visible_name,
};

use super::patched_files::File;
use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::message_names::{EDIT, READ};
use crate::phrases::counted;

/// Characters shown of a line.
const MAX_CHARS: usize = 200;
/// Number of candidate lines to list.
const LISTED_LINES: usize = 20;

/// The error for an invalid patch.
pub(super) fn unreadable(error: &PatchError) -> Error {
    let kind = match error.kind {
        PatchErrorKind::Invalid => ErrorKind::Invalid,
        PatchErrorKind::Unsupported => ErrorKind::Unsupported,
        PatchErrorKind::TooLarge => ErrorKind::TooLarge,
    };
    let message = match error.line {
        0 => format!("the patch {}", error.what),
        line => format!("line {line} of the patch {}", error.what),
    };
    let error_here = Error::new(kind, message).hint(error.hint).nothing_written();
    match error.line {
        0 => error_here,
        line => error_here.with("patch_line", line),
    }
}

/// Adds the part of the patch to an error.
pub(super) fn of_part(error: Error, patch: &Patch<'_>, at: usize) -> Error {
    let part = &patch.files[at];
    let error = match patch.files.len() {
        1 => error.nothing_written(),
        total => error.about(&format!("file {} of {total}", at + 1)),
    };
    let named = visible_name(&part.path);
    error.with("file_path", named).with("patch_line", part.line)
}

/// The error for a hunk without a unique position.
pub(super) fn misfit(shown: &str, hunks: &[Hunk<'_>], misfit: &Misfit) -> Error {
    let hunk = &hunks[misfit.hunk];
    let name = hunk_name(hunk, misfit.hunk, hunks.len());
    let Explanation { kind, message, detail, hint } = Explanation::of(shown, &misfit.why);
    let error = Error::new(kind, format!("{name} {message}"))
        .detail(detail)
        .hint(format!("Nothing was written. {hint}"))
        .with("hunk", misfit.hunk + 1)
        .with("header", hunk.header);
    match &misfit.why {
        Why::Ambiguous { lines, .. } => error
            .with("lines", &lines[..lines.len().min(LISTED_LINES)])
            .with("matches", lines.len()),
        Why::NotFound { nearest: Some(nearest), .. } => error.with("line", nearest.line),
        _ => error,
    }
}

/// Names a hunk by its number and its header.
pub(super) fn hunk_name(hunk: &Hunk<'_>, at: usize, total: usize) -> String {
    let of = if total > 1 { format!("hunk {} of {total}", at + 1) } else { "the hunk".to_owned() };
    match hunk.header {
        "" => of,
        header => format!("{of} ({})", truncate_line(header, MAX_CHARS)),
    }
}

/// Why a hunk has no unique position.
struct Explanation {
    kind: ErrorKind,
    /// Follows the name of the hunk.
    message: String,
    detail: String,
    hint: Cow<'static, str>,
}

impl Explanation {
    fn new(kind: ErrorKind, message: String, hint: impl Into<Cow<'static, str>>) -> Explanation {
        Explanation { kind, message, detail: String::new(), hint: hint.into() }
    }

    fn of(shown: &str, why: &Why) -> Explanation {
        match why {
            Why::NotFound { nearest, too_large_to_compare, with_less_context } => Explanation {
                detail: similar_text(nearest.as_ref(), *too_large_to_compare, *with_less_context),
                ..Explanation::new(
                    ErrorKind::NoMatch,
                    format!("does not match {shown}: its lines are not in the file"),
                    format!("{READ} the file and copy its lines into the hunk."),
                )
            },
            Why::Ambiguous { lines, rung } => Explanation::new(
                ErrorKind::Ambiguous,
                format!("matches {shown} at {}", places(lines, rung.map(MatchLevel::words))),
                "Add context lines, an @@ line that precedes it, or the right line number.",
            ),
            Why::Overlaps { line } => Explanation::new(
                ErrorKind::Conflict,
                format!(
                    "matches {shown} only at line {line}, where another hunk changes the same lines"
                ),
                "Merge the two hunks.",
            ),
            Why::NotAtEnd { elsewhere } => Explanation {
                detail: elsewhere.map_or_else(String::new, |line| {
                    format!("It would match only at line {line}.\n")
                }),
                ..Explanation::new(
                    ErrorKind::NoMatch,
                    format!("belongs at the end of {shown}, but the end differs"),
                    "Copy the last lines of the file, or omit *** End of File.",
                )
            },
            Why::Nowhere => Explanation::new(
                ErrorKind::Invalid,
                format!("only adds lines to {shown} and does not say where"),
                "Add context lines, an @@ line that precedes them, or *** End of File.",
            ),
            Why::NoSuchPlace { named, lines } => Explanation::new(
                ErrorKind::NoMatch,
                format!(
                    "only adds lines, after {}, which {shown} does not have (it has {})",
                    truncate_line(named, MAX_CHARS),
                    counted(*lines, "line")
                ),
                "Add context lines, copied from the file.",
            ),
            Why::NoIndentation { line } => Explanation::new(
                ErrorKind::NoMatch,
                format!(
                    "matches {shown} at line {line} except for its indentation, and the indentation of its new lines is unclear"
                ),
                "Copy the indentation from the file.",
            ),
            Why::TooManyLines { lines, most } => Explanation::new(
                ErrorKind::TooLarge,
                format!(
                    "is not at its line in {shown}, and the file is too long to search ({lines} lines; the limit is {most})"
                ),
                format!("Give the exact line numbers, use {EDIT}, or a command."),
            ),
            Why::TooRepetitive => Explanation::new(
                ErrorKind::Limit,
                format!("could not be placed: its lines occur too often in {shown}"),
                format!("Use {EDIT}, or add unique lines to the hunks."),
            ),
        }
    }
}

/// The lines of several matches, with the difference if they are not exact.
fn places(lines: &[u64], difference: Option<&str>) -> String {
    let count = counted(lines.len() as u64, "place");
    let difference = difference.map_or_else(String::new, |words| format!(" except for {words}"));
    let listed: Vec<String> = lines.iter().take(LISTED_LINES).map(u64::to_string).collect();
    let more = match lines.len().saturating_sub(LISTED_LINES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{count}{difference}, lines {}{more}", listed.join(", "))
}

/// Describes the text of the file that is most similar to a hunk.
fn similar_text(
    nearest: Option<&Divergence>,
    too_large_to_compare: bool,
    with_less_context: Option<u64>,
) -> String {
    let mut detail = match nearest {
        Some(nearest) => describe(nearest),
        None if too_large_to_compare => {
            "None of its lines is in the file. The file is too large for a closer comparison.\n"
                .to_owned()
        }
        None => "No similar text was found in the file.\n".to_owned(),
    };
    if let Some(line) = with_less_context {
        detail += &format!("With fewer context lines it would match, at line {line} only.\n");
    }
    detail
}

/// Shows the first line that differs.
fn describe(nearest: &Divergence) -> String {
    let show = |line: &[u8]| match line {
        [] => "(an empty line)".to_owned(),
        line => truncate_line(&show_invisible(line), MAX_CHARS),
    };
    let found = nearest.found.as_deref().map_or("(the file ends here)".to_owned(), show);
    format!(
        "The most similar text begins at line {}; it differs first at line {}:\n  the patch: {}\n  the file:  {found}\n",
        nearest.begins,
        nearest.line,
        show(&nearest.expected),
    )
}

/// The error for a missing file that is to be changed, moved or deleted.
pub(super) fn missing(cx: &Cx<'_>, file: &File) -> Error {
    if file.was.is_some() {
        let message = format!("an earlier part of the patch deletes or moves {}", file.shown);
        return Error::new(ErrorKind::NotFound, message)
            .hint("Change it before the part that deletes or moves it.");
    }
    missing_source(cx, &file.path)
}

/// The error for a missing file, with suggestions.
pub(super) fn missing_source(cx: &Cx<'_>, path: &Path) -> Error {
    match cx.open(path) {
        Err(error) => error,
        Ok(file) => Error::new(ErrorKind::Stale, format!("{} was created meanwhile", file.shown()))
            .hint("Nothing was written. Try again."),
    }
}

/// The error for a new file whose path exists.
pub(super) fn path_exists(file: &File) -> Error {
    let there = match &file.was {
        Some(_) => "already exists with other content",
        None => "is added twice by the patch, with different contents",
    };
    Error::new(ErrorKind::Conflict, format!("{} {there}", file.shown))
        .hint("Update that file instead, or delete it in an earlier part of the patch.")
}

/// The error for a deletion that lists only a part of the file.
pub(super) fn partial_deletion(file: &File, rest: &[u8]) -> Error {
    let more = counted(TextProperties::of(rest).lines(), "line");
    let message = format!("the patch deletes {}, which has {more} more than the patch", file.shown);
    Error::new(ErrorKind::Conflict, message).hint("To delete the whole file, use *** Delete File.")
}

/// Fails for a symlink: its target would be deleted or moved, and the symlink would stay.
pub(super) fn require_no_link(cx: &Cx<'_>, file: &File, done: &str) -> Result<(), Error> {
    match cx.followed_link(&file.path)? {
        None => Ok(()),
        Some(link) => {
            let message =
                format!("{link} leads through a symlink and cannot be {done} by that path");
            Err(Error::new(ErrorKind::Unsupported, message)
                .hint("Give the path of the file itself."))
        }
    }
}

/// The error for a patch that exceeds the memory limit.
pub(super) fn too_large(bytes: u64, most: u64) -> Error {
    let message = format!("the patched files have {bytes} bytes in total; the limit is {most}");
    Error::new(ErrorKind::TooLarge, message).hint("Apply it in parts.")
}

/// A bug: every path of the patch was read before.
pub(super) fn unknown_file() -> Error {
    Error::new(ErrorKind::Internal, "a part of the patch names a file that was not read")
}
