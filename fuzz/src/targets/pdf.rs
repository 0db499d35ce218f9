//! PDFs through the Read tool: whatever happens to the child process that reads one, the call returns a reply or an
//! error message.

use std::fs;

use serde_json::json;
use toolcrib::ErrorKind;

use crate::test_workspace::TestWorkspace;

const FILE: &str = "file.pdf";

/// The input is the file after a PDF header, so that it is recognized as a PDF.
pub(crate) fn pdf(input: &[u8]) -> String {
    TestWorkspace::with(|workspace| {
        fs::write(workspace.path(FILE), [b"%PDF-1.7\n", input].concat()).expect("a file");
        match workspace.call("Read", json!({"file_path": FILE})) {
            Ok(reply) if reply.output().lines().count() > 2 => "text".to_owned(),
            Ok(_) => "no text".to_owned(),
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                format!("{}: {}", error.kind().name(), error.message())
            }
        }
    })
}
