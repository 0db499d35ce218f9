//! Shows an output of a cell as text. For images and similar data, it shows the size.

use super::json::{self, Member};
use super::terminal::rendered;

/// Media types that are readable as text, the plainest first. One of them is shown.
const READABLE: &[&str] =
    &["text/plain", "text/markdown", "text/latex", "text/html", "application/json"];

/// The names of the media types in format 3.
const FORMAT_3_NAMES: &[(&str, &str)] = &[
    ("text", "text/plain"),
    ("html", "text/html"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("javascript", "application/javascript"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("pdf", "application/pdf"),
];

/// An output as text.
pub(super) struct ShownOutput {
    /// `stdout`, `stderr`, `error`. Empty for a result.
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// Shows an output, given as JSON.
pub(super) fn shown(raw: &str) -> ShownOutput {
    let members = json::members(raw).unwrap_or_default();
    let get = |key| json::last(&members, key);
    let output_type = get("output_type").and_then(json::string).unwrap_or_default();
    let text = |key| get(key).and_then(json::multiline);
    match output_type.as_str() {
        "stream" => {
            let name = text("name").or_else(|| text("stream"));
            let label = match name.as_deref() {
                Some("stdout") => "stdout",
                Some("stderr") => "stderr",
                _ => "",
            };
            ShownOutput { label, text: rendered(&text("text").unwrap_or_default()) }
        }
        "error" | "pyerr" => ShownOutput { label: "error", text: rendered(&error(&members)) },
        _ => {
            let data = get("data").and_then(|data| json::members(data).ok());
            let data = data.map_or_else(|| old_data(&members), named);
            let text = if data.is_empty() {
                format!("[output without text: {}]\n", size(raw.len()))
            } else {
                show_data(&data)
            };
            ShownOutput { label: "", text }
        }
    }
}

/// Media types with their data, as JSON.
type Data<'a> = Vec<(String, &'a str)>;

fn named<'a>(members: Vec<Member<'a>>) -> Data<'a> {
    let name = |(key, value): Member<'a>| Some((json::string(key)?, value));
    members.into_iter().filter_map(name).collect()
}

/// In format 3 the data is in the output itself.
fn old_data<'a>(members: &[Member<'a>]) -> Data<'a> {
    let find = |(old, kind): &(&str, &str)| Some(((*kind).to_owned(), json::last(members, old)?));
    FORMAT_3_NAMES.iter().filter_map(find).collect()
}

fn show_data(data: &Data<'_>) -> String {
    let readable = READABLE.iter().find(|kind| data.iter().any(|(name, _)| name == *kind));
    let mut text = String::new();
    for (_, value) in data.iter().filter(|(name, _)| Some(&name.as_str()) == readable) {
        text = rendered(&json::multiline(value).unwrap_or_else(|| (*value).to_owned()));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (name, value) in data.iter().filter(|(name, _)| Some(&name.as_str()) != readable) {
        let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
        text += &format!("[{name}, {}]\n", size(data_bytes(&name, value)));
    }
    text
}

/// `name: value`, and the traceback.
fn error(members: &[Member<'_>]) -> String {
    let text = |key| json::last(members, key).and_then(json::multiline).unwrap_or_default();
    let mut shown = format!("{}: {}\n", text("ename"), text("evalue"));
    let traceback = json::last(members, "traceback").and_then(json::items).unwrap_or_default();
    for frame in traceback.into_iter().filter_map(json::string) {
        shown += frame.trim_end_matches('\n');
        shown.push('\n');
    }
    shown
}

/// The size of the data in bytes. An image is in base64.
fn data_bytes(kind: &str, raw: &str) -> usize {
    let Some(text) = json::multiline(raw) else { return raw.len() };
    let base64 = kind.starts_with("image/") && !kind.ends_with("xml") || kind == "application/pdf";
    if base64 {
        text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=').count() * 3 / 4
    } else {
        text.len()
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        let ShownOutput { label, text } = shown(raw);
        format!("{label}|{text}")
    }

    #[test]
    fn outputs_of_every_kind_are_text() {
        for (raw, expected) in [
            (r#"{"output_type": "stream", "name": "stderr", "text": ["a\n", "b"]}"#, "stderr|a\nb"),
            (r#"{"output_type": "stream", "stream": "stdout", "text": "a"}"#, "stdout|a"),
            (
                r#"{"output_type": "display_data", "data": {"text/html": "<b>", "text/plain": ["x"], "image/png": "iVBORw0K\n"}}"#,
                "|x\n[text/html, 3 bytes]\n[image/png, 6 bytes]\n",
            ),
            (r#"{"output_type": "display_data", "data": {"text/html": "<b>"}}"#, "|<b>\n"),
            (
                r#"{"output_type": "pyout", "text": "1", "png": "AAAA"}"#,
                "|1\n[image/png, 3 bytes]\n",
            ),
            (
                r#"{"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[31mone\u001b[0m\n", "two"]}"#,
                "error|E: v\none\ntwo\n",
            ),
            (
                r#"{"output_type": "execute_result", "data": {"application/json": {"a": [1]}}}"#,
                "|{\"a\": [1]}\n",
            ),
            ("7", "|[output without text: 1 byte]\n"),
        ] {
            assert_eq!(text(raw), expected, "{raw}");
        }
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!([size(999), size(33_100), size(2_340_000)], ["999 bytes", "34 kB", "2.3 MB"]);
    }
}
