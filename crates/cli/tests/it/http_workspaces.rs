//! `toolcrib serve --http --workspaces`: one server for many workspaces that are isolated from each other.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Server, post, read_call, right_headers, status};
use crate::http_sessions::{Client, message};
use crate::{command_directory, text, toolcrib};

const WORDS: [&str; 7] =
    ["serve", "--http", "localhost:0", "--state", "state", "--workspaces", "all"];

/// The workspaces `a` and `b`, each with a file that has its name.
fn directory() -> tempfile::TempDir {
    let top = command_directory();
    for name in ["a", "b"] {
        fs::create_dir_all(top.path().join("all").join(name)).unwrap();
        let content = format!("canary of {name}\n");
        fs::write(top.path().join("all").join(name).join("a.txt"), content).unwrap();
    }
    top
}

fn server(flags: &[&str]) -> Server {
    Server::run(directory(), &[&WORDS, flags].concat())
}

fn at(server: &Server, path: &str) -> PathBuf {
    server.directory.path().join(path)
}

/// The response to a Read of `a.txt` at a path, with some headers replaced.
fn read(server: &Server, path: &str, replaced: &[(&str, Option<&str>)]) -> String {
    server.ask(&server.request(path, replaced))
}

/// The response, after workspaces that are no longer used have been closed.
fn read_when_there_is_room(server: &Server, path: &str) -> String {
    for _ in 0..600 {
        let answer = read(server, path, &[]);
        if status(&answer) != "503" {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no workspace is closed");
}

#[test]
fn each_directory_is_a_workspace() {
    let server = server(&[]);
    for name in ["a", "b"] {
        let answer = read(&server, &format!("/w/{name}/mcp"), &[]);
        assert_eq!(status(&answer), "200", "{answer}");
        assert!(answer.contains(&format!("canary of {name}")), "{answer}");
    }
    // Also one that is made later.
    assert_eq!(status(&read(&server, "/w/c/mcp", &[])), "404");
    fs::create_dir(at(&server, "all/c")).unwrap();
    fs::write(at(&server, "all/c/a.txt"), "canary of c\n").unwrap();
    assert!(read(&server, "/w/c/mcp", &[]).contains("canary of c"));
}

#[test]
fn only_a_directory_with_exactly_this_name_is_a_workspace() {
    let server = server(&[]);
    fs::write(at(&server, "all/file"), "canary\n").unwrap();
    fs::create_dir(at(&server, "all/.hidden")).unwrap();
    fs::create_dir(at(&server, "outside")).unwrap();
    fs::write(at(&server, "outside/a.txt"), "canary\n").unwrap();
    symlink("a", at(&server, "all/link")).unwrap();
    symlink("../outside", at(&server, "all/out")).unwrap();
    for path in [
        "/mcp",
        "/",
        "/w/a",
        "/w/a/",
        "/w/a/mcp/",
        "/w//mcp",
        "/w/./mcp",
        "/w/../mcp",
        "/w/../outside/mcp",
        "/w/%2e%2e/mcp",
        "/w/%2E%2E%2Foutside/mcp",
        "/w/..%2foutside/mcp",
        "/w/a%2f..%2fb/mcp",
        "/w/a/../b/mcp",
        "/w/%61/mcp",
        "/w/a%00/mcp",
        "/w/A/mcp",
        "/w/.hidden/mcp",
        "/w/file/mcp",
        "/w/link/mcp",
        "/w/out/mcp",
        "/w/none/mcp",
        "/w/a;b/mcp",
        "/w/a?/mcp",
        "//w/a/mcp",
    ] {
        let answer = read(&server, path, &[]);
        assert_eq!(status(&answer), "404", "{path}: {answer}");
        assert!(!answer.contains("canary"), "{path}: {answer}");
        let unknown = read(&server, path, &[("Authorization", Some("Bearer x"))]);
        assert_eq!(status(&unknown), "401", "{path}: {unknown}");
    }
    for path in ["/w/a\0/mcp", "/w/\u{e4}/mcp"] {
        let answer = read(&server, path, &[]);
        assert!(["400", "404"].contains(&status(&answer)), "{answer}");
    }
    let long = format!("/w/{}/mcp", "a".repeat(65));
    assert_eq!(status(&read(&server, &long, &[])), "404");
    let answer = read(&server, "/w/none/mcp", &[]);
    assert!(answer.contains("There is no such workspace."), "{answer}");
}

#[test]
fn a_header_that_contradicts_the_path_is_refused() {
    let server = server(&[]);
    let with = |value: &str| read(&server, "/w/a/mcp", &[("Mcp-Param-Workspace", Some(value))]);
    for value in ["b", "", "A", "a, b", "a/../b", "=?base64?YQ==?="] {
        assert_eq!(status(&with(value)), "400", "{value}");
    }
    assert!(!with("a").contains("names another workspace"));
    let right = server.request("/w/a/mcp", &[]);
    let twice = "\r\nMcp-Param-Workspace: a\r\nMcp-Param-Workspace: b\r\n";
    assert_eq!(status(&server.ask(&right.replacen("\r\n", twice, 1))), "400");
    // The other checks of heads apply here, too.
    for (name, value, expected) in [
        ("Host", Some("evil.example"), "403"),
        ("Origin", Some("https://evil.example"), "403"),
        ("Sec-Fetch-Site", Some("cross-site"), "403"),
        ("Content-Type", Some("text/plain"), "415"),
        ("Toolcrib-Session", Some("not a name"), "400"),
        ("Authorization", None, "401"),
    ] {
        assert_eq!(status(&read(&server, "/w/a/mcp", &[(name, value)])), expected, "{name}");
    }
}

#[test]
fn file_tools_do_not_see_other_workspaces() {
    let server = server(&["--outside", "read"]);
    let all = at(&server, "all");
    symlink("../b", all.join("a/link")).unwrap();
    symlink(all.join("b/a.txt"), all.join("a/file-link")).unwrap();
    symlink("/proc/self/root", all.join("a/root")).unwrap();
    let mut a = Client::modern_at(&server, "/w/a/mcp");
    let state = at(&server, "state");
    let through_root = PathBuf::from(format!("root{}", all.join("b/a.txt").display()));
    for (tool, args) in [
        ("Read", json!({"file_path": "../b/a.txt"})),
        ("Read", json!({"file_path": all.join("b/a.txt")})),
        ("Read", json!({"file_path": all.join("a/../b/a.txt")})),
        ("Read", json!({"file_path": "link/a.txt"})),
        ("Read", json!({"file_path": "file-link"})),
        ("Read", json!({"file_path": through_root})),
        ("Read", json!({"file_path": all.join("b/missing")})),
        ("Read", json!({"file_path": state.join("http-token")})),
        ("Write", json!({"file_path": all.join("b/new.txt"), "content": "x"})),
        ("Write", json!({"file_path": "link/new.txt", "content": "x"})),
        ("Write", json!({"file_path": all.join("new/a.txt"), "content": "x"})),
        ("Edit", json!({"file_path": "../b/a.txt", "old_string": "canary", "new_string": "x"})),
        ("Grep", json!({"pattern": "canary", "path": ".."})),
        ("Grep", json!({"pattern": "canary", "path": all.join("b")})),
        ("Glob", json!({"pattern": "*", "path": all})),
        ("Glob", json!({"pattern": "../b/*"})),
        ("LS", json!({"path": ".."})),
        ("LS", json!({"path": "link"})),
        ("Bash", json!({"command": "true", "cwd": "../b"})),
    ] {
        let reply = a.call(tool, args.clone());
        assert!(
            !reply.contains("canary") && !reply.contains(&server.token),
            "{tool} {args}: {reply}"
        );
        let reasons = [
            "is not in this workspace",
            "belongs to Toolcrib's own state",
            "is not open to file tools",
        ];
        assert!(reasons.iter().any(|reason| reply.contains(reason)), "{tool} {args}: {reply}");
    }
    // From above, the directory of the workspaces is skipped.
    let above = a.call("Grep", json!({"pattern": "canary", "path": server.directory.path()}));
    assert!(!above.contains("canary of b"), "{above}");
    let listed = a.call("LS", json!({"path": server.directory.path(), "recursive": true}));
    assert!(!listed.contains("a.txt"), "{listed}");
    assert_eq!(fs::read_to_string(all.join("b/a.txt")).unwrap(), "canary of b\n");
    assert_eq!(fs::read_dir(all.join("b")).unwrap().count(), 1);
    assert!(!all.join("new").exists());
}

#[test]
fn commands_do_not_see_other_workspaces() {
    let server = server(&[]);
    let all = at(&server, "all");
    let (top, state) = (server.directory.path().display(), at(&server, "state"));
    symlink("../b", all.join("a/link")).unwrap();
    let mut b = Client::modern_at(&server, "/w/b/mcp");
    let waiting = "exec -a canary-process sleep 600";
    b.call("Bash", json!({"command": waiting, "run_in_background": true}));
    b.bash("echo 'canary in tmp' > /tmp/canary; mkfifo /tmp/pipe");
    let mut a = Client::modern_at(&server, "/w/a/mcp");
    let state = state.display();
    for command in [
        "cat ../b/a.txt",
        "cat link/a.txt",
        &format!("cat {top}/all/b/a.txt"),
        &format!("cat {top}/all/a/../b/a.txt"),
        "ls -A .. | grep -v '^a$' | sed 's/^/canary /'",
        &format!("ls -A {top}/all | grep -v '^a$' | sed 's/^/canary /'"),
        &format!("find {top} -path '*/b*' | sed 's/^/canary /'"),
        &format!("cat /proc/self/root{top}/all/b/a.txt /proc/1/root{top}/all/b/a.txt"),
        &format!("cat /proc/[0-9]*/root{top}/all/b/a.txt"),
        "cat /proc/[0-9]*/cwd/a.txt | grep 'of b'",
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep canary-[p]rocess",
        "cat /proc/[0-9]*/fd/*/a.txt",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep canary",
        &format!("ln {top}/all/b/a.txt hard; cat hard"),
        "ln ../b/a.txt hard; cat hard",
        "ln -s ../b soft; cat soft/a.txt",
        "cat /tmp/canary",
        &format!("find {state} -type f -exec cat {{}} + | sed 's/^/canary /'"),
        &format!("mkdir m; mount --bind {top}/all m && cat m/b/a.txt"),
        &format!("unshare -Urm cat {top}/all/b/a.txt"),
        "cd ..; cd b && cat a.txt",
    ] {
        let reply = a.bash(&format!("{{ {command}; }} 2>/dev/null; true"));
        assert!(!reply.contains("canary"), "{command}: {reply}");
    }
    for command in [
        "echo x > ../b/new",
        "echo x > ../new",
        "mkdir ../c",
        "mv ../a ../d",
        "mv ../b ../d",
        "rm -r ../b",
        &format!("touch {top}/all/b/new"),
        &format!("ln -s /etc {top}/all/e"),
        "for p in /proc/[0-9]*; do grep -q canary-process $p/cmdline && kill ${p#/proc/}; done",
    ] {
        a.bash(&format!("{{ {command}; }} 2>/dev/null; true"));
    }
    let mut names: Vec<_> =
        fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(fs::read_dir(all.join("b")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(all.join("b/a.txt")).unwrap(), "canary of b\n");
    let listed = b.call("ListShells", json!({}));
    assert!(listed.contains("running"), "{listed}");
    // Its own files are there.
    assert!(a.bash("cat a.txt; echo made > made; cat made").contains("canary of a\nmade"));
}

#[test]
fn sessions_of_a_workspace_do_not_exist_in_another() {
    let server = server(&[]);
    let mut a = Client::with_session_at(&server, "/w/a/mcp");
    a.bash("mkdir sub; cd sub; export MARK=marked");
    let list = message("tools/list", json!({}));
    assert_eq!(status(&a.send("POST", &list)), "200");
    let mut confused = a.moved_to("/w/b/mcp");
    for method in ["POST", "GET", "DELETE"] {
        let answer = confused.send(method, &list);
        assert_eq!(status(&answer), "404", "{method}: {answer}");
    }
    // It was not ended there.
    let mut a = confused.reconnected().moved_to("/w/a/mcp");
    assert!(a.bash("echo \"$(basename \"$PWD\") $MARK\"").contains("sub marked"));
    // The same name of a session means two sessions.
    let mut a = Client::modern_at(&server, "/w/a/mcp").named("work");
    a.bash("export NAMED=canary");
    let started = json!({"command": "sleep 600", "run_in_background": true});
    let started = a.call("Bash", started);
    assert!(started.contains("sh_"), "{started}");
    // So does the same connection.
    let mut b = a.moved_to("/w/b/mcp");
    assert!(!b.bash("echo $NAMED; pwd").contains("canary"));
    b.headers.clear();
    assert!(!b.bash("echo $NAMED$MARK").contains("canary"));
    b.bash("export MARK=of-b");
    assert!(!b.call("ListShells", json!({})).contains("sleep 600"));
    for number in 1..4 {
        b.call("KillShell", json!({"shell_id": format!("sh_{number}")}));
    }
    let mut a = b.moved_to("/w/a/mcp");
    assert!(!a.bash("echo $MARK").contains("of-b"));
    let listed = Client::modern_at(&server, "/w/a/mcp").named("work").call("ListShells", json!({}));
    assert!(listed.contains("sleep 600") && listed.contains("running"), "{listed}");
}

#[test]
fn changes_and_approvals_of_a_workspace_stay_in_it() {
    let top = directory();
    let ask = "[[rule]]\ndecision = \"ask\"\nkind = \"edit\"\npaths = [\"**\"]\n";
    fs::write(top.path().join("rules.toml"), ask).unwrap();
    let server = Server::run(top, &[&WORDS[..], &["--rules", "rules.toml"]].concat());
    let mut call = read_call("a.txt");
    call["params"]["name"] = "Write".into();
    call["params"]["arguments"] = json!({"file_path": "new.txt", "content": "new\n"});
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}});
    let bearer = server.bearer();
    let mut headers = right_headers("localhost", &bearer);
    headers.retain(|(name, _)| *name != "Mcp-Name");
    headers.push(("Mcp-Name", Some("Write")));
    let send = |path: &str, call: &Value| {
        let answer = server.ask(&post(path, &headers, call));
        let mut found = answer.lines().filter_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
        });
        found.next_back().unwrap_or_else(|| panic!("{answer}"))
    };
    let asked = send("/w/a/mcp", &call);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let yes = json!({"permission": {"action": "accept", "content": {"answer": "once"}}});
    call["params"]["requestState"] = asked["result"]["requestState"].clone();
    call["params"]["inputResponses"] = yes;
    let stolen = send("/w/b/mcp", &call);
    assert!(stolen["error"]["message"].as_str().unwrap().contains("was not issued"), "{stolen}");
    assert!(!at(&server, "all/b/new.txt").exists());
    let written = send("/w/a/mcp", &call);
    assert!(at(&server, "all/a/new.txt").exists(), "{written}");
    let mut b = Client::modern_at(&server, "/w/b/mcp");
    let history = b.call("History", json!({}));
    assert!(!history.contains("new.txt"), "{history}");
    b.call("Undo", json!({}));
    b.call("Undo", json!({"id": 1}));
    assert!(at(&server, "all/a/new.txt").exists());
    let history = Client::modern_at(&server, "/w/a/mcp").call("History", json!({}));
    assert!(history.contains("new.txt"), "{history}");
}

