//! Conversations with servers of each kind: only the errors of the current version are answers.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_lsp::{
    Client, ClientError, ClientSettings, FileChange, FileChangeKind, FrameDecoder, frame,
};

const FILE: &str = "/w/a.py";

/// The messages for the server since the last call.
fn sent(client: &mut Client) -> Vec<Value> {
    let mut decoder = FrameDecoder::default();
    decoder.push(&client.take_output());
    std::iter::from_fn(|| decoder.next_body().unwrap())
        .map(|body| serde_json::from_slice(&body).unwrap())
        .collect()
}

fn methods(client: &mut Client) -> Vec<String> {
    let method = |message: &Value| message["method"].as_str().unwrap_or("response").to_owned();
    sent(client).iter().map(method).collect()
}

fn receive(client: &mut Client, message: &Value) {
    client.receive(&frame(message.to_string().as_bytes())).unwrap();
}

/// A client whose server has started.
fn started(settings: ClientSettings, capabilities: &Value) -> Client {
    let mut client = Client::new(settings);
    let id = sent(&mut client)[0]["id"].clone();
    receive(&mut client, &json!({"id": id, "result": {"capabilities": capabilities}}));
    assert_eq!(methods(&mut client), ["initialized"]);
    client
}

fn pulling() -> Value {
    json!({"textDocumentSync": 2, "diagnosticProvider": {"interFileDependencies": true}})
}

fn pushing() -> Value {
    json!({"textDocumentSync": {"openClose": true, "change": 2}})
}

fn error(line: u32, message: &str) -> Value {
    json!({"range": {"start": {"line": line, "character": 0}}, "severity": 1, "message": message})
}

/// Answers the last request for errors.
fn answer(client: &mut Client, id: &Value, message: &str) {
    let result = json!({"kind": "full", "items": [error(0, message)]});
    receive(client, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn known(client: &Client, version: i64) -> Option<Vec<String>> {
    let errors = client.answer(Path::new(FILE), version)?;
    Some(errors.errors.iter().map(|error| error.message.clone()).collect())
}

fn set(client: &mut Client, text: &str) -> i64 {
    client.set_text(Path::new(FILE), "python", text).unwrap()
}

/// The id of the one request among the messages.
fn asked(client: &mut Client) -> Value {
    let mut asked = sent(client);
    asked.retain(|message| message["method"] == "textDocument/diagnostic");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["params"]["textDocument"]["uri"], "file:///w/a.py");
    asked[0]["id"].clone()
}

#[test]
fn texts_from_before_the_start_are_sent_after_it() {
    let mut client = Client::new(ClientSettings::new("/w"));
    let version = set(&mut client, "x");
    assert_eq!(methods(&mut client), ["initialize"]);
    receive(&mut client, &json!({"id": 1, "result": {"capabilities": pulling()}}));
    let told = sent(&mut client);
    assert_eq!(told[1]["params"]["textDocument"]["text"], "x");
    assert_eq!(told[1]["params"]["textDocument"]["version"], version);
    assert_eq!(told[2]["method"], "textDocument/diagnostic");
}

#[test]
fn an_answer_for_an_earlier_text_is_not_used() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    let first = set(&mut client, "x");
    let first_id = asked(&mut client);
    let second = set(&mut client, "y");
    let second_id = asked(&mut client);
    answer(&mut client, &first_id, "old");
    assert_eq!((known(&client, first), known(&client, second)), (None, None));
    answer(&mut client, &second_id, "new");
    assert_eq!(
        (known(&client, first), known(&client, second)),
        (None, Some(vec!["new".to_owned()]))
    );
}

#[test]
fn an_equal_text_is_asked_for_again() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    let first = set(&mut client, "x");
    let id = asked(&mut client);
    answer(&mut client, &id, "one");
    let second = set(&mut client, "x");
    assert_ne!(first, second);
    assert_eq!(known(&client, second), None);
}

#[test]
fn requests_that_cannot_be_answered_yet_are_repeated() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    let version = set(&mut client, "x");
    for code in [-32801, -32802] {
        let id = asked(&mut client);
        receive(&mut client, &json!({"id": id, "error": {"code": code, "message": ""}}));
        assert!(methods(&mut client).is_empty());
        client.tick();
    }
    let id = asked(&mut client);
    // Files changed, or the server has loaded more: the answer under way may be an old one.
    receive(&mut client, &json!({"id": 9, "method": "workspace/diagnostic/refresh"}));
    let again = sent(&mut client);
    assert_eq!((&again[0]["id"], &again[0]["result"]), (&json!(9), &Value::Null));
    answer(&mut client, &id, "old");
    assert_eq!(known(&client, version), None);
    answer(&mut client, &again[1]["id"], "new");
    assert_eq!(known(&client, version), Some(vec!["new".to_owned()]));
    let path = "/w/b.py".into();
    client.files_changed(&[FileChange { path, kind: FileChangeKind::Changed }]);
    assert_eq!(known(&client, version), None);
    assert_eq!(methods(&mut client), ["workspace/didChangeWatchedFiles"]);
}

#[test]
fn an_error_is_no_answer() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    let version = set(&mut client, "x");
    let id = asked(&mut client);
    receive(&mut client, &json!({"id": id, "error": {"code": -32603, "message": "bug"}}));
    client.tick();
    assert_eq!((known(&client, version), methods(&mut client)), (None, Vec::new()));
}

