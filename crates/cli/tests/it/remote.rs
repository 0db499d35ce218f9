//! `toolcrib push`, `install --host` and `doctor --host`, with a real sshd.

mod box_on_loopback;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use self::box_on_loopback::LoopbackBox;
use crate::{PROGRAM, text};

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write_executable(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_program_is_copied_once() {
    let Some(there) = LoopbackBox::start() else { return };
    let dry = there.answer(&["push", "box", "--dry-run"]);
    assert!(dry.contains("would be copied to"), "{dry}");
    assert!(names(&there.path("there/.local")).is_empty(), "a dry run copies nothing");
    let said = there.answer(&["push", "box"]);
    assert!(said.contains(&format!("toolcrib {}", env!("CARGO_PKG_VERSION"))), "{said}");
    let copy = there.path("there/.local/bin/toolcrib");
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(PROGRAM).unwrap());
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(names(&there.path("there/.local/bin")), ["toolcrib"]);
    let before = std::fs::metadata(&copy).unwrap().modified().unwrap();
    let again: Value = serde_json::from_str(&there.answer(&["push", "box", "--json"])).unwrap();
    assert_eq!(again["result"], "unchanged");
    assert_eq!(again["path"], copy.to_str().unwrap());
    assert_eq!(std::fs::metadata(&copy).unwrap().modified().unwrap(), before);
    let there_too = there.path("there/a b'$(touch pwned)/crib");
    let to = there_too.to_str().unwrap();
    there.answer(&["push", "ssh://box", "--to", to, "--program", "/usr/bin/true"]);
    assert!(there_too.exists());
    assert!(!names(&there.path("there")).contains(&"pwned".to_owned()));
}

/// Nothing replaces a program that works.
#[test]
fn a_program_that_does_not_run_there_is_refused() {
    let Some(there) = LoopbackBox::start() else { return };
    let place = there.path("there/.local/bin");
    std::fs::create_dir_all(&place).unwrap();
    write_executable(&place.join("toolcrib"), b"#!/bin/sh\necho old\n");
    let program = there.path("program");
    let push = ["push", "box", "--program", program.to_str().unwrap()];

    let native = std::fs::read("/usr/bin/true").unwrap();
    let mut foreign = native.clone();
    foreign[18] = if foreign[18] == 62 { 183 } else { 62 };
    write_executable(&program, &foreign);
    let said = there.refusal(&push);
    assert!(said.contains("and this program is for Linux"), "{said}");

    // It needs a dynamic loader that is not there.
    let loader = b"/ld-linux";
    let at = native.windows(loader.len()).position(|window| window == loader).unwrap();
    let mut unusable = native.clone();
    unusable[at + 1] = b'X';
    write_executable(&program, &unusable);
    let said = there.refusal(&push);
    assert!(said.contains("it does not run there") && said.contains("static build"), "{said}");

    write_executable(&program, b"#!/bin/sh\n");
    assert!(there.refusal(&push).contains("is not a program for Linux"));

    write_executable(&program, &native);
    std::fs::create_dir(place.join("directory")).unwrap();
    let to = place.join("directory");
    let onto_directory = [&push[..], &["--to", to.to_str().unwrap()]].concat();
    assert!(there.refusal(&onto_directory).contains("it is a directory"));
    std::fs::remove_dir(&to).unwrap();

    // A connection that ends in the middle.
    let cut = there.path("cut-ssh");
    let script = format!("#!/bin/sh\nhead -c 1000 | {} \"$@\"\n", there.ssh());
    write_executable(&cut, script.as_bytes());
    let done = there.toolcrib_with(cut.to_str().unwrap(), &push);
    assert!(text(&done.stderr).contains("damaged or incomplete"), "{done:?}");

    assert_eq!(names(&place), ["toolcrib"], "no temporary file is left");
    assert_eq!(std::fs::read(place.join("toolcrib")).unwrap(), b"#!/bin/sh\necho old\n");
}

