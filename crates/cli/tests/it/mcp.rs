//! `toolcrib serve` with clients of both protocol generations.

use serde_json::{Map, Value, json};
use toolcrib_testkit::McpTransport;

use crate::PROGRAM;

struct Workspace {
    directory: tempfile::TempDir,
    transport: McpTransport,
}

fn workspace(flags: &[&str]) -> Workspace {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "one\n").unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let mut all = vec!["--root".to_owned(), at("ws"), "--state".to_owned(), at("state")];
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let transport = McpTransport::with_flags(PROGRAM, all);
    Workspace { directory, transport }
}

impl Workspace {
    fn content(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("ws/a.txt")).unwrap()
    }

    /// The handshake of the older protocol versions.
    fn initialize(&mut self, version: &str, capabilities: Value) -> Map<String, Value> {
        self.initialize_as("test", version, capabilities)
    }

    fn initialize_as(
        &mut self,
        client: &str,
        version: &str,
        capabilities: Value,
    ) -> Map<String, Value> {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": client, "version": "1"},
        });
        self.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let answer = self.transport.receive();
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    fn send(&mut self, message: Value) {
        self.transport.send(&message.to_string());
    }

    fn edit(&mut self, more: Value) -> Value {
        self.edit_answer(more)["result"].clone()
    }

    /// The whole response to an edit.
    fn edit_answer(&mut self, more: Value) -> Map<String, Value> {
        let mut params = edit();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let capabilities = json!({"elicitation": {"form": {}}});
        self.transport.request("tools/call", params, capabilities)
    }
}

fn edit() -> Value {
    json!({
        "name": "Edit",
        "arguments": {"file_path": "a.txt", "old_string": "one", "new_string": "two"},
    })
}

fn yes() -> Value {
    json!({"permission": {"action": "accept", "content": {"answer": "once"}}})
}

#[test]
fn every_protocol_version_is_supported() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut workspace = workspace(&[]);
        let answer = workspace.initialize(version, json!({}));
        assert_eq!(answer["result"]["protocolVersion"], version);
        let instructions = answer["result"]["instructions"].as_str().unwrap();
        assert!(instructions.len() < 2_048 && instructions.contains("running commands"));
        let params = json!({"name": "Read", "arguments": {"file_path": "a.txt"}});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        workspace.send(call);
        let answer = workspace.transport.receive();
        assert_eq!(answer["result"]["content"][0]["text"], "     1\tone\n");
        workspace.send(json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list", "params": {}}));
        let listed = workspace.transport.receive();
        assert!(listed["result"]["tools"].is_array(), "{listed:?}");
        let newer = ["resultType", "ttlMs", "cacheScope"].map(|name| listed["result"].get(name));
        assert_eq!(newer, [None; 3], "{version}");
    }
}

/// The protocol's types reject such a call, so its result takes another way.
#[test]
fn the_result_of_a_call_without_an_object_has_no_result_type_before_2026() {
    let params = json!({"name": "Read", "arguments": "a.txt"});
    let mut workspace = workspace(&[]);
    workspace.initialize("2025-11-25", json!({}));
    workspace.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    let result = workspace.transport.receive()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result.get("resultType"), None, "{result}");
}

#[test]
fn discovery_and_the_list_answer_without_a_handshake() {
    let mut workspace = workspace(&[]);
    let found = workspace.transport.request("server/discover", json!({}), json!({}));
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&"2026-07-28".into())
    );
    let listed = workspace.transport.request("tools/list", json!({}), json!({}));
    for (answer, scope) in [(&found, "public"), (&listed, "private")] {
        assert_eq!(answer["result"]["cacheScope"], scope);
        assert!(answer["result"]["ttlMs"].as_u64().unwrap() > 0, "it may be kept");
    }
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "Read");
    for tool in tools {
        assert!(tool["description"].as_str().unwrap().len() <= 1_024, "{}", tool["name"]);
    }
    // Omitted hints have the protocol's default.
    let hints =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"].clone();
    assert_eq!(hints("Read"), json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(hints("Write"), json!({"idempotentHint": true, "openWorldHint": false}));
    assert_eq!(hints("Bash"), json!({}));
    // Every conversation pays for the list, so its size is limited.
    let bytes = serde_json::to_string(tools).unwrap().len();
    assert!(bytes < 12_000, "{bytes} bytes");
}

