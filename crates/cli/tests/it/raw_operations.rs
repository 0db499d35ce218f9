//! The raw operations of `toolcrib run`: files, commands and own tools of a calling program.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PROGRAM, command_directory, isolated_home};

/// A running program, and its messages with their payloads.
struct Client {
    top: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

/// A message with its payload.
type Message = (Value, Vec<u8>);

impl Client {
    fn start(flags: &[&str]) -> Client {
        Client::start_with_rules("", flags)
    }

    fn start_with_rules(rules: &str, flags: &[&str]) -> Client {
        let top = command_directory();
        std::fs::write(top.path().join("rules.toml"), rules).unwrap();
        std::fs::create_dir(top.path().join("ws")).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["run", "--root", "ws", "--state", "state", "--rules", "rules.toml"])
            .args(flags)
            .current_dir(top.path())
            .envs(isolated_home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Client { top, child, stdin, stdout, last_id: 0 }
    }

    fn send(&mut self, message: &Value, payload: &[u8]) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(payload);
        self.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    /// Sends a request. Returns its id.
    fn request(&mut self, name: &str, args: Value, payload: Option<&[u8]>) -> u64 {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "op": name, "args": args});
        if let Some(payload) = payload {
            message["bytes"] = payload.len().into();
        }
        self.send(&message, payload.unwrap_or_default());
        self.last_id
    }

    fn receive(&mut self) -> Message {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the output has ended");
        let message: Value = serde_json::from_str(&line).unwrap();
        let length = message["bytes"].as_u64().unwrap_or(0);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stdout.read_exact(&mut payload).unwrap();
        (message, payload)
    }

    /// Makes a request. Returns its reply and the messages before it.
    fn perform(
        &mut self,
        name: &str,
        args: Value,
        payload: Option<&[u8]>,
    ) -> (Message, Vec<Message>) {
        let id = self.request(name, args, payload);
        self.reply_to(id)
    }

    fn reply_to(&mut self, id: u64) -> (Message, Vec<Message>) {
        let mut before = Vec::new();
        loop {
            let message = self.receive();
            if message.0["id"] == id && message.0["event"].is_null() {
                return (message, before);
            }
            before.push(message);
        }
    }

    /// Makes a request that must succeed. Returns its result.
    fn ok(&mut self, name: &str, args: Value) -> Value {
        let ((reply, _), _) = self.perform(name, args, None);
        assert_eq!(reply["success"], true, "{reply}");
        reply["result"].clone()
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Value {
        let ((reply, _), _) = self.perform("write", json!({"path": path}), Some(bytes));
        assert_eq!(reply["success"], true, "{reply}");
        reply["result"].clone()
    }

    /// Makes a request that must fail. Returns the kind of its error.
    fn error(&mut self, name: &str, args: Value) -> String {
        let ((reply, _), _) = self.perform(name, args, None);
        assert_eq!(reply["success"], false, "{reply}");
        reply["error"]["kind"].as_str().unwrap().to_owned()
    }

    /// Runs a command. Returns its result, its stdout and its stderr.
    fn exec(&mut self, args: Value, stdin: Option<&[u8]>) -> (Value, String, String) {
        let ((reply, _), events) = self.perform("exec", args, stdin);
        assert_eq!(reply["success"], true, "{reply}");
        assert_eq!(events[0].0["event"], "started");
        (reply["result"].clone(), stream(&events, "stdout"), stream(&events, "stderr"))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.top.path().join("ws").join(name)
    }

    fn end(mut self) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

fn stream(events: &[Message], name: &str) -> String {
    let bytes = events.iter().filter(|(event, _)| event["stream"] == name);
    let bytes: Vec<u8> = bytes.flat_map(|(_, payload)| payload.clone()).collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn files_are_read_and_written_as_bytes() {
    let mut client = Client::start(&[]);
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(client.write("a/b.bin", &all)["created"], true);
    assert_eq!(std::fs::read(client.path("a/b.bin")).unwrap(), all);
    let ((reply, payload), _) =
        client.perform("read", json!({"path": "a/b.bin", "offset": 250, "limit": 3}), None);
    assert_eq!(
        (reply["result"]["size"].as_u64(), reply["result"]["eof"].as_bool()),
        (Some(256), Some(false))
    );
    assert_eq!(payload, [250, 251, 252]);
    let ((reply, payload), _) =
        client.perform("read", json!({"path": "a/b.bin", "offset": 1000}), None);
    assert_eq!((reply["result"]["eof"].as_bool(), payload.len()), (Some(true), 0));
    let args = json!({"path": "a/b.bin", "append": true, "executable": true});
    let ((reply, _), _) = client.perform("write", args, Some(b"\n\n{}\n"));
    assert_eq!(reply["result"]["created"], false);
    let stat = client.ok("stat", json!({"path": "a/b.bin"}));
    assert_eq!((stat["kind"].as_str(), stat["size"].as_u64()), (Some("file"), Some(261)));
    assert_eq!(stat["mode"].as_u64().unwrap() & 0o111, 0o111);
    let same = client.perform("write", json!({"path": "a/b.bin", "append": true}), Some(b"")).0.0;
    assert_eq!(same["result"]["change"], Value::Null);
    client.end();
}

#[test]
fn directories_are_listed_made_moved_and_removed() {
    let mut client = Client::start(&[]);
    client.write("d/sub/one", b"1");
    client.write("d/two", b"2");
    std::os::unix::fs::symlink("two", client.path("d/link")).unwrap();
    let names = |listing: &Value| -> Vec<String> {
        let entries = listing["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| {
                format!("{} {}", entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap())
            })
            .collect()
    };
    let listing = client.ok("list", json!({"path": "d"}));
    assert_eq!(names(&listing), ["link symlink", "sub directory", "two file"]);
    let link = client.ok("stat", json!({"path": "d/link", "follow": false}));
    assert_eq!((link["kind"].as_str(), link["target"].as_str()), (Some("symlink"), Some("two")));
    assert_eq!(client.ok("stat", json!({"path": "d/link"}))["kind"], "file");
    let real = client.ok("realpath", json!({"path": "d/link"}));
    assert_eq!(real["path"].as_str().unwrap(), client.path("d/two").to_str().unwrap());

    assert_eq!(client.ok("mkdir", json!({"path": "x/y"}))["created"], true);
    assert_eq!(client.ok("mkdir", json!({"path": "x/y"}))["created"], false);
    assert_eq!(client.error("mkdir", json!({"path": "x/y", "exist_ok": false})), "already_exists");
    assert_eq!(client.error("mkdir", json!({"path": "q/r", "parents": false})), "not_found");

    client.ok("move", json!({"from": "d", "to": "x/moved"}));
    let listing = client.ok("list", json!({"path": "x/moved"}));
    assert_eq!(names(&listing), ["link symlink", "sub directory", "two file"]);
    assert_eq!(std::fs::read(client.path("x/moved/sub/one")).unwrap(), b"1");
    assert!(!client.path("d").exists());
    client.write("three", b"3");
    let onto = json!({"from": "three", "to": "x/moved/two"});
    assert_eq!(client.error("move", onto.clone()), "already_exists");
    client.ok("move", json!({"from": "three", "to": "x/moved/two", "overwrite": true}));
    assert_eq!(std::fs::read(client.path("x/moved/two")).unwrap(), b"3");
    assert_eq!(client.error("move", json!({"from": "x", "to": "x/moved/in"})), "invalid");

    // A symlink is removed, not its target.
    assert_eq!(client.ok("remove", json!({"path": "x/moved/link"}))["removed"], 1);
    assert!(client.path("x/moved/two").exists());
    assert_eq!(client.error("remove", json!({"path": "x"})), "not_empty");
    assert_eq!(client.ok("remove", json!({"path": "x", "recursive": true}))["removed"], 6);
    assert_eq!(client.error("remove", json!({"path": "x"})), "not_found");
    assert_eq!(client.ok("remove", json!({"path": "x", "missing_ok": true}))["removed"], 0);
    assert_eq!(client.error("remove", json!({"path": ".", "recursive": true})), "protected");
    client.end();
}

#[test]
fn errors_have_kinds() {
    let mut client = Client::start(&[]);
    client.write("file", b"");
    for (name, args, kind) in [
        ("read", json!({"path": "missing"}), "not_found"),
        ("read", json!({"path": "."}), "is_directory"),
        ("list", json!({"path": "file"}), "not_a_directory"),
        ("read", json!({}), "invalid"),
        ("read", json!({"path": "file", "bogus": 1}), "invalid"),
        ("nothing", json!({}), "invalid"),
        ("write_stdin", json!({"to": 99}), "not_found"),
        ("signal", json!({"to": 99, "signal": "TERM"}), "not_found"),
        ("signal", json!({"to": 99, "signal": "SEGV"}), "invalid"),
        ("exec", json!({}), "invalid"),
        ("exec", json!({"argv": [], }), "invalid"),
        ("exec", json!({"argv": ["true"], "shell": "true"}), "invalid"),
        ("exec", json!({"argv": ["true"], "cwd": "missing"}), "not_found"),
        ("exec", json!({"argv": ["true"], "env": {"a b": "c"}}), "invalid"),
        ("register", json!({"name": "late", "description": "x"}), "invalid"),
        ("remove", json!({"path": ".git/config"}), "protected"),
        ("mkdir", json!({"path": "/etc/toolcrib-test"}), "outside_workspace"),
    ] {
        assert_eq!(client.error(name, args.clone()), kind, "{name} {args}");
    }
    client.end();
}

#[test]
fn commands_have_separate_streams_exit_codes_and_stdin() {
    let mut client = Client::start(&[]);
    let args =
        json!({"shell": "cat; echo \"$A\" >&2; pwd >&2; exit 3", "env": {"A": "it's"}, "cwd": "."});
    let (result, stdout, stderr) = client.exec(args, Some(b"in\nput"));
    assert_eq!((result["exit_code"].as_i64(), stdout.as_str()), (Some(3), "in\nput"));
    assert_eq!(
        stderr,
        format!("it's\n{}\n", client.path("").to_str().unwrap().trim_end_matches('/'))
    );
    let (result, stdout, _) =
        client.exec(json!({"argv": ["printf", "%s|", "$HOME", "a  b", "*", "'", ""]}), None);
    assert_eq!((result["exit_code"].as_i64(), stdout.as_str()), (Some(0), "$HOME|a  b|*|'||"));
    let (result, _, stderr) = client.exec(json!({"argv": ["no-such-program"]}), None);
    assert_eq!(result["exit_code"], 127);
    assert!(stderr.contains("no-such-program"), "{stderr}");
    let (result, ..) = client.exec(json!({"shell": "kill -9 $$"}), None);
    assert_eq!((result["exit_code"].as_i64(), result["signal"].as_i64()), (None, Some(9)));
    // A shell started here keeps no state.
    client.exec(json!({"shell": "cd /; export KEPT=1"}), None);
    let (_, stdout, _) = client.exec(json!({"shell": "echo \"[$KEPT]\"; pwd"}), None);
    assert!(stdout.starts_with("[]\n") && stdout.trim_end().ends_with("ws"), "{stdout}");
    // All output arrives, also from a flood.
    let (_, stdout, _) = client.exec(json!({"shell": "seq 1 400000"}), None);
    assert_eq!(stdout.lines().count(), 400_000);
    assert!(stdout.ends_with("\n400000\n"));
    client.end();
}

#[test]
fn commands_end_at_their_time_limit_and_when_they_are_cancelled() {
    let mut client = Client::start(&[]);
    let args = json!({"shell": "echo begun; sleep 1000 & sleep 1000", "timeout_ms": 700});
    let (result, stdout, _) = client.exec(args, None);
    assert_eq!((result["timed_out"].as_bool(), stdout.as_str()), (Some(true), "begun\n"));
    assert_eq!(result["exit_code"], Value::Null);
    let id = client.request("exec", json!({"argv": ["sleep", "1000"]}), None);
    assert_eq!(client.receive().0["event"], "started");
    client.send(&json!({"cancel": id}), b"");
    let ((reply, _), _) = client.reply_to(id);
    assert_eq!(reply["error"]["kind"], "cancelled");
    // A process in the background does not delay the reply.
    let (result, stdout, _) = client.exec(json!({"shell": "sleep 1000 & echo done"}), None);
    assert_eq!((result["exit_code"].as_i64(), stdout.as_str()), (Some(0), "done\n"));
    client.end();
}

#[test]
fn input_signals_and_terminals_reach_a_running_command() {
    let mut client = Client::start(&[]);
    let script =
        "trap 'echo usr1; exit 4' USR1; read -r a; echo \"[$a]\"; read -r b; sleep 1000 & wait";
    let id = client.request("exec", json!({"shell": script, "stdin": "open"}), None);
    client.request("write_stdin", json!({"to": id}), Some(b"one\n"));
    let output = |client: &mut Client, wanted: &str| {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            let (message, payload) = client.receive();
            assert_ne!(message["success"], false, "{message}");
            seen += std::str::from_utf8(&payload).unwrap();
        }
    };
    output(&mut client, "[one]\n");
    client.request("write_stdin", json!({"to": id}), Some(b"two\n"));
    client.request("close_stdin", json!({"to": id}), None);
    client.request("signal", json!({"to": id, "signal": "USR1"}), None);
    let ((reply, _), _) = client.reply_to(id);
    assert_eq!(reply["result"]["exit_code"], 4);

    let script = "stty size; test -t 2 && echo terminal; read -r a; echo \"[$a]\"; echo $TERM; cat";
    let args = json!({"shell": script, "pty": {"rows": 31, "cols": 91}});
    let id = client.request("exec", args, None);
    output(&mut client, "terminal\r\n");
    client.request("resize", json!({"to": id, "rows": 40, "cols": 100}), None);
    client.request("write_stdin", json!({"to": id}), Some(b"typed\n"));
    output(&mut client, "xterm-256color\r\n");
    client.request("close_stdin", json!({"to": id}), None);
    let ((reply, _), _) = client.reply_to(id);
    assert_eq!(reply["result"]["exit_code"], 0, "{reply}");
    client.end();
}

