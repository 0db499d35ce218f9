//! Undo of changes among whose files are protected ones.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Error, ErrorKind, Options, Protection, Reply, Runtime};

const NAME: &str = ".claude/settings.json";

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        Place { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("ws").join(name)
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    fn says(&self, name: &str) -> Option<String> {
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

    /// A change of a protected file and others, as a command may come to make one.
    fn patch(&self, patch: &str) {
        let allowed = Protection::default().allow(".claude").unwrap();
        self.call(allowed, "ApplyPatch", json!({"patch": patch})).unwrap();
    }

    fn undo(&self, args: Value) -> Result<Reply, Error> {
        self.call(Protection::default(), "Undo", args)
    }
}

const DELETES_AND_MAKES: &str = "--- a/data\n+++ /dev/null\n@@ -1 +0,0 @@\n-precious\n\
    --- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+made\n";

#[test]
fn a_protected_file_that_was_made_goes_with_the_rest() {
    let place = Place::new();
    place.put("data", "precious\n");
    place.patch(DELETES_AND_MAKES);
    assert_eq!((place.says("data"), place.says(NAME).as_deref()), (None, Some("made\n")));
    let reply = place.undo(json!({})).unwrap();
    assert_eq!((place.says("data").as_deref(), place.says(NAME)), (Some("precious\n"), None));
    assert!(!place.path(".claude").exists());
    let text = reply.output();
    assert!(text.contains("say again what they said before: .claude/settings.json."), "{text}");
    // What was taken back is not done again, but for the rest.
    let id = reply.metadata()["change"].clone();
    let redone = place.undo(json!({"id": id})).unwrap();
    assert_eq!((place.says("data"), place.says(NAME)), (None, None));
    let text = redone.output();
    assert!(text.contains("left as they are: .claude/settings.json"), "{text}");
}

#[test]
fn a_protected_file_that_was_changed_gets_its_bytes_back() {
    let place = Place::new();
    place.put("data", "one\n");
    place.put(NAME, "users\n");
    place.patch(
        "--- a/data\n+++ b/data\n@@ -1 +1 @@\n-one\n+two\n\
         --- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-users\n+evil\n",
    );
    place.undo(json!({})).unwrap();
    let says = (place.says("data").unwrap(), place.says(NAME).unwrap());
    assert_eq!(says, ("one\n".to_owned(), "users\n".to_owned()));
}

#[test]
fn a_protected_file_that_was_changed_since_stays_and_the_rest_comes_back() {
    let place = Place::new();
    place.put("data", "precious\n");
    place.patch(DELETES_AND_MAKES);
    place.put(NAME, "made\nand more\n");
    let reply = place.undo(json!({})).unwrap();
    assert_eq!(place.says("data").as_deref(), Some("precious\n"));
    assert_eq!(place.says(NAME).as_deref(), Some("made\nand more\n"));
    assert!(reply.output().contains(".claude/settings.json (changed since)"), "{}", reply.output());
}

/// Undo is no way to have a protected file say again what an agent once wrote.
#[test]
fn a_protected_file_does_not_get_back_what_a_change_wrote() {
    let place = Place::new();
    place.patch("--- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+evil\n");
    place.patch("--- a/.claude/settings.json\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n");
    let error = place.undo(json!({})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protected, "{}", error.text());
    assert!(error.text().contains("written by an earlier change"), "{}", error.text());
    assert_eq!(place.says(NAME), None);
}
