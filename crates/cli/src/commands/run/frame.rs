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

impl Frame {
    /// The memory that it holds besides its fields.
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, Vec::len)
    }

    /// Reads the next message. `None` at the end of the input. An error comes with the length of its line.
    pub(super) fn read(
        input: &mut impl BufRead,
    ) -> io::Result<Option<(usize, Result<Frame, RequestError>)>> {
        loop {
            let Some(line) = bounded_input::read_line(input)? else { return Ok(None) };
            let length = line.bytes();
            let bytes = match line {
                Line::TooLong(bytes) => {
                    let error = bounded_input::too_long(Some(bytes));
                    return Ok(Some((length, Err(("id", Value::Null, error)))));
                }
                Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Whole(bytes) => bytes,
            };
            let invalid = |error: Error| Err(("id", Value::Null, error.hint(SHAPE)));
            let frame = match parse_json(&bytes) {
                Ok(Value::Object(fields)) => Frame::with_payload(fields, input)?,
                Ok(_) => invalid(Error::invalid("the line is not a JSON object")),
                Err(error) => invalid(error),
            };
            return Ok(Some((length, frame)));
        }
    }

    /// Reads the payload that the fields announce.
    fn with_payload(
        mut fields: Map<String, Value>,
        input: &mut impl BufRead,
    ) -> io::Result<Result<Frame, RequestError>> {
        let refused = |fields: &Map<String, Value>, error: Error| {
            let id = fields.get("id").cloned().unwrap_or_default();
            Ok(Err(("id", id, error)))
        };
        let length = match fields.shift_remove("bytes") {
            None | Some(Value::Null) => return Ok(Ok(Frame { fields, payload: None })),
            Some(length) => length.as_u64(),
        };
        let Some(length) = length else {
            let error = Error::invalid("`bytes` is not a number");
            return refused(&fields, error.hint("It is the length of the payload."));
        };
        let size = usize::try_from(length).ok().filter(|size| *size <= MAX_PAYLOAD_BYTES);
        let Some(size) = size else {
            io::copy(&mut input.take(length), &mut io::sink())?;
            let message =
                format!("the payload has {length} bytes; the limit is {MAX_PAYLOAD_BYTES}");
            return refused(
                &fields,
                Error::new(ErrorKind::Limit, message).hint("Nothing was done."),
            );
        };
        let mut payload = Vec::new();
        input.take(length).read_to_end(&mut payload)?;
        if payload.len() < size {
            let message = "the input ended within a payload";
            return refused(&fields, Error::invalid(message).hint("Nothing was done."));
        }
        Ok(Ok(Frame { fields, payload: Some(payload) }))
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
