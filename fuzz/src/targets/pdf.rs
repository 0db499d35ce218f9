//! PDFs, read as a caller has them read: whatever becomes of the child that reads one, the call is
//! answered, and with words.

use std::fs;

use serde_json::json;
use toolcrib::ErrorKind;

use super::place::Place;

const FILE: &str = "file.pdf";

/// The input is the file. Its kind is seen by how it begins, so that it gets that far.
pub(crate) fn pdf(input: &[u8]) -> String {
    Place::with(|place| {
        fs::write(place.path(FILE), [b"%PDF-1.7\n", input].concat()).expect("a file");
        match place.call("Read", json!({"file_path": FILE})) {
            Ok(reply) if reply.output().lines().count() > 2 => "text".to_owned(),
            Ok(_) => "no text".to_owned(),
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                format!("{}: {}", error.kind().name(), error.message())
            }
        }
    })
}
