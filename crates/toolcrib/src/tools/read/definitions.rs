//! Reads one definition of a source file, or lists its definitions.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_fs::Content;
use toolcrib_syntax::{Class, Definition, MAX_BYTES, Outline};
use toolcrib_text::visible;

use super::line_page::in_brackets;
use super::{Part, text};
use crate::cx::{Cx, OpenFile};
use crate::error::{Error, ErrorKind};
use crate::message_names::{OUTLINE, SYMBOL};
use crate::phrases::counted;
use crate::reply::Reply;
use crate::source_syntax::{ParseBudget, Unparsed, base_name};
use crate::suggest::similar_names;

/// Megabytes and time for one file that the caller named: several times the largest that is parsed.
const MEGABYTES: u64 = 10;
const MAX_TIME: Duration = Duration::from_secs(10);

/// Candidates that an error lists.
const MAX_CANDIDATES: usize = 20;

/// Attempts to read the file as it was parsed.
const ATTEMPTS: usize = 3;

/// The definitions of a file, and the bytes that have them.
struct Source {
    outline: Arc<Outline>,
    bytes: Content,
}

/// Reads the definition that a name denotes, with its documentation.
pub(super) fn read(
    cx: &Cx<'_>,
    file: &OpenFile,
    name: &str,
    limit: u64,
    header: &[String],
) -> Result<Reply, Error> {
    let mut attempt = 1;
    loop {
        let source = Source::of(cx, file)?;
        let one = find(&source.outline, file, name)?;
        let path = visible(source.outline.path(one).as_bytes());
        let lines = one.last_line + 1 - one.doc_line;
        let part = Part { offset: one.doc_line.cast_signed(), limit: limit.min(lines) };
        let error = source.outline.error_near(one.doc_line, one.last_line);
        let error = error.map(|line| {
            format!("the file does not parse at line {line}: the definition may be incomplete")
        });
        let header = header.iter().cloned().chain([path]).chain(error).collect();
        let reply = text::read(cx, file, part, header)?;
        let is_same = reply
            .metadata()
            .get("hash")
            .is_some_and(|hash| hash.as_str().is_some_and(|hash| source.bytes.hash().is(hash)));
        if is_same || attempt == ATTEMPTS {
            return Ok(reply);
        }
        attempt += 1;
    }
}

/// Lists the definitions of a file, or those inside one of them.
pub(super) fn list(
    cx: &Cx<'_>,
    file: &OpenFile,
    within: Option<&str>,
    part: Part,
    mut header: Vec<String>,
) -> Result<Reply, Error> {
    let source = Source::of(cx, file)?;
    let outline = &source.outline;
    let range = match within {
        Some(name) => {
            let one = find(outline, file, name)?;
            (one.first_line, one.last_line)
        }
        None => (1, u64::MAX),
    };
    if outline.has_errors {
        let line = outline.error_near(1, u64::MAX);
        let line = line.map_or(String::new(), |line| format!(" from line {line} on"));
        header.push(format!("syntax errors{line}: definitions may be missing"));
    }
    if outline.is_cut {
        header.push("too many definitions; the last are missing".to_owned());
    }
    let first = range.0.max(part.offset.max(1).unsigned_abs());
    let is_listed = |one: &&Definition| {
        one.class != Class::Member
            && one.first_line >= first
            && one.last_line <= range.1
            && (within.is_some() || !is_local(outline, one))
    };
    let listed: Vec<&Definition> = outline.definitions.iter().filter(is_listed).collect();
    if listed.is_empty() {
        header.push("no definitions".to_owned());
    }
    let mut text = in_brackets(&header);
    let mut shown = 0;
    let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
    for one in listed.iter().take(limit) {
        let line = entry(outline, one);
        if text.len() + line.len() + FOOTER_BYTES > cx.limits().reply_chars && shown > 0 {
            break;
        }
        text += &line;
        shown += 1;
    }
    if let Some(next) = listed.get(shown) {
        let left = counted((listed.len() - shown) as u64, "more definition");
        let _ = writeln!(text, "[{left}; for more, offset: {}]", next.first_line);
    }
    Ok(Reply::new(text)
        .with("file_path", file.shown())
        .with("hash", source.bytes.hash().short())
        .with("definitions", shown)
        .with("truncated", shown < listed.len()))
}

/// Bytes reserved for the line after the list.
const FOOTER_BYTES: usize = 100;

