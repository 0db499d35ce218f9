//! Content that counts as seen by a session: content that it was shown or that it wrote. Errors name the origin of
//! other changes.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, Options, Reply, Runtime, Session};

struct Fixture {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Fixture {
    fn new() -> Fixture {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        fs::create_dir(top.path().join("ws")).unwrap();
        let lines: String = (1..=30).map(|number| format!("line {number}\n")).collect();
        fs::write(top.path().join("ws/a.txt"), lines).unwrap();
        let runtime = crate::workspace_runtime(top.path());
        let session = runtime.session();
        Fixture { top, runtime, session }
    }

    fn try_call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn call(&self, tool: &str, args: Value) -> String {
        self.try_call(tool, args).unwrap().text()
    }

    fn read(&self, offset: u64, limit: u64) -> String {
        self.call("Read", json!({"file_path": "a.txt", "offset": offset, "limit": limit}))
    }

    fn edit(&self, old: &str, new: &str) -> String {
        self.call("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
    }

    fn bash(&self, command: &str) -> String {
        self.call("Bash", json!({"command": command}))
    }

    fn write(&self) -> Result<Reply, Error> {
        self.try_call("Write", json!({"file_path": "a.txt", "content": "oops\n"}))
    }

    fn write_error(&self) -> String {
        let before = fs::read(self.path()).unwrap();
        let error = self.write().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Stale), "{error}");
        assert_eq!(fs::read(self.path()).unwrap(), before);
        error.message().to_owned()
    }

    fn path(&self) -> PathBuf {
        self.top.path().join("ws/a.txt")
    }
}

#[test]
fn file_restored_by_undo_counts_as_unread() {
    let fixture = Fixture::new();
    fixture.bash("sed -i s/line/lime/ a.txt");
    fixture.call("Undo", json!({}));
    assert_eq!(fixture.write_error(), "a.txt exists, and this session has not read it with Read");
    fixture.call("Undo", json!({"id": 2}));
    fixture.write_error();
    fixture.read(1, 100);
    fixture.write().unwrap();
}

#[test]
fn undo_restores_content_that_the_session_knows() {
    let fixture = Fixture::new();
    fixture.read(1, 100);
    fixture.edit("line 7\n", "seven\n");
    fixture.write().unwrap();
    fixture.call("Undo", json!({}));
    fixture.call("Undo", json!({}));
    fixture.write().unwrap();
    // Also content that only a removal came after.
    fixture.bash("rm a.txt");
    fixture.call("Undo", json!({}));
    fixture.try_call("Write", json!({"file_path": "a.txt", "content": "new\n"})).unwrap();
    // But not if somebody has changed it since.
    fixture.call("Undo", json!({}));
    fs::write(fixture.path(), "other\n").unwrap();
    fixture.write_error();
}

#[test]
fn undo_invalidates_content_written_by_the_session() {
    let fixture = Fixture::new();
    let hash = fixture.try_call("Read", json!({"file_path": "a.txt", "limit": 1})).unwrap();
    let hash = hash.metadata()["hash"].clone();
    let write = json!({"file_path": "a.txt", "content": "mine\n", "expected_hash": hash});
    fixture.call("Write", write);
    fixture.call("Undo", json!({}));
    assert_eq!(fixture.write_error(), "this session has not read the current content of a.txt");
}

#[test]
fn read_parts_add_up_to_the_whole_file() {
    let fixture = Fixture::new();
    fixture.read(5, 6);
    assert_eq!(fixture.write_error(), "this session has read only a part of a.txt: lines 5-10");
    fixture.read(20, 100);
    assert_eq!(
        fixture.write_error(),
        "this session has read only a part of a.txt: lines 5-10, lines 20-30"
    );
    fixture.read(1, 10);
    fixture.read(9, 15);
    fixture.write().unwrap();
    fixture.write().unwrap();
}

#[test]
fn editing_a_line_does_not_count_as_reading() {
    let fixture = Fixture::new();
    fixture.edit("line 7\n", "seven\n");
    assert_eq!(fixture.write_error(), "this session has not read the current content of a.txt");
    fixture.read(1, 100);
    fixture.edit("line 8\n", "eight\n");
    fixture.write().unwrap();
}