#[test]
fn published_errors_need_the_current_version() {
    let mut client = started(ClientSettings::new("/w"), &pushing());
    let version = set(&mut client, "x");
    assert_eq!(methods(&mut client), ["textDocument/didOpen"]);
    let mut publish = |uri: &str, version: Value| {
        let params = json!({"uri": uri, "version": version, "diagnostics": [error(0, "e")]});
        receive(
            &mut client,
            &json!({"method": "textDocument/publishDiagnostics", "params": params}),
        );
        known(&client, 1).is_some()
    };
    for (uri, number) in [
        ("file:///w/a.py", json!(version - 1)),
        ("file:///w/a.py", json!(version + 1)),
        ("file:///w/a.py", Value::Null),
        ("file:///w/b.py", json!(version)),
        ("http:///w/a.py", json!(version)),
        ("", json!(version)),
    ] {
        assert!(!publish(uri, number.clone()), "{uri} {number}");
    }
    assert!(publish("file:///w/%61.py", json!(version)));
    let next = set(&mut client, "y");
    assert_eq!((known(&client, version), known(&client, next)), (None, None));
}

#[test]
fn an_equal_text_is_opened_again_for_a_server_that_publishes() {
    let mut client = started(ClientSettings::new("/w"), &pushing());
    let first = set(&mut client, "x");
    let params = json!({"uri": "file:///w/a.py", "version": first, "diagnostics": []});
    let published = json!({"method": "textDocument/publishDiagnostics", "params": params});
    receive(&mut client, &published);
    assert_eq!(set(&mut client, "x"), first);
    assert_eq!(methods(&mut client), ["textDocument/didOpen"]);
    let path = "/w/b.py".into();
    client.files_changed(&[FileChange { path, kind: FileChangeKind::Changed }]);
    let second = set(&mut client, "x");
    assert_ne!(first, second);
    let expected =
        ["workspace/didChangeWatchedFiles", "textDocument/didClose", "textDocument/didOpen"];
    assert_eq!(methods(&mut client), expected);
}

#[test]
fn a_server_that_loads_the_project_is_not_believed() {
    let settings = ClientSettings { waits_for_quiescence: true, ..ClientSettings::new("/w") };
    let mut client = started(settings, &pulling());
    let version = set(&mut client, "x");
    assert_eq!(methods(&mut client), ["textDocument/didOpen"]);
    let status = |client: &mut Client, quiescent: bool| {
        let params = json!({"health": "ok", "quiescent": quiescent});
        receive(client, &json!({"method": "experimental/serverStatus", "params": params}));
    };
    status(&mut client, true);
    let id = asked(&mut client);
    status(&mut client, false);
    answer(&mut client, &id, "before the project was loaded");
    assert_eq!(known(&client, version), None);
    status(&mut client, true);
    let id = asked(&mut client);
    answer(&mut client, &id, "e");
    assert_eq!(known(&client, version), Some(vec!["e".to_owned()]));
}

#[test]
fn requests_of_the_server_are_answered() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    for (method, params, expected) in [
        ("workspace/configuration", json!({"items": [{}, {}]}), json!([null, null])),
        ("client/registerCapability", json!({"registrations": []}), Value::Null),
        ("window/workDoneProgress/create", json!({"token": 1}), Value::Null),
        ("workspace/applyEdit", json!({"edit": {}}), json!({"applied": false})),
    ] {
        receive(&mut client, &json!({"id": "s\"1", "method": method, "params": params}));
        let reply = sent(&mut client).remove(0);
        assert_eq!((&reply["id"], &reply["result"]), (&json!("s\"1"), &expected), "{method}");
    }
    receive(&mut client, &json!({"id": 5, "method": "custom/unknown"}));
    assert_eq!(sent(&mut client)[0]["error"]["code"], -32601);
}

#[test]
fn unusable_servers_are_errors() {
    let fails = |message: &str| {
        let mut client = Client::new(ClientSettings::new("/w"));
        client.receive(&frame(message.as_bytes())).unwrap_err()
    };
    assert_eq!(
        fails("{\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}"),
        ClientError::Initialize
    );
    assert_eq!(fails("{\"id\":1,\"result\":null}"), ClientError::Initialize);
    assert_eq!(fails("{\"id\":1,\"result\":{\"capabilities\":{}}}"), ClientError::Unsupported);
    assert_eq!(fails("[]"), ClientError::Message);
    assert_eq!(fails("{\"id\":"), ClientError::Message);
    assert_eq!(fails("\u{0}"), ClientError::Message);
}

#[test]
fn requests_that_are_not_read_end_the_conversation() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    let params = json!({"items": vec![0; 1_000]});
    let body = json!({"id": 1, "method": "workspace/configuration", "params": params}).to_string();
    let flood = frame(body.as_bytes()).repeat(1_000);
    let failed = (0..2_000).find_map(|_| client.receive(&flood).err());
    assert_eq!(failed, Some(ClientError::NotReading));
}

#[test]
fn the_oldest_text_is_closed() {
    let mut client = started(ClientSettings::new("/w"), &pulling());
    for number in 0..9 {
        let path = format!("/w/{number}.py");
        client.set_text(Path::new(&path), "python", "x").unwrap();
    }
    assert!(methods(&mut client).contains(&"textDocument/didClose".to_owned()));
    assert!(!client.has_text(Path::new("/w/0.py")));
    let large = "x".repeat(toolcrib_lsp::MAX_TEXT_BYTES + 1);
    let refused = client.set_text(Path::new(FILE), "python", &large);
    assert_eq!(refused, Err(ClientError::LargeText));
}
