//! `toolcrib install` and `uninstall` for each client, each in a new home directory.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{PROGRAM, text};

/// A client, the path of its configuration, and the existing content.
const CLIENTS: [(&str, &str, &str); 8] = [
    ("claude", ".claude.json", "{\n  \"numStartups\": 7,\n  \"mcpServers\": {}\n}\n"),
    ("codex", ".codex/config.toml", "model = 'x' # mine\nsandbox_mode = \"workspace-write\""),
    ("vscode", ".config/Code/User/mcp.json", "{\n\t\"servers\": {\n\t\t\"x\": {}\n\t}\n}\n"),
    ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": { \"x\": { \"command\": \"y\" } } }"),
    ("zed", ".config/zed/settings.json", "// Zed settings\n{\n  \"vim_mode\": true, // mine\n}\n"),
    ("gemini", ".gemini/settings.json", "{\"theme\": \"dark\"}\n"),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n  \"model\": \"x\",\n  \"permission\": {\n    \"bash\": {\n      \"git *\": \"allow\"\n    }\n  }\n}\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n",
    ),
];

/// The clients with settings that disable their own tools, and the path of these settings if it differs.
const EXCLUSIVE: [(&str, &str, &str); 6] = [
    ("claude", ".claude/settings.json", "claude-code.md"),
    ("codex", ".codex/config.toml", "codex.md"),
    ("gemini", ".gemini/policies/toolcrib.toml", "gemini-cli.md"),
    ("opencode", ".config/opencode/opencode.json", "opencode.md"),
    ("zed", ".config/zed/settings.json", "zed.md"),
    ("goose", ".config/goose/config.yaml", "goose.md"),
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

/// The stdout of a command that must succeed.
fn answer(home: &Path, words: &[&str]) -> String {
    let done = toolcrib(home, words);
    assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
    text(&done.stdout).to_owned()
}

fn put(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn each_client_gets_a_working_entry_and_keeps_other_settings() {
    for (client, file, before) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        put(&path, before);

        let shown = answer(home.path(), &["install", client, "--print"]);
        assert!(shown.contains("serve"), "{client}: {shown}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}: only shown");

        let words = ["install", client, "--profile", "cautious"];
        let said = answer(home.path(), &words);
        assert!(said.contains("The server answers with"), "{client}: {said}");
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

        let again = answer(home.path(), &words);
        assert!(again.starts_with("Already installed; nothing was changed."), "{client}: {again}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{client}: installed twice");

        answer(home.path(), &["uninstall", client]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}: to the byte");
        let nothing = answer(home.path(), &["uninstall", client]);
        assert!(nothing.contains("nothing was changed"), "{client}: {nothing}");
    }
}

/// Clients change their files themselves: Claude Code counts its starts.
#[test]
fn a_file_that_was_changed_since_keeps_these_changes_and_loses_ours() {
    for (client, file, before) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        put(&path, before);
        answer(home.path(), &["install", client]);
        answer(home.path(), &["install", client, "--profile", "cautious"]);
        // Comments before the first line and after the last one are allowed in each format.
        let (comment, text) = match file.rsplit('.').next() {
            Some("json") => ("// mine\n", std::fs::read_to_string(&path).unwrap()),
            _ => ("# mine\n", std::fs::read_to_string(&path).unwrap()),
        };
        std::fs::write(&path, format!("{comment}{text}")).unwrap();
        answer(home.path(), &["uninstall", client]);
        let removed = std::fs::read_to_string(&path).unwrap();
        assert_eq!(removed, format!("{comment}{before}"), "{client}");
    }
}

