//! Rules on the page: listing, adding and removing with a preview, and explanations.

use serde_json::{Value, json};

use super::{RunningPage, User};

const RULE: &str =
    "[[rule]]\nname = \"quiet\"\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\"echo\"]\n";

#[test]
fn a_rule_is_previewed_added_counted_and_removed() {
    let user = User::new();
    user.call("Bash", &json!({"command": "echo one"}));
    user.call("Bash", &json!({"command": "printf 'two\\n'\necho three"}));
    user.call("LS", &json!({}));
    let page = RunningPage::start(&user);
    assert_eq!(page.get("/api/rules").json()["rules"], json!([]));
    let preview = page.post("/api/rules/preview", &json!({"add": RULE})).json();
    assert_eq!(preview["total"], 2, "{preview}");
    assert_eq!(preview["calls"][1]["what"], "echo one");
    assert_eq!(preview["calls"][0]["before"], "allow");
    assert_eq!(preview["calls"][0]["after"], "deny");
    assert_eq!((&preview["days"], &preview["toml"]), (&json!(30), &json!(RULE)));
    assert!(!user.path("config/toolcrib/rules.toml").exists(), "a preview writes nothing");
    let added = page.post("/api/rules", &json!({"add": RULE}));
    assert_eq!(added.status(), 200, "{}", added.0);
    user.call("Bash", &json!({"command": "echo four"}));
    let rules = page.get("/api/rules").json();
    let rule = &rules["rules"][0];
    assert_eq!((&rule["name"], &rule["first_line"]), (&json!("rule:quiet"), &json!(1)));
    assert_eq!((&rule["last_line"], &rule["decided_30_days"]), (&json!(5), &json!(1)));
    assert!(rule["last_decided"].is_u64());
    let lines = json!({"first_line": 1, "last_line": 5, "text": RULE});
    let preview = page.post("/api/rules/preview", &json!({"remove": lines})).json();
    assert_eq!(preview["total"], 3, "{preview}");
    let changed = json!({"first_line": 1, "last_line": 5, "text": "other"});
    assert_eq!(page.post("/api/rules", &json!({"remove": changed})).status(), 409);
    let removed = page.post("/api/rules", &json!({"remove": lines}));
    assert_eq!(removed.json()["rules"], json!([]), "{}", removed.0);
}

#[test]
fn the_decisions_of_a_rule_without_a_name_stay_with_it_when_the_file_changes() {
    let user = User::new();
    let unnamed = "[[rule]]\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\"echo four\"]\n";
    let page = RunningPage::start(&user);
    assert_eq!(page.post("/api/rules", &json!({"add": unnamed})).status(), 200);
    user.call("Bash", &json!({"command": "echo four"}));
    let file = user.path("config/toolcrib/rules.toml");
    let other = unnamed.replace("echo four", "echo five");
    std::fs::write(&file, format!("# A comment.\n{other}\n# Another one.\n{unnamed}")).unwrap();
    let rules = page.get("/api/rules").json();
    let counts: Vec<&Value> =
        rules["rules"].as_array().unwrap().iter().map(|rule| &rule["decided_30_days"]).collect();
    assert_eq!(counts, [&json!(0), &json!(1)], "{rules}");
}

#[test]
fn invalid_rules_are_reported_and_not_added() {
    let user = User::new();
    let page = RunningPage::start(&user);
    for text in ["[[rule]]\n", "nonsense", "# nothing\n"] {
        let preview = page.post("/api/rules/preview", &json!({"add": text}));
        assert!(preview.json()["problem"].is_string(), "{}", preview.0);
        assert_eq!(page.post("/api/rules", &json!({"add": text})).status(), 400, "{text}");
    }
    assert_eq!(page.get("/api/rules").json()["text"], "");
    std::fs::create_dir_all(user.path("config/toolcrib")).unwrap();
    std::fs::write(user.path("config/toolcrib/rules.toml"), "[[rule]\n").unwrap();
    let listed = page.get("/api/rules").json();
    assert!(listed["problem"].is_string() && listed["text"] == "[[rule]\n");
}

#[test]
fn decisions_are_explained() {
    let user = User::new();
    user.write("a.txt", "x");
    let page = RunningPage::start(&user);
    let workspace = user.workspace();
    let explain = |subject: Value| {
        let mut body = subject;
        body["workspace"] = workspace.to_str().unwrap().into();
        page.post("/api/rules/explain", &body)
    };
    let command = explain(json!({"tool": "Bash", "command": "rm -rf /"})).json();
    assert!(command["text"].as_str().unwrap().starts_with("deny by danger\n"), "{command}");
    let path = explain(json!({"tool": "Read", "path": "a.txt"})).json();
    assert!(path["text"].as_str().unwrap().starts_with("allow by profile"), "{path}");
    let host = explain(json!({"tool": "Bash", "host": "example.com:443"})).json();
    assert!(host["text"].as_str().unwrap().contains(" by "), "{host}");
    assert_eq!(explain(json!({"tool": "Bash"})).status(), 400);
}

#[test]
fn explanations_and_previews_use_the_profile_of_the_agent() {
    let user = User::new();
    user.run(&["call", "Bash", "{\"command\": \"make all\"}", "--profile", "cautious"]);
    let page = RunningPage::start(&user);
    let workspace = user.workspace();
    let explain = |profile: Value| {
        let body = json!({"tool": "Bash", "command": "make all", "workspace": workspace, "profile": profile});
        page.post("/api/rules/explain", &body)
    };
    let text = |answer: &Value| answer["text"].as_str().unwrap().to_owned();
    assert!(text(&explain(Value::Null).json()).starts_with("allow by"));
    let cautious = text(&explain("cautious".into()).json());
    assert!(cautious.starts_with("ask by profile:cautious"), "{cautious}");
    assert_eq!(explain("none".into()).status(), 400);
    let rule = "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"make all\"]\n";
    let preview = page.post("/api/rules/preview", &json!({"add": rule})).json();
    let call = &preview["calls"][0];
    assert_eq!((&call["before"], &call["after"]), (&json!("ask"), &json!("allow")), "{preview}");
}