#[test]
fn a_modern_client_is_asked_by_a_result_and_its_answer_counts_once() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    let asked = workspace.edit(json!({}));
    assert_eq!(asked["resultType"], "input_required");
    let question = asked["inputRequests"]["permission"]["params"]["message"].as_str().unwrap();
    assert!(question.contains("-one\n+two\n"), "it shows what would change: {question}");
    let rule = format!(
        "Asked because the profile `cautious` asks before changing files in the workspace \
         (profile:cautious:write).\nTo allow it always, run `toolcrib policy allow edit {}`\n",
        workspace.directory.path().canonicalize().unwrap().join("ws/a.txt").display()
    );
    assert!(question.ends_with(&rule), "and which rule asks, and which would not: {question}");
    assert_eq!(workspace.content(), "one\n");
    let state = asked["requestState"].clone();

    // A modified state, or one of another call, is refused.
    let forged = format!("{}x", state.as_str().unwrap());
    let forged = json!({"requestState": forged, "inputResponses": yes()});
    let other = json!({"file_path": "a.txt", "old_string": "one", "new_string": "three"});
    let stolen = json!({"requestState": state, "inputResponses": yes(), "arguments": other});
    for refused in [forged, stolen] {
        assert_eq!(workspace.edit_answer(refused)["error"]["code"], -32_602);
    }
    assert_eq!(workspace.content(), "one\n");

    let answered = json!({"requestState": state, "inputResponses": yes()});
    let done = workspace.edit(answered.clone());
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(workspace.content(), "two\n");
    std::fs::write(workspace.directory.path().join("ws/a.txt"), "one\n").unwrap();
    assert_eq!(workspace.edit(answered)["resultType"], "input_required", "once is once");
    assert_eq!(workspace.content(), "one\n");
}

#[test]
fn an_answer_to_another_diff_does_not_count() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    let asked = workspace.edit(json!({}));
    std::fs::write(workspace.directory.path().join("ws/a.txt"), "one\nmore\n").unwrap();
    let answered = json!({"requestState": asked["requestState"], "inputResponses": yes()});
    assert_eq!(workspace.edit(answered)["resultType"], "input_required");
    assert_eq!(workspace.content(), "one\nmore\n");
}

/// The text of a question, and its valid answers.
fn question(params: &Value) -> (String, Vec<String>) {
    let answers = &params["requestedSchema"]["properties"]["answer"]["enum"];
    let answers = answers.as_array().unwrap().iter().map(|answer| answer.as_str().unwrap().into());
    (params["message"].as_str().unwrap().to_owned(), answers.collect())
}

fn write_of_many_lines() -> Value {
    let lines: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
    json!({"name": "Write", "arguments": {"file_path": "new.txt", "content": lines}})
}

#[test]
fn a_long_question_comes_in_parts() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    let mut write = |more: Value| {
        let mut params = write_of_many_lines();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        workspace.transport.request("tools/call", params, json!({"elicitation": {}}))["result"]
            .clone()
    };
    let mut asked = write(json!({}));
    for part in 1..4 {
        let (text, answers) = question(&asked["inputRequests"]["permission"]["params"]);
        assert!(text.len() < 8_000, "{} bytes", text.len());
        assert!(text.contains(&format!("[part {part} of ")), "{text}");
        assert!(text.contains("more lines are not shown: answer `more`"), "{text}");
        assert_eq!(text.contains("+line 0\n"), part == 1, "{text}");
        assert!(text.contains("/new.txt`\n"), "always is about this file alone: {text}");
        assert_eq!(answers, ["once", "session", "no", "more"]);
        let more = json!({"permission": {"action": "accept", "content": {"answer": "more"}}});
        asked = write(json!({"requestState": asked["requestState"], "inputResponses": more}));
    }
    let done = write(json!({"requestState": asked["requestState"], "inputResponses": yes()}));
    assert_eq!(done["isError"], false, "{done}");
    let written = std::fs::read(workspace.directory.path().join("ws/new.txt")).unwrap();
    assert!(written.ends_with(b"line 29999\n"));
}

