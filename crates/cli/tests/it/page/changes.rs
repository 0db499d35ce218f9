//! Changes on the page: diffs, undo of parts, redo.

use serde_json::{Value, json};

use super::{RunningPage, User};

/// A change of two places in a file.
fn changed() -> (User, RunningPage) {
    let user = User::new();
    let text: String = (1..=40).map(|number| format!("{number}\n")).collect();
    user.write("a.txt", &text);
    user.call("Read", &json!({"file_path": "a.txt"}));
    let edits = json!([
        {"old_string": "\n5\n", "new_string": "\nfive\n"},
        {"old_string": "\n30\n", "new_string": "\n30\nmore\n"},
    ]);
    let reply = user.call("MultiEdit", &json!({"file_path": "a.txt", "edits": edits}));
    assert_eq!(reply["metadata"]["change"], 1, "{reply}");
    let page = RunningPage::start(&user);
    (user, page)
}

#[test]
fn a_change_is_shown_with_hunks_and_what_undo_would_do() {
    let (user, page) = changed();
    let change = page.get("/api/changes/1").json();
    assert_eq!(change["summary"], "MultiEdit: a.txt");
    let hunks = change["files"][0]["hunks"].as_array().unwrap();
    assert_eq!(hunks.len(), 2);
    assert_eq!(hunks[0]["lines"][3], json!({"kind": "-", "text": "5", "old": 5}));
    assert_eq!(hunks[0]["lines"][4], json!({"kind": "+", "text": "five", "new": 5}));
    assert_eq!(change["undo"]["possible"], true);
    assert_eq!(change["undo"]["files"][0]["result"], "restored");
    let before = page.get("/api/calls").json()["total"].clone();
    page.get("/api/changes/1");
    assert_eq!(page.get("/api/calls").json()["total"], before, "looking is not logged");
    user.write("a.txt", &user.read("a.txt").replace("five", "FIVE"));
    let change = page.get("/api/changes/1").json();
    assert_eq!(change["undo"]["possible"], false);
    assert_eq!(change["undo"]["files"][0]["result"], "conflict");
    user.write("a.txt", &user.read("a.txt").replace("FIVE", "five").replace("\n40\n", "\nforty\n"));
    assert_eq!(page.get("/api/changes/1").json()["undo"]["files"][0]["result"], "merged");
    assert_eq!(page.get("/api/changes/9").status(), 404);
    assert_eq!(page.get("/api/changes/x").status(), 404);
}

#[test]
fn a_hunk_is_undone_and_redone_and_later_edits_stay() {
    let (user, page) = changed();
    user.write("a.txt", &user.read("a.txt").replace("\n40\n", "\nforty\n"));
    let undo = |body: &Value| page.post("/api/changes/1/undo", body);
    let hunk = json!({"hunk": {"path": "a.txt", "index": 0}});
    let mut dry = hunk.clone();
    dry["dry_run"] = true.into();
    assert!(undo(&dry).json()["diff"].as_str().unwrap().contains("-five\n+5\n"));
    assert!(user.read("a.txt").contains("five"), "a dry run writes nothing");
    let done = undo(&hunk).json();
    let text = user.read("a.txt");
    assert!(text.contains("\n5\n") && text.contains("\nmore\n") && text.contains("\nforty\n"));
    assert_eq!(undo(&hunk).status(), 409, "it is undone");
    let id = done["change"].as_str().unwrap();
    let change = page.get("/api/changes/1").json();
    assert_eq!((&change["undone"], &change["undone_in_part"]), (&json!(false), &json!(true)));
    assert_eq!(change["undone_by"], json!([id]));
    assert_eq!(change["files"][0]["undone_hunks"], json!([0]));
    assert_eq!(
        page.get(&format!("/api/changes/{id}")).json()["summary"],
        "Undo of a hunk of 1: a.txt"
    );
    let redone = page.post(&format!("/api/changes/{id}/redo"), &json!({}));
    assert_eq!(redone.status(), 200, "{}", redone.0);
    assert!(user.read("a.txt").contains("\nfive\n"));
    for (path, index) in [("a.txt", 9), ("b.txt", 0)] {
        let status = undo(&json!({"hunk": {"path": path, "index": index}})).status();
        assert!([400, 404].contains(&status), "{path} {index}: {status}");
    }
}

#[test]
fn a_change_is_undone_and_redone_as_a_whole() {
    let (user, page) = changed();
    assert_eq!(page.post("/api/changes/1/redo", &json!({})).status(), 409);
    let undone = page.post("/api/changes/1/undo", &json!({}));
    assert_eq!(undone.status(), 200, "{}", undone.0);
    assert!(!user.read("a.txt").contains("five"));
    assert_eq!(page.get("/api/changes/1").json()["undone"], true);
    assert_eq!(page.post("/api/changes/1/undo", &json!({})).status(), 409);
    let redone = page.post("/api/changes/1/redo", &json!({}));
    assert_eq!(redone.status(), 200, "{}", redone.0);
    assert!(user.read("a.txt").contains("five") && user.read("a.txt").contains("more"));
    // The undo of one hunk does not stand in the way of the rest.
    page.post("/api/changes/1/undo", &json!({"hunk": {"path": "a.txt", "index": 1}}));
    let rest = page.post("/api/changes/1/undo", &json!({}));
    assert_eq!(rest.status(), 200, "{}", rest.0);
    assert_eq!(
        user.read("a.txt"),
        (1..=40).map(|number| format!("{number}\n")).collect::<String>()
    );
}