/// The response to a call of a tool.
fn call(server: &Server, path: &str, bearer: &str, tool: &str, arguments: Value) -> String {
    let host = format!("localhost:{}", server.port());
    let mut headers = right_headers(&host, bearer);
    headers.retain(|(name, _)| *name != "Mcp-Name");
    headers.push(("Mcp-Name", Some(tool)));
    let mut body = read_call("");
    body["params"]["name"] = tool.into();
    body["params"]["arguments"] = arguments;
    server.ask(&post(path, &headers, &body))
}

fn wait_for(file: &std::path::Path) {
    for _ in 0..60_000 {
        if file.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} is not made", file.display());
}

/// A file of tokens, in a directory of its own.
const TOKENS: &str = "private/tokens";

fn make_tokens(top: &tempfile::TempDir, text: &str, directory_mode: u32) {
    let file = top.path().join(TOKENS);
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(directory_mode)).unwrap();
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_running_command_does_not_see_replaced_tokens() {
    let top = directory();
    let one = "1".repeat(64);
    make_tokens(&top, &format!("a {one}\n"), 0o700);
    let server = Server::run(top, &[&WORDS[..], &["--workspace-tokens", TOKENS]].concat());
    let file = at(&server, TOKENS);
    let script = format!(
        "touch ready; until [ -e go ]; do sleep 0.01; done; cat {0} {0}.old && echo seen",
        file.display()
    );
    let bearer = format!("Bearer {one}");
    let arguments = json!({ "command": script });
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| call(&server, "/w/a/mcp", &bearer, "Bash", arguments));
        wait_for(&at(&server, "all/a/ready"));
        // As an editor does it.
        fs::copy(&file, at(&server, "private/tokens.old")).unwrap();
        fs::copy(&file, at(&server, "private/new")).unwrap();
        fs::rename(at(&server, "private/new"), &file).unwrap();
        fs::write(at(&server, "all/a/go"), "").unwrap();
        answer.join().unwrap()
    });
    assert!(!answer.contains("seen") && !answer.contains(&one), "{answer}");
    assert!(answer.contains("No such file"), "{answer}");
}