/// Claude Code, Codex and Gemini CLI would ask before each tool.
#[test]
fn our_tools_are_approved_unless_the_profile_is_open_or_the_client_shall_ask() {
    for (client, file, setting) in [
        ("claude", ".claude/settings.json", "mcp__toolcrib"),
        ("codex", ".codex/config.toml", "default_tools_approval_mode = \"approve\""),
        ("gemini", ".gemini/settings.json", "\"trust\": true"),
    ] {
        for (flags, is_approved) in [
            (&[][..], true),
            (&["--profile", "cautious"], true),
            (&["--ask"], false),
            (&["--profile", "open"], false),
            (&["--", "--profile=open"], false),
        ] {
            let home = tempfile::tempdir().unwrap();
            let said = answer(home.path(), &[&["install", client][..], flags].concat());
            let written = std::fs::read_to_string(home.path().join(file)).unwrap_or_default();
            assert_eq!(written.contains(setting), is_approved, "{client} {flags:?}: {written}");
            let told = if is_approved { "does not ask before" } else { "asks before each tool" };
            assert!(said.contains(told), "{client} {flags:?}: {said}");
            answer(home.path(), &["uninstall", client]);
            assert!(!home.path().join(file).exists(), "{client}: the file is removed");
        }
        let home = tempfile::tempdir().unwrap();
        put(&home.path().join(".config/toolcrib/config.toml"), "profile = \"open\"\n");
        answer(home.path(), &["install", client]);
        let written = std::fs::read_to_string(home.path().join(file)).unwrap_or_default();
        assert!(!written.contains(setting), "{client}: {written}");
    }
}

/// The files of a home directory with their content, without those of Toolcrib.
fn files(home: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut open) = (Vec::new(), vec![home.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.ends_with(".state") {
                continue;
            } else if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry.strip_prefix(home).unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_second_installation_withdraws_the_approval_of_the_first() {
    for (client, file, before) in CLIENTS {
        for flags in [&["--ask"][..], &["--profile", "open"], &["--exclusive", "--ask"]] {
            if flags.contains(&"--exclusive") && matches!(client, "vscode" | "cursor") {
                continue;
            }
            for before in [None, Some(before)] {
                let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
                let [twice, once] = homes.each_ref().map(tempfile::TempDir::path);
                for home in [twice, once] {
                    before.iter().for_each(|before| put(&home.join(file), before));
                }
                answer(twice, &["install", client]);
                let words = [&["install", client][..], flags].concat();
                let said = answer(twice, &words);
                assert!(!said.contains("does not ask"), "{client} {flags:?}: {said}");
                answer(once, &words);
                assert_eq!(files(twice), files(once), "{client} {flags:?} {before:?}");
                answer(twice, &["uninstall", client]);
                let rest = before.map(|before| (PathBuf::from(file), before.to_owned()));
                assert_eq!(files(twice), Vec::from_iter(rest), "{client} {flags:?}");
            }
        }
    }
}

#[test]
fn an_approval_by_the_user_is_named_and_stays() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join(".claude/settings.json");
    let mine = "{\"permissions\": {\"allow\": [\"mcp__toolcrib\"]}}\n";
    put(&settings, mine);
    answer(home.path(), &["install", "claude"]);
    let said = answer(home.path(), &["install", "claude", "--ask"]);
    assert!(said.contains("because of `permissions.allow` in"), "{said}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), mine);
    // A value that was changed since is no longer that of `install`.
    answer(home.path(), &["install", "codex"]);
    let file = home.path().join(".codex/config.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"approve\"", "\"writes\"");
    std::fs::write(&file, &text).unwrap();
    let said = answer(home.path(), &["install", "codex"]);
    assert!(said.contains("Codex asks before each tool"), "{said}");
    answer(home.path(), &["install", "codex", "--ask"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_snippet_for_codex_works_at_the_place_that_is_named() {
    let home = tempfile::tempdir().unwrap();
    let said = answer(home.path(), &["install", "codex"]);
    assert!(said.contains("add this, at the top, before the first table, to"), "{said}");
    let (_, snippet) = said.split_once("config.toml:\n\n").unwrap();
    let (snippet, _) = snippet.split_once("More: ").unwrap();
    let file = home.path().join(".codex/config.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{snippet}{written}")).unwrap();
    let said = answer(home.path(), &["install", "codex"]);
    assert!(said.contains("are disabled in"), "{said}");
}

/// An entry of our name that starts something else, for each format.
const FOREIGN: [(&str, &str, &str); 4] = [
    (
        "claude",
        ".claude.json",
        "{\n  \"mcpServers\": {\n    \"toolcrib\": {\n      \"command\": \"docker\",\n      \"args\": [\"run\", \"mytool\"],\n      \"env\": {\"A\": \"b\"}\n    }\n  }\n}\n",
    ),
    ("codex", ".codex/config.toml", "[mcp_servers.toolcrib] # mine\ncommand = \"docker\"\n"),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\"mcp\": {\"toolcrib\": {\"command\": [\"docker\"]}}}",
    ),
    ("goose", ".config/goose/config.yaml", "extensions:\n  toolcrib:\n    cmd: docker\n"),
];

#[test]
fn an_entry_that_starts_something_else_is_named_and_restored() {
    for (client, file, before) in FOREIGN {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        put(&path, before);
        let said = answer(home.path(), &["uninstall", client]);
        assert!(said.contains("starts something else; nothing was changed"), "{client}: {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}");
        let installed = toolcrib(home.path(), &["install", client]);
        let warned = text(&installed.stderr);
        assert!(installed.status.success() && warned.contains("starts `docker`"), "{warned}");
        assert!(warned.contains(&format!("`toolcrib uninstall {client}` restores it")), "{warned}");
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.contains("serve") && !written.contains("docker"), "{client}: {written}");
        assert!(!written.contains("env"), "{client}: {written}");
        let again = toolcrib(home.path(), &["install", client, "--profile", "cautious"]);
        assert!(!text(&again.stderr).contains("docker"), "{client}: {again:?}");
        let said = answer(home.path(), &["uninstall", client]);
        assert!(said.contains("has the entry that starts something else"), "{client}: {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}: to the byte");
    }
}

#[test]
fn an_entry_that_the_user_put_in_place_of_ours_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".cursor/mcp.json");
    answer(home.path(), &["install", "cursor"]);
    let theirs = "{\"mcpServers\": {\"toolcrib\": {\"url\": \"http://localhost/mcp\"}}}\n";
    put(&path, theirs);
    let installed = toolcrib(home.path(), &["install", "cursor"]);
    assert!(text(&installed.stderr).contains("starts another server"), "{installed:?}");
    assert!(!std::fs::read_to_string(&path).unwrap().contains("url"));
    answer(home.path(), &["uninstall", "cursor"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("http://localhost/mcp"));
    answer(home.path(), &["uninstall", "cursor"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("http://localhost/mcp"));
}

/// The command in backquotes that ends with these words.
fn hint<'a>(said: &'a str, end: &str) -> &'a str {
    said.split('`')
        .find(|part| part.starts_with("toolcrib install") && part.ends_with(end))
        .expect(said)
}

