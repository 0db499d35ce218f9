//! The timeline: calls of ended programs, filters and pages.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{RunningPage, User};

fn titles(answer: &Value) -> Vec<&str> {
    let calls = answer["calls"].as_array().unwrap();
    calls.iter().map(|call| call["title"].as_str().unwrap()).collect()
}

#[test]
fn calls_are_listed_with_their_outcome() {
    let user = User::new();
    user.write("a.txt", "one\n");
    user.call("Read", &json!({"file_path": "a.txt"}));
    user.call("Write", &json!({"file_path": "b.txt", "content": "the needle\n"}));
    user.call("Read", &json!({"file_path": "missing.txt"}));
    user.call("Bash", &json!({"command": "echo x > c.txt; exit 3"}));
    user.run(&["call", "Bash", "{\"command\": \"make\"}", "--profile", "cautious"]);
    let page = RunningPage::start(&user);
    let all = page.get("/api/calls").json();
    let expected =
        ["make", "echo x > c.txt; exit 3", "Read missing.txt", "Write b.txt", "Read a.txt"];
    assert_eq!(titles(&all), expected);
    assert_eq!(all["total"], 5);
    let outcomes: Vec<&Value> =
        all["calls"].as_array().unwrap().iter().map(|call| &call["outcome"]).collect();
    assert_eq!(json!(outcomes), json!(["denied", "failed", "failed", "done", "done"]));
    let (denied, failed, missing) = (&all["calls"][0], &all["calls"][1], &all["calls"][2]);
    assert_eq!(denied["decision"], "ask");
    assert_eq!((&failed["error_kind"], &failed["change"]), (&json!("failed"), &json!("2")));
    assert!(missing["message"].as_str().unwrap().contains("missing.txt"));
    assert_eq!(all["calls"][3]["change"], "1");
    for (query, expected) in [
        ("text=NEEDLE", &["Write b.txt"][..]),
        ("text=exit+3", &["echo x > c.txt; exit 3"]),
        ("tool=Write", &["Write b.txt"]),
        ("outcome=denied", &["make"]),
        ("path=a.txt", &["Read a.txt"]),
        ("workspace=/other", &[]),
        ("limit=1", &["make"]),
    ] {
        assert_eq!(titles(&page.get(&format!("/api/calls?{query}")).json()), expected, "{query}");
    }
    let id = all["calls"][3]["id"].as_str().unwrap();
    let one = page.get(&format!("/api/calls/{id}")).json();
    assert_eq!(one["arguments"]["content"], "the needle\n");
    assert_eq!(page.get("/api/calls/1-x-1").status(), 404);
    let places = page.get("/api/workspaces").json();
    assert_eq!(places["workspaces"][0]["path"], user.workspace().to_str().unwrap());
}

/// Calls of a version without the log of calls have only a decision.
#[test]
fn calls_of_older_versions_are_listed_by_their_decisions() {
    let user = User::new();
    user.write("a.txt", "one\n");
    user.call("Read", &json!({"file_path": "a.txt"}));
    user.run(&["call", "Bash", "{\"command\": \"make\"}", "--profile", "cautious"]);
    std::fs::remove_file(user.path("state/toolcrib/calls")).unwrap();
    user.call("Write", &json!({"file_path": "b.txt", "content": "x"}));
    let page = RunningPage::start(&user);
    let new = page.get("/api/calls").json();
    assert_eq!(titles(&new), ["Write b.txt"]);
    let next = new["next"].as_str().unwrap();
    let old = page.get(&format!("/api/calls?before={next}")).json();
    let read = format!("Read {}/a.txt", user.workspace().display());
    assert_eq!(titles(&old), ["Bash make", &read]);
    assert_eq!(old["calls"][1]["outcome"], Value::Null);
    assert_eq!(old["next"], Value::Null);
    let id = old["calls"][0]["id"].as_str().unwrap();
    assert_eq!(page.get(&format!("/api/calls/{id}")).json()["decision"], "ask");
}

