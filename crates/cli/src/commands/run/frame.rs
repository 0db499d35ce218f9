//! A message of `toolcrib run`: a line of JSON, and the bytes that follow it if it has a field `bytes`.

use std::io::{self, BufRead, Read, Write};

use serde_json::{Map, Value};
use toolcrib::{Error, ErrorKind, parse_json};

use super::request::RequestError;
use crate::bounded_input::{self, Line};

/// The largest payload of a message.
pub(super) const MAX_PAYLOAD_BYTES: usize = 256 << 20;

const SHAPE: &str = r#"A line is {"id": …, "tool": "Read", "args": {…}}, with "wait": true or "dry_run": true if needed."#;

/// A message that was read.
pub(super) struct Frame {
    pub(super) fields: Map<String, Value>,
    pub(super) payload: Option<Vec<u8>>,
}

/// A message that cannot be used.
pub(super) struct FrameError {
    pub(super) error: RequestError,
    /// Whether the end of the message is not known, so that no other message can be found after it.
    pub(super) is_fatal: bool,
}

const LOST: &str = "Nothing was done. Its payload cannot be told from messages, so nothing more is read. Start again.";

impl Frame {
    /// The memory that it holds besides its fields.
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, Vec::len)
    }

    /// Reads the next message. `None` at the end of the input. An error comes with the length of its line.
    pub(super) fn read(
        input: &mut impl BufRead,
    ) -> io::Result<Option<(usize, Result<Frame, FrameError>)>> {
        loop {
            let Some(line) = bounded_input::read_line(input)? else { return Ok(None) };
            let held = line.bytes();
            let bytes = match line {
                Line::TooLong { length, mentions_bytes } => {
                    let error = bounded_input::too_long(Some(length));
                    return Ok(Some((held, Err(FrameError::new(error, mentions_bytes)))));
                }
                Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Whole(bytes) => bytes,
            };
            let frame = match parse_json(&bytes) {
                Ok(Value::Object(fields)) => Frame::with_payload(fields, input)?,
                Ok(_) => {
                    let error = Error::invalid("the line is not a JSON object").hint(SHAPE);
                    Err(FrameError::new(error, false))
                }
                Err(error) => {
                    let may_have_payload = bounded_input::mentions_payload(&bytes);
                    Err(FrameError::new(error.hint(SHAPE), may_have_payload))
                }
            };
            return Ok(Some((held, frame)));
        }
    }

    /// Reads the payload that the fields announce.
    fn with_payload(
        mut fields: Map<String, Value>,
        input: &mut impl BufRead,
    ) -> io::Result<Result<Frame, FrameError>> {
        let announced = match fields.shift_remove("bytes") {
            None | Some(Value::Null) => return Ok(Ok(Frame { fields, payload: None })),
            Some(announced) => announced,
        };
        let id = fields.get("id").cloned().unwrap_or_default();
        let refused = |error: Error, is_fatal: bool| {
            let FrameError { error: (field, _, error), .. } = FrameError::new(error, is_fatal);
            Ok(Err(FrameError { error: (field, id.clone(), error), is_fatal }))
        };
        let Some(length) = announced.as_u64() else {
            return refused(Error::invalid("`bytes` is not the length of a payload"), true);
        };
        let size = usize::try_from(length).ok().filter(|size| *size <= MAX_PAYLOAD_BYTES);
        let Some(size) = size else {
            io::copy(&mut input.take(length), &mut io::sink())?;
            let message =
                format!("the payload has {length} bytes; the limit is {MAX_PAYLOAD_BYTES}");
            return refused(Error::new(ErrorKind::Limit, message).hint("Nothing was done."), false);
        };
        let mut payload = Vec::new();
        input.take(length).read_to_end(&mut payload)?;
        if payload.len() < size {
            let error = Error::invalid("the input ended within a payload");
            return refused(error.hint("Nothing was done."), false);
        }
        Ok(Ok(Frame { fields, payload: Some(payload) }))
    }
}

impl FrameError {
    /// For a message without a known id.
    fn new(error: Error, is_fatal: bool) -> FrameError {
        let error = if is_fatal { error.hint(LOST) } else { error };
        FrameError { error: ("id", Value::Null, error), is_fatal }
    }
}

/// Writes a message.
pub(super) fn write(
    output: &mut impl Write,
    mut fields: Map<String, Value>,
    payload: Option<&[u8]>,
) -> io::Result<()> {
    if let Some(payload) = payload {
        fields.insert("bytes".to_owned(), payload.len().into());
    }
    let mut line = serde_json::to_vec(&fields).map_err(io::Error::other)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.write_all(payload.unwrap_or_default())?;
    output.flush()
}
