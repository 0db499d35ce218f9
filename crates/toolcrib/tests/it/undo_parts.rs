//! Undo of hunks and files of a change, and the log of calls.

use serde_json::json;
use toolcrib::{
    Call, Caps, Error, ErrorKind, FileUndoResult, OperatorLogs, Options, Reply, Runtime, Session,
    UndoPart, UndoSelection,
};

struct Fixture {
    directory: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        let runtime = Runtime::builder()
            .root(directory.path().join("ws"))
            .journal(directory.path().join("state"), Caps::default())
            .server_id("7-abc")
            .build()
            .unwrap();
        let session = runtime.session();
        Fixture { directory, runtime, session }
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.directory.path().join("ws").join(file)
    }

    /// Writes a file by a call. Returns the id of the change.
    fn write(&self, file: &str, content: &str) -> u64 {
        if self.path(file).exists() {
            let read = Call::new("Read", json!({"file_path": file}));
            self.runtime.call(&self.session, read, Options::default()).unwrap();
        }
        let call = Call::new("Write", json!({"file_path": file, "content": content}));
        let reply = self.runtime.call(&self.session, call, Options::default()).unwrap();
        reply.metadata()["change"].as_u64().unwrap()
    }

    fn undo(&self, id: u64, part: UndoPart) -> Result<u64, Error> {
        Ok(self.undo_reply(id, part)?.metadata()["change"].as_u64().unwrap())
    }

    fn undo_reply(&self, id: u64, part: UndoPart) -> Result<Reply, Error> {
        self.runtime.undo(&self.session, UndoSelection { id, part }, Options::default())
    }

    fn hunk(&self, id: u64, file: &str, index: usize) -> Result<u64, Error> {
        self.undo(id, UndoPart::Hunk { path: file.to_owned(), index })
    }
}

fn numbered(ending: &str) -> String {
    (1..=30).map(|number| format!("{number}{ending}")).collect()
}

#[test]
fn each_hunk_can_be_undone_alone_in_any_order() {
    for ending in ["\n", "\r\n"] {
        let fixture = Fixture::new();
        let old = numbered(ending);
        let edit = |text: &str, number: u32| {
            let line = format!("{ending}{number}{ending}");
            text.replace(&line, &format!("{ending}x{number}{ending}"))
        };
        let new = edit(&edit(&edit(&old, 3), 15), 28);
        std::fs::write(fixture.path("a.txt"), &old).unwrap();
        let id = fixture.write("a.txt", &new);
        fixture.hunk(id, "a.txt", 1).unwrap();
        assert_eq!(
            std::fs::read_to_string(fixture.path("a.txt")).unwrap(),
            edit(&edit(&old, 3), 28)
        );
        fixture.hunk(id, "a.txt", 2).unwrap();
        fixture.hunk(id, "a.txt", 0).unwrap();
        assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), old);
        let error = fixture.hunk(id, "a.txt", 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyApplied);
        let error = fixture.hunk(id, "a.txt", 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn an_undone_hunk_can_be_redone_and_the_rest_undone() {
    let fixture = Fixture::new();
    let old = numbered("\n");
    let new = old.replace("\n3\n", "\nx\n").replace("\n28\n", "\ny\n");
    std::fs::write(fixture.path("a.txt"), &old).unwrap();
    let id = fixture.write("a.txt", &new);
    let undo = fixture.hunk(id, "a.txt", 0).unwrap();
    let history = fixture.runtime.history().unwrap();
    let entry = history.iter().find(|change| change.id == undo).unwrap();
    assert_eq!((entry.hunk_of, entry.undoes.len()), (Some(id), 0));
    assert!(!history.iter().find(|change| change.id == id).unwrap().undone);
    fixture.undo(undo, UndoPart::Whole).unwrap();
    assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), new);
    fixture.hunk(id, "a.txt", 1).unwrap();
    fixture.undo(id, UndoPart::Whole).unwrap();
    assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), old);
}

#[test]
fn messages_about_hunks_count_from_one_and_name_a_redo() {
    let fixture = Fixture::new();
    let old = numbered("\n");
    std::fs::write(fixture.path("a.txt"), &old).unwrap();
    let id = fixture.write("a.txt", &old.replace("\n3\n", "\nx\n").replace("\n28\n", "\ny\n"));
    let second = || UndoPart::Hunk { path: "a.txt".to_owned(), index: 1 };
    let undone = fixture.undo_reply(id, second()).unwrap();
    assert!(undone.output().starts_with("Undid, only hunk 2 of a.txt\n"), "{}", undone.output());
    let error = fixture.undo_reply(id, second()).unwrap_err();
    assert!(error.to_string().contains("hunk 2 of a.txt is already undone"), "{error}");
    let undo = undone.metadata()["change"].as_u64().unwrap();
    let redone = fixture.undo_reply(undo, UndoPart::Whole).unwrap();
    let text = redone.output();
    assert!(text.starts_with("Redid") && text.contains(&format!("\n  {id} (")), "{text}");
}

