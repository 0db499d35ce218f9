//! What a session knows of a file: only what it was shown, or wrote. And who changed it since.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, Options, Reply, Runtime, Session};

struct Place {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Place {
    fn new() -> Place {
        // Not in /tmp: commands have another one.
        let top = crate::command_directory();
        fs::create_dir(top.path().join("ws")).unwrap();
        let lines: String = (1..=30).map(|number| format!("line {number}\n")).collect();
        fs::write(top.path().join("ws/a.txt"), lines).unwrap();
        let runtime = crate::workspace_runtime(top.path());
        let session = runtime.session();
        Place { top, runtime, session }
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

    fn refused(&self) -> String {
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
fn a_file_that_only_undo_has_restored_counts_as_unread() {
    let place = Place::new();
    place.bash("sed -i s/line/lime/ a.txt");
    place.call("Undo", json!({}));
    assert_eq!(place.refused(), "a.txt is there, and this session has not read it");
    place.call("Undo", json!({"id": 2}));
    place.refused();
    place.read(1, 100);
    place.write().unwrap();
}

#[test]
fn what_undo_restores_is_not_what_the_session_wrote() {
    let place = Place::new();
    let hash = place.try_call("Read", json!({"file_path": "a.txt", "limit": 1})).unwrap();
    let hash = hash.metadata()["hash"].clone();
    let write = json!({"file_path": "a.txt", "content": "mine\n", "expected_hash": hash});
    place.call("Write", write);
    place.call("Undo", json!({}));
    assert_eq!(place.refused(), "this session has not read a.txt as it is now");
}

#[test]
fn a_part_counts_as_a_part_and_parts_add_up() {
    let place = Place::new();
    place.read(5, 6);
    assert_eq!(place.refused(), "this session has read only a part of a.txt: lines 5-10");
    place.read(20, 100);
    assert_eq!(
        place.refused(),
        "this session has read only a part of a.txt: lines 5-10, lines 20-30"
    );
    place.read(1, 10);
    place.read(9, 15);
    place.write().unwrap();
    place.write().unwrap();
}

#[test]
fn an_edit_of_one_line_is_no_reading() {
    let place = Place::new();
    place.edit("line 7\n", "seven\n");
    assert_eq!(place.refused(), "this session has not read a.txt as it is now");
    place.read(1, 100);
    place.edit("line 8\n", "eight\n");
    place.write().unwrap();
}

#[test]
fn a_line_that_was_cut_was_not_read() {
    let place = Place::new();
    fs::write(place.path(), "x".repeat(100_000)).unwrap();
    place.read(1, 100);
    place.refused();
}

#[test]
fn if_changed_since_seen_is_about_what_was_shown() {
    let place = Place::new();
    let again = || place.call("Read", json!({"file_path": "a.txt", "if_changed_since": "seen"}));
    place.read(1, 3);
    assert!(again().contains("line 30"));
    assert_eq!(again(), "a.txt is unchanged.\n");
}

#[test]
fn who_changed_a_file_is_said_where_it_is_known() {
    let place = Place::new();
    place.read(1, 100);
    place.bash("sed -i 's/line 3$/three/' a.txt");
    let edited = place.edit("line 9\n", "nine\n");
    let expected = "Since this session last saw it, the file was changed by this session's command sh_1 (change 1): line 3.";
    assert!(edited.contains(expected), "{edited}");

    place.call("Undo", json!({}));
    let read = place.read(1, 100);
    assert!(read.starts_with("     1\t"), "its own undo is known: {read}");

    let other = place.runtime.session();
    let args = json!({"file_path": "a.txt", "old_string": "line 20", "new_string": "twenty"});
    place.runtime.call(&other, Call::new("Edit", args), Options::default()).unwrap();
    let read = place.read(1, 1);
    assert!(read.starts_with("[changed since it was last seen, by another session (change 4)"));

    fs::write(place.path(), "by a person\n").unwrap();
    let read = place.read(1, 1);
    assert!(read.starts_with("[changed since it was last seen: line 1]\n"), "{read}");

    let running = "echo 1 > a.txt; until [ -f go ]; do sleep 0.01; done";
    place.call("Bash", json!({"command": running, "run_in_background": true}));
    while fs::read_to_string(place.path()).unwrap() != "1\n" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let read = place.read(1, 1);
    let expected = "[changed since it was last seen, by this session's command sh_2, which still runs: line 1]\n";
    assert!(read.starts_with(expected), "{read}");
    fs::write(place.top.path().join("ws/go"), "").unwrap();
}

#[test]
fn undo_says_whose_later_changes_it_kept() {
    let place = Place::new();
    place.edit("line 3\n", "three\n");
    place.bash("sed -i 's/line 20$/twenty/' a.txt");
    let undone = place.call("Undo", json!({"id": 1}));
    assert!(undone.ends_with("Later changes were kept in: a.txt (change 2)."), "{undone}");
    place.call("Undo", json!({"id": 3}));
    let text = fs::read_to_string(place.path()).unwrap();
    fs::write(place.path(), text.replace("line 29", "29")).unwrap();
    let undone = place.call("Undo", json!({"id": 1}));
    let expected =
        "Later changes were kept in: a.txt (changes 2, 4, and others not made by these tools).";
    assert!(undone.ends_with(expected), "{undone}");
}

#[test]
fn the_history_shows_the_command_without_secrets_and_nothing_invisible() {
    let place = Place::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    place.bash(&format!("TOKEN={token} sh -c 'echo x > made' # \u{202e}reversed\necho second"));
    let history = place.call("History", json!({}));
    assert!(history.contains("Bash `TOKEN="), "{history}");
    assert!(history.contains(" …`: made (created)"), "{history}");
    assert!(!history.contains(&token) && !history.contains('\u{202e}'), "{history}");
    assert!(!history.contains("second"), "only the first line: {history}");
    let long = format!("echo {} > long", "x".repeat(1_000));
    place.bash(&long);
    let history = place.call("History", json!({}));
    assert!(history.lines().next().unwrap().chars().count() < 150, "{history}");
}