/// Pasted into a shell, in any directory, a hint changes nothing else.
#[test]
fn hints_repeat_the_flags_of_the_user() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("my dir/$x")).unwrap();
    let flags = "--profile read-only --root 'my dir' --root 'my dir/$x:ro' --tools Read,LS";
    let command = format!("toolcrib install claude {flags} -- --dialect camel");
    let run = |line: &str, directory: &Path| {
        let line = line.replacen("toolcrib", "\"$PROGRAM\"", 1);
        let done = Command::new("/bin/sh")
            .args(["-c", &line])
            .current_dir(directory)
            .env_clear()
            .env("PROGRAM", PROGRAM)
            .env("HOME", home.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{line}: {}", text(&done.stderr));
        let written = std::fs::read_to_string(home.path().join(".claude.json")).unwrap();
        let entry: serde_json::Value = serde_json::from_str(&written).unwrap();
        (text(&done.stdout).to_owned(), entry["mcpServers"]["toolcrib"]["args"].clone())
    };
    let (said, args) = run(&command, home.path());
    let asking = hint(&said, "--ask -- --dialect camel").to_owned();
    let (said, again) = run(hint(&said, "--exclusive -- --dialect camel"), Path::new("/"));
    assert_eq!(args, again);
    assert!(said.contains("are disabled in"), "{said}");
    assert!(said.contains("--exclusive --ask -- --dialect camel`"), "{said}");
    let (said, again) = run(&asking, Path::new("/"));
    assert_eq!(args, again);
    assert!(said.contains("asks before each tool"), "{said}");
}

#[test]
fn a_client_without_a_configuration_gets_one_and_a_warning() {
    for (client, file, _) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let shown = answer(home.path(), &["install", client, "--print"]);
        assert!(shown.contains("serve") && shown.contains("Nothing was written."), "{shown}");
        let is_made = |name: &str| home.path().join(name).exists();
        assert!(!is_made(file) && !is_made(".state"), "{client}: --print writes nothing");
        let installed = toolcrib(home.path(), &["install", client]);
        let (said, warned) = (text(&installed.stdout), text(&installed.stderr));
        assert!(installed.status.success(), "{client}: {warned}");
        assert!(warned.contains("was not found on this machine"), "{client}: {said} {warned}");
        assert!(std::fs::read_to_string(home.path().join(file)).unwrap().contains("serve"));
        answer(home.path(), &["uninstall", client]);
        assert!(!is_made(file), "{client}: a file that install made is removed");
    }
}

