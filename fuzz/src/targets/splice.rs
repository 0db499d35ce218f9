//! Edit, as a caller has it: nothing outside the replaced text changes, a refusal changes nothing at
//! all, and Undo gives the file back to the byte.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{ErrorKind, Reply};
use toolcrib_text::{Encoding, TextProperties, find_all};

use super::parts;
use super::place::Place;

const FILE: &str = "file.txt";

/// The parts are the text to replace, the new one, and the file.
pub(crate) fn splice(input: &[u8]) -> String {
    let [old, new, was] = parts(input);
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    Place::with(|place| {
        let path = place.path(FILE);
        fs::write(&path, was).expect("a file");
        let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
        let edited = place.call("Edit", arguments);
        let now = fs::read(&path).expect("the file");
        let reply = match edited {
            Ok(reply) => reply,
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                assert_eq!(now, was, "a refusal changes nothing: {error}");
                return format!("refused: {}", error.kind().name());
            }
        };
        if Encoding::of(was).is_utf8() {
            check_exact(was, &now, &old, &new);
            check_around(was, &now, &old, &reply);
        }
        place.call("Undo", json!({})).unwrap_or_else(|error| panic!("Undo: {error}"));
        assert_eq!(fs::read(&path).expect("the file"), was, "Undo gives the file back");
        let matched = reply.metadata().get("matched").and_then(Value::as_str);
        format!("edited: {}", matched.unwrap_or("created"))
    })
}

/// Where the text stands letter for letter, what was before it and behind it is still there, and
/// between them the new one, its line ends aside.
fn check_exact(was: &[u8], now: &[u8], old: &str, new: &str) {
    let [at] = find_all(was, old.as_bytes(), usize::MAX)[..] else { return };
    let (before, behind) = (&was[..at], &was[at + old.len()..]);
    let between = now.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
    let between = between.unwrap_or_else(|| panic!("other bytes have changed: {now:?}"));
    let plain = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(plain(&String::from_utf8_lossy(between)), plain(new), "the new text stands there");
}

/// However it was found: the lines before it and behind it are the same.
fn check_around(was: &[u8], now: &[u8], old: &str, reply: &Reply) {
    let lines = reply.metadata().get("lines").and_then(Value::as_array);
    let Some([first]) = lines.map(Vec::as_slice) else { return };
    let first = first.as_u64().and_then(|line| usize::try_from(line).ok()).expect("a line");
    let lines: Vec<&[u8]> =
        was.split_inclusive(|b| *b == TextProperties::of(was).terminator()).collect();
    let before = lines[..first - 1].concat();
    assert!(now.starts_with(&before), "the lines before line {first} have changed");
    // As many lines as the old text has, however it ends them.
    let last = first + old.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count();
    let behind = lines.get(last..).unwrap_or_default().concat();
    assert!(now.ends_with(&behind), "the lines behind line {last} have changed");
}