#[test]
fn truncated_line_does_not_count_as_read() {
    let fixture = Fixture::new();
    fs::write(fixture.path(), "x".repeat(100_000)).unwrap();
    fixture.read(1, 100);
    fixture.write_error();
}

#[test]
fn if_changed_since_seen_refers_to_shown_content() {
    let fixture = Fixture::new();
    let again = || fixture.call("Read", json!({"file_path": "a.txt", "if_changed_since": "seen"}));
    fixture.read(1, 3);
    assert!(again().contains("line 30"));
    assert_eq!(again(), "a.txt is unchanged.\n");
}

#[test]
fn all_changes_since_the_last_read_are_named() {
    let fixture = Fixture::new();
    let other = fixture.runtime.session();
    let edit_in_other = |old: &str, new: &str| {
        let args = json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        fixture.runtime.call(&other, Call::new("Edit", args), Options::default()).unwrap();
    };
    fixture.read(1, 100);
    edit_in_other("line 3\n", "three\n");
    edit_in_other("line 5\n", "five\n");
    let edited = fixture.edit("line 9\n", "nine\n");
    let expected = "the file was changed by another session (changes 1, 2): line 3, line 5.";
    assert!(edited.contains(expected), "{edited}");

    fs::write(fixture.path(), "line 1\nline 2\n").unwrap();
    edit_in_other("line 2\n", "two\n");
    let read = fixture.read(1, 1);
    let expected =
        "changed since it was last seen, by an unrecorded change, another session (change 4)";
    assert!(read.starts_with(&format!("[{expected}")), "{read}");

    for number in 1..=7 {
        edit_in_other("two\n", &format!("line {number}0\ntwo\n"));
    }
    let read = fixture.read(1, 1);
    assert!(
        read.contains("by 2 earlier changes, another session (changes 7, 8, 9, 10, 11)"),
        "{read}"
    );
}

#[test]
fn encoding_of_a_file_does_not_change_within_a_session() {
    let fixture = Fixture::new();
    let windows_1250 = |text: &str| -> Vec<u8> {
        let byte = |c: char| match c {
            'ů' => 0xf9,
            'ň' => 0xf2,
            c => u8::try_from(u32::from(c)).unwrap(),
        };
        text.chars().map(byte).collect()
    };
    // Too few letters for a guess.
    let write = json!({"file_path": "b.txt", "content": "kůň\n", "encoding": "windows-1250"});
    fixture.call("Write", write);
    let read = || fixture.call("Read", json!({"file_path": "b.txt"}));
    assert_eq!(read(), "[windows-1250]\n     1\tkůň\n");
    let edit = |old: &str, new: &str| {
        fixture.call("Edit", json!({"file_path": "b.txt", "old_string": old, "new_string": new}))
    };
    let path = fixture.top.path().join("ws/b.txt");
    let edited = edit("kůň", "kůň, vůz");
    assert!(edited.contains("+kůň, vůz\n"), "{edited}");
    assert_eq!(fs::read(&path).unwrap(), windows_1250("kůň, vůz\n"));
    edit("kůň, vůz", "ascii");
    let patch = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-ascii\n+ňů\n";
    fixture.call("ApplyPatch", json!({"patch": patch}));
    assert_eq!(fs::read(&path).unwrap(), windows_1250("ňů\n"));
    // A file in UTF-8 is recognized.
    fs::write(&path, "kůň\n").unwrap();
    assert!(read().ends_with("     1\tkůň\n") && !read().contains("windows"), "{}", read());
    edit("kůň", "vůz");
    assert_eq!(fs::read_to_string(&path).unwrap(), "vůz\n");
}