#[test]
fn an_installed_client_causes_no_warning() {
    let home = tempfile::tempdir().unwrap();
    put(&home.path().join("bin/claude"), "");
    let installed = Command::new(PROGRAM)
        .args(["install", "claude"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", home.path().join("bin"))
        .output()
        .unwrap();
    assert!(installed.status.success() && !text(&installed.stderr).contains("was not found"));
}

#[test]
fn flags_are_passed_to_the_server_with_absolute_paths() {
    let home = tempfile::tempdir().unwrap();
    let top = home.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("ws/sub")).unwrap();
    put(&top.join("cfg/config.toml"), "");
    put(&top.join("cfg/rules.toml"), "");
    let flags = [
        "--root",
        "ws",
        "--root=ws/sub:ro",
        "--profile",
        "read-only",
        "--outside",
        "ask",
        "--network-access",
        "list",
        "--tools",
        "Read,Grep,Bash",
        "--no-tools",
        "Bash",
        "--config",
        "cfg/config.toml",
        "--rules",
        "cfg/rules.toml",
        "--state",
        "st",
        "--",
        "--dialect",
        "camel",
    ];
    answer(&top, &[&["install", "claude"][..], &flags].concat());
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(top.join(".claude.json")).unwrap()).unwrap();
    let path = |name: &str| top.join(name).to_str().unwrap().to_owned();
    let expected = [
        "serve".to_owned(),
        "--root".to_owned(),
        path("ws"),
        "--root".to_owned(),
        path("ws/sub") + ":ro",
        "--profile".to_owned(),
        "read-only".to_owned(),
        "--outside".to_owned(),
        "ask".to_owned(),
        "--network-access".to_owned(),
        "list".to_owned(),
        "--tools".to_owned(),
        "Read,Grep,Bash".to_owned(),
        "--no-tools".to_owned(),
        "Bash".to_owned(),
        "--config".to_owned(),
        path("cfg/config.toml"),
        "--rules".to_owned(),
        path("cfg/rules.toml"),
        "--state".to_owned(),
        path("st"),
        "--dialect".to_owned(),
        "camel".to_owned(),
    ];
    assert_eq!(written["mcpServers"]["toolcrib"]["args"], serde_json::json!(expected));
    let shown = answer(&top, &["install", "claude", "--outer", "gvisor", "--print"]);
    assert!(shown.contains("\"--outer\"") && shown.contains("\"gvisor\""), "{shown}");
    #[cfg(feature = "postgres")]
    for (store, expected) in
        [("db", path("db")), ("postgres://a@b/c", "postgres://a@b/c".to_owned())]
    {
        let shown = answer(&top, &["install", "claude", "--print", "--", "--store", store]);
        assert!(shown.contains(&format!("\"{expected}\"")), "{shown}");
    }
    // A client with a variable for its project gets no other root.
    let shown = answer(&top, &["install", "cursor", "--root", "ws", "--print"]);
    assert!(shown.contains(&path("ws")) && !shown.contains("workspaceFolder"), "{shown}");
    let shown = answer(&top, &["install", "cursor", "--print"]);
    assert!(shown.contains("${workspaceFolder}"), "{shown}");
}