#[test]
fn a_snapshot_restores_files_after_operations_tools_and_commands() {
    let mut client = Client::start(&[]);
    client.write("kept", b"before");
    client.write("deep/er", b"x");
    let snapshot = client.ok("snapshot", json!({}))["snapshot"].clone();
    client.write("kept", b"after");
    client.ok("remove", json!({"path": "deep", "recursive": true}));
    client.ok("mkdir", json!({"path": "empty/one"}));
    client.exec(json!({"shell": "echo made > by-command; rm kept"}), None);
    client.send(
        &json!({"id": "tool", "tool": "Write", "args": {"file_path": "by-tool", "content": "t"}}),
        b"",
    );
    assert_eq!(client.receive().0["success"], true);
    let restored = client.ok("restore", json!({"snapshot": snapshot}));
    assert_eq!(restored["undone"].as_array().unwrap().len(), 5, "{restored}");
    assert_eq!(std::fs::read(client.path("kept")).unwrap(), b"before");
    assert_eq!(std::fs::read(client.path("deep/er")).unwrap(), b"x");
    for gone in ["by-command", "by-tool", "empty"] {
        assert!(!client.path(gone).exists(), "{gone}");
    }
    assert_eq!(client.ok("restore", json!({"snapshot": snapshot}))["files"], 0);
    client.end();
}