#[test]
fn a_long_elicitation_comes_in_parts() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    workspace.initialize("2025-11-25", json!({"elicitation": {}}));
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": write_of_many_lines()});
    workspace.send(call);
    let mut shown = String::new();
    let done = loop {
        let asked = workspace.transport.receive();
        if asked.get("id") == Some(&"call".into()) {
            break asked;
        }
        let (text, answers) = question(&asked["params"]);
        assert!(text.len() < 8_000, "{} bytes", text.len());
        shown += &text;
        let answer = if answers.contains(&"more".to_owned()) { "more" } else { "once" };
        let result = json!({"action": "accept", "content": {"answer": answer}});
        workspace.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    };
    assert_eq!(done["result"]["isError"], false, "{done:?}");
    let mut lines = shown.lines();
    for number in 0..30_000 {
        let line = format!("+line {number}");
        assert!(lines.any(|shown| shown == line), "{line} was not shown");
    }
}

#[test]
fn a_question_about_a_command_says_where_it_would_run() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    let params = json!({"name": "Bash", "arguments": {"command": "touch new"}});
    let asked = workspace.transport.request("tools/call", params, json!({"elicitation": {}}));
    let (text, _) = question(&asked["result"]["inputRequests"]["permission"]["params"]);
    let root = workspace.directory.path().canonicalize().unwrap().join("ws");
    let expected = format!("Bash wants to:\n  run touch new\n  in {}", root.display());
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn a_denied_call_changes_nothing() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    for response in
        [json!({"action": "decline"}), json!({"action": "accept", "content": {}}), json!(7)]
    {
        let asked = workspace.edit(json!({}));
        let answered = json!({"requestState": asked["requestState"], "inputResponses": {"permission": response}});
        let refused = workspace.edit(answered);
        assert_eq!(refused["isError"], true, "{refused}");
    }
    assert_eq!(workspace.content(), "one\n");
}

#[test]
fn an_older_client_is_asked_by_a_request() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    workspace.initialize("2025-11-25", json!({"elicitation": {}}));
    workspace.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": edit()}));
    let question = workspace.transport.receive();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(workspace.content(), "one\n");
    let answer = json!({"action": "accept", "content": {"answer": "session"}});
    workspace.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    let done = workspace.transport.receive();
    assert_eq!((&done["id"], &done["result"]["isError"]), (&7.into(), &false.into()), "{done:?}");
    assert_eq!(workspace.content(), "two\n");
}