#[test]
fn fields_that_the_user_added_to_the_entry_stay() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".codex/config.toml");
    answer(home.path(), &["install", "codex"]);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text = text.replace("approval_mode = \"approve\"", "approval_mode = \"prompt\"");
    text.push_str("tool_timeout_sec = 600\n");
    std::fs::write(&file, text).unwrap();
    answer(home.path(), &["install", "codex", "--profile", "cautious"]);
    let text = std::fs::read_to_string(&file).unwrap();
    for kept in ["approval_mode = \"prompt\"", "tool_timeout_sec = 600", "cautious"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn a_symlinked_settings_file_is_changed_at_its_target() {
    let home = tempfile::tempdir().unwrap();
    let (link, real) = (home.path().join(".claude.json"), home.path().join("dotfiles/claude.json"));
    put(&real, "{}\n");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    answer(home.path(), &["install", "claude"]);
    assert!(link.is_symlink() && std::fs::read_to_string(&real).unwrap().contains("serve"));
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let shown = answer(home.path(), &["install", "claude", "--exclusive", "--dry-run"]);
    assert!(shown.contains("mcpServers") && shown.contains("\"Bash\""), "{shown}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    answer(home.path(), &["install", "claude"]);
    let before = std::fs::read(home.path().join(".claude.json")).unwrap();
    answer(home.path(), &["uninstall", "claude", "--dry-run"]);
    assert_eq!(std::fs::read(home.path().join(".claude.json")).unwrap(), before);
}

#[test]
fn a_server_that_does_not_answer_is_not_installed_and_its_messages_are_shown() {
    let home = tempfile::tempdir().unwrap();
    for (flags, message) in
        [(["--root", "missing"], "missing"), (["--rules", "no-rules.toml"], "no-rules.toml")]
    {
        let words = [&["install", "claude"][..], &flags].concat();
        let refused = toolcrib(home.path(), &words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("did not answer: it ended with exit status: "), "{said}");
        assert!(said.contains(message), "{said}");
        assert!(said.contains("Nothing was written."), "{said}");
        assert!(!home.path().join(".claude.json").exists(), "{said}");
    }
}

#[test]
fn flags_that_the_server_does_not_accept_are_refused_also_with_print() {
    let home = tempfile::tempdir().unwrap();
    for (flags, message) in [
        (&["--tools", "Reed"][..], "Reed"),
        (&["--", "--dialect", "nope"], "unknown dialect `nope`"),
        (&["--", "--tools", "Reed"], "Reed"),
        (&["--", "--nope"], "unexpected argument '--nope'"),
        (&["--", "--help"], "leave out --help"),
    ] {
        for print in [&[][..], &["--print"]] {
            let refused =
                toolcrib(home.path(), &[&["install", "claude"][..], print, flags].concat());
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{flags:?}: {said}");
            assert!(said.contains(message), "{flags:?}: {said}");
        }
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn paths_after_the_dashes_become_absolute() {
    let home = tempfile::tempdir().unwrap();
    let top = home.path().canonicalize().unwrap();
    let path = |name: &str| top.join(name).display().to_string();
    let flags = ["--root", "r2:ro", "--root=r3", "--state=s", "--dialect", "camel"];
    let shown = answer(&top, &[&["install", "claude", "--print", "--"][..], &flags].concat());
    for word in [path("r2:ro"), format!("--root={}", path("r3")), format!("--state={}", path("s"))]
    {
        assert!(shown.contains(&format!("\"{word}\"")), "{word}: {shown}");
    }
}

#[test]
fn the_warning_about_a_wide_root_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    for (flags, warning) in [
        (&["--root", path][..], "is a home directory"),
        (&["--root", "/"], "is the whole file system"),
        (&["--", "--root=/"], "is the whole file system"),
    ] {
        let words = [&["install", "claude", "--print"][..], flags].concat();
        let warned = toolcrib(home.path(), &words);
        assert!(text(&warned.stderr).contains(warning), "{flags:?}: {}", text(&warned.stderr));
    }
}

#[test]
fn a_byte_order_mark_stays() {
    for (client, file, before) in CLIENTS {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        let before = format!("\u{feff}{before}");
        put(&path, &before);
        answer(home.path(), &["install", client]);
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.starts_with('\u{feff}') && after.contains("serve"), "{client}: {after}");
        assert_eq!(after.matches('\u{feff}').count(), 1, "{client}: {after}");
        assert!(answer(home.path(), &["install", client]).starts_with("Already installed"));
        answer(home.path(), &["uninstall", client]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}: to the byte");
    }
}

#[test]
fn a_missing_client_and_an_empty_root_have_clear_messages() {
    let home = tempfile::tempdir().unwrap();
    for command in ["install", "uninstall"] {
        let refused = toolcrib(home.path(), &[command]);
        let said = text(&refused.stderr);
        assert!(said.contains("the clients are claude, codex, vscode, "), "{said}");
    }
    for (flags, message) in [
        (&["--root", ""][..], "the directory is missing"),
        (&["--root", ":ro"], "the directory is missing"),
        (&["--", "--root", ""], "a path among the flags is empty"),
    ] {
        let refused = toolcrib(home.path(), &[&["install", "claude"][..], flags].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{flags:?}: {said}");
    }
}

#[test]
fn a_broken_configuration_is_unchanged_and_the_snippet_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".cursor/mcp.json");
    put(&path, "{ broken");
    let refused = toolcrib(home.path(), &["install", "cursor"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("by hand:\n{") && said.contains("mcpServers"), "{said}");
    assert!(said.contains("Nothing was written. Repair the file"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ broken");
}

/// A file that cannot be parsed seems to have no entry.
#[test]
fn uninstall_changes_nothing_if_one_of_the_files_is_broken() {
    for (client, file) in [
        ("claude", ".claude.json"),
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/config.toml"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("goose", ".config/goose/config.yaml"),
    ] {
        let home = tempfile::tempdir().unwrap();
        answer(home.path(), &["install", client]);
        let path = home.path().join(file);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}\t}} broken\n")).unwrap();
        let before = files(home.path());
        for flags in [&["--print"][..], &[]] {
            let refused = toolcrib(home.path(), &[&["uninstall", client][..], flags].concat());
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{client}, {file}: {said}");
            assert!(said.contains(&format!("{}: ", path.display())), "{said}");
            assert!(said.contains("Nothing was changed."), "{said}");
            assert_eq!(files(home.path()), before, "{client}, {file}");
        }
        std::fs::write(&path, whole).unwrap();
        let said = answer(home.path(), &["uninstall", client]);
        assert!(said.contains("toolcrib is removed"), "{said}");
        assert!(!path.exists(), "{client}: {file}");
    }
}

#[test]
fn exclusive_switches_off_own_tools_and_uninstall_reverts_it() {
    for (client, settings, _) in EXCLUSIVE {
        let home = tempfile::tempdir().unwrap();
        let (_, file, before) = CLIENTS.into_iter().find(|(name, ..)| *name == client).unwrap();
        put(&home.path().join(file), before);
        let mine = "{\n  \"permissions\": {\n    \"deny\": [\n      \"Bash\",\n      \"WebFetch\"\n    ]\n  }\n}\n";
        if client == "claude" {
            put(&home.path().join(settings), mine);
        }
        let said = answer(home.path(), &["install", client, "--exclusive"]);
        assert!(said.contains("are disabled in"), "{client}: {said}");
        let path = home.path().join(settings);
        let after = std::fs::read_to_string(&path).unwrap();
        let off = match client {
            "claude" => "\"Write\"",
            "codex" => "[features]\nshell_tool = false\nview_image = false\n",
            "gemini" => "decision = \"deny\"",
            "opencode" => "\"bash\": \"deny\"",
            "zed" => "\"default_profile\": \"toolcrib\"",
            _ => "developer:\n    enabled: false",
        };
        assert!(after.contains(off), "{client}: {after}");
        for words in [&["install", client, "--exclusive"][..], &["install", client]] {
            let again = answer(home.path(), words);
            assert!(again.starts_with("Already installed"), "{client}: {again}");
            assert!(again.contains("are disabled in"), "{client}: {again}");
        }
        // The user's own items stay in the list.
        answer(home.path(), &["uninstall", client]);
        let entry = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert_eq!(entry, before, "{client}: to the byte");
        match client {
            "claude" => assert_eq!(std::fs::read_to_string(&path).unwrap(), mine),
            "gemini" => assert!(!path.exists()),
            _ => {}
        }
    }
}

#[test]
fn own_tools_that_are_not_disabled_are_named() {
    for (client, written, edited, missing) in [
        ("claude", "\"Bash\",", "", "the setting for `Bash`."),
        ("codex", "shell_tool = false", "", "the setting for `features.shell_tool`."),
        ("opencode", "\"read\": \"deny\"", "\"read\": \"allow\"", "for `permission.read`."),
    ] {
        let home = tempfile::tempdir().unwrap();
        answer(home.path(), &["install", client, "--exclusive"]);
        let (_, file, _) = EXCLUSIVE.into_iter().find(|(name, ..)| *name == client).unwrap();
        let path = home.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(written), "{text}");
        std::fs::write(&path, text.replace(written, edited)).unwrap();
        let said = answer(home.path(), &["install", client]);
        assert!(said.contains("keeps some of its own") && said.contains(missing), "{said}");
    }
}