#[test]
fn a_command_that_names_another_workspace_is_told_why_it_sees_nothing() {
    let server = server(&[]);
    let command = format!("cat {}", at(&server, "all/b/a.txt").display());
    let arguments = json!({ "command": command });
    let answer = call(&server, "/w/a/mcp", &server.bearer(), "Bash", arguments);
    assert!(answer.contains("other workspaces are hidden from commands"), "{answer}");
    assert!(!answer.contains("allow_hidden") && !answer.contains("canary"), "{answer}");
}

#[test]
fn a_message_with_too_many_values_is_refused() {
    let server = server(&[]);
    let arguments = json!({ "file_path": "a.txt", "x": vec![0; 200_000] });
    let answer = call(&server, "/w/a/mcp", &server.bearer(), "Read", arguments);
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("too many values"), "{answer}");
    assert_eq!(status(&read(&server, "/w/a/mcp", &[])), "200");
}

#[test]
fn unfinished_bodies_take_limited_memory() {
    let server = server(&[]);
    // Heads of requests with the largest body, which does not follow. The server asks for it as soon as it has reserved the
    // memory.
    let begin = |path: &str| {
        let request = server.request(path, &[("Expect", Some("100-continue"))]);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let length = |bytes: usize| format!("Content-Length: {bytes}\r\n");
        let head = head.replace(&length(body.len()), &length(64 << 20)) + "\r\n\r\n";
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        (stream, text(&answer).to_owned())
    };
    let unfinished = ["/w/a/mcp", "/w/a/mcp"].map(begin);
    assert!(unfinished.iter().all(|(_, answer)| answer == "HTTP/1.1 100"), "{unfinished:?}");
    assert_eq!(begin("/w/a/mcp").1, "HTTP/1.1 429");
    // Small requests are answered, and other workspaces have their own limit.
    assert_eq!(status(&read(&server, "/w/a/mcp", &[])), "200");
    let other = begin("/w/b/mcp");
    assert_eq!(other.1, "HTTP/1.1 100");
    drop(unfinished);
    // The end of a connection frees the memory.
    for attempt in 0.. {
        let (_stream, answer) = begin("/w/a/mcp");
        if answer == "HTTP/1.1 100" {
            break;
        }
        assert!(attempt < 6_000, "{answer}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_large_message_is_served() {
    let server = server(&[]);
    let content = "a line\n".repeat(100_000);
    let arguments = json!({"file_path": "new.txt", "content": content});
    let answer = call(&server, "/w/a/mcp", &server.bearer(), "Write", arguments);
    assert_eq!(status(&answer), "200", "{answer}");
    assert_eq!(fs::read_to_string(at(&server, "all/a/new.txt")).unwrap(), content);
}

#[test]
fn each_workspace_can_have_its_own_token() {
    let top = directory();
    let [one, two] = ["1", "2"].map(|digit| digit.repeat(64));
    make_tokens(&top, &format!("a {one}\nb {two}\n"), 0o700);
    let server = Server::run(top, &[&WORDS[..], &["--workspace-tokens", TOKENS]].concat());
    let read = |path: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        status(&read(&server, path, &[("Authorization", Some(&bearer))])).to_owned()
    };
    assert_eq!(read("/w/a/mcp", &one), "200");
    assert_eq!(read("/w/b/mcp", &two), "200");
    assert_eq!(read("/w/a/mcp", &two), "401");
    assert_eq!(read("/w/b/mcp", &one), "401");
    // Which other workspaces there are is not told.
    assert_eq!(read("/w/none/mcp", &one), "401");
    assert_eq!(read("/mcp", &one), "404");
    assert_eq!(read("/mcp", "x"), "401");
    let three = "3".repeat(64);
    fs::write(at(&server, TOKENS), format!("b {one}\nnone {three}\n")).unwrap();
    assert_eq!(read("/w/b/mcp", &one), "200");
    assert_eq!(read("/w/b/mcp", &two), "401");
    assert_eq!(read("/w/none/mcp", &three), "404");
    assert!(!at(&server, "state/http-token").exists());
}

#[test]
fn a_broken_file_of_tokens_does_not_look_like_a_wrong_token() {
    let top = directory();
    let one = "1".repeat(64);
    make_tokens(&top, &format!("a {one}\n"), 0o700);
    let server = Server::run(top, &[&WORDS[..], &["--workspace-tokens", TOKENS]].concat());
    let bearer = format!("Bearer {one}");
    let ask = || read(&server, "/w/a/mcp", &[("Authorization", Some(&bearer))]);
    assert_eq!(status(&ask()), "200");
    // A mistake in a new line does not lock the others out.
    fs::write(at(&server, TOKENS), format!("a {one}\nb short\n")).unwrap();
    assert_eq!(status(&ask()), "200");
    fs::write(at(&server, TOKENS), "").unwrap();
    let answer = ask();
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.contains("The tokens of this server cannot be read"), "{answer}");
    fs::write(at(&server, TOKENS), format!("a {one}\n")).unwrap();
    assert_eq!(status(&ask()), "200");
}

