//! A user's rules.

use std::path::Path;
use std::process::Command;

/// A home with rules, and a workspace with a secret.
struct Project {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
}

impl Project {
    fn new(rules: &str) -> Project {
        let place =
            Project { home: tempfile::tempdir().unwrap(), workspace: tempfile::tempdir().unwrap() };
        let config = place.home.path().join("toolcrib");
        std::fs::create_dir(&config).unwrap();
        std::fs::write(config.join("rules.toml"), rules).unwrap();
        std::fs::write(place.workspace.path().join(".env"), "K=secret\n").unwrap();
        std::fs::write(place.workspace.path().join("a.txt"), "K=plain\n").unwrap();
        std::os::unix::fs::symlink(".env", place.workspace.path().join("link")).unwrap();
        place
    }

    fn run(&self, words: &[&str]) -> (i32, String) {
        let output = Command::new(crate::PROGRAM)
            .args(words)
            .current_dir(self.workspace.path())
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .env("HOME", self.home.path())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

const SECRETS: &str = r#"
[[rule]]
name = "secrets"
decision = "deny"
kind = "read"
paths = ["**/.env"]
why = "secrets live there"
"#;

#[test]
fn a_denied_path_is_denied_to_every_tool_and_in_every_spelling() {
    let place = Project::new(SECRETS);
    for (tool, args) in [
        ("Read", r#"{"file_path": ".env"}"#),
        ("Read", r#"{"file_path": "./sub/../.env"}"#),
        ("Read", r#"{"file_path": "link"}"#),
        ("Edit", r#"{"file_path": ".env", "old_string": "K", "new_string": "L"}"#),
        ("Write", r#"{"file_path": ".env", "content": "x"}"#),
        ("Grep", r#"{"pattern": "K=", "path": ".env"}"#),
    ] {
        let (code, text) = place.run(&["call", tool, args]);
        assert_eq!(code, 1, "{tool} {args} {text}");
        assert!(!text.contains("secret\\n") && !text.contains("K="), "{tool} {args} {text}");
        assert!(
            text.contains("rule:secrets") || text.contains("not_found"),
            "{tool} {args} {text}"
        );
    }
    let (code, text) =
        place.run(&["call", "Grep", r#"{"pattern": "K=", "output_mode": "content"}"#]);
    assert!(code == 0 && text.contains("plain") && !text.contains("secret"), "{text}");
    assert!(text.contains("1 file skipped because of the user's rules"), "{text}");
    let (code, _) = place.run(&["call", "Read", r#"{"file_path": "a.txt"}"#]);
    assert_eq!(code, 0);
    let (_, text) = place.run(&["policy", "test", "--json", "cp .env x; cat x"]);
    assert!(
        text.starts_with(r#"{"decision":"deny","rule":"rule:secrets","why":"secrets live there""#),
        "{text}"
    );
}

#[test]
fn an_invalid_rules_file_is_an_error_at_startup() {
    for rules in ["[[rule]", "[[rule]]\nkind = \"read\"", "[[rules]]\n"] {
        let place = Project::new(rules);
        for words in [vec!["call", "Read", r#"{"file_path": "a.txt"}"#], vec!["run"], vec!["tools"]]
        {
            let (code, text) = place.run(&words);
            assert_eq!(code, 2, "{text}");
            assert!(text.contains("rules.toml: ") && text.contains("line 1"), "{text}");
        }
    }
}

/// A home directory that is also the workspace. Outside /tmp, which commands see as another directory.
fn home() -> tempfile::TempDir {
    crate::command_directory()
}

fn in_home(home: &Path, words: &[&str]) -> (i32, String) {
    let output = Command::new(crate::PROGRAM)
        .args(words)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn default_rules_apply_and_are_protected_if_the_home_is_the_workspace() {
    let home = home();
    let rules = home.path().join(".config/toolcrib/rules.toml");
    std::fs::create_dir_all(rules.parent().unwrap()).unwrap();
    std::fs::write(&rules, SECRETS).unwrap();
    std::fs::write(home.path().join(".env"), "K=secret\n").unwrap();
    let (code, text) = in_home(home.path(), &["call", "LS"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = in_home(home.path(), &["call", "Read", r#"{"file_path": ".env"}"#]);
    assert!(code == 1 && text.contains("rule:secrets"), "{text}");
    let path = ".config/toolcrib/rules.toml";
    for (tool, args) in [
        ("Read", serde_json::json!({"file_path": path})),
        ("Write", serde_json::json!({"file_path": path, "content": ""})),
        ("Bash", serde_json::json!({"command": format!("cat {path}; : > {path}; rm {path}")})),
        ("Bash", serde_json::json!({"command": "mv .config/toolcrib x"})),
        ("Bash", serde_json::json!({"command": "mv .config x && mkdir -p .config/toolcrib"})),
        ("Bash", serde_json::json!({"command": "rm -r .config"})),
    ] {
        let (_, text) = in_home(home.path(), &["call", tool, &args.to_string()]);
        assert!(!text.contains("secrets live there"), "{tool} {args} {text}");
        assert_eq!(std::fs::read_to_string(&rules).unwrap(), SECRETS, "{tool} {args} {text}");
    }
}

#[test]
fn a_command_cannot_create_a_missing_configuration_directory() {
    for command in [
        "mkdir -p .config/toolcrib && echo > .config/toolcrib/rules.toml",
        "mkdir -p evil/toolcrib && echo > evil/toolcrib/rules.toml && ln -s evil .config",
        "mkdir -p evil/toolcrib && echo > evil/toolcrib/rules.toml && mv -T evil .config",
        "mkdir -p evil && echo > evil/rules.toml && mkdir -p .config && mv -T evil .config/toolcrib",
    ] {
        let home = home();
        let args = serde_json::json!({"command": command}).to_string();
        let (_, text) = in_home(home.path(), &["call", "Bash", &args]);
        assert!(!home.path().join(".config/toolcrib/rules.toml").exists(), "{command}: {text}");
    }
}

#[test]
fn rules_elsewhere_in_the_workspace_or_behind_a_symlink_in_it_are_refused() {
    let home = home();
    std::fs::create_dir_all(home.path().join("elsewhere/toolcrib")).unwrap();
    std::fs::write(home.path().join("elsewhere/toolcrib/rules.toml"), "").unwrap();
    let named = ["--rules", "elsewhere/toolcrib/rules.toml", "call", "LS"];
    std::os::unix::fs::symlink("elsewhere", home.path().join(".config")).unwrap();
    for words in [&named[..], &["call", "LS"]] {
        let (code, text) = in_home(home.path(), words);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("is inside the workspace") && text.contains("--root"), "{text}");
    }
}

#[test]
fn project_rules_named_by_the_operator_restrict() {
    let place = Project::new("");
    let rules = place.home.path().join("project.toml");
    let config = place.home.path().join("toolcrib/config.toml");
    std::fs::write(&config, format!("project_rules = {:?}", rules.to_str().unwrap())).unwrap();
    let read = ["call", "Read", r#"{"file_path": ".env"}"#];
    let decided = |text: &str| {
        std::fs::write(&rules, text).unwrap();
        place.run(&read).0
    };
    assert_eq!(decided(SECRETS), 1);
    assert_eq!(decided(""), 0);
    assert_eq!(decided(&SECRETS.replace("deny", "allow")), 2);
    assert!(Path::new(&rules).exists());
}

#[test]
fn decisions_are_listed_for_the_operator() {
    let place = Project::new(SECRETS);
    place.run(&["call", "Read", r#"{"file_path": ".env"}"#]);
    place.run(&["call", "Read", r#"{"file_path": "a.txt"}"#]);
    let (_, text) = place.run(&["log", "--decisions", "--text"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("allow") && lines[0].contains("/a.txt"), "{text}");
    assert!(lines[1].contains("deny") && lines[1].contains("rule:secrets"), "{text}");
    let (_, json) = place.run(&["log", "--decisions", "--json", "-n", "1"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["total"], &json["complete"]), (&2.into(), &false.into()));
    assert_eq!(json["decisions"][0]["rule"], "profile:workspace:read");
}

const REQUESTS: &str = r#"
[[rule]]
name = "issues"
decision = "allow"
kind = "network"
hosts = ["api.example.com:443"]
methods = ["GET"]
paths = ["/v1/issues/**"]

[[rule]]
name = "secret-issues"
decision = "deny"
kind = "network"
hosts = ["api.example.com"]
paths = ["/v1/issues/secret"]
why = "they are secret"
"#;

#[test]
fn rules_on_requests_are_explained() {
    let place = Project::new(REQUESTS);
    let config = place.home.path().join("toolcrib/config.toml");
    std::fs::write(config, "network = \"list\"\nnetwork_presets = [\"git-read:forge.example\"]\n")
        .unwrap();
    for (target, expected) in [
        ("GET https://api.example.com/v1/issues/5?q=x", "allow by rule:issues\n"),
        ("GET https://api.example.com/v1/issues/SECRET", "deny by rule:secret-issues\n"),
        (
            "POST https://api.example.com/v1/issues",
            "no rule allows POST /v1/issues on api.example.com:443",
        ),
        ("GET https://api.example.com/v1/../admin", "the path has a dot segment"),
        ("GET http://api.example.com/v1/issues", "no rule allows api.example.com:80"),
        (
            "GET https://forge.example/a/b.git/info/refs?service=git-upload-pack",
            "allow by rule:preset-git-read\n",
        ),
        (
            "GET https://forge.example/a/b.git/info/refs?service=git-receive-pack",
            "deny by network:list\n",
        ),
        ("POST https://forge.example/a/b.git/git-receive-pack", "deny by network:list\n"),
        ("api.example.com:443", "allow    GET /v1/issues/**: your rule allows it (rule:issues)"),
        (
            "api.example.com:443",
            "deny     other requests: no rule allows them on api.example.com:443",
        ),
    ] {
        let (code, text) = place.run(&["policy", "host", target]);
        assert_eq!(code, 0, "{target} {text}");
        assert!(text.contains(expected), "{target}\n{text}");
    }
    let (_, text) = place.run(&["policy", "test", "curl https://api.example.com/v1/issues"]);
    assert!(text.contains("GET /v1/issues/** on api.example.com:443"), "{text}");
}

#[test]
fn a_missing_secret_is_an_error_at_startup() {
    let place = Project::new("");
    let config = place.home.path().join("toolcrib/config.toml");
    let inject = "network = \"list\"\n[[inject]]\nhost = \"api.example.com\"\nheader = \"Authorization\"\nvalue = { env = \"TOOLCRIB_NO_SUCH_VARIABLE\" }\n";
    std::fs::write(config, inject).unwrap();
    let (code, text) = place.run(&["call", "LS", "{}"]);
    assert_ne!(code, 0);
    assert!(
        text.contains(
            "inject for api.example.com: the variable TOOLCRIB_NO_SUCH_VARIABLE is not set"
        ),
        "{text}"
    );
    // Rules of a project cannot have credentials.
    let rules = place.home.path().join("toolcrib/rules.toml");
    std::fs::write(&rules, "[[inject]]\nhost = \"a.b\"\n").unwrap();
    let (_, text) = place.run(&["policy", "check", rules.to_str().unwrap()]);
    assert!(text.contains("unknown field `inject`"), "{text}");
}
