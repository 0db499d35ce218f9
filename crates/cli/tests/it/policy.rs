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
        ("api.example.com:443", "allow    GET /v1/issues/**: a rule allows it (rule:issues)"),
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
    assert!(text.contains("line 1: unknown key `inject`; known keys: rule"), "{text}");
}

/// The command between backticks in a message.
fn command_in(text: &str) -> String {
    let begin = text.find("run `toolcrib ").unwrap_or_else(|| panic!("{text}")) + "run `".len();
    let length = text[begin..].find('`').unwrap();
    text[begin..begin + length].to_owned()
}

impl Project {
    /// Runs a line in a shell, as if it was pasted into a terminal.
    fn paste(&self, line: &str) -> (bool, String) {
        let directory = Path::new(crate::PROGRAM).parent().unwrap();
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.workspace.path())
            .env("PATH", format!("{}:/usr/bin:/bin", directory.display()))
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .env("HOME", self.home.path())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }
}

#[test]
fn the_command_in_a_denial_allows_the_call() {
    for (tool, args) in [
        ("Read", serde_json::json!({"file_path": "a.txt"})),
        ("Write", serde_json::json!({"file_path": "it's new.txt", "content": "x"})),
        ("Bash", serde_json::json!({"command": "touch made 'two words' \"it's\""})),
        ("Bash", serde_json::json!({"command": "echo $'a\\tb' > 'out file' && touch y"})),
        ("Bash", serde_json::json!({"command": "touch '$(rm a.txt)' '`x`'"})),
    ] {
        let place = Project::new("# mine\n");
        let args = args.to_string();
        let call = ["call", tool, &args, "--profile", "cautious", "--json"];
        let (code, denied) = place.run(&call);
        assert_eq!(code, 1, "{denied}");
        let denied: serde_json::Value = serde_json::from_str(&denied).unwrap();
        let hint = denied["error"]["hint"].as_str().unwrap();
        let explain = ["policy", "explain", tool, &args, "--profile", "cautious"];
        let (_, explained) = place.run(&explain);
        assert!(explained.starts_with("ask by "), "{explained}");
        if !hint.contains("'`x`'") {
            assert_eq!(command_in(hint), command_in(&explained));
        }
        // The last backtick ends the command, which may itself contain some.
        let begin = hint.find("run `").unwrap() + "run `".len();
        let command = &hint[begin..hint.rfind('`').unwrap()];
        let (is_added, said) = place.paste(command);
        assert!(is_added && said.contains("Added to "), "{command}\n{said}");
        let (code, text) = place.run(&call);
        assert_eq!(code, 0, "{command}\n{text}");
        let (_, said) = place.paste(command);
        assert!(said.contains("has this rule already"), "{said}");
        let rules = std::fs::read_to_string(place.home.path().join("toolcrib/rules.toml")).unwrap();
        assert!(rules.starts_with("# mine\n"), "{rules}");
    }
}

#[test]
fn the_command_for_a_host_allows_it_and_says_if_the_network_is_off() {
    let place = Project::new("");
    let (_, off) = place.run(&["policy", "host", "api.example.com"]);
    assert!(off.starts_with("deny by network:none\n"), "{off}");
    assert!(off.contains("run `toolcrib config set network list`, and run `toolcrib "), "{off}");
    let (is_added, said) = place.paste(&command_in(off.split_once(", and ").unwrap().1));
    assert!(is_added && said.contains("the network is off"), "{said}");
    for (network, expected) in [
        ("none", "deny by network:none\n"),
        ("list", "allow by rule:allow-"),
        ("all", "allow by network:all\n"),
    ] {
        let words = ["policy", "host", "api.example.com:443", "--network-access", network];
        let (_, text) = place.run(&words);
        assert!(text.starts_with(expected), "{network}: {text}");
    }
    let list =
        ["policy", "host", "POST https://api.other.example/v1/x", "--network-access", "list"];
    let (_, asked) = place.run(&list);
    let (is_added, said) = place.paste(&command_in(&asked));
    assert!(is_added, "{said}");
    assert!(place.run(&list).1.starts_with("allow by rule:"), "{said}");
}