#[test]
fn a_hunk_that_was_edited_since_is_a_conflict_and_others_are_not() {
    let fixture = Fixture::new();
    let old = numbered("\n");
    std::fs::write(fixture.path("a.txt"), &old).unwrap();
    let new = old.replace("\n3\n", "\nx\n").replace("\n28\n", "\ny\n");
    let id = fixture.write("a.txt", &new);
    let edited = new.replace("\nx\n", "\nmine\n");
    std::fs::write(fixture.path("a.txt"), &edited).unwrap();
    assert_eq!(fixture.hunk(id, "a.txt", 0).unwrap_err().kind(), ErrorKind::Conflict);
    let previewed = fixture.runtime.preview_undo_of_files(&fixture.session, id).unwrap();
    assert!(matches!(previewed[0].result, FileUndoResult::Conflict { .. }));
    fixture.hunk(id, "a.txt", 1).unwrap();
    let expected = edited.replace("\ny\n", "\n28\n");
    assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), expected);
}

#[test]
fn a_created_file_has_no_hunks_to_undo() {
    let fixture = Fixture::new();
    let id = fixture.write("new.txt", "a\n");
    assert_eq!(fixture.hunk(id, "new.txt", 0).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(fixture.hunk(id, "../x", 0).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_hunk_of_a_file_in_utf_16_is_undone_and_later_edits_stay() {
    let fixture = Fixture::new();
    let wide = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    let first = numbered("\u{a0a}\n");
    std::fs::write(fixture.path("wide.txt"), wide(&first)).unwrap();
    let second = first.replace("5\u{a0a}\n6", "five\n6").replace("25\u{a0a}", "25 ä");
    let id = fixture.write("wide.txt", &second);
    assert_eq!(std::fs::read(fixture.path("wide.txt")).unwrap(), wide(&second));
    let later = format!("{second}later\n");
    fixture.write("wide.txt", &later);
    fixture.hunk(id, "wide.txt", 0).unwrap();
    let expected = later.replace("five\n6", "5\u{a0a}\n6");
    assert_eq!(std::fs::read(fixture.path("wide.txt")).unwrap(), wide(&expected));
}

#[test]
fn a_preview_of_an_undo_is_neither_made_nor_logged() {
    let fixture = Fixture::new();
    let id = fixture.write("a.txt", "a\n");
    let logs = || OperatorLogs::open(&fixture.directory.path().join("state"), Caps::default());
    let before = logs().unwrap().count_calls().unwrap();
    let selection = UndoSelection { id, part: UndoPart::Whole };
    let reply = fixture.runtime.preview_undo(&fixture.session, selection).unwrap();
    assert!(reply.output().contains("Dry run"));
    let previewed = fixture.runtime.preview_undo_of_files(&fixture.session, id).unwrap();
    assert_eq!(previewed[0].result, FileUndoResult::Deleted);
    assert!(fixture.path("a.txt").exists());
    assert_eq!(logs().unwrap().count_calls().unwrap(), before);
    assert_eq!(fixture.runtime.history().unwrap().len(), 1);
}

#[test]
fn calls_are_logged_with_their_outcome_and_bounded() {
    let fixture = Fixture::new();
    fixture.write("a.txt", &"x".repeat(100_000));
    let call = Call::new("Read", json!({"file_path": "missing"}));
    fixture.runtime.call(&fixture.session, call, Options::default()).unwrap_err();
    let call = Call::new("Bash", json!({"command": "y".repeat(200_000)}));
    fixture.runtime.call(&fixture.session, call, Options::default()).unwrap_err();
    let logs =
        OperatorLogs::open(&fixture.directory.path().join("state"), Caps::default()).unwrap();
    let page = logs.calls(None, 10, |_| true).unwrap();
    let seen: Vec<(&str, &str, Option<u64>)> = page
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.outcome.as_str(), call.change))
        .collect();
    assert_eq!(seen[1..], [("7-abc-2", "failed", None), ("7-abc-1", "done", Some(1))]);
    let size = fixture.directory.path().join("state/calls").metadata().unwrap().len();
    assert!(size < 8_000, "{size}");
    assert_eq!(logs.call("7-abc-1").unwrap().unwrap().tool, "Write");
    let workspace = fixture.directory.path().join("ws").canonicalize().unwrap();
    assert_eq!(logs.workspace_of_change(1).unwrap(), workspace);
    assert!(logs.workspace_of_change(9).is_err());
}
