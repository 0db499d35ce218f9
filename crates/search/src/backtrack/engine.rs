//! The matching side. It is not trusted: it may loop, run out of memory or crash.

use std::borrow::Cow;
use std::io::{self, BufWriter, Read, Write};
use std::time::{Duration, Instant};

use fancy_regex::Regex;

use super::wire::{self, Answer, Asked};
use crate::line_matches::line_around;

/// Limit of backtracking steps in one line. If the pattern does not match, each character takes one or two
/// steps, so this is enough for a line of a megabyte.
const MAX_STEPS: usize = 4_000_000;

/// Memory limit of a part of a pattern, compiled and while it runs.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// Limit of instructions of a compiled pattern.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// A line of this length is reported before it is searched, since it may take long.
pub(super) const LONG_LINE: usize = 2 << 10;

/// Otherwise progress is reported at this interval.
const REPORT_EVERY: Duration = Duration::from_millis(5);

/// Serves requests until the input ends. This is the main loop of the process behind [`crate::Process`].
pub fn answer_questions(input: &mut dyn Read, output: &mut dyn Write) -> io::Result<()> {
    let mut engine = Engine::default();
    while engine.answer(input, output)? {}
    Ok(())
}

/// The compiled pattern, once there is one.
#[derive(Debug, Default)]
pub(super) struct Engine {
    regex: Option<Regex>,
}

impl Engine {
    /// Serves the next request. Returns false at the end of the input.
    pub(super) fn answer(
        &mut self,
        input: &mut dyn Read,
        output: &mut dyn Write,
    ) -> io::Result<bool> {
        let Some(asked) = wire::read(input)? else { return Ok(false) };
        let output = BufWriter::new(output);
        let mut report = Report { output, flushed: Instant::now(), each: false };
        match asked {
            Asked::Prepare { pattern } => match compile(&pattern) {
                Ok(compiled) => {
                    self.regex = Some(compiled);
                    report.say(&Answer::Ready)?;
                }
                Err(reason) => report.say(&Answer::Wrong(reason))?,
            },
            Asked::Look { multiline, is_careful, most, from, text } => {
                report.each = is_careful;
                if let Some(regex) = &self.regex {
                    match multiline {
                        true => over_lines(regex, &text, from, most, &mut report)?,
                        false => line_by_line(regex, &text, from, most, &mut report)?,
                    }
                }
                report.say(&Answer::Done)?;
            }
        }
        report.output.flush()?;
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
    most: usize,
    report: &mut Report<'_>,
) -> io::Result<()> {
    let (mut at, mut matches) = (from, 0);
    while at < text.len() && matches < most {
        let line = line_around(text, at);
        report.at(at, line.end - at >= LONG_LINE)?;
        at = line.end + 1;
        let bytes = &text[line.clone()];
        let letters = Letters::of(bytes.strip_suffix(b"\r").unwrap_or(bytes));
        match regex.find(&*letters.text) {
            Ok(None) => {}
            Ok(Some(found)) => {
                matches += 1;
                let place = |at: usize| line.start + letters.place(at);
                let (start, end) = (place(found.start()), place(found.end()));
                report.say(&Answer::Match { start, end })?;
            }
            Err(_) => report.say(&Answer::GaveUp(line.start))?,
        }
    }
    Ok(())
}

fn over_lines(
    regex: &Regex,
    text: &[u8],
    from: usize,
    most: usize,
    report: &mut Report<'_>,
) -> io::Result<()> {
    let letters = Letters::of(text);
    let text: &str = &letters.text;
    let (mut at, mut matches) = (letters.offset(from), 0);
    while matches < most
        && let Some(start) = (at..=text.len()).find(|&at| text.is_char_boundary(at))
    {
        report.at(letters.place(start), false)?;
        match regex.find_from_pos(text, start) {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => {
                matches += 1;
                at = found.end().max(found.start() + 1);
                let (start, end) = (letters.place(found.start()), letters.place(found.end()));
                report.say(&Answer::Match { start, end })?;
            }
            Err(_) => return report.say(&Answer::GaveUp(letters.place(start))),
        }
    }
    Ok(())
}

/// Bytes as text with replacement characters, and a mapping between the offsets of both.
struct Letters<'a> {
    text: Cow<'a, str>,
    /// The end of each invalid sequence, in the text and in the bytes.
    broken: Vec<(usize, usize)>,
}

impl Letters<'_> {
    fn of(bytes: &[u8]) -> Letters<'_> {
        let text = String::from_utf8_lossy(bytes);
        let mut broken = Vec::new();
        if let Cow::Owned(_) = text {
            let (mut in_letters, mut in_bytes) = (0, 0);
            for chunk in bytes.utf8_chunks() {
                in_letters += chunk.valid().len();
                in_bytes += chunk.valid().len();
                if !chunk.invalid().is_empty() {
                    in_letters += char::REPLACEMENT_CHARACTER.len_utf8();
                    in_bytes += chunk.invalid().len();
                    broken.push((in_letters, in_bytes));
                }
            }
        }
        Letters { text, broken }
    }

    /// The offset in the bytes for an offset in the text.
    fn place(&self, offset: usize) -> usize {
        match self.broken.partition_point(|&(in_letters, _)| in_letters <= offset).checked_sub(1) {
            None => offset,
            Some(last) => self.broken[last].1 + (offset - self.broken[last].0),
        }
    }

    /// The offset in the text for an offset in the bytes.
    fn offset(&self, place: usize) -> usize {
        match self.broken.partition_point(|&(_, in_bytes)| in_bytes <= place).checked_sub(1) {
            None => place,
            Some(last) => self.broken[last].0 + (place - self.broken[last].1),
        }
    }
}

/// Writes responses to the other process.
struct Report<'a> {
    output: BufWriter<&'a mut dyn Write>,
    flushed: Instant,
    /// Report progress at every line.
    each: bool,
}

impl Report<'_> {
    /// Reports progress if the next line may take long, or if the last report is some time ago.
    fn at(&mut self, at: usize, may_take_long: bool) -> io::Result<()> {
        if !self.each && !may_take_long && self.flushed.elapsed() < REPORT_EVERY {
            return Ok(());
        }
        Answer::At(at).write(&mut self.output)?;
        self.output.flush()?;
        self.flushed = Instant::now();
        Ok(())
    }

    fn say(&mut self, answer: &Answer) -> io::Result<()> {
        answer.write(&mut self.output)
    }
}
