//! The Edit tool: nothing outside the replaced text changes, a refusal changes nothing, and Undo restores the file
//! exactly.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{ErrorKind, Reply};
use toolcrib_text::{Encoding, TextProperties, find_all};

use super::parts;
use crate::test_workspace::TestWorkspace;

const FILE: &str = "file.txt";

/// The parts are the text to replace, the new one, and the file.
pub(crate) fn edit(input: &[u8]) -> String {
    let [old, new, was] = parts(input);
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    TestWorkspace::with(|workspace| {
        let path = workspace.path(FILE);
        fs::write(&path, was).expect("a file");
        let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
        let edited = workspace.call("Edit", arguments);
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
        workspace.call("Undo", json!({})).unwrap_or_else(|error| panic!("Undo: {error}"));
        assert_eq!(fs::read(&path).expect("the file"), was, "Undo restores the file");
        let matched = reply.metadata().get("matched").and_then(Value::as_str);
        format!("edited: {}", matched.unwrap_or("created"))
    })
}

/// After an exact match, the text before and after it is unchanged, and between them is the new text, except for its
/// line ends.
fn check_exact(was: &[u8], now: &[u8], old: &str, new: &str) {
    let [at] = find_all(was, old.as_bytes(), usize::MAX)[..] else { return };
    let (before, after) = (&was[..at], &was[at + old.len()..]);
    let between = now.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let between = between.unwrap_or_else(|| panic!("other bytes have changed: {now:?}"));
    let plain = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(plain(&String::from_utf8_lossy(between)), plain(new), "the new text is there");
}

/// After any match, the lines before and after it are unchanged.
fn check_around(was: &[u8], now: &[u8], old: &str, reply: &Reply) {
    let lines = reply.metadata().get("lines").and_then(Value::as_array);
    let Some([first]) = lines.map(Vec::as_slice) else { return };
    let first = first.as_u64().and_then(|line| usize::try_from(line).ok()).expect("a line");
    let lines: Vec<&[u8]> =
        was.split_inclusive(|b| *b == TextProperties::of(was).terminator()).collect();
    let before = lines[..first - 1].concat();
    assert!(now.starts_with(&before), "the lines before line {first} have changed");
    // The number of lines of the old text, with any line ends.
    let last = first + old.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count();
    let after = lines.get(last..).unwrap_or_default().concat();
    assert!(now.ends_with(&after), "the lines after line {last} have changed");
}
