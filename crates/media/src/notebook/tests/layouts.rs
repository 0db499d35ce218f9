//! The layouts in which programs write the same notebook.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// `None` is a single line.
    indent: Option<&'static str>,
    crlf: bool,
    byte_order_mark: bool,
    /// Non-ASCII characters as escapes.
    ascii: bool,
    end: &'static str,
}

const JUPYTER: Layout =
    Layout { indent: Some(" "), crlf: false, byte_order_mark: false, ascii: false, end: "\n" };

pub(super) const LAYOUTS: &[Layout] = &[
    JUPYTER,
    Layout { indent: Some("    "), end: "", ..JUPYTER },
    Layout { indent: Some("\t"), crlf: true, byte_order_mark: true, end: "\r\n", ..JUPYTER },
    Layout { indent: Some("  "), ascii: true, ..JUPYTER },
    Layout { indent: None, ..JUPYTER },
    Layout { indent: None, ascii: true, end: "", ..JUPYTER },
    Layout { indent: Some(""), ..JUPYTER },
];

impl Layout {
    pub(super) fn write(&self, value: &Value) -> String {
        let mut bytes = Vec::new();
        match self.indent {
            Some(indent) => {
                let formatter = PrettyFormatter::with_indent(indent.as_bytes());
                value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).unwrap();
            }
            None if self.ascii => {
                value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced)).unwrap();
            }
            None => serde_json::to_writer(&mut bytes, value).unwrap(),
        }
        let mut text = String::from_utf8(bytes).unwrap();
        if self.crlf {
            text = text.replace('\n', "\r\n");
        }
        if self.ascii {
            let escape = |c: char| {
                if c.is_ascii() {
                    c.to_string()
                } else {
                    c.encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|unit| format!("\\u{unit:04x}"))
                        .collect()
                }
            };
            text = text.chars().map(escape).collect();
        }
        let mark = if self.byte_order_mark { "\u{feff}" } else { "" };
        format!("{mark}{text}{}", self.end)
    }
}

/// A single line with spaces, as Python writes it.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
