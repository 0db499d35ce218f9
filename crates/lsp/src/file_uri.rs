//! `file:` URIs of absolute paths.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The URI of an absolute path.
pub fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// The path of a URI, however its server has escaped it. `None` if it is not an absolute path on this machine.
pub fn path_of_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(left.next())? * 16 + digit(left.next())?).ok()?
            }
            byte => byte,
        });
    }
    let is_path = bytes.starts_with(b"/") && !bytes.contains(&0);
    is_path.then(|| PathBuf::from(<OsStr as ToOwned>::Owned::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_has_a_uri() {
        for path in ["/a b/c.py", "/ä/%41#?.ts", "/\u{2028}", "/"] {
            assert_eq!(path_of_uri(&file_uri(Path::new(path))).unwrap(), Path::new(path));
        }
        let bytes = PathBuf::from(<OsStr as ToOwned>::Owned::from_vec(b"/\xff".to_vec()));
        assert_eq!(path_of_uri(&file_uri(&bytes)).unwrap(), bytes);
    }

    #[test]
    fn servers_escape_differently() {
        assert_eq!(path_of_uri("file:///a+b%2bc").unwrap(), Path::new("/a+b+c"));
        assert_eq!(path_of_uri("file://localhost/a").unwrap(), Path::new("/a"));
        for bad in ["/a", "http:///a", "file://host/a", "file:///%zz", "file:///%4", "file:///%00"]
        {
            assert_eq!(path_of_uri(bad), None, "{bad}");
        }
    }
}
