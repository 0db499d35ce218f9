//! Output for people.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{PROGRAM, isolated_home, text, toolcrib};

#[test]
fn help_lists_commands_and_examples() {
    let help = toolcrib(Path::new("."), &["--help"], b"");
    let help = text(&help.stdout);
    for word in [
        "call",
        "run",
        "tools",
        "doctor",
        "completions",
        "--root",
        "--profile",
        "--dry-run",
        "Examples",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn the_help_of_a_command_lists_all_its_options() {
    let directory = tempfile::tempdir().unwrap();
    for words in [&["call", "--help"][..], &["log", "-h"], &["policy", "test", "--help"]] {
        let output = toolcrib(directory.path(), words, b"");
        let shown = text(&output.stdout);
        for option in ["--root", "--profile", "--dry-run", "--json", "--text"] {
            assert!(shown.contains(option), "{words:?} lacks {option}: {shown}");
        }
    }
}

#[test]
fn the_version_has_the_name_of_the_program() {
    let version = toolcrib(Path::new("."), &["--version"], b"");
    assert_eq!(text(&version.stdout), concat!("toolcrib ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn completions_contain_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = toolcrib(Path::new("."), &["completions", shell], b"");
        assert!(text(&script.stdout).contains("dry-run"), "{shell}");
    }
    let without = toolcrib(Path::new("."), &["completions"], b"");
    let said = text(&without.stderr);
    assert!(said.contains("the shells are bash, elvish, fish, powershell, zsh"), "{said}");
}

/// As in `toolcrib policy list | head`.
#[test]
fn a_reader_that_ends_early_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    for words in [
        &["call", "Read", "{\"file_path\": \"a.txt\"}"][..],
        &["call", "Read", "{\"file_path\": \"a.txt\"}", "--text"],
        &["tools"],
        &["completions", "bash"],
        &["reference", "replies"],
        &["config"],
        &["config", "keys", "--json"],
        &["config", "show", "--json"],
        &["policy", "list"],
        &["policy", "list", "--json"],
        &["policy", "presets", "--json"],
        &["policy", "allow", "command", "ls", "--dry-run", "--json"],
        &["policy", "test", "ls"],
        &["policy", "explain", "Bash", "ls", "--json"],
        &["policy", "host", "example.com"],
        &["log"],
        &["log", "--decisions", "--json"],
        &["log", "export"],
        &["index", "status"],
        &["jobs"],
        &["jobs", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(PROGRAM)
            .args(words)
            .current_dir(directory.path())
            .envs(isolated_home())
            .stdin(Stdio::null())
            .stdout(writer)
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("roken pipe") && !said.contains("error"), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
    }
}

/// A real terminal from script(1), which every Linux has.
#[test]
fn on_a_terminal_a_diff_has_colours_and_a_question_is_asked() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("a.txt"), "one\n").unwrap();
    let edit = r#"call Edit '{"file_path": "a.txt", "old_string": "one", "new_string": "two"}'"#;
    let on_terminal = |flags: &str, input: &str| {
        let command = format!("{} {edit} {flags}", crate::PROGRAM);
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("printf '{input}' | script -qec \"$COMMAND\" /dev/null"))
            .env("COMMAND", command)
            .env("TERM", "xterm")
            .envs(crate::isolated_home())
            .current_dir(workspace.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = on_terminal("--dry-run", "");
    assert!(shown.contains("\u{1b}[32m+two\u{1b}[0m"), "{shown:?}");
    let refused = on_terminal("--profile cautious", "n\\n");
    assert!(refused.contains("Allow? [y]es"), "{refused:?}");
    assert!(refused.contains("[denied]"), "{refused:?}");
    assert_eq!(std::fs::read(workspace.path().join("a.txt")).unwrap(), b"one\n");
    let refused = on_terminal("--profile cautious", "n use two.txt\\n");
    assert!(refused.contains("the answer was no. use two.txt"), "{refused:?}");
    let allowed = on_terminal("--profile cautious", "y\\n");
    assert!(allowed.contains("Edited a.txt"), "{allowed:?}");
    assert_eq!(std::fs::read(workspace.path().join("a.txt")).unwrap(), b"two\n");
}

/// "Always" shows a rule and adds it to the rules file, and so does "never".
#[test]
fn an_always_or_never_answer_becomes_a_rule() {
    let (workspace, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rules = home.path().join("toolcrib/rules.toml");
    std::fs::create_dir(home.path().join("toolcrib")).unwrap();
    let mine = "# mine\n[[rule]]\ndecision = 'deny'\nkind = 'command'\ncommands = ['rm']\n";
    std::fs::write(&rules, mine).unwrap();
    let bash = |script: &str, typed: &str| {
        let command = format!(
            "{} call Bash '{{\"command\": \"{script}\"}}' --profile cautious",
            crate::PROGRAM
        );
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("printf '{typed}' | script -qec \"$COMMAND\" /dev/null"))
            .env("COMMAND", command)
            .env("TERM", "xterm")
            .env("HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join("state"))
            .current_dir(workspace.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let back = bash("mkdir made", "a\\nno\\nn\\n");
    assert!(back.contains("This would be added to") && back.contains("[denied]"), "{back}");
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), mine, "not before it is meant");
    let always = bash("mkdir made", "a\\ny\\n");
    assert!(always.contains("`mkdir made` with exactly these words"), "{always}");
    assert!(workspace.path().join("made").exists(), "{always}");
    let text = std::fs::read_to_string(&rules).unwrap();
    assert!(text.starts_with(mine) && text.contains("commands = [\"mkdir made\"]"), "{text}");
    let again = bash("cd . && mkdir made 2>&1", "");
    assert!(!again.contains("Allow?") && again.contains("File exists"), "{again}");
    let never = bash("touch x", "v use Write\\ny\\n");
    assert!(never.contains("the answer was no. use Write"), "{never}");
    let refused = bash("touch x y", "y\\n");
    assert!(refused.contains("a rule denies it"), "{refused}");
}

/// Names and rules show every invisible character; content keeps its emoji.
#[test]
fn the_log_shows_invisible_characters() {
    let workspace = tempfile::tempdir().unwrap();
    let state = workspace.path().join("state");
    let state = state.to_str().unwrap();
    let root = workspace.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    let args = serde_json::json!({
        "file_path": "n\u{202e}\u{e0041}.txt",
        "content": "a\u{202e}b\u{e0041} 👩\u{200d}💻 ❤\u{fe0f}\n",
    });
    toolcrib(&root, &["call", "Write", &args.to_string(), "--state", state], b"");
    for command in [&["log"][..], &["log", "--decisions"], &["show", "1"], &["diff"]] {
        let shown = toolcrib(&root, &[command, &["--text", "--state", state]].concat(), b"");
        let shown = text(&shown.stdout);
        assert!(shown.contains("n\\u{202e}\\u{e0041}.txt"), "{command:?}: {shown}");
        assert!(!shown.contains(['\u{202e}', '\u{e0041}']), "{command:?}: {shown:?}");
        if matches!(command[0], "show" | "diff") {
            assert!(shown.contains("+a\\u{202e}b\\u{e0041} 👩\u{200d}💻 ❤\u{fe0f}"), "{shown:?}");
        }
    }
}

#[test]
fn the_list_of_running_commands_shows_invisible_characters() {
    let workspace = tempfile::tempdir().unwrap();
    let mut server = std::process::Command::new(crate::PROGRAM)
        .args(["run", "--profile", "open"])
        .envs(crate::isolated_home())
        .current_dir(workspace.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let command = "sleep 600 # hides-nothing \u{202e}\u{e0041}";
    let call = serde_json::json!({"tool": "Bash", "args": {"command": command, "run_in_background": true}});
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{call}").unwrap();
    let mut reply = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut reply).unwrap();
    let shown = toolcrib(workspace.path(), &["jobs", "--text"], b"");
    // It is not ended from another workspace without confirmation.
    let listed = toolcrib(workspace.path(), &["jobs", "--json"], b"");
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let is_ours = |job: &&serde_json::Value| job["command"].as_str() == Some(command);
    let ours = listed.as_array().unwrap().iter().find(is_ours);
    let id = ours.and_then(|job| job["id"].as_str()).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let asked = toolcrib(elsewhere.path(), &["kill", id], b"");
    let ended = toolcrib(elsewhere.path(), &["kill", "--yes", "--text", id], b"");
    drop(input);
    server.wait().unwrap();
    let shown = text(&shown.stdout);
    assert!(shown.contains("# hides-nothing \\u{202e}\\u{e0041}"), "{reply}\n{shown}");
    let real = workspace.path().canonicalize().unwrap();
    assert!(shown.contains(&format!("workspace {}, user ", real.display())), "{shown}");
    assert_eq!(asked.status.code(), Some(1));
    let refusal = text(&asked.stderr);
    assert!(
        refusal.contains("belongs to another workspace") && refusal.contains("--yes"),
        "{refusal}"
    );
    assert!(text(&ended.stdout).starts_with(&format!("Ended {id}: ")), "{}", text(&ended.stdout));
}

/// A single call leaves nothing running, and says so.
#[test]
fn a_single_call_says_that_its_jobs_end_with_it() {
    let workspace = tempfile::tempdir().unwrap();
    let args = r#"{"command": "sleep 600", "run_in_background": true}"#;
    let output = toolcrib(workspace.path(), &["call", "Bash", args, "--profile", "open"], b"");
    assert_eq!(output.status.code(), Some(1));
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(reply["error"]["hint"].as_str().unwrap().contains("`toolcrib serve`"), "{reply}");
}

#[test]
fn doctor_reports_its_escape_attempts() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let output =
        toolcrib(directory.path(), &["doctor", "--json", "--state", state.to_str().unwrap()], b"");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["profile"], "workspace");
    let workspace = std::fs::canonicalize(directory.path()).unwrap();
    assert_eq!(told["workspace"], workspace.to_str().unwrap());
    let checkup = &told["sandbox"];
    assert_eq!(checkup["level"], 4, "{checkup:#}");
    let attempts = checkup["attempts"].as_array().unwrap();
    assert!(
        attempts.len() >= 20 && attempts.iter().all(|attempt| attempt["held"] == true),
        "{checkup:#}"
    );
    assert_eq!(output.status.code(), Some(0));
    let missing = checkup["missing"].to_string();
    assert!(!missing.contains("Replies do not report"), "{missing}");
    assert!(missing.contains("memory"), "{missing}");
    let memory = checkup["limits"]["memory"].as_str().unwrap();
    assert!(memory.contains("(75% of ") && memory.ends_with("measured"), "{memory}");
    assert_eq!(checkup["held"], true);
    assert!(checkup["environment_left_out"].is_array());
    assert!(told["journal"].as_str().unwrap().ends_with(" MB"), "{}", told["journal"]);
    assert_eq!(told["rules"], "none");
}

/// Commands may write it then, so that is no escape. The warning about the root says so.
#[test]
fn doctor_in_the_home_directory_finds_no_escape() {
    let home = crate::command_directory();
    let doctor = std::process::Command::new(crate::PROGRAM)
        .args(["doctor", "--json"])
        .current_dir(home.path())
        .env("HOME", home.path())
        .output()
        .unwrap();
    let told: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(told["sandbox"]["held"], true, "{told:#}");
    assert!(told.to_string().contains("is a home directory"), "{told:#}");
}

/// A state directory that other users can write is a problem, and so is a symlink.
#[test]
fn doctor_fails_if_others_can_write_the_state_directory() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output =
        toolcrib(directory.path(), &["doctor", "--json", "--state", state.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("\"problem\""), "{output:?}");
}
