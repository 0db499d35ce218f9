//! Output of a language server: the client answers with messages or an error, never with an answer for a text that it
//! did not ask about, and keeps no more than its limits.

use std::path::Path;

use toolcrib_lsp::{
    Client, ClientSettings, FrameDecoder, MAX_ERRORS, file_uri, frame, new_errors, path_of_uri,
};

const FILE: &str = "/w/a.py";
const TEXTS: [&str; 2] = ["x = 1\n", "x = 1\ny = z\n"];

/// The first part is raw output, later parts are bodies of messages.
pub(crate) fn lsp(input: &[u8]) -> String {
    let [raw, bodies] = super::parts(input);
    let settings =
        ClientSettings { waits_for_quiescence: raw.len() % 2 == 1, ..ClientSettings::new("/w") };
    let mut client = Client::new(settings);
    let before = client.set_text(Path::new(FILE), "python", TEXTS[0]).expect("it is small");
    let mut failed = client.receive(raw).is_err();
    let mut messages = 0;
    for body in bodies.split(|byte| *byte == b'\n') {
        failed = failed || client.receive(&frame(body)).is_err();
        messages += read_output(&mut client);
    }
    let was = client.answer(Path::new(FILE), before).cloned();
    let after = client.set_text(Path::new(FILE), "python", TEXTS[1]).unwrap_or(before);
    assert!(client.answer(Path::new(FILE), before).is_none() || after == before, "an old answer");
    if !failed {
        failed = client.receive(raw).is_err();
        client.tick();
        messages += read_output(&mut client);
    }
    let now = client.answer(Path::new(FILE), after);
    let (was, now) = (was.unwrap_or_default(), now.cloned().unwrap_or_default());
    assert!(now.errors.len() <= MAX_ERRORS, "bounded");
    let new = new_errors((TEXTS[0], &was.errors), (TEXTS[1], &now.errors));
    assert!(new.len() <= now.errors.len(), "errors are of the text");
    if let Some(path) = std::str::from_utf8(bodies).ok().and_then(path_of_uri) {
        assert_eq!(path_of_uri(&file_uri(&path)).as_deref(), Some(path.as_path()));
    }
    format!("failed {failed}, {messages} messages, {} new errors", new.len())
}

/// Reads the output for the server. All of it is valid messages.
fn read_output(client: &mut Client) -> usize {
    let mut decoder = FrameDecoder::default();
    decoder.push(&client.take_output());
    let mut count = 0;
    while let Some(body) = decoder.next_body().expect("our frames are valid") {
        let message: serde_json::Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        count += 1;
    }
    count
}
