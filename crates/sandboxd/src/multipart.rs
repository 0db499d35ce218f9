//! The file of a `multipart/form-data` body.

use std::ops::Range;

use memchr::memmem;

/// The longest boundary of RFC 2046.
const MAX_BOUNDARY_BYTES: usize = 70;

/// The boundary of a content type, if it is `multipart/form-data`.
pub(crate) fn boundary(content_type: &str) -> Option<Result<String, &'static str>> {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next()?;
    essence.eq_ignore_ascii_case("multipart/form-data").then(|| {
        let found = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
        });
        match found {
            Some(text) if (1..=MAX_BOUNDARY_BYTES).contains(&text.len()) => Ok(text.to_owned()),
            _ => Err("the multipart body has no boundary"),
        }
    })
}

/// The place of the content of the part with the name `file`.
pub(crate) fn file_part(body: &[u8], boundary: &str) -> Result<Range<usize>, &'static str> {
    const ENDED: &str = "the multipart body ends early";
    let delimiter = format!("--{boundary}");
    let mut at = if body.starts_with(delimiter.as_bytes()) {
        delimiter.len()
    } else {
        // A preamble is ignored.
        let first = format!("\r\n{delimiter}");
        memmem::find(body, first.as_bytes()).ok_or("the multipart body has no part")? + first.len()
    };
    let delimiter = format!("\r\n{delimiter}");
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Err("the multipart body has no part with the name `file`");
        }
        let head = memmem::find(rest, b"\r\n").ok_or(ENDED)?;
        // Without headers, the empty line follows the boundary.
        let empty = memmem::find(&rest[head..], b"\r\n\r\n").ok_or(ENDED)?;
        let (headers, content) = (&rest[head..head + empty], at + head + empty + 4);
        let length = memmem::find(&body[content..], delimiter.as_bytes()).ok_or(ENDED)?;
        if is_file(headers) {
            return Ok(content..content + length);
        }
        at = content + length + delimiter.len();
    }
}

/// Whether the headers name the part `file`.
fn is_file(headers: &[u8]) -> bool {
    let Ok(headers) = std::str::from_utf8(headers) else { return false };
    let dispositions = headers.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let mut parameters = dispositions.flat_map(|value| value.split(';'));
    parameters.any(|parameter| {
        let pair = parameter.split_once('=');
        pair.is_some_and(|(name, value)| {
            name.trim().eq_ignore_ascii_case("name") && value.trim().trim_matches('"') == "file"
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(body: &str) -> Result<&str, &'static str> {
        file_part(body.as_bytes(), "B").map(|range| &body[range])
    }

    #[test]
    fn the_boundary_is_that_of_a_form() {
        assert_eq!(boundary("application/octet-stream"), None);
        assert_eq!(boundary("multipart/form-data; boundary=ab"), Some(Ok("ab".to_owned())));
        let quoted = "Multipart/Form-Data; charset=x; Boundary=\"a b\"";
        assert_eq!(boundary(quoted), Some(Ok("a b".to_owned())));
        for bad in ["multipart/form-data", "multipart/form-data; boundary="] {
            assert!(boundary(bad).unwrap().is_err(), "{bad}");
        }
        let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
        assert!(boundary(&long).unwrap().is_err());
    }

    #[test]
    fn the_file_is_found_among_other_parts() {
        let other = "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n";
        let part = "--B\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nDATA\r\n--\r\n\r\n";
        assert_eq!(file(&format!("{part}\r\n--B--\r\n")), Ok("DATA\r\n--\r\n\r\n"));
        assert_eq!(file(&format!("preamble\r\n{other}{part}\r\n--B--")), Ok("DATA\r\n--\r\n\r\n"));
        let empty = "--B\r\nContent-Disposition: form-data; name=file\r\n\r\n\r\n--B--\r\n";
        assert_eq!(file(empty), Ok(""));
        for bad in ["", "--B", "--B--", "--B\r\n", &format!("{other}--B--\r\n"), part] {
            assert!(file(bad).is_err(), "{bad:?}");
        }
    }
}