#[test]
fn stale_error_names_the_origin_of_the_change() {
    let fixture = Fixture::new();
    fixture.read(1, 100);
    fixture.bash("sed -i 's/line 3$/three/' a.txt");
    let edited = fixture.edit("line 9\n", "nine\n");
    let expected = "Since this session last saw it, the file was changed by this session's command sh_1 (change 1): line 3.";
    assert!(edited.contains(expected), "{edited}");

    fixture.call("Undo", json!({}));
    let read = fixture.read(1, 100);
    assert!(read.starts_with("     1\t"), "its own undo is known: {read}");

    let other = fixture.runtime.session();
    let args = json!({"file_path": "a.txt", "old_string": "line 20", "new_string": "twenty"});
    fixture.runtime.call(&other, Call::new("Edit", args), Options::default()).unwrap();
    let read = fixture.read(1, 1);
    assert!(read.starts_with("[changed since it was last seen, by another session (change 4)"));

    fs::write(fixture.path(), "by a person\n").unwrap();
    let read = fixture.read(1, 1);
    assert!(read.starts_with("[changed since it was last seen: line 1]\n"), "{read}");

    let running = "echo 1 > a.txt; until [ -f go ]; do sleep 0.01; done";
    fixture.call("Bash", json!({"command": running, "run_in_background": true}));
    while fs::read_to_string(fixture.path()).unwrap() != "1\n" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let read = fixture.read(1, 1);
    let expected = "[changed since it was last seen, by this session's command sh_2, which still runs: line 1]\n";
    assert!(read.starts_with(expected), "{read}");
    fs::write(fixture.top.path().join("ws/go"), "").unwrap();
}

#[test]
fn undo_names_preserved_later_changes() {
    let fixture = Fixture::new();
    fixture.edit("line 3\n", "three\n");
    fixture.bash("sed -i 's/line 20$/twenty/' a.txt");
    let undone = fixture.call("Undo", json!({"id": 1}));
    assert!(undone.ends_with("Later changes were kept in: a.txt (change 2)."), "{undone}");
    fixture.call("Undo", json!({"id": 3}));
    let text = fs::read_to_string(fixture.path()).unwrap();
    fs::write(fixture.path(), text.replace("line 29", "29")).unwrap();
    let undone = fixture.call("Undo", json!({"id": 1}));
    let expected =
        "Later changes were kept in: a.txt (change 2, and others not made by these tools).";
    assert!(undone.ends_with(expected), "{undone}");
}

#[test]
fn undos_are_not_named_as_preserved_changes() {
    let fixture = Fixture::new();
    fixture.edit("line 3\n", "three\n");
    fixture.edit("line 20\n", "twenty\n");
    fixture.call("Undo", json!({}));
    fixture.call("Undo", json!({"id": 3}));
    let undone = fixture.call("Undo", json!({"id": 1}));
    assert!(undone.ends_with("Later changes were kept in: a.txt (change 2)."), "{undone}");
    let undone = fixture.call("Undo", json!({"since": 1}));
    assert!(!undone.contains("kept"), "nothing was kept: {undone}");
    let text = fs::read_to_string(fixture.path()).unwrap();
    assert!(text.contains("line 3\n") && text.contains("line 20\n"), "{text}");
}

#[test]
fn a_failed_match_names_changes_since_the_file_was_seen() {
    let fixture = Fixture::new();
    fixture.read(1, 100);
    let text = fs::read_to_string(fixture.path()).unwrap();
    fs::write(fixture.path(), text.replace("line 20\n", "twenty\n")).unwrap();
    let expected = "Since this session last saw it, the file was changed: line 20.";
    let edit = json!({"old_string": "line 20\n", "new_string": "x\n"});
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -20 +20 @@\n-line 20\n+x\n";
    for (tool, args) in [
        ("Edit", json!({"file_path": "a.txt", "old_string": "line 20\n", "new_string": "x\n"})),
        ("MultiEdit", json!({"file_path": "a.txt", "edits": [edit]})),
        ("ApplyPatch", json!({"patch": patch})),
    ] {
        let error = fixture.try_call(tool, args).unwrap_err().text();
        assert!(error.contains(expected), "{tool}: {error}");
    }
}