/// A read runs on the message thread. While it waits for approval, other messages are processed.
#[test]
fn messages_are_processed_while_a_read_waits_for_approval() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    let ask =
        "[[rule]]\nname = \"a\"\ndecision = \"ask\"\nkind = \"read\"\npaths = [\"**/a.txt\"]\n";
    std::fs::write(rules.path(), ask).unwrap();
    let mut workspace = workspace(&["--rules", rules.path().to_str().unwrap()]);
    workspace.initialize("2025-11-25", json!({"elicitation": {}}));
    std::fs::write(workspace.directory.path().join("ws/b.txt"), "two\n").unwrap();
    let read = |id: u32, file: &str| {
        let params = json!({"name": "Read", "arguments": {"file_path": file}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    workspace.send(read(7, "a.txt"));
    let question = workspace.transport.receive();
    assert_eq!(question["method"], "elicitation/create");
    workspace.send(json!({"jsonrpc": "2.0", "id": 8, "method": "ping"}));
    assert_eq!(workspace.transport.receive()["id"], 8);
    workspace.send(read(9, "b.txt"));
    let other = workspace.transport.receive();
    assert_eq!((&other["id"], &other["result"]["isError"]), (&9.into(), &false.into()));
    let answer = json!({"action": "accept", "content": {"answer": "once"}});
    workspace.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    let done = workspace.transport.receive();
    assert_eq!(done["result"]["content"][0]["text"], "     1\tone\n", "{done:?}");
}

#[test]
fn a_client_that_cannot_be_asked_gets_a_hint() {
    let mut workspace = workspace(&["--profile", "cautious"]);
    let answer = workspace.transport.request("tools/call", edit(), json!({}));
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["_meta"]["toolcrib/error"]["kind"], "denied");
    assert_eq!(workspace.content(), "one\n");
}

#[test]
fn metadata_is_sent_only_on_request() {
    let mut workspace = workspace(&[]);
    workspace.initialize("2025-11-25", json!({}));
    let mut result = |file: &str, more: Value| {
        let mut params = json!({"name": "Read", "arguments": {"file_path": file}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        workspace.send(call);
        workspace.transport.receive()["result"].clone()
    };
    let requested = json!({"_meta": {"toolcrib/metadata": true}});
    let declined = json!({"_meta": {"toolcrib/metadata": false}});
    for file in ["a.txt", "missing.txt"] {
        assert_eq!(result(file, json!({})).get("_meta"), None);
        assert_eq!(result(file, declined.clone()).get("_meta"), None);
    }
    assert_eq!(result("a.txt", requested.clone())["_meta"]["toolcrib/metadata"]["total_lines"], 1);
    let failed = result("missing.txt", requested);
    assert_eq!(failed["_meta"]["toolcrib/error"]["kind"], "not_found", "{failed}");
}

#[test]
fn an_unnamed_python_client_gets_nullable_fields() {
    let optional_field = |client: &str| {
        let mut workspace = workspace(&[]);
        workspace.initialize_as(client, "2025-11-25", json!({}));
        workspace.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        let list = workspace.transport.receive();
        let read = &list["result"]["tools"][0];
        assert_eq!(read["name"], "Read");
        let fields = &read["inputSchema"]["properties"];
        assert_eq!(fields["file_path"].get("nullable"), None);
        fields["offset"].clone()
    };
    let mut nullable = optional_field("mcp");
    assert_eq!(nullable.as_object_mut().unwrap().shift_remove("nullable"), Some(true.into()));
    assert_eq!(nullable, optional_field("test"));
}

#[test]
fn an_invalid_message_gets_an_error() {
    let mut workspace = workspace(&[]);
    for (line, id, code) in [
        ("garbage", Value::Null, -32700),
        ("[1, 2]", Value::Null, -32600),
        (r#"{"id": 5, "what": "is this"}"#, 5.into(), -32600),
    ] {
        workspace.transport.send(line);
        let answer = workspace.transport.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &code.into()), "{line}");
    }
    let long = format!(r#"{{"jsonrpc": "2.0", "x": "{}"}}"#, "x".repeat(65 << 20));
    workspace.transport.send(&long);
    assert_eq!(workspace.transport.receive()["error"]["code"], -32600);
    let answer = workspace.transport.request("tools/list", json!({}), json!({}));
    assert!(answer.contains_key("result"), "it lives on");
}

#[test]
fn an_unknown_method_is_answered_with_the_known_ones() {
    let mut workspace = workspace(&[]);
    for (method, expected) in [
        ("tool/list", "did you mean tools/list?"),
        ("no/such", "this server has initialize, ping, server/discover, tools/call, tools/list"),
        ("prompts/list", "unknown method prompts/list"),
    ] {
        let answer = workspace.transport.request(method, json!({}), json!({}));
        let error = &answer["error"];
        assert_eq!(error["code"], -32601);
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[test]
fn arguments_in_a_string_are_accepted_and_others_are_explained() {
    let mut workspace = workspace(&[]);
    let mut call = |arguments: Value| {
        let params = json!({"name": "Read", "arguments": arguments});
        workspace.transport.request("tools/call", params, json!({}))["result"].clone()
    };
    assert_eq!(call(r#"{"file_path": "a.txt"}"#.into())["content"][0]["text"], "     1\tone\n");
    let wrong = call(json!(["a.txt"]));
    assert_eq!(wrong["isError"], true);
    assert!(wrong["content"][0]["text"].as_str().unwrap().contains("Read takes {"), "{wrong}");
}

#[test]
fn an_image_is_returned_as_image_content() {
    let mut workspace = workspace(&[]);
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";
    std::fs::write(workspace.directory.path().join("ws/dot.png"), png).unwrap();
    let params = json!({"name": "Read", "arguments": {"file_path": "dot.png"}});
    let answer = workspace.transport.request("tools/call", params, json!({}));
    let content = answer["result"]["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], "dot.png: image/png, 1x1\n");
    assert_eq!(
        (&content[1]["type"], &content[1]["mimeType"]),
        (&"image".into(), &"image/png".into())
    );
}