/// opencode reads both files. The settings of the second override those of the first.
#[test]
fn opencode_is_changed_in_the_file_that_wins() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join(".config/opencode");
    let [json, jsonc] = ["opencode.json", "opencode.jsonc"].map(|name| directory.join(name));
    put(&json, "{\"model\": \"x\"}\n");
    answer(home.path(), &["install", "opencode"]);
    let earlier = std::fs::read_to_string(&json).unwrap();
    let mine = "{\n  // mine\n  \"permission\": {\n    \"bash\": \"allow\",\n  },\n}\n";
    put(&jsonc, mine);
    let said = answer(home.path(), &["install", "opencode", "--exclusive"]);
    let file = jsonc.display();
    assert!(said.contains(&format!("disabled in {file}")), "{said}");
    let written = std::fs::read_to_string(&jsonc).unwrap();
    for part in ["// mine", "\"bash\": \"deny\"", "serve"] {
        assert!(written.contains(part), "{written}");
    }
    assert_eq!(std::fs::read_to_string(&json).unwrap(), earlier);
    answer(home.path(), &["uninstall", "opencode"]);
    assert_eq!(std::fs::read_to_string(&jsonc).unwrap(), mine);
    assert_eq!(std::fs::read_to_string(&json).unwrap(), "{\"model\": \"x\"}\n");
}