#[test]
fn a_workspace_in_use_makes_no_room_for_another() {
    let server = server(&["--max-workspaces", "1"]);
    let mut a = Client::modern_at(&server, "/w/a/mcp");
    a.call("Read", json!({"file_path": "a.txt"}));
    a.call("Write", json!({"file_path": "a.txt", "content": "changed\n"}));
    let refused = read(&server, "/w/b/mcp", &[]);
    assert_eq!(status(&refused), "503", "{refused}");
    assert!(refused.to_ascii_lowercase().contains("retry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("Too many workspaces are in use."), "{refused}");
    drop(a);
    assert!(read_when_there_is_room(&server, "/w/b/mcp").contains("canary of b"));
    assert!(read_when_there_is_room(&server, "/w/a/mcp").contains("changed"));
    // The journal is still there.
    let undone = Client::modern_at(&server, "/w/a/mcp").call("Undo", json!({"id": 1}));
    assert!(undone.contains("a.txt"), "{undone}");
    assert_eq!(fs::read_to_string(at(&server, "all/a/a.txt")).unwrap(), "canary of a\n");
}

#[test]
fn a_replaced_directory_is_another_workspace() {
    let server = server(&[]);
    let mut old = Client::with_session_at(&server, "/w/a/mcp");
    old.bash("sleep 600 & echo");
    fs::rename(at(&server, "all/a"), at(&server, "all/moved")).unwrap();
    let list = message("tools/list", json!({}));
    assert_eq!(status(&old.send("POST", &list)), "404");
    fs::create_dir(at(&server, "all/a")).unwrap();
    fs::write(at(&server, "all/a/a.txt"), "canary of the new one\n").unwrap();
    assert!(read(&server, "/w/a/mcp", &[]).contains("canary of the new one"));
    let mut old = Client::with_session_at(&server, "/w/a/mcp");
    // Another directory takes its place while a session is open.
    fs::rename(at(&server, "all/a"), at(&server, "all/moved-too")).unwrap();
    fs::rename(at(&server, "all/b"), at(&server, "all/a")).unwrap();
    assert_eq!(status(&old.send("POST", &list)), "404");
    let mut new = Client::modern_at(&server, "/w/a/mcp");
    assert!(new.bash("cat a.txt; ls ..").contains("canary of b\na"));
    fs::rename(at(&server, "all/a"), at(&server, "all/b")).unwrap();
    symlink("b", at(&server, "all/a")).unwrap();
    assert_eq!(status(&read(&server, "/w/a/mcp", &[])), "404");
}

#[test]
fn a_workspace_has_the_rules_of_the_server_and_its_own() {
    let top = directory();
    fs::create_dir(top.path().join("rules")).unwrap();
    let deny = |command: &str| {
        format!("[[rule]]\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\"{command}\"]\n")
    };
    fs::write(top.path().join("rules.toml"), deny("uname **")).unwrap();
    fs::write(top.path().join("rules/a.toml"), deny("id **")).unwrap();
    fs::write(top.path().join("rules/b.toml"), "").unwrap();
    let flags = ["--rules", "rules.toml", "--workspace-rules", "rules"];
    let server = Server::run(top, &[&WORDS[..], &flags].concat());
    let bash = |name: &str, command: &str| {
        Client::modern_at(&server, &format!("/w/{name}/mcp")).bash(command)
    };
    for (name, command, is_denied) in [
        ("a", "id -u", true),
        ("a", "uname -s", true),
        ("b", "uname -s", true),
        ("b", "id -u", false),
    ] {
        let reply = bash(name, command);
        assert_eq!(reply.contains("Rule: "), is_denied, "{name} {command}: {reply}");
    }
    // The reply names the file of the rule.
    for (command, file) in [("id -u", "rules/a.toml"), ("uname -s", "rules.toml")] {
        let shown = format!("`toolcrib policy list --rules {}`", at(&server, file).display());
        let reply = bash("a", command);
        assert!(reply.contains(&shown), "{reply}");
    }
    fs::create_dir(at(&server, "all/c")).unwrap();
    fs::write(at(&server, "rules/c.toml"), "[[rule]]\nbroken\n").unwrap();
    let answer = read(&server, "/w/c/mcp", &[]);
    assert_eq!(status(&answer), "500", "{answer}");
    assert!(answer.contains("could not be opened") && !answer.contains("rules/c"), "{answer}");
    fs::remove_file(at(&server, "rules/c.toml")).unwrap();
    assert_eq!(status(&read(&server, "/w/c/mcp", &[])), "200");
}

#[test]
fn a_denial_names_the_rules_of_the_workspace() {
    let top = directory();
    fs::create_dir(top.path().join("rules")).unwrap();
    let flags = ["--workspace-rules", "rules", "--profile", "cautious"];
    let server = Server::run(top, &[&WORDS[..], &flags].concat());
    let reply = Client::modern_at(&server, "/w/a/mcp").bash("make all");
    let command = "run `toolcrib policy allow command --rules ";
    let command = format!("{command}{} ", at(&server, "rules/a.toml").display());
    assert!(reply.contains(&command), "{reply}");
}

#[test]
fn settings_that_would_not_isolate_are_refused() {
    let top = directory();
    make_tokens(&top, &format!("a {}\n", "1".repeat(64)), 0o755);
    fs::create_dir(top.path().join("empty")).unwrap();
    fs::set_permissions(top.path().join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(top.path().join("all/rules.toml"), "").unwrap();
    fs::write(top.path().join("expose.toml"), "network = \"list\"\nexpose = [8000]\n").unwrap();
    for (flags, problem) in [
        (&["--profile", "open"][..], "cannot be used with the profile open"),
        (&["--root", "all/a"], "exclude each other"),
        (&["--token-file", "all/a/token"], "must not contain each other"),
        (&["--workspace-tokens", "all/tokens"], "must not contain each other"),
        (&["--workspace-tokens", "tokens"], "must not contain each other"),
        (&["--workspace-tokens", TOKENS], "directory of its own with mode 0700"),
        (&["--config", "expose.toml"], "cannot be used with expose"),
        (&["--workspace-rules", "all/a"], "must not contain each other"),
        (&["--workspace-rules", "rulez"], "rulez: no such directory"),
        (&["--workspace-rules", "."], "must not contain each other"),
        (&["--rules", "all/rules.toml"], "must not contain each other"),
        (&["--workspace-tokens", "empty/none"], "does not exist"),
        (&["--max-workspaces", "0"], "it must be at least 1"),
        (&["--workspace-tokens", "x", "--token-file", "y"], "cannot be used with"),
    ] {
        let output = toolcrib(top.path(), &[&WORDS, flags].concat(), b"");
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {output:?}");
        assert!(text(&output.stderr).contains(problem), "{flags:?}: {output:?}");
        if problem == "must not contain each other" {
            let named = format!("error: {}: /", flags[0]);
            assert!(text(&output.stderr).contains(&named), "{flags:?}: {output:?}");
        }
    }
    for (words, problem) in [
        (&["serve", "--workspaces", "all"][..], "--http"),
        (&["serve", "--http", "0", "--workspaces", "none"], "No such file"),
        (&["serve", "--http", "0", "--workspaces", "/"], "must not contain each other"),
        (&["serve", "--http", "0", "--workspaces", "all", "--state", "all/a"], "must not contain"),
        (&["serve", "--http", "0", "--workspace-rules", "all"], "--workspaces"),
    ] {
        let output = toolcrib(top.path(), words, b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(text(&output.stderr).contains(problem), "{words:?}: {output:?}");
    }
}
