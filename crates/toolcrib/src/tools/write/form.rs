//! Encoding and line endings: the requested ones, or those of the file.

use toolcrib_text::{Encoding, Endings};

use crate::error::Error;
use crate::tools::replacement::unencodable;

const BOM: &str = "\u{feff}";

pub(super) struct Form {
    pub(super) encoding: Option<Encoding>,
    pub(super) endings: Option<Endings>,
}

impl Form {
    /// The bytes of a new file.
    pub(super) fn of_new_file(&self, content: &str, shown: &str) -> Result<Vec<u8>, Error> {
        let text = match self.endings {
            Some(endings) => with_endings(content, endings),
            None => content.to_owned(),
        };
        match self.encoding {
            Some(encoding) => encode(&text, encoding, shown),
            None => Ok(text.into_bytes()),
        }
    }

    /// The bytes of a rewritten file, and notes about its format. The file has the encoding `had`.
    pub(super) fn rewrite(
        &self,
        content: &str,
        (was, had): (&[u8], Encoding),
        shown: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<u8>, Error> {
        let letters = had.decode(was).unwrap_or(was.into());
        let had_endings = Endings::of(&letters);
        let text = match self.endings {
            Some(endings) => {
                notes.extend(changed("line endings", words(had_endings), words(endings)));
                with_endings(content, endings)
            }
            None => {
                let adapted = had_endings.adapt(content);
                let now_endings = Endings::of(adapted.as_bytes());
                if adapted != content {
                    notes.push(format!("Its line endings were kept: {}.", words(had_endings)));
                } else if ![had_endings, now_endings].contains(&Endings::None) {
                    notes.extend(changed("line endings", words(had_endings), words(now_endings)));
                }
                adapted
            }
        };
        let Some(encoding) = self.encoding else {
            if had.has_bom() {
                notes.push("Its byte order mark was kept.".to_owned());
            }
            if !had.is_utf8() {
                notes.push(format!("Its encoding was kept: {}.", had.name()));
            }
            return if had.is_utf8() && !had.has_bom() {
                Ok(text.into_bytes())
            } else {
                encode(&text, had, shown)
            };
        };
        notes.extend(changed("encoding", &name(had), &name(encoding)));
        encode(&text, encoding, shown)
    }
}

/// Encodes a text, with a byte order mark if the encoding has one.
fn encode(text: &str, encoding: Encoding, shown: &str) -> Result<Vec<u8>, Error> {
    let text = text.trim_start_matches(BOM);
    let mut bytes = if encoding.is_utf8() && encoding.has_bom() { BOM.into() } else { Vec::new() };
    bytes.extend(encoding.encode(text).map_err(|c| unencodable(shown, encoding, c))?);
    Ok(bytes)
}

/// A text with uniform line endings.
fn with_endings(text: &str, endings: Endings) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    match endings {
        Endings::CrLf => text.replace('\n', "\r\n"),
        Endings::Cr => text.replace('\n', "\r"),
        _ => text,
    }
}

fn changed(what: &str, was: &str, now: &str) -> Option<String> {
    (was != now).then(|| format!("Changed {what}: {was} → {now}."))
}

fn name(encoding: Encoding) -> String {
    let mark = if encoding.has_bom() { " with BOM" } else { "" };
    format!("{}{mark}", encoding.name())
}

fn words(endings: Endings) -> &'static str {
    match endings {
        Endings::None => "none",
        Endings::Lf => "LF",
        Endings::CrLf => "CRLF",
        Endings::Cr => "CR",
        Endings::Mixed => "mixed",
    }
}