#[test]
fn the_policy_of_a_tool_holds_for_its_raw_form() {
    let mut client = Client::start(&["--profile", "read-only"]);
    let ((reply, _), _) = client.perform("write", json!({"path": "a"}), Some(b"x"));
    assert_eq!(reply["error"]["kind"], "denied");
    for (name, args) in [("mkdir", json!({"path": "a"})), ("exec", json!({"shell": "touch a"}))] {
        assert_eq!(client.error(name, args), "denied", "{name}");
    }
    client.end();
    let mut client = Client::start(&["--tools", "Read,LS"]);
    assert_eq!(client.error("exec", json!({"argv": ["true"]})), "denied");
    assert_eq!(client.error("mkdir", json!({"path": "a"})), "denied");
    client.ok("list", json!({"path": "."}));
    client.end();

    // A rule on a file below a directory holds when the directory is removed or moved.
    let rule = "[[rule]]\nkind = \"edit\"\npaths = [\"d/secret\"]\ndecision = \"deny\"\n";
    let mut client = Client::start_with_rules(rule, &[]);
    std::fs::create_dir(client.path("d")).unwrap();
    std::fs::write(client.path("d/secret"), "").unwrap();
    assert_eq!(client.error("remove", json!({"path": "d", "recursive": true})), "denied");
    assert_eq!(client.error("move", json!({"from": "d", "to": "e"})), "denied");
    assert!(client.path("d/secret").exists());
    client.end();
}

