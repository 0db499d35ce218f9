//! The matching side. It is not trusted: it may loop, run out of memory or crash.

use std::borrow::Cow;
use std::io::{self, BufWriter, Read, Write};
use std::time::{Duration, Instant};

use fancy_regex::Regex;

use super::relaxed::relaxed;
use super::wire::{self, Request, Response};
use crate::line_around::line_around;

/// Limit of backtracking steps in one line. If the pattern does not match, each character takes one or two
/// steps, so this is enough for a line of a megabyte.
const MAX_STEPS: usize = 4_000_000;

/// Memory limit of a part of a pattern, compiled and while it runs.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// Limit of instructions of a compiled pattern.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// A line of this length is reported before it is searched, since it may take long.
pub(super) const LONG_LINE_BYTES: usize = 2 << 10;

/// Otherwise progress is reported at this interval.
const REPORT_INTERVAL: Duration = Duration::from_millis(5);

/// Serves requests until the input ends. This is the main loop of the process behind [`crate::Process`].
pub fn answer_questions(input: &mut dyn Read, output: &mut dyn Write) -> io::Result<()> {
    let mut engine = Engine::default();
    while engine.serve_one(input, output)? {}
    Ok(())
}

/// The compiled pattern, once there is one.
#[derive(Debug, Default)]
pub(super) struct Engine {
    regex: Option<Regex>,
}

impl Engine {
    /// Serves the next request. Returns false at the end of the input.
    pub(super) fn serve_one(
        &mut self,
        input: &mut dyn Read,
        output: &mut dyn Write,
    ) -> io::Result<bool> {
        let Some(request) = wire::read_request(input)? else { return Ok(false) };
        let output = BufWriter::new(output);
        let mut writer = ResponseWriter { output, last_report: Instant::now(), every_line: false };
        match request {
            Request::Compile { pattern } => match compile(&pattern) {
                Ok(compiled) => {
                    self.regex = Some(compiled);
                    let relaxed = std::str::from_utf8(&pattern).ok().and_then(relaxed);
                    writer.write(&Response::Ready(relaxed.unwrap_or_default()))?;
                }
                Err(reason) => writer.write(&Response::Invalid(reason))?,
            },
            Request::Search { multiline, report_every_line, max_matches, from, text } => {
                writer.every_line = report_every_line;
                if let Some(regex) = &self.regex {
                    if multiline {
                        over_lines(regex, &text, from, max_matches, &mut writer)?;
                    } else {
                        line_by_line(regex, &text, from, max_matches, &mut writer)?;
                    }
                }
                writer.write(&Response::Done)?;
            }
        }
        writer.output.flush()?;
        Ok(true)
    }
}

fn compile(pattern: &[u8]) -> Result<Regex, String> {
    let pattern = std::str::from_utf8(pattern).map_err(|error| error.to_string())?;
    fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MAX_STEPS)
        .max_prog_size(MAX_INSTRUCTIONS)
        .delegate_size_limit(MAX_COMPILED_BYTES)
        .delegate_dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| error.to_string())
}

fn line_by_line(
    regex: &Regex,
    text: &[u8],
    from: usize,
    max_matches: usize,
    writer: &mut ResponseWriter<'_>,
) -> io::Result<()> {
    let (mut at, mut matches) = (from, 0);
    while at < text.len() && matches < max_matches {
        let line = line_around(text, at);
        writer.report_progress(at, line.end - at >= LONG_LINE_BYTES)?;
        at = line.end + 1;
        let bytes = &text[line.clone()];
        let lossy = LossyText::of(bytes.strip_suffix(b"\r").unwrap_or(bytes));
        match regex.find(&*lossy.text) {
            Ok(None) => {}
            Ok(Some(found)) => {
                matches += 1;
                let place = |at: usize| line.start + lossy.byte_offset(at);
                let (start, end) = (place(found.start()), place(found.end()));
                writer.write(&Response::Match { start, end })?;
            }
            Err(_) => writer.write(&Response::GaveUp(line.start))?,
        }
    }
    Ok(())
}

fn over_lines(
    regex: &Regex,
    text: &[u8],
    from: usize,
    max_matches: usize,
    writer: &mut ResponseWriter<'_>,
) -> io::Result<()> {
    let lossy = LossyText::of(text);
    let text: &str = &lossy.text;
    let (mut at, mut matches) = (lossy.text_offset(from), 0);
    while matches < max_matches
        && let Some(start) = (at..=text.len()).find(|&at| text.is_char_boundary(at))
    {
        writer.report_progress(lossy.byte_offset(start), false)?;
        match regex.find_from_pos(text, start) {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => {
                matches += 1;
                at = found.end().max(found.start() + 1);
                let (start, end) =
                    (lossy.byte_offset(found.start()), lossy.byte_offset(found.end()));
                writer.write(&Response::Match { start, end })?;
            }
            Err(_) => return writer.write(&Response::GaveUp(lossy.byte_offset(start))),
        }
    }
    Ok(())
}

/// Bytes as text with replacement characters, and a mapping between the offsets of both.
struct LossyText<'a> {
    text: Cow<'a, str>,
    /// The end of each invalid sequence, in the text and in the bytes.
    broken: Vec<(usize, usize)>,
}

impl LossyText<'_> {
    fn of(bytes: &[u8]) -> LossyText<'_> {
        let text = String::from_utf8_lossy(bytes);
        let mut broken = Vec::new();
        if let Cow::Owned(_) = text {
            let (mut in_text, mut in_bytes) = (0, 0);
            for chunk in bytes.utf8_chunks() {
                in_text += chunk.valid().len();
                in_bytes += chunk.valid().len();
                if !chunk.invalid().is_empty() {
                    in_text += char::REPLACEMENT_CHARACTER.len_utf8();
                    in_bytes += chunk.invalid().len();
                    broken.push((in_text, in_bytes));
                }
            }
        }
        LossyText { text, broken }
    }

    /// The offset in the bytes for an offset in the text.
    fn byte_offset(&self, offset: usize) -> usize {
        match self.broken.partition_point(|&(in_text, _)| in_text <= offset).checked_sub(1) {
            None => offset,
            Some(last) => self.broken[last].1 + (offset - self.broken[last].0),
        }
    }

    /// The offset in the text for an offset in the bytes.
    fn text_offset(&self, place: usize) -> usize {
        match self.broken.partition_point(|&(_, in_bytes)| in_bytes <= place).checked_sub(1) {
            None => place,
            Some(last) => self.broken[last].0 + (place - self.broken[last].1),
        }
    }
}

/// Writes responses to the other process.
struct ResponseWriter<'a> {
    output: BufWriter<&'a mut dyn Write>,
    last_report: Instant,
    /// Report progress at every line.
    every_line: bool,
}

impl ResponseWriter<'_> {
    /// Reports progress if the next line may take long, or if the last report is some time ago.
    fn report_progress(&mut self, at: usize, may_take_long: bool) -> io::Result<()> {
        if !self.every_line && !may_take_long && self.last_report.elapsed() < REPORT_INTERVAL {
            return Ok(());
        }
        Response::DecidedTo(at).write(&mut self.output)?;
        self.output.flush()?;
        self.last_report = Instant::now();
        Ok(())
    }

    fn write(&mut self, response: &Response) -> io::Result<()> {
        response.write(&mut self.output)
    }
}