#[test]
fn rules_in_force_are_listed_with_their_places() {
    let place = Project::new(SECRETS);
    let (code, text) = place.run(&["policy", "deny", "command", "git push", "--why", "no pushing"]);
    assert_eq!(code, 0, "{text}");
    let config = place.home.path().join("toolcrib/config.toml");
    std::fs::write(config, "network = \"list\"\nnetwork_presets = [\"git-read:forge.example\"]\n")
        .unwrap();
    let (code, text) = place.run(&["policy", "list"]);
    assert_eq!(code, 0, "{text}");
    let file = place.home.path().join("toolcrib/rules.toml");
    for expected in [
        format!("deny  read **/.env  (rule:secrets, {}:2)", file.display()),
        "deny  command git push  (rule:deny-".to_owned(),
        "allow network forge.example:443, GET, /**/info/refs?service=git-upload-pack  \
         (rule:preset-git-read, network_presets in config.toml)"
            .to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
    let (_, json) = place.run(&["policy", "list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rules"][1]["patterns"][0], "git push");
    let (_, presets) = place.run(&["policy", "presets"]);
    for expected in
        ["npm       off  no hosts", "git-read:forge.example on   forge.example:443; only GET"]
    {
        assert!(presets.contains(expected), "{presets}");
    }
    let (_, denied) = place.run(&["call", "Bash", r#"{"command": "git push"}"#, "--text"]);
    assert!(denied.contains("no pushing") && denied.contains("`toolcrib policy list`"), "{denied}");
}

#[test]
fn a_rule_that_can_match_nothing_is_not_added() {
    let place = Project::new("");
    for (words, expected) in [
        (&["policy", "allow", "network", "https://a.example/"][..], "can match nothing"),
        (&["policy", "allow", "command", "ls", "--method", "GET"], "are for rules of kind network"),
        (&["policy", "allow", "commands", "ls"], "possible values"),
        (&["policy", "allow", "external_directory", "x"], "begins with `/` or `~/`"),
    ] {
        let (code, text) = place.run(words);
        assert!(code == 2 && text.contains(expected), "{text}");
    }
    let (_, dry) = place.run(&["policy", "allow", "command", "ls", "--dry-run"]);
    assert!(dry.contains("commands = [\"ls\"]") && dry.contains("Nothing was written"), "{dry}");
    let rules = std::fs::read_to_string(place.home.path().join("toolcrib/rules.toml")).unwrap();
    assert_eq!(rules, "");
}

#[test]
fn an_unknown_tool_in_a_rule_is_reported_with_its_line() {
    let rules = "# mine\n\n[[rule]]\ndecision = \"allow\"\nkind = \"read\"\ntools = [\"Raed\"]\npaths = [\"**\"]\n";
    let place = Project::new(rules);
    let (code, text) = place.run(&["call", "LS"]);
    assert!(code == 2 && text.contains("rules.toml: line 3: no tool `Raed`"), "{text}");
}

#[test]
fn a_problem_of_the_configuration_is_reported_once() {
    let place = Project::new("");
    let config = place.home.path().join("toolcrib/config.toml");
    std::fs::write(config, "\nnetwrok = \"list\"\n").unwrap();
    let (code, text) = place.run(&["doctor"]);
    assert_eq!(code, 1, "{text}");
    let expected = "config.toml: line 2: unknown key `netwrok`; did you mean `network`?";
    assert_eq!(text.matches(expected).count(), 1, "{text}");
    assert!(text.ends_with("\n1 problem, see above.\n"), "{text}");
}

#[test]
fn nothing_to_undo_is_said_without_a_terminal() {
    let place = Project::new("");
    let (code, text) = place.run(&["undo"]);
    assert!(code == 1 && text.contains("nothing to undo"), "{text}");
    let (code, text) = place.run(&["diff"]);
    assert!(code == 0 && text.starts_with("No changes are recorded here yet"), "{text}");
}

#[test]
fn the_configuration_is_changed_by_commands_and_keeps_its_comments() {
    let place = Project::new("");
    let file = place.home.path().join("toolcrib/config.toml");
    let (_, text) = place.run(&["config"]);
    assert!(text.contains("does not exist yet") && text.contains("toolcrib config keys"), "{text}");
    std::fs::write(&file, "# mine\nnetwork = \"none\"  # for now\n\n[[inject]]\n").unwrap();
    let (code, text) = place.run(&["config", "set", "network", "list"]);
    assert!(code == 2 && text.contains("Nothing was changed"), "{text}");
    std::fs::write(&file, "# mine\nnetwork = \"none\"  # for now\n").unwrap();
    for words in [
        &["config", "set", "network", "list"][..],
        &["config", "add", "network_presets", "npm", "git-read:forge.example"],
        &["config", "add", "network_presets", "npm"],
        &["config", "set", "monitor", "false"],
        &["config", "set", "expose", "8000"],
        &["config", "set", "profile", "cautious"],
        &["config", "unset", "profile"],
    ] {
        let (code, text) = place.run(words);
        assert_eq!(code, 0, "{words:?} {text}");
    }
    let (_, text) = place.run(&["config", "add", "network_presets", "npm", "--dry-run"]);
    assert!(text.contains("warning: npm: no hosts"), "{text}");
    let expected = "# mine\nnetwork = \"list\"  # for now\nnetwork_presets = [\"npm\", \"git-read:forge.example\"]\nmonitor = false\nexpose = [8000]\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    for (words, expected) in [
        (
            &["config", "set", "netwrok", "list"][..],
            "unknown key `netwrok`; did you mean `network`?",
        ),
        (
            &["config", "set", "network", "some"],
            "error: network must be none, list or all, not \"some\"",
        ),
        (&["config", "set", "journal_days", "0"], "error: journal_days = 0 is too small"),
        (&["config", "set", "monitor", "maybe"], "monitor is true or false, not `maybe`"),
        (&["config", "set", "network", "a", "b"], "network has one value"),
        (&["config", "add", "network", "a"], "network is not a list"),
        (&["config", "set", "inject", "a"], "inject has tables"),
    ] {
        let (code, text) = place.run(words);
        assert!(code == 2 && text.contains(expected), "{words:?} {text}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    let (_, text) = place.run(&["config", "set", "network", "list"]);
    assert!(text.contains("network = \"list\" already; nothing was changed"), "{text}");
    let (_, text) = place.run(&["config", "keys"]);
    assert!(text.contains("network_presets [default: []]") && !text.contains("]("), "{text}");
}

#[test]
fn an_exception_for_no_protected_name_is_reported() {
    let place = Project::new("");
    let (_, text) = place.run(&["config", "add", "allow_protected", ".envrc", ".vscode"]);
    assert!(!text.contains("warning"), "{text}");
    let (code, text) = place.run(&["config", "add", "allow_protected", "src/main.rs"]);
    assert!(code == 0 && text.contains("warning: `src/main.rs` is not a protected name"), "{text}");
    let (_, text) = place.run(&["config", "remove", "allow_protected", ".envrc"]);
    assert!(text.contains("allow_protected = [\".vscode\", \"src/main.rs\"]"), "{text}");
}

#[test]
fn a_protected_name_of_the_operator_has_its_own_reason() {
    let place = Project::new("");
    place.run(&["config", "add", "protect", "notes.md"]);
    for (path, reason) in [
        ("notes.md", "the setting `protect` names it"),
        (".envrc", "writing it can make programs run code"),
    ] {
        let args = format!(r#"{{"file_path": "{path}", "content": "x"}}"#);
        let (_, written) = place.run(&["call", "Write", &args, "--text"]);
        assert!(written.contains(&format!("{path} is protected: {reason}")), "{written}");
        let command = format!("echo x > {path}");
        let (_, explained) = place.run(&["policy", "explain", "Bash", &command]);
        assert!(explained.contains(&format!("{path} is protected: {reason}")), "{explained}");
    }
}

#[test]
fn a_command_is_explained_without_json() {
    let place = Project::new("");
    let (code, text) = place.run(&["policy", "explain", "Bash", "git push"]);
    assert!(code == 0 && text.contains("runs     git push\n"), "{text}");
    for (tool, args, example) in [
        ("Read", "a.txt", r#"{"file_path":"a.txt"}"#),
        ("Read", "file_path=a.txt", r#"{"file_path":"a.txt"}"#),
        ("Bash", "{\"command\": ", r#"{"command":"…"}"#),
    ] {
        let (code, text) = place.run(&["policy", "explain", tool, args]);
        let hint = format!("hint: The arguments are a JSON object, such as '{example}'.");
        assert!(code == 1 && text.contains(&hint), "{text}");
    }
}

#[test]
fn the_command_in_a_refused_write_allows_it() {
    let place = Project::new("");
    let write = ["call", "Write", r#"{"file_path": ".envrc", "content": "x"}"#, "--text"];
    let (code, text) = place.run(&write);
    assert_eq!(code, 1, "{text}");
    let begin = text.find("`toolcrib config add").unwrap() + 1;
    let command = &text[begin..begin + text[begin..].find('`').unwrap()];
    let (is_set, said) = place.paste(command);
    assert!(is_set, "{command}\n{said}");
    let (code, text) = place.run(&write);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_rule_is_removed_by_number_name_or_words() {
    let place = Project::new(SECRETS);
    let file = place.home.path().join("toolcrib/rules.toml");
    let rules = || std::fs::read_to_string(&file).unwrap();
    for pattern in ["npm test **", "make", "cargo check"] {
        assert_eq!(place.run(&["policy", "allow", "command", pattern]).0, 0);
    }
    let before = rules();
    let (code, said) = place.run(&["policy", "remove", "2", "--dry-run"]);
    assert!(code == 0 && said.contains("npm test **") && said.contains("Nothing was"), "{said}");
    assert_eq!(rules(), before);
    for (words, gone) in [
        (&["2"][..], "npm test **"),
        (&["allow", "command", "make"], "\"make\""),
        (&["secrets"], "**/.env"),
        (&["allow command cargo check"], "cargo check"),
    ] {
        let (code, said) = place.run(&[&["policy", "remove"], words].concat());
        assert!(code == 0 && said.contains(gone) && said.contains("Removed from"), "{said}");
        assert!(!rules().contains(gone), "{}", rules());
        assert_eq!(place.run(&["policy", "list"]).0, 0);
    }
    for decision in ["allow", "deny"] {
        assert_eq!(place.run(&["policy", decision, "command", "git push"]).0, 0);
    }
    std::fs::write(
        place.home.path().join("toolcrib/config.toml"),
        "network = \"list\"\nnetwork_presets = [\"git-read:forge.example\"]\n",
    )
    .unwrap();
    for (words, expected) in [
        (&["99"][..], "there is no rule 99"),
        (&["allow", "command", "ls"], "no rule is `allow command ls`"),
        (&["git push"], "several rules are `git push`; give the number: 1 or 2"),
        (&["3"], "toolcrib config remove network_presets"),
    ] {
        let (code, said) = place.run(&[&["policy", "remove"], words].concat());
        assert!(code == 2 && said.contains(expected), "{said}");
    }
}

#[test]
fn errors_of_a_removal_name_the_rules_file() {
    let place = Project::new("");
    let file = place.home.path().join("other rules.toml");
    let given = ["--rules", file.to_str().unwrap()];
    std::fs::write(&file, "").unwrap();
    for rule in ["7", "command ls"] {
        let (code, said) = place.run(&[&["policy", "remove", rule], &given[..]].concat());
        let list = format!("`toolcrib policy list --rules '{}'`", file.display());
        assert!(code == 2 && said.contains(&list), "{said}");
    }
    std::fs::write(&file, "[[rule]\n").unwrap();
    let (code, said) = place.run(&[&["policy", "remove", "1"], &given[..]].concat());
    assert!(code == 2 && said.contains(&format!("{}: ", file.display())), "{said}");
}

#[test]
fn an_addition_says_if_the_rule_exists_and_what_it_matches() {
    let place = Project::new("");
    let add = ["policy", "allow", "command", "git push"];
    let (_, said) = place.run(&add);
    assert!(said.contains("'git push **' also allows more arguments"), "{said}");
    let (_, said) = place.run(&[&add[..], &["--dry-run"]].concat());
    assert!(said.contains("has this rule already") && !said.contains("would be"), "{said}");
    for words in [["policy", "allow", "command", "make **"], ["policy", "deny", "command", "ls"]] {
        let (_, said) = place.run(&words);
        assert!(!said.contains("also allows"), "{said}");
    }
}

#[test]
fn an_addition_says_if_another_rule_decides_anyway() {
    let place = Project::new(
        "[[rule]]\nname = \"no-push\"\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\"git push\"]\n",
    );
    for (words, expected) in [
        (
            &["allow", "command", "git push origin **"][..],
            "warning: it has no effect on `git push origin **`: rule:no-push (",
        ),
        (
            &["ask", "command", "git push"],
            "rules.toml:1) denies it, and the strictest rule wins; to remove that rule: toolcrib policy remove 1\n",
        ),
        (&["deny", "command", "git push --force"], "note: rule:no-push ("),
        (&["deny", "command", "git push -f"], ":1) denies it already: `git push -f`\n"),
    ] {
        let (code, said) = place.run(&[&["policy", "--dry-run"], words].concat());
        assert!(code == 0 && said.contains(expected), "{words:?}: {said}");
    }
    for words in
        [["allow", "command", "git **"], ["allow", "read", "**"], ["deny", "command", "rm"]]
    {
        let (_, said) = place.run(&[&["policy", "--dry-run"], &words[..]].concat());
        assert!(!said.contains("no-push"), "{words:?}: {said}");
    }
    let (_, said) = place.run(&["policy", "allow", "command", "git push", "--json"]);
    assert!(said.contains(r#""covered_by":["rule:no-push"]"#), "{said}");
    // In a file that does not exist yet.
    let file = place.home.path().join("new.toml");
    let (code, said) =
        place.run(&["policy", "allow", "command", "ls", "--rules", file.to_str().unwrap()]);
    assert!(code == 0 && file.exists(), "{said}");
    assert!(
        said.contains("Running servers apply it at the first call at least one second"),
        "{said}"
    );
}

#[test]
fn a_printed_command_names_the_given_rules_file() {
    let place = Project::new("");
    let rules = place.home.path().join("my rules.toml");
    std::fs::write(&rules, "").unwrap();
    let rules = rules.to_str().unwrap();
    let call = r#"{"command": "touch made"}"#;
    let given = ["--profile", "cautious", "--rules", rules];
    let (_, explained) = place.run(&[&["policy", "explain", "Bash", call], &given[..]].concat());
    let (_, denied) = place.run(&[&["call", "Bash", call, "--text"], &given[..]].concat());
    for text in [&explained, &denied] {
        assert!(command_in(text).contains(&format!("--rules '{rules}'")), "{text}");
    }
    let (is_added, said) = place.paste(&command_in(&explained));
    assert!(is_added && said.contains("my rules.toml"), "{said}");
    assert_eq!(place.run(&[&["call", "Bash", call], &given[..]].concat()).0, 0);
}

#[test]
fn one_setting_is_shown_and_values_are_removed_from_lists() {
    let place = Project::new("");
    let file = place.home.path().join("toolcrib/config.toml");
    let text = "# mine\nnetwork = \"list\"  # on\nnetwork_presets = [\"npm\", \"pip\"] # two\nexpose = [1, 2]\n";
    std::fs::write(&file, text).unwrap();
    for (key, expected) in [
        ("network", "network = \"list\"\n"),
        ("expose", "expose = [1, 2]\n"),
        ("monitor", "monitor = true\n(the default)"),
        ("project_rules", "project_rules is not set"),
    ] {
        for word in ["show", "get"] {
            let (code, said) = place.run(&["config", word, key]);
            assert!(code == 0 && said.starts_with(expected), "{said}");
        }
    }
    let (code, said) = place.run(&["config", "remove", "network_presets", "npm", "--dry-run"]);
    assert!(code == 0 && said.contains("Nothing was written"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let (code, said) = place.run(&["config", "remove", "network_presets", "npm", "nope"]);
    assert!(code == 2 && said.contains("does not have `nope`; it is [\"npm\", \"pip\"]"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert_eq!(place.run(&["config", "remove", "network_presets", "npm"]).0, 0);
    assert_eq!(place.run(&["config", "remove", "expose", "1", "2"]).0, 0);
    let now = std::fs::read_to_string(&file).unwrap();
    assert!(now.starts_with("# mine\nnetwork = \"list\"  # on\n"), "{now}");
    assert!(now.contains("\"pip\"] # two\n") && !now.contains("npm"), "{now}");
    for (words, expected) in [
        (&["config", "show", "netwrok"][..], "did you mean `network`?"),
        (&["config", "remove", "network_presets", "npm"], "does not have `npm`"),
        (&["config", "remove", "network", "list"], "is not a list"),
        (&["config", "remove", "protect", "x"], "protect is not set"),
    ] {
        let (code, said) = place.run(words);
        assert!(code == 2 && said.contains(expected), "{said}");
    }
}