#[test]
fn an_unreachable_or_unknown_host_is_explained() {
    let Some(there) = LoopbackBox::start() else { return };
    std::fs::write(there.path("known_hosts"), "").unwrap();
    let said = there.refusal(&["push", "box"]);
    assert!(said.contains("compare the key of the host"), "{said}");
    let said = there.refusal(&["install", "claude", "--host", "box:ws"]);
    assert!(said.contains("Host key verification failed"), "{said}");
    for words in [
        &["push", "--", "-oProxyCommand=touch pwned"][..],
        &["push", "me@-oProxyCommand=x"],
        &["push", "box:dir"],
        &["install", "claude", "--host=-oProxyCommand=touch pwned:ws"],
        &["install", "claude", "--host", "box"],
        &["install", "claude", "--host", "box:a\nb"],
        &["doctor", "--host", "a b"],
    ] {
        there.refusal(words);
    }
    assert_eq!(names(&there.path("here")), Vec::<String>::new(), "nothing was written");
}

#[test]
fn a_client_has_servers_on_several_hosts() {
    let Some(there) = LoopbackBox::start() else { return };
    let missing = there.refusal(&["install", "claude", "--host", "box:ws"]);
    assert!(missing.contains("toolcrib push box"), "{missing}");
    there.link_program();
    let ws = there.path("there/ws");
    let host = |name: &str| format!("{name}:{}", ws.display());
    for (client, file, before) in [
        ("claude", ".claude.json", Some("{\n  \"numStartups\": 7\n}\n")),
        ("claude", ".claude.json", None),
        ("codex", ".codex/config.toml", Some("model = 'x' # mine\n")),
        ("goose", ".config/goose/config.yaml", None),
        ("cursor", ".cursor/mcp.json", None),
    ] {
        let path = there.path("here").join(file);
        let _ = std::fs::remove_file(&path);
        if let Some(before) = before {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, before).unwrap();
        }
        let said =
            there.answer(&["install", client, "--host", &host("box"), "--profile", "cautious"]);
        assert!(said.contains("The server answers with"), "{said}");
        assert!(said.contains(&format!("toolcrib uninstall {client} --host box")), "{said}");
        there.answer(&["install", client, "--host", &host("other")]);
        there.answer(&["install", client]);
        let written = std::fs::read_to_string(&path).unwrap();
        for word in ["toolcrib-box", "toolcrib-other", "BatchMode=yes", "cautious"] {
            assert!(written.contains(word), "{client}: {word} in {written}");
        }
        let again = there.answer(&["install", client, "--host", &host("other")]);
        assert!(again.starts_with("Already installed"), "{client}: {again}");
        let doctor = there.toolcrib(&["doctor", "--text"]);
        assert!(text(&doctor.stdout).contains("toolcrib-other"), "{client}: {doctor:?}");
        there.answer(&["uninstall", client, "--host", "box"]);
        there.answer(&["uninstall", client]);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(
            written.contains("toolcrib-other") && !written.contains("toolcrib-box"),
            "{written}"
        );
        there.answer(&["uninstall", client, "--host", "me@other"]);
        let left = std::fs::read_to_string(&path).ok();
        let plain = |text: &str| text.replace(char::is_whitespace, "");
        assert_eq!(left.as_deref().map(plain), before.map(plain), "{client}");
    }
}

/// The profile there decides whether the client asks.
#[test]
fn a_client_asks_if_the_profile_there_is_open() {
    let Some(there) = LoopbackBox::start() else { return };
    there.link_program();
    let settings = there.path("here/.claude/settings.json");
    let ws = there.path("there/ws").display().to_string();
    let install = ["install", "claude", "--host", "box", "--root", &ws];
    there.answer(&install);
    assert!(std::fs::read_to_string(&settings).unwrap().contains("\"mcp__toolcrib-box\""));
    there.answer(&["uninstall", "claude", "--host", "box"]);
    assert!(!settings.exists());
    std::fs::create_dir_all(there.path("there/.config/toolcrib")).unwrap();
    std::fs::write(there.path("there/.config/toolcrib/config.toml"), "profile = \"open\"\n")
        .unwrap();
    there.answer(&install);
    assert!(!settings.exists());
    let missing = there.refusal(&["install", "claude", "--host", "box:/nonexistent"]);
    assert!(missing.contains("/nonexistent") && !missing.contains("toolcrib push"), "{missing}");
}