#[test]
fn own_tools_are_checked_recorded_and_performed_by_the_program() {
    let mut client = Client::start(&[]);
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let tool = json!({"name": "lookup", "description": "Looks up a name.", "schema": schema, "read_only": true});
    client.ok("register", tool.clone());
    assert_eq!(client.error("register", tool), "already_exists");
    let tools = client.ok("tools", json!({"format": "anthropic"}));
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"lookup") && names.contains(&"Read"), "{names:?}");

    client.send(&json!({"id": "c1", "tool": "lookup", "args": {"name": "x"}}), b"");
    let (invoke, _) = client.receive();
    assert_eq!((&invoke["tool"], &invoke["args"]), (&json!("lookup"), &json!({"name": "x"})));
    client.send(&json!({"invoked": invoke["invoke"], "success": true, "output": "found"}), b"");
    let (reply, _) = client.receive();
    assert_eq!((reply["success"].as_bool(), reply["output"].as_str()), (Some(true), Some("found")));

    client.send(&json!({"id": "c2", "tool": "lookup", "args": {}}), b"");
    assert_eq!(client.receive().0["error"]["kind"], "invalid");

    client.send(&json!({"id": "c3", "tool": "lookup", "args": {"name": "y"}}), b"");
    let (invoke, _) = client.receive();
    client.send(&json!({"invoked": invoke["invoke"], "success": false, "output": "no y"}), b"");
    let (reply, _) = client.receive();
    assert_eq!(
        (reply["error"]["kind"].as_str(), reply["error"]["message"].as_str()),
        (Some("failed"), Some("no y"))
    );

    client.send(&json!({"id": "c4", "tool": "lookup", "args": {"name": "z"}}), b"");
    let (invoke, _) = client.receive();
    client.send(&json!({"cancel": "c4"}), b"");
    let messages = [client.receive().0, client.receive().0];
    assert!(
        messages.iter().any(|message| message["invoke_cancelled"] == invoke["invoke"]),
        "{messages:?}"
    );
    assert!(messages.iter().any(|message| message["error"]["kind"] == "cancelled"), "{messages:?}");
    client.send(&json!({"invoked": "i99", "success": true, "output": ""}), b"");
    assert_eq!(client.receive().0["error"]["kind"], "not_found");
    client.end();
}

