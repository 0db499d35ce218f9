//! Undo of changes that include protected files.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Error, ErrorKind, Options, Protection, Reply, Rules, Runtime};

const NAME: &str = ".claude/settings.json";

struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        Fixture { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("ws").join(name)
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    fn content(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    fn call(&self, protection: Protection, tool: &str, args: Value) -> Result<Reply, Error> {
        let runtime = Runtime::builder()
            .root(self.directory.path().join("ws"))
            .journal(self.directory.path().join("state"), Caps::default())
            .protection(protection)
            .build()
            .unwrap();
        runtime.call(&runtime.session(), Call::new(tool, args), Options::default())
    }

    /// Makes a change of a protected file and others, as a command might.
    fn patch(&self, patch: &str) {
        let allowed = Protection::default().allow(".claude").unwrap();
        self.call(allowed, "ApplyPatch", json!({"patch": patch})).unwrap();
    }

    /// Makes calls by these rules.
    fn held_to(&self, rules: &str) -> impl Fn(&str, Value) -> Result<Reply, Error> {
        let runtime = Runtime::builder()
            .root(self.directory.path().join("ws"))
            .journal(self.directory.path().join("state"), Caps::default())
            .rules(Rules::parse(rules).unwrap())
            .build()
            .unwrap();
        let session = runtime.session();
        move |tool, args| runtime.call(&session, Call::new(tool, args), Options::default())
    }

    fn undo(&self, args: Value) -> Result<Reply, Error> {
        self.call(Protection::default(), "Undo", args)
    }
}

const DELETE_AND_CREATE: &str = "--- a/data\n+++ /dev/null\n@@ -1 +0,0 @@\n-precious\n\
    --- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+made\n";

#[test]
fn undo_removes_a_created_protected_file() {
    let fixture = Fixture::new();
    fixture.put("data", "precious\n");
    fixture.patch(DELETE_AND_CREATE);
    assert_eq!((fixture.content("data"), fixture.content(NAME).as_deref()), (None, Some("made\n")));
    let reply = fixture.undo(json!({})).unwrap();
    assert_eq!(
        (fixture.content("data").as_deref(), fixture.content(NAME)),
        (Some("precious\n"), None)
    );
    assert!(!fixture.path(".claude").exists());
    let text = reply.output();
    assert!(
        text.contains(
            "This includes protected files, which need no further action: .claude/settings.json."
        ),
        "{text}"
    );
    // Redo skips the protected file and restores the rest.
    let id = reply.metadata()["change"].clone();
    let redone = fixture.undo(json!({"id": id})).unwrap();
    assert_eq!((fixture.content("data"), fixture.content(NAME)), (None, None));
    let text = redone.output();
    assert!(text.contains("Not restored: .claude/settings.json"), "{text}");
}

#[test]
fn undo_restores_a_changed_protected_file() {
    let fixture = Fixture::new();
    fixture.put("data", "one\n");
    fixture.put(NAME, "users\n");
    fixture.patch(
        "--- a/data\n+++ b/data\n@@ -1 +1 @@\n-one\n+two\n\
         --- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-users\n+evil\n",
    );
    fixture.undo(json!({})).unwrap();
    let content = (fixture.content("data").unwrap(), fixture.content(NAME).unwrap());
    assert_eq!(content, ("one\n".to_owned(), "users\n".to_owned()));
}

#[test]
fn undo_skips_a_protected_file_changed_since() {
    let fixture = Fixture::new();
    fixture.put("data", "precious\n");
    fixture.patch(DELETE_AND_CREATE);
    fixture.put(NAME, "made\nand more\n");
    let reply = fixture.undo(json!({})).unwrap();
    assert_eq!(fixture.content("data").as_deref(), Some("precious\n"));
    assert_eq!(fixture.content(NAME).as_deref(), Some("made\nand more\n"));
    assert!(
        reply.output().contains(".claude/settings.json (it was changed since)"),
        "{}",
        reply.output()
    );
}

/// Undo cannot restore content that an agent wrote to a protected file.
#[test]
fn undo_does_not_restore_protected_content_written_by_a_change() {
    let fixture = Fixture::new();
    fixture.patch("--- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+evil\n");
    fixture.patch("--- a/.claude/settings.json\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n");
    let error = fixture.undo(json!({})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protected, "{}", error.text());
    assert!(
        error.text().contains("a tool or command has written its old content"),
        "{}",
        error.text()
    );
    // The operator's own Undo protects the file, too.
    let hint = error.hint_text();
    assert!(hint.contains("allow_protected") && !hint.contains("toolcrib undo"), "{hint}");
    assert_eq!(fixture.content(NAME), None);
}

#[test]
fn rules_hold_for_history_and_undo() {
    let fixture = Fixture::new();
    let write = |name: &str, content: &str| {
        let args = json!({"file_path": name, "content": content});
        fixture.call(Protection::default(), "Write", args).unwrap();
    };
    write("secret.txt", "first value\n");
    fixture.call(Protection::default(), "Read", json!({"file_path": "secret.txt"})).unwrap();
    let both = "--- a/secret.txt\n+++ b/secret.txt\n@@ -1 +1 @@\n-first value\n+second value\n\
        --- /dev/null\n+++ b/open.txt\n@@ -0,0 +1 @@\n+made\n";
    fixture.call(Protection::default(), "ApplyPatch", json!({"patch": both})).unwrap();
    let rules = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**/secret.txt\"]\n";
    let call = fixture.held_to(rules);
    let shown = call("History", json!({"id": 2})).unwrap();
    assert!(shown.text().contains("secret.txt: not shown"), "{}", shown.text());
    assert!(shown.text().contains("+made") && !shown.text().contains("value"), "{}", shown.text());
    // The other file is restored.
    let undone = call("Undo", json!({"id": 2})).unwrap();
    assert!(undone.text().contains("secret.txt (a rule denies changing it)"), "{}", undone.text());
    assert_eq!(fixture.content("secret.txt").unwrap(), "second value\n");
    assert_eq!(fixture.content("open.txt"), None);
    let error = call("Undo", json!({"id": 1})).unwrap_err();
    assert!(!error.to_string().contains("value"), "{error}");
    let hint = error.hint_text();
    assert!(hint.contains("`toolcrib undo 1`") && !hint.contains("allow_protected"), "{hint}");
    assert_eq!(fixture.content("secret.txt").unwrap(), "second value\n");
}

/// Nothing is known about it from a conflict or a merge.
#[test]
fn a_denied_file_that_was_changed_since_does_not_keep_the_others_from_being_undone() {
    let secret = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
    let rules = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**/secret.txt\"]\n";
    // The same line, and another one that could be merged.
    for (line, was) in [(1, "1"), (7, "seven")] {
        let fixture = Fixture::new();
        fixture.put("secret.txt", secret);
        let first = "--- a/secret.txt\n+++ b/secret.txt\n@@ -1 +1 @@\n-one\n+1\n\
            --- /dev/null\n+++ b/open.txt\n@@ -0,0 +1 @@\n+made\n";
        let later =
            format!("--- a/secret.txt\n+++ b/secret.txt\n@@ -{line} +{line} @@\n-{was}\n+later\n");
        for patch in [first, &later] {
            let args = json!({"patch": patch});
            fixture.call(Protection::default(), "ApplyPatch", args).unwrap();
        }
        let before = fixture.content("secret.txt");
        let undone = fixture.held_to(rules)("Undo", json!({"id": 1})).unwrap();
        let text = undone.text();
        assert!(text.contains("Not restored: secret.txt (a rule denies changing it)"), "{text}");
        assert!(!text.contains("Later changes were kept"), "{text}");
        assert_eq!((fixture.content("secret.txt"), fixture.content("open.txt")), (before, None));
    }
}

#[test]
fn history_does_not_show_files_that_a_rule_asks_about() {
    let fixture = Fixture::new();
    let write = json!({"file_path": "asked.txt", "content": "the value\n"});
    fixture.call(Protection::default(), "Write", write).unwrap();
    let rules = "[[rule]]\ndecision = \"ask\"\nkind = \"read\"\npaths = [\"**/asked.txt\"]\n";
    let shown = fixture.held_to(rules)("History", json!({"id": 1})).unwrap();
    assert!(shown.text().contains("asked.txt: not shown"), "{}", shown.text());
    assert!(!shown.text().contains("value"), "{}", shown.text());
}