/// A line of the list: the lines of the definition and its signature, indented by the definitions around it.
fn entry(outline: &Outline, one: &Definition) -> String {
    let depth = std::iter::successors(outline.outer(one), |one| outline.outer(one)).count();
    let lines = if one.first_line == one.last_line {
        one.first_line.to_string()
    } else {
        format!("{}-{}", one.first_line, one.last_line)
    };
    let text = visible(one.signature.as_bytes());
    format!("{lines:>9}\t{}{text}\n", "  ".repeat(depth.min(MAX_INDENT)))
}

/// Deeper definitions are not indented further.
const MAX_INDENT: usize = 10;

/// Whether a definition is inside a function.
fn is_local(outline: &Outline, one: &Definition) -> bool {
    let mut around = std::iter::successors(outline.outer(one), |one| outline.outer(one));
    around.any(|outer| outer.class == Class::Callable)
}

/// The one definition that a name denotes.
fn find<'a>(outline: &'a Outline, file: &OpenFile, name: &str) -> Result<&'a Definition, Error> {
    let places = places(file.shown());
    let found: Vec<&Definition> = outline.find(name, &places).map(|(_, one)| one).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(missing(outline, file, name)),
        _ => Err(ambiguous(outline, file, name, &found)),
    }
}

/// The names of the directories and of the file, without its extension.
fn places(shown: &str) -> Vec<&str> {
    let path = shown.rsplit_once('.').map_or(shown, |(path, _)| path);
    path.split('/').filter(|name| !name.is_empty()).collect()
}

fn missing(outline: &Outline, file: &OpenFile, name: &str) -> Error {
    let shown_name = visible(name.as_bytes());
    let last = name.rsplit([':', '.', '#', ' ']).next().unwrap_or(name);
    let names = outline.definitions.iter().map(|one| one.name.as_str());
    let like = similar_names(last, names, MAX_CANDIDATES);
    let like: Vec<&Definition> =
        outline.definitions.iter().filter(|one| like.contains(&one.name.as_str())).collect();
    let why = if outline.has_errors { "; it has syntax errors" } else { "" };
    let message = format!("{} has no definition `{shown_name}`{why}", file.shown());
    let hint = format!("{OUTLINE}: true lists its definitions.");
    let error = Error::new(ErrorKind::NotFound, message).hint(hint);
    if like.is_empty() {
        return error;
    }
    error.detail(format!("Similar names:\n{}", candidates(outline, &like)))
}

fn ambiguous(outline: &Outline, file: &OpenFile, name: &str, found: &[&Definition]) -> Error {
    let name = visible(name.as_bytes());
    let count = counted(found.len() as u64, "definition");
    let message = format!("{} has {count} of `{name}`", file.shown());
    Error::new(ErrorKind::Ambiguous, message)
        .detail(candidates(outline, found))
        .hint(format!("Qualify the name in {SYMBOL}, or use offset and limit."))
}

fn candidates(outline: &Outline, found: &[&Definition]) -> String {
    let mut text = String::new();
    for one in found.iter().take(MAX_CANDIDATES) {
        let path = visible(outline.path(one).as_bytes());
        let _ = writeln!(text, "{:>9}\t{path}", format!("{}-{}", one.doc_line, one.last_line));
    }
    if found.len() > MAX_CANDIDATES {
        let _ = writeln!(text, "and {} more", found.len() - MAX_CANDIDATES);
    }
    text
}

impl Source {
    fn of(cx: &Cx<'_>, file: &OpenFile) -> Result<Source, Error> {
        let (shown, most) = (file.shown(), MAX_BYTES as u64);
        if file.size() > most {
            return Err(unknown(shown, Unparsed::TooLarge));
        }
        let bytes = Content::from(file.read_all(most)?);
        let budget = ParseBudget::megabytes(MEGABYTES, MAX_TIME);
        let outline = cx.outlines().of_file(base_name(shown), &bytes, &budget);
        Ok(Source { outline: outline.map_err(|why| unknown(shown, why))?, bytes })
    }
}

/// The error for a file whose definitions are not known.
fn unknown(shown: &str, why: Unparsed) -> Error {
    let (kind, why) = match why {
        Unparsed::Language => (ErrorKind::Unsupported, "its language is not supported"),
        Unparsed::Binary => (ErrorKind::Unsupported, "it is not text"),
        Unparsed::TooLarge => (ErrorKind::TooLarge, "it is too large to parse"),
        Unparsed::OverBudget => (ErrorKind::Timeout, "parsing it takes too long"),
    };
    Error::new(kind, format!("the definitions of {shown} are not known: {why}"))
        .hint("Use offset and limit.")
}