/// As another user, because permissions do not bind root.
#[test]
fn a_file_that_cannot_be_written_is_named_and_the_change_can_be_shown() {
    const NOBODY: u32 = 65_534;
    let home = tempfile::tempdir().unwrap();
    let is_root = std::fs::metadata(home.path()).unwrap().uid() == 0;
    let program = home.path().join("toolcrib");
    std::fs::copy(PROGRAM, &program).unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let give = |path: &Path| {
        if is_root {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    mode(home.path(), 0o755);
    give(home.path());
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(home.path()).env_clear().env("HOME", home.path());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        (output.status.success(), text(&output.stdout).to_owned() + text(&output.stderr))
    };
    let directory = home.path().join(".gemini");
    std::fs::create_dir(&directory).unwrap();
    give(&directory);
    mode(&directory, 0o555);
    let shown = directory.canonicalize().unwrap().display().to_string();
    let (is_done, said) = run(&["install", "gemini", "--ask"]);
    assert!(!is_done && said.contains(&format!("`chmod u+w '{shown}'` permits it")), "{said}");
    assert!(said.contains("`toolcrib install gemini --ask --print` shows the change"), "{said}");
    let (is_done, said) = run(&["install", "gemini", "--ask", "--print"]);
    assert!(is_done && said.contains("+    \"toolcrib\": {"), "{said}");
    mode(&directory, 0o755);
    let file = directory.join("settings.json");
    put(&file, "{\n  \"theme\": \"x\"\n}\n");
    give(&file);
    mode(&file, 0o444);
    let (is_done, said) = run(&["install", "gemini"]);
    assert!(!is_done && said.contains("settings.json is write-protected"), "{said}");
    assert!(!said.contains("operator"), "{said}");
    mode(&file, 0o644);
    assert!(run(&["install", "gemini"]).0);
    mode(&file, 0o444);
    let (is_done, said) = run(&["uninstall", "gemini", "--print"]);
    assert!(is_done && said.contains("-    \"toolcrib\": {"), "{said}");
}

#[test]
fn exclusive_fails_for_a_client_without_such_a_setting() {
    for client in ["vscode", "cursor"] {
        let home = tempfile::tempdir().unwrap();
        let refused = toolcrib(home.path(), &["install", client, "--exclusive"]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains("has no setting") && said.contains("docs/clients/"), "{said}");
        let step = if client == "vscode" { "tools: ['toolcrib/*']" } else { "hooks.json" };
        assert!(said.contains(step), "{said}");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was written");
        let said = answer(home.path(), &["install", client]);
        assert!(said.contains("Use only Toolcrib's tools"), "{said}");
    }
}

/// The documentation shows the snippets that the program prints.
#[test]
fn the_documentation_has_the_snippets_that_install_prints() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients");
    for (client, settings, page) in EXCLUSIVE {
        let home = tempfile::tempdir().unwrap();
        let said = answer(home.path(), &["install", client]);
        let (_, snippet) = said.split_once(&format!("{settings}:\n\n")).expect(&said);
        let (snippet, _) = snippet.split_once("\nMore: ").unwrap();
        let page = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(page.contains(snippet.trim_end()), "{client}: the page lacks\n{snippet}");
    }
    let names = CLIENTS.map(|(client, ..)| format!("toolcrib install {client}"));
    let overview = std::fs::read_to_string(pages.join("README.md")).unwrap();
    assert!(names.iter().all(|name| overview.contains(name.as_str())), "{overview}");
    let headings = [
        "Install",
        "Verify",
        "Use only Toolcrib's tools",
        "Approve once",
        "Options",
        "Uninstall",
        "Troubleshooting",
    ];
    for page in std::fs::read_dir(&pages).unwrap().map(|page| page.unwrap().path()) {
        let text = std::fs::read_to_string(&page).unwrap();
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert!(page.ends_with("README.md") || found == headings, "{}: {found:?}", page.display());
    }
}