#[test]
fn shown_lines_of_an_unchanged_file_are_not_shown_again() {
    let fixture = Fixture::new();
    fixture.read(5, 5);
    let again = |offset: i64, limit: u64| {
        let args = json!({
            "file_path": "a.txt", "offset": offset, "limit": limit, "if_changed_since": "seen",
        });
        fixture.call("Read", args)
    };
    assert_eq!(again(5, 5), "a.txt is unchanged.\n");
    assert_eq!(again(6, 2), "a.txt is unchanged.\n");
    assert!(again(5, 6).starts_with("     5\tline 5\n"));
    let text = fs::read_to_string(fixture.path()).unwrap();
    fs::write(fixture.path(), text.replace("line 20\n", "twenty\n")).unwrap();
    assert!(again(5, 5).contains("\tline 5\n"));
}

#[test]
fn undo_names_the_command_that_still_writes_the_file() {
    let fixture = Fixture::new();
    let ticks = fixture.top.path().join("ws/ticks.txt");
    let running = "(echo 1 > ticks.txt; until [ -f go ]; do sleep 0.01; done; echo 2 > ticks.txt; exec sleep 600) > /dev/null 2>&1 &
        until [ -s ticks.txt ]; do sleep 0.01; done";
    let started = fixture.bash(running);
    fs::write(fixture.top.path().join("ws/go"), "").unwrap();
    crate::eventually(|| fs::read_to_string(&ticks).is_ok_and(|text| text == "2\n"));
    let error = fixture.try_call("Undo", json!({"id": 1})).unwrap_err().text();
    let expected = "sh_1 still runs and may be writing it: KillShell sh_1, then undo again.";
    assert!(error.contains(expected), "{started}: {error}");
    fixture.call("KillShell", json!({"shell_id": "sh_1"}));
}

#[test]
fn a_conflict_of_undo_has_a_way_that_works() {
    let fixture = Fixture::new();
    fixture.edit("line 3\n", "three\n");
    fixture.edit("three\n", "3\n");
    let error = |args: Value| fixture.try_call("Undo", args).unwrap_err().text();
    let overlap = error(json!({"id": 1}));
    assert!(overlap.contains("Undo with id 2 first, or Undo with since 1 for both."), "{overlap}");
    fixture.call("Undo", json!({}));
    let again = error(json!({"id": 2}));
    assert!(again.contains("Undo with id 3 redoes it."), "{again}");
    fixture.call("Write", json!({"file_path": "new.txt", "content": "a\n"}));
    fs::write(fixture.top.path().join("ws/new.txt"), "b\n").unwrap();
    let created = error(json!({"id": 4}));
    assert!(created.contains("To remove new.txt anyway, delete it with a command."), "{created}");
    fs::remove_file(fixture.path()).unwrap();
    let gone = error(json!({"id": 1}));
    assert!(gone.contains("a.txt no longer exists") && !gone.contains("Edit"), "{gone}");
}

#[test]
fn history_masks_secrets_and_escapes_invisible_characters() {
    let fixture = Fixture::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    fixture.bash(&format!("TOKEN={token} sh -c 'echo x > made' # \u{202e}reversed\necho second"));
    let history = fixture.call("History", json!({}));
    assert!(history.contains("Bash `TOKEN="), "{history}");
    assert!(history.contains(" …`: made (created)"), "{history}");
    assert!(!history.contains(&token) && !history.contains('\u{202e}'), "{history}");
    assert!(!history.contains("second"), "only the first line: {history}");
    let long = format!("echo {} > long", "x".repeat(1_000));
    fixture.bash(&long);
    let history = fixture.call("History", json!({}));
    assert!(history.lines().next().unwrap().chars().count() < 150, "{history}");
}

/// With NULs between its letters, the content looks like UTF-16.
#[test]
fn a_file_that_the_session_wrote_as_utf8_stays_utf8() {
    let fixture = Fixture::new();
    let write = |content: &str| {
        fixture.call("Write", json!({"file_path": "list", "content": content}));
        fs::read(fixture.top.path().join("ws/list")).unwrap()
    };
    write("a\0b\0c\0d\0e\0f\0g\0h\0i\0");
    let shown = fixture.call("Read", json!({"file_path": "list"}));
    assert!(shown.contains("a\\x00b\\x00"), "{shown}");
    assert_eq!(write("plain\n"), b"plain\n");
}
