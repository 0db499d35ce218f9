//! `toolcrib doctor`: the effective configuration.

use serde_json::{Value, json};

use crate::{text, toolcrib};

#[test]
fn doctor_shows_each_setting_that_is_not_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let set = "audit = false\nallow_hidden = [\".npmrc\"]\nmonitor = true\nreply_chars = 5000\n";
    std::fs::write(directory.path().join("config.toml"), set).unwrap();
    let given = ["doctor", "--config", "config.toml", "--no-tools", "Bash"];
    let run = |format: &str| toolcrib(directory.path(), &[&given[..], &[format]].concat(), b"");
    let shown = run("--text");
    for line in [
        "audit = false",
        "allow_hidden = [\".npmrc\"]",
        "reply_chars = 5000",
        "no_tools = [\"Bash\"]",
    ] {
        let is_it = |shown: &str| shown.trim_start_matches("settings").trim() == line;
        assert!(text(&shown.stdout).lines().any(is_it), "{line}: {shown:?}");
    }
    let found: Value = serde_json::from_slice(&run("--json").stdout).unwrap();
    let expected = json!({
        "no_tools": ["Bash"], "allow_hidden": [".npmrc"], "audit": false, "reply_chars": 5000,
    });
    assert_eq!(found["settings"], expected);
}