/// Files, commands, the journal and Undo are there; the name of the directory is data.
#[test]
fn tools_work_there_in_a_directory_of_any_name() {
    let Some(there) = LoopbackBox::start() else { return };
    there.link_program();
    let ws = there.path("there/it's $(touch pwned) `touch pwned`; touch pwned #\\ !x \"q\" ∀");
    std::fs::create_dir(&ws).unwrap();
    std::fs::write(ws.join("a.txt"), "one\n").unwrap();
    let host = format!("box:{}", ws.display());
    there.answer(&["install", "claude", "--host", &host]);
    let mut client = there.connect("toolcrib-box");
    let read = client.call("Read", json!({"file_path": "a.txt"}));
    assert_eq!(read, "     1\tone\n");
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    client.call("Edit", edit);
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "two\n");
    let ran = client
        .call("Bash", json!({"command": "echo three > b.txt; pwd; echo \"$SSH_AUTH_SOCK.\""}));
    assert!(ran.contains("touch pwned") && ran.contains("\n."), "{ran}");
    client.call("Undo", json!({}));
    client.call("Undo", json!({}));
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "one\n");
    assert_eq!(names(&ws), ["a.txt"]);
    assert!(there.path("there/.state/toolcrib/log").exists(), "the journal is there");
    drop(client);
    there.wait_until_idle();
    assert!(!names(&there.path("there")).contains(&"pwned".to_owned()));
    assert!(!Path::new("pwned").exists());
    let doctor = there.toolcrib(&["doctor", "--host", &host, "--json"]);
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor["profile"], "workspace");
    assert!(doctor["workspace"].as_str().unwrap().contains("touch pwned"), "{doctor}");
}

/// Whichever end of a connection dies, nothing of it is left there: no process, and no part of a change.
#[test]
fn a_broken_connection_leaves_nothing_there() {
    const FILES: usize = 40;
    let Some(there) = LoopbackBox::start() else { return };
    there.link_program();
    let ws = there.path("there/ws");
    for number in 0..FILES {
        std::fs::write(ws.join(format!("{number}.txt")), "version 0\n").unwrap();
    }
    let host = format!("box:{}", ws.display());
    there.answer(&["install", "claude", "--host", &host]);
    let (mut version, mut made) = (0, 0);
    for round in 0..8 {
        let mut client = there.connect("toolcrib-box");
        let started = client.call(
            "Bash",
            json!({"command": "sleep 100000 & setsid sleep 100000 & echo started; touch running; sleep 100000", "run_in_background": true}),
        );
        assert!(!started.is_empty());
        while !ws.join("running").exists() {
            client.call("Read", json!({"file_path": "0.txt"}));
        }
        let mut patch = String::from("*** Begin Patch\n");
        for number in 0..FILES {
            patch += &format!(
                "*** Update File: {number}.txt\n@@\n-version {version}\n+version {}\n",
                round + 1
            );
        }
        patch += "*** End Patch\n";
        client.start_call("ApplyPatch", json!({"patch": patch}));
        if round % 4 > 1 {
            // Until the first file has changed, so that the end comes in the middle.
            let new = format!("version {}\n", round + 1);
            let is_new = || std::fs::read_to_string(ws.join("0.txt")).is_ok_and(|text| text == new);
            while !is_new() {
                std::thread::yield_now();
            }
        }
        if round % 2 == 0 {
            client.kill();
        } else {
            there.kill_sessions();
        }
        there.wait_until_idle();
        drop(client);
        // The next server completes or reverts what the last one did not end.
        let mut next = there.connect("toolcrib-box");
        next.call("Read", json!({"file_path": "0.txt"}));
        drop(next);
        there.wait_until_idle();
        let versions: Vec<String> = (0..FILES)
            .map(|number| std::fs::read_to_string(ws.join(format!("{number}.txt"))).unwrap())
            .collect();
        assert!(versions.windows(2).all(|pair| pair[0] == pair[1]), "round {round}: {versions:?}");
        if versions[0] == format!("version {}\n", round + 1) {
            (version, made) = (round + 1, made + 1);
        }
        std::fs::remove_file(ws.join("running")).unwrap();
        assert_eq!(names(&ws).len(), FILES, "no temporary file is left");
    }
    assert!(made > 0);
}