/// The pages of a long log are disjoint and complete, and each reads only its part.
#[test]
fn a_long_timeline_is_paged() {
    let user = User::new();
    user.call("LS", &json!({}));
    let path = user.path("state/toolcrib/calls");
    let mut log = String::new();
    for number in 0..20_000 {
        let text = if number == 77 { "rare words" } else { "cargo test" };
        let _ = writeln!(
            log,
            "{{\"id\":\"1-a-{number}\",\"time_ms\":{number},\"session\":1,\"workspace\":\"/w\",\"tool\":\"Bash\",\
             \"accesses\":[[\"command\",\"{text} {number}\"]],\"ms\":1,\"outcome\":\"done\"}}"
        );
    }
    std::fs::write(&path, log).unwrap();
    let page = RunningPage::start(&user);
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let answer = page.get(&format!("/api/calls?limit=1000{before}")).json();
        seen.extend(titles(&answer).iter().map(|title| (*title).to_owned()));
        let Some(next) = answer["next"].as_str() else { break };
        // Older decisions follow the calls.
        before = format!("&before={next}");
        assert!(seen.len() <= 20_001);
    }
    assert_eq!(seen.iter().filter(|title| title.starts_with("cargo")).count(), 19_999);
    assert_eq!(seen[0], "cargo test 19999");
    let found = page.get("/api/calls?text=rare").json();
    assert_eq!(titles(&found), ["rare words 77"]);
}

#[test]
fn undos_and_refused_writes_are_listed_with_their_paths() {
    let user = User::new();
    user.call("Bash", &json!({"command": "echo 1 > a.txt; echo 2 > b.txt; echo 3 > c.txt"}));
    user.call("Undo", &json!({}));
    user.call("Write", &json!({"file_path": "/etc/refused.txt", "content": "x"}));
    let page = RunningPage::start(&user);
    let all = page.get("/api/calls").json();
    assert_eq!(titles(&all)[..2], ["Write /etc/refused.txt", "Undo a.txt and 2 more files"]);
}

/// A server that is killed cannot log the end of its background commands.
#[test]
fn a_background_command_ends_with_its_server() {
    let user = User::new();
    user.call("LS", &json!({}));
    let record = |id: &str| {
        let access = "[[\"command\",\"sleep 100\"]]";
        format!(
            "{{\"id\":\"{id}\",\"time_ms\":1700000000000,\"session\":1,\"workspace\":\"/w\",\
             \"tool\":\"Bash\",\"accesses\":{access},\"ms\":1,\"outcome\":\"running\"}}\n"
        )
    };
    // Our own process began after that call, so it is not the server.
    let ours = format!("{}-a-1", std::process::id());
    let log = record("4000000-a-1") + &record(&ours);
    std::fs::write(user.path("state/toolcrib/calls"), log).unwrap();
    let page = RunningPage::start(&user);
    let all = page.get("/api/calls?limit=2").json();
    for call in all["calls"].as_array().unwrap() {
        assert_eq!(call["outcome"], "failed", "{call}");
        assert_eq!(call["command_end"], json!({"status": "server_ended"}));
    }
    assert_eq!(titles(&page.get("/api/calls?outcome=running").json()), [""; 0]);
}

#[test]
fn refusals_name_the_setting_that_would_allow_them() {
    let user = User::new();
    user.call("Bash", &json!({"command": "echo x > /etc/x; echo x > /etc/x; true"}));
    let page = RunningPage::start(&user);
    let all = page.get("/api/refusals").json();
    let one = &all["refusals"][0];
    assert_eq!(one["what"], "write /etc/x");
    assert!(one["setting"].as_str().unwrap().contains("--root"), "{one}");
    assert!(one["call"].is_string() && one["tool"] == "Bash");
    let connect = json!({"command": "exec 3<>/dev/tcp/refused.example/80"}).to_string();
    user.run(&["call", "Bash", &connect, "--network-access", "list"]);
    let all = page.get("/api/refusals").json();
    assert_eq!(all["refusals"][0]["what"], "connect refused.example:80", "{all}");
    let rule = all["refusals"][0]["rule"].as_str().unwrap_or_else(|| panic!("{all}"));
    assert!(rule.contains("hosts = [\"refused.example:80\"]"), "{rule}");
    assert_eq!(page.post("/api/rules", &json!({"add": rule})).status(), 200);
    let call = all["refusals"][0]["call"].as_str().unwrap();
    let one = page.get(&format!("/api/calls/{call}")).json();
    assert_eq!(one["refusals"][0]["what"], "connect refused.example:80");
    assert_eq!(one["connections"][0]["decision"], "deny");
}
