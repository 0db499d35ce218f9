//! The `*** Begin Patch` format: files by name, hunks by context.

use super::hunk::{self, Header, HunkLine, Sign};
use super::unfenced_lines::{PatchLine, UnfencedLines};
use super::{FileAction, FilePatch, Hunk, PatchError};

/// The first line of the format.
pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The action and file name, if the line begins a file.
pub(super) fn file_header(line: &str) -> Option<(FileAction, &str)> {
    let headers = [
        ("*** Add File:", FileAction::Add),
        ("*** Update File:", FileAction::Update),
        ("*** Delete File:", FileAction::Delete),
    ];
    let found =
        headers.iter().find_map(|(start, action)| Some((*action, line.strip_prefix(start)?)));
    found.map(|(action, name)| (action, name.trim()))
}

/// Whether the next line ends the patch, ignoring whitespace around it. With a leading space it might be a
/// context line, unless nothing follows it.
pub(super) fn is_end(mut source: UnfencedLines<'_>) -> bool {
    let is_end = source.next_line().is_some_and(|line| line.text.trim() == END);
    is_end
        && std::iter::from_fn(|| source.next_line())
            .all(|line| !line.text.starts_with([' ', '+', '-', '*', '@']))
}

/// Parses all files of the patch, in order. Text before the first line and after the last is ignored.
pub(super) fn parse(mut source: UnfencedLines<'_>) -> Result<Vec<FilePatch<'_>>, PatchError> {
    let mut files = Vec::new();
    while let Some(line) = source.next_line() {
        let text = line.text.trim();
        if text == END {
            return Ok(files);
        }
        if let Some((action, name)) = file_header(text) {
            files.push(parse_file(&mut source, line, action, name)?);
        } else if !files.is_empty() && !text.is_empty() || text.starts_with("*** ") && text != BEGIN
        {
            let what = "is not allowed here in a *** Begin Patch";
            return Err(PatchError::invalid(line.number, what).hint(
                "Files begin with *** Add File: NAME, *** Update File: NAME or *** Delete File: NAME.",
            ));
        }
    }
    let what = "has no *** End Patch: it seems truncated";
    Err(PatchError::invalid(0, what)
        .hint("Send the whole patch, with *** End Patch as its last line."))
}

fn parse_file<'a>(
    source: &mut UnfencedLines<'a>,
    line: PatchLine<'a>,
    action: FileAction,
    name: &str,
) -> Result<FilePatch<'a>, PatchError> {
    if name.is_empty() {
        return Err(PatchError::invalid(line.number, "begins a file without a name"));
    }
    let mut file = FilePatch {
        line: line.number,
        action,
        path: name.into(),
        from: None,
        executable: None,
        hunks: Vec::new(),
    };
    match action {
        FileAction::Add => file.hunks.extend(parse_added(source, line.number)?),
        FileAction::Delete => {}
        _ => parse_update(source, &mut file)?,
    }
    Ok(file)
}

/// Parses the lines of a new file. An empty line may lack its sign.
fn parse_added<'a>(
    source: &mut UnfencedLines<'a>,
    line: usize,
) -> Result<Option<Hunk<'a>>, PatchError> {
    let mut lines: Vec<HunkLine<'a>> = Vec::new();
    // Empty lines count only if another line follows.
    let (mut empty, mut unended) = (0, false);
    while let Some(next) = source.peek() {
        if next.text.trim_start().starts_with("***") {
            break;
        }
        source.next_line();
        if next.text.is_empty() {
            empty += 1;
            continue;
        }
        if next.text.starts_with('\\') {
            unended = true;
            continue;
        }
        let Some(text) = next.text.strip_prefix('+') else {
            let what = "belongs to a new file and does not begin with +";
            return Err(PatchError::invalid(next.number, what)
                .hint("Put + before each line of a new file."));
        };
        lines.extend((0..empty).map(|_| HunkLine { sign: Sign::Add, text: "" }));
        empty = 0;
        lines.push(HunkLine { sign: Sign::Add, text });
    }
    let hunk = Hunk {
        line,
        header: "",
        before: Some(0),
        before_new: Some(0),
        anchors: Vec::new(),
        lines,
        at_end: false,
        appends: false,
        old_unended: false,
        new_unended: unended,
    };
    Ok((!hunk.lines.is_empty()).then_some(hunk))
}

/// Parses the target of a move, and the hunks.
fn parse_update<'a>(
    source: &mut UnfencedLines<'a>,
    file: &mut FilePatch<'a>,
) -> Result<(), PatchError> {
    if let Some(to) = source.peek().and_then(|line| line.text.trim_start().strip_prefix(MOVE)) {
        source.next_line();
        file.action = FileAction::Move;
        file.from = Some(std::mem::replace(&mut file.path, to.trim().into()));
    }
    while let Some(line) = source.peek() {
        let text = line.text.trim_end();
        if is_end(*source) {
            break;
        }
        if text == END_OF_FILE {
            source.next_line();
            if let Some(hunk) = file.hunks.last_mut() {
                hunk.at_end = true;
            }
        } else if text.starts_with("***") {
            break;
        } else if let Some(behind) = skip_empty_lines(*source) {
            *source = behind;
        } else {
            file.hunks.push(parse_hunk(source)?);
        }
    }
    if file.hunks.is_empty() && file.action != FileAction::Move {
        let what = "begins the update of a file, but no hunk follows";
        return Err(PatchError::invalid(file.line, what)
            .hint("Add a hunk: @@, context lines, and lines with - and +."));
    }
    Ok(())
}

/// Skips empty lines between two elements that belong to neither.
fn skip_empty_lines(source: UnfencedLines<'_>) -> Option<UnfencedLines<'_>> {
    let mut behind = source;
    while behind.peek().is_some_and(|line| line.text.trim_end().is_empty()) {
        behind.next_line();
    }
    let between = behind
        .peek()
        .is_none_or(|line| line.text.starts_with("***") || line.text.starts_with("@@"));
    (between && behind.number() > source.number()).then_some(behind)
}

/// Parses a hunk with the `@@` lines before it. Each of these is a line of the file after the previous one.
fn parse_hunk<'a>(source: &mut UnfencedLines<'a>) -> Result<Hunk<'a>, PatchError> {
    let first = source.number();
    let (mut header, mut anchors) = (Header::default(), Vec::new());
    while let Some(line) = source.peek().filter(|line| line.text.starts_with("@@")) {
        source.next_line();
        let next = Header::parse(line)?;
        anchors.extend(next.anchor);
        header = Header { ranges: next.ranges.or(header.ranges), ..next };
    }
    let hunk = hunk::parse_envelope(source, first, header)?;
    let only_adds = hunk.lines.iter().all(|line| line.sign == Sign::Add);
    let appends = only_adds && anchors.is_empty() && hunk.before.is_none();
    Ok(Hunk { anchors, appends, ..hunk })
}