#[test]
fn malformed_frames_are_refused_and_the_next_message_is_answered() {
    let mut client = Client::start(&[]);
    client.send(&json!({"id": 2, "op": "read", "args": {"path": "a"}, "bytes": 3}), b"abc");
    assert_eq!(client.receive().0["error"]["kind"], "invalid");
    client.send(&json!({"id": 3, "tool": "Read", "args": {"file_path": "a"}, "bytes": 3}), b"\n{}");
    assert_eq!(client.receive().0["error"]["kind"], "invalid");
    client.send(&json!({"id": 4, "op": 5}), b"");
    assert_eq!(client.receive().0["error"]["kind"], "invalid");
    client.last_id = 10;
    client.write("after", b"x");
    // The input ends within a payload: nothing is written.
    client.send(&json!({"id": 5, "op": "write", "args": {"path": "cut"}, "bytes": 100}), b"abc");
    let path = client.path("cut");
    drop(client.stdin.take());
    assert_eq!(client.receive().0["error"]["kind"], "invalid");
    assert!(client.child.wait().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn a_command_ends_when_the_calling_program_is_gone() {
    let mut client = Client::start(&[]);
    let id = client.request("exec", json!({"argv": ["sleep", "100000"]}), None);
    assert_eq!(client.receive().0, json!({"id": id, "event": "started"}));
    let Client { mut child, stdin, stdout, top, .. } = client;
    drop((stdin, stdout));
    // Otherwise this waits for a day.
    child.wait().unwrap();
    drop(top);
}

#[test]
fn a_payload_is_never_read_as_messages() {
    let hidden = br#"{"id": "hidden", "op": "mkdir", "args": {"path": "made"}}"#;
    let hidden = [&b"\n"[..], hidden, b"\n"].concat();
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let lines = [
        r#"{"id": 1, "op": "write", "args": {"path": "\udc80"}, "bytes": 60}"#.to_owned(),
        format!(r#"{{"id": 1, "op": "write", "args": {deep}, "bytes": 60}}"#),
        r#"{"id": 1, "op": "write", "args": {"path": "a"}, "bytes": -1}"#.to_owned(),
        r#"{"id": 1, "op": "write", "args": {"path": "a"}, "bytes": "x"}"#.to_owned(),
        format!(r#"{{"id": 1, "op": "{}", "args": {{}}, "bytes": 60}}"#, "x".repeat(33 << 20)),
    ];
    for line in lines {
        let mut client = Client::start(&[]);
        let mut stdin = client.stdin.take().unwrap();
        // The program may stop reading early.
        let _ = stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(&hidden));
        drop(stdin);
        let shown: String = line.chars().take(80).collect();
        assert_eq!(client.receive().0["success"], false, "{shown}");
        let mut rest = String::new();
        client.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{shown}");
        client.child.wait().unwrap();
        assert!(!client.path("made").exists(), "{shown}");
    }
}

#[test]
fn a_disabled_tool_cannot_be_registered() {
    let mut client = Client::start(&["--no-tools", "Bash"]);
    let tool = json!({"name": "bash", "description": "x"});
    assert!(["invalid", "already_exists"].contains(&client.error("register", tool).as_str()));
    assert_eq!(client.error("exec", json!({"argv": ["true"]})), "denied");
    client.end();
}

#[test]
fn a_command_that_writes_for_ever_ends_at_its_time_limit() {
    let mut client = Client::start(&[]);
    let id = client.request("exec", json!({"argv": ["yes"], "timeout_ms": 300}), None);
    let ((reply, _), _) = client.reply_to(id);
    assert_eq!(reply["result"]["timed_out"], true, "{reply}");
    client.end();
}

#[test]
fn processes_in_the_background_can_go_on_writing() {
    let mut client = Client::start(&[]);
    client.exec(json!({"shell": "(sleep 0.2; echo late; touch written) & exit 0"}), None);
    let path = client.path("written");
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client.end();
}

#[test]
fn a_new_directory_has_the_usual_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut client = Client::start(&[]);
    client.ok("mkdir", json!({"path": "by-operation"}));
    client.exec(json!({"argv": ["mkdir", "by-command"]}), None);
    let mode = |name: &str| std::fs::metadata(client.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("by-operation"), mode("by-command"));
    client.end();
}

#[test]
fn many_calls_of_own_tools_do_not_block_the_reader() {
    let mut client = Client::start(&[]);
    client.ok("register", json!({"name": "own", "description": "x", "read_only": true}));
    for number in 0..400 {
        client.send(&json!({"id": number, "tool": "own", "args": {}, "wait": number == 0}), b"");
    }
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < 400 {
        let (message, _) = client.receive();
        if let Some(id) = message.get("invoke") {
            client.send(&json!({"invoked": id, "success": true, "output": "y"}), b"");
        } else if message["success"] == true {
            answered += 1;
        } else {
            assert_eq!(message["error"]["kind"], "limit", "{message}");
            refused += 1;
        }
    }
    assert!(answered > 0);
    client.end();
}

#[test]
fn paths_are_literal() {
    let mut client = Client::start(&[]);
    std::fs::write(client.path("a\nb"), "kept").unwrap();
    assert_eq!(client.error("remove", json!({"path": "a\\nb"})), "not_found");
    let ((reply, _), _) = client.perform("write", json!({"path": "a\\nb"}), Some(b"x"));
    assert_eq!(reply["error"]["kind"], "not_found", "{reply}");
    assert_eq!(std::fs::read_to_string(client.path("a\nb")).unwrap(), "kept");
    assert_eq!(client.error("stat", json!({"path": "~"})), "not_found");
    client.end();
}

#[test]
fn a_rule_on_a_symlink_holds_behind_another_symlink() {
    let rule = "[[rule]]\nkind = \"edit\"\npaths = [\"dir/x\"]\ndecision = \"ask\"\n";
    let mut client = Client::start_with_rules(rule, &[]);
    std::fs::create_dir(client.path("dir")).unwrap();
    std::fs::write(client.path("dir/y"), "").unwrap();
    std::os::unix::fs::symlink("y", client.path("dir/x")).unwrap();
    std::os::unix::fs::symlink("dir", client.path("ldir")).unwrap();
    assert_eq!(client.error("remove", json!({"path": "ldir/x"})), "denied");
    assert_eq!(client.error("remove", json!({"path": "dir/x"})), "denied");
    assert!(client.path("dir/x").is_symlink());
    client.end();
}