#[test]
fn the_undo_of_a_hunk_is_an_undo_for_the_command_line_too() {
    let (user, page) = changed();
    let hunk = |index: usize| json!({"hunk": {"path": "a.txt", "index": index}});
    page.post("/api/changes/1/undo", &hunk(0));
    let next = user.run(&["undo", "--dry-run", "--json"]);
    let next: Value = serde_json::from_slice(&next.stdout).unwrap();
    assert!(next["output"].as_str().unwrap().contains("Would undo"), "{next}");
    assert_eq!(next["metadata"]["undone"], json!([1]), "the rest of the change");
    let redone = user.run(&["redo", "-y", "--json"]);
    let redone: Value = serde_json::from_slice(&redone.stdout).unwrap();
    assert_eq!(redone["success"], true, "{redone}");
    assert!(user.read("a.txt").contains("\nfive\n"));
    assert_eq!(page.get("/api/changes/1").json()["undone_in_part"], false);
    page.post("/api/changes/1/undo", &hunk(0));
    page.post("/api/changes/1/undo", &hunk(1));
    let change = page.get("/api/changes/1").json();
    assert_eq!((&change["undone"], &change["files"][0]["undone"]), (&json!(true), &json!(true)));
    assert_eq!(page.post("/api/changes/1/redo", &json!({})).status(), 200);
    assert!(user.read("a.txt").contains("more") && !user.read("a.txt").contains("five"));
}

#[test]
fn the_preview_says_what_becomes_of_each_file_and_which_later_change_is_in_the_way() {
    let user = User::new();
    user.call("Write", &json!({"file_path": "new.txt", "content": "one\n"}));
    let page = RunningPage::start(&user);
    let file = || page.get("/api/changes/1").json()["undo"]["files"][0].clone();
    assert_eq!(file()["result"], "deleted");
    user.call("Bash", &json!({"command": "echo two > new.txt"}));
    let conflict = file();
    assert_eq!((&conflict["result"], &conflict["later"]), (&json!("conflict"), &json!(["2"])));
    assert!(!conflict["text"].as_str().unwrap().contains('\n'), "{conflict}");
}

#[test]
fn some_files_of_a_change_are_undone() {
    let user = User::new();
    let reply = user.call("Bash", &json!({"command": "for x in a b c; do echo $x > $x.txt; done"}));
    let id = reply["metadata"]["change"].as_u64().unwrap();
    let page = RunningPage::start(&user);
    let undo = format!("/api/changes/{id}/undo");
    let done = page.post(&undo, &json!({"paths": ["a.txt", "c.txt"]}));
    assert_eq!(done.status(), 200, "{}", done.0);
    let exists = |file: &str| user.path("ws").join(file).exists();
    assert!(!exists("a.txt") && exists("b.txt") && !exists("c.txt"));
    let change = page.get(&format!("/api/changes/{id}")).json();
    assert_eq!((&change["undone"], &change["undone_in_part"]), (&json!(false), &json!(true)));
    assert_eq!(page.post(&undo, &json!({"paths": ["a.txt"]})).status(), 409);
    assert_eq!(page.post(&undo, &json!({"paths": []})).status(), 400);
    assert_eq!(page.post(&undo, &json!({"paths": ["../../../etc/passwd"]})).status() / 100, 4);
    assert_eq!(page.post(&undo, &json!({})).status(), 200);
    assert!(!exists("b.txt"));
}

/// Names and contents are sent as they are: the app shows them as text.
#[test]
fn hostile_names_and_contents_arrive_unchanged() {
    let user = User::new();
    let name = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m'\".txt";
    let long = "<script>".repeat(10_000);
    let content = format!("</script>\u{1b}]0;x\u{7}\u{200b}\u{2028}{{{{1+1}}}}\n{long}\n");
    let reply = user.call("Write", &json!({"file_path": name, "content": content}));
    assert_eq!(reply["success"], true, "{reply}");
    let page = RunningPage::start(&user);
    let change = page.get("/api/changes/1").json();
    let file = &change["files"][0];
    let lines = file["hunks"][0]["lines"].as_array().unwrap();
    assert_eq!(lines[0]["text"], content.lines().next().unwrap());
    assert_eq!(lines[1]["text"].as_str().unwrap().len(), 2_000);
    assert_eq!(lines[1]["cut"], true);
    let calls = page.get("/api/calls?text=onerror").json();
    let text = calls["calls"][0]["accesses"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(name), "{text}");
    assert_eq!(page.post("/api/changes/1/undo", &json!({"paths": [file["path"]]})).status(), 200);
    assert!(!user.path("ws").join(name).exists());
}
