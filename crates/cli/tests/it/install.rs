//! `toolcrib install` and `uninstall`, in a home of their own for each client.

use std::path::Path;
use std::process::{Command, Output};

use crate::{PROGRAM, text};

/// A client, where it keeps its servers, and what a user may have there already.
const CLIENTS: [(&str, &str, &str); 8] = [
    ("claude", ".claude.json", "{\n  \"numStartups\": 7,\n  \"mcpServers\": {}\n}\n"),
    ("codex", ".codex/config.toml", "model = 'x' # mine\n"),
    ("vscode", ".config/Code/User/mcp.json", "{\n\t\"servers\": {\n\t\t\"x\": {}\n\t}\n}\n"),
    ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": { \"x\": { \"command\": \"y\" } } }"),
    ("zed", ".config/zed/settings.json", "// Zed settings\n{\n  \"vim_mode\": true, // mine\n}\n"),
    ("gemini", ".gemini/settings.json", "{\"theme\": \"dark\"}\n"),
    ("opencode", ".config/opencode/opencode.json", "{\n  \"model\": \"x\"\n}\n"),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n",
    ),
];

fn toolcrib(home: &Path, words: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(words)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env("XDG_STATE_HOME", home.join(".state"))
        .output()
        .unwrap()
}

#[test]
fn each_client_gets_an_entry_that_works_and_keeps_all_else() {
    for (client, file, before) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, before).unwrap();

        let shown = toolcrib(home.path(), &["install", client, "--print"]);
        assert!(text(&shown.stdout).contains("serve"), "{client}: {shown:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}: only shown");

        let installed = toolcrib(home.path(), &["install", client, "--", "--profile", "cautious"]);
        let said = text(&installed.stderr);
        assert!(installed.status.success(), "{client}: {said}");
        assert!(said.contains("the server answers with"), "{client}: {said}");
        let after = std::fs::read_to_string(&path).unwrap();
        for word in [PROGRAM, "serve", "cautious", "toolcrib"] {
            assert!(after.contains(word), "{client}: {word} in {after}");
        }
        let kept = before.split(['{', '}', '\n']).map(|part| part.trim().trim_end_matches(','));
        for part in kept.filter(|part| !part.is_empty()) {
            assert!(after.contains(part), "{client}: {part:?} is kept in {after}");
        }
        let doctor = toolcrib(home.path(), &["doctor", "--text"]);
        assert!(text(&doctor.stdout).contains(file), "{client}: {doctor:?}");

        let again = toolcrib(home.path(), &["install", client, "--", "--profile", "cautious"]);
        assert!(again.status.success(), "{client}: {again:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{client}: twice is once");

        assert!(toolcrib(home.path(), &["uninstall", client]).status.success());
        let taken_back = std::fs::read_to_string(&path).unwrap();
        assert!(!taken_back.contains("toolcrib"), "{client}: {taken_back}");
    }
}

#[test]
fn a_client_without_a_configuration_gets_one() {
    for (client, file, _) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let installed = toolcrib(home.path(), &["install", client]);
        assert!(installed.status.success(), "{client}: {}", text(&installed.stderr));
        assert!(std::fs::read_to_string(home.path().join(file)).unwrap().contains("serve"));
    }
}

#[test]
fn a_configuration_that_is_broken_stays_and_the_reply_says_what_to_write() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".cursor/mcp.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{ broken").unwrap();
    let refused = toolcrib(home.path(), &["install", "cursor"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("by hand, under `mcpServers`"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ broken");
}