#[test]
fn doctor_lists_one_client_per_line() {
    let home = tempfile::tempdir().unwrap();
    for client in ["claude", "codex"] {
        answer(home.path(), &["install", client]);
    }
    let doctor = toolcrib(home.path(), &["doctor", "--text"]);
    let lines: Vec<&str> = text(&doctor.stdout).lines().collect();
    let at = lines.iter().position(|line| line.starts_with("clients ")).unwrap();
    assert!(lines[at].contains("Claude Code ("), "{}", lines[at]);
    assert!(lines[at + 1].starts_with("              Codex ("), "{}", lines[at + 1]);
    let doctor = toolcrib(home.path(), &["doctor", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(told["clients"].as_array().unwrap().len(), 2, "{told}");
}

#[test]
fn doctor_reports_clients_that_cannot_start_the_server() {
    let home = tempfile::tempdir().unwrap();
    answer(home.path(), &["install", "claude"]);
    let gone = "{\"mcpServers\": {\"toolcrib\": {\"command\": \"/gone/toolcrib\", \"args\": [\"serve\"]}}}";
    put(&home.path().join(".cursor/mcp.json"), gone);
    put(&home.path().join(".codex/config.toml"), "model = \n");
    put(&home.path().join(".gemini/settings.json"), "{ broken");
    let other = "{\"mcp\": {\"toolcrib\": {\"command\": [\"docker\"]}}}";
    put(&home.path().join(".config/opencode/opencode.json"), other);
    let doctor = toolcrib(home.path(), &["doctor", "--json"]);
    assert_eq!(doctor.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let clients = told["clients"].as_array().unwrap();
    assert!(clients[0].as_str().unwrap().starts_with("Claude Code ("), "{told}");
    let problem = |at: usize| clients[at]["problem"].as_str().unwrap();
    assert!(problem(1).starts_with("Codex: it is not known"), "{told}");
    assert!(problem(2).contains("`/gone/toolcrib` of its entry does not exist"), "{told}");
    assert!(problem(3).contains(".gemini/settings.json: "), "{told}");
    assert_eq!(clients.len(), 4, "{told}");
    let doctor = toolcrib(home.path(), &["doctor", "--text"]);
    assert!(text(&doctor.stdout).contains("problems, see above"), "{}", text(&doctor.stdout));
}

/// A package runner may empty its cache: the entry starts the runner, which finds the program again.
#[test]
fn a_program_from_the_cache_of_npx_is_started_by_npx() {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join(".npm/_npx/1f2/node_modules/@toolcrib/linux-x64/bin/toolcrib");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(PROGRAM, &program).unwrap();
    let runner = home.path().join("bin/npx");
    put(&runner, &format!("#!/bin/sh\nshift 2\nexec '{}' \"$@\"\n", program.display()));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&runner, executable).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let installed = Command::new(&program)
        .args(["install", "claude"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    let written = std::fs::read_to_string(home.path().join(".claude.json")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(&written).unwrap();
    let entry = &entry["mcpServers"]["toolcrib"];
    assert_eq!(entry["command"], "npx");
    assert_eq!(entry["args"][0], "-y");
    assert_eq!(entry["args"][1], "toolcrib");
    assert_eq!(entry["args"][2], "serve");
}

#[test]
fn a_program_in_a_build_directory_is_installed_with_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("toolcrib/target/release/toolcrib");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(PROGRAM, &program).unwrap();
    let shown = Command::new(&program)
        .args(["install", "claude", "--print"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(shown.status.success());
    assert!(text(&shown.stderr).contains("is in a build directory"), "{}", text(&shown.stderr));
}
