//! A change is recorded for the command or tool that made it, and Undo reverts no other change in its place.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::{Call, Error, Options, Reply, Runtime, Session};

struct Fixture {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Fixture {
    fn new() -> Fixture {
        let top = crate::command_directory();
        fs::create_dir(top.path().join("ws")).unwrap();
        let runtime = crate::workspace_runtime(top.path());
        let session = runtime.session();
        let fixture = Fixture { top, runtime, session };
        for name in ["a.txt", "b.txt"] {
            fs::write(fixture.path(name), "before\n").unwrap();
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join("ws").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn bash(&self, command: &str) -> Reply {
        self.call("Bash", json!({"command": command})).unwrap()
    }

    fn wait_for_exit(&self, reply: &Reply) {
        let id = reply.metadata()["bash_id"].as_str().unwrap();
        let until = Instant::now() + Duration::from_secs(600);
        let is_running = || {
            let listed = self.call("ListShells", json!({"running": true})).unwrap();
            !listed.metadata()["shells"].as_array().unwrap().is_empty()
        };
        while is_running() {
            assert!(Instant::now() < until, "{id} still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Records the changes of the command.
        self.call("BashOutput", json!({"bash_id": id})).unwrap();
    }
}

#[test]
fn a_running_command_does_not_own_later_changes_of_others() {
    let fixture = Fixture::new();
    let started =
        fixture.bash("echo command > a.txt; echo command > b.txt; sleep 2 & echo started");
    assert!(started.output().contains("modified a.txt, b.txt"), "{}", started.output());
    fs::write(fixture.path("a.txt"), "by the user\n").unwrap();
    let edit = json!({"file_path": "b.txt", "old_string": "command", "new_string": "edited"});
    fixture.call("Read", json!({"file_path": "b.txt"})).unwrap();
    fixture.call("Edit", edit).unwrap();
    fixture.wait_for_exit(&started);
    let history = fixture.runtime.history().unwrap();
    let tools: Vec<&str> = history.iter().map(|change| change.tool.as_str()).collect();
    assert_eq!(tools, ["Bash", "Edit"]);
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(
        (fixture.text("a.txt"), fixture.text("b.txt")),
        ("by the user\n".into(), "command\n".into())
    );
}

#[test]
fn a_write_through_a_descriptor_that_stays_open_is_recorded() {
    let fixture = Fixture::new();
    let started = fixture.bash("(sleep 1; echo late) >> a.txt & echo started");
    fixture.wait_for_exit(&started);
    assert_eq!(fixture.text("a.txt"), "before\nlate\n");
    let history = fixture.runtime.history().unwrap();
    assert_eq!(history.len(), 1);
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fixture.text("a.txt"), "before\n");
}

#[test]
fn a_change_of_tmp_and_the_workspace_is_known_outside_the_session() {
    let fixture = Fixture::new();
    let patch = "*** Begin Patch\n*** Add File: /tmp/made.txt\n+made\n*** Update File: a.txt\n@@\n-before\n+after\n*** Delete File: b.txt\n*** End Patch\n";
    fixture.call("ApplyPatch", json!({"patch": patch})).unwrap();
    let history = fixture.runtime.history().unwrap();
    let names: Vec<&str> = history[0].files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["a.txt", "b.txt"]);
    assert!(history[0].is_partial);
    // Another session sees the part in the workspace, and reverts it once.
    let other = fixture.runtime.session();
    let undo = || fixture.runtime.call(&other, Call::new("Undo", json!({})), Options::default());
    undo().unwrap();
    assert_eq!(
        (fixture.text("a.txt"), fixture.text("b.txt")),
        ("before\n".into(), "before\n".into())
    );
    assert!(fixture.runtime.history().unwrap()[0].undone);
    assert!(undo().unwrap_err().to_string().contains("nothing to"), "undone twice");
}

#[test]
fn undo_stops_at_a_change_that_was_not_kept() {
    let fixture = Fixture::new();
    fixture.call("Write", json!({"file_path": "new.txt", "content": "new\n"})).unwrap();
    let big = fs::File::create(fixture.path("big.bin")).unwrap();
    big.set_len(200 << 20).unwrap();
    let removed = fixture.bash("rm big.bin");
    assert!(removed.output().contains("not kept"), "{}", removed.output());
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.to_string().contains("Undo cannot revert what it did to big.bin"), "{error}");
    assert!(fixture.path("new.txt").exists());
    fixture.call("Undo", json!({"id": 1})).unwrap();
    assert!(!fixture.path("new.txt").exists());
}

#[test]
fn a_directory_mode_that_undo_does_not_restore_is_named() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("sub")).unwrap();
    let reply = fixture.bash("chmod 700 sub; chmod 750 .");
    assert!(reply.output().contains("mode of the directory"), "{}", reply.output());
    assert_eq!(reply.output().matches("mode of the directory").count(), 2, "{}", reply.output());
    let mode = fs::metadata(fixture.path("sub")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let skipped = "[skipped 1: only modes of directories changed, which Undo does not restore]";
    let error = fixture.call("Undo", json!({})).unwrap_err().text();
    assert!(error.contains("nothing to undo") && error.contains(skipped), "{error}");
    let error = fixture.call("Undo", json!({"id": 1})).unwrap_err().text();
    let why = "change 1 cannot be undone: it changed only the modes of directories";
    assert!(error.contains(why) && error.contains("sub"), "{error}");
    fixture.bash("chmod 711 sub; echo more >> a.txt");
    let undone = fixture.call("Undo", json!({})).unwrap().text();
    let stays = "The mode of the directory sub stays 711 (it was 700).";
    assert!(undone.contains(stays) && !undone.contains("not kept"), "{undone}");
}

#[test]
fn undo_passes_over_a_change_of_directory_modes() {
    let skipped = "[skipped 2: only modes of directories changed, which stay as they are]";
    for undo in [json!({}), json!({"steps": 2}), json!({"since": 1})] {
        let fixture = Fixture::new();
        fs::create_dir(fixture.path("sub")).unwrap();
        fixture.bash("echo more >> a.txt");
        fixture.bash("chmod 700 sub");
        if undo != json!({}) {
            fixture.bash("echo more >> b.txt");
        }
        let undone = fixture.call("Undo", undo).unwrap().text();
        assert!(undone.contains(skipped), "{undone}");
        assert_eq!(
            (fixture.text("a.txt"), fixture.text("b.txt")),
            ("before\n".into(), "before\n".into())
        );
    }
}

#[test]
fn a_directory_that_keeps_commands_out_has_a_way_back() {
    let fixture = Fixture::new();
    fixture.bash("chmod 000 .");
    let error = fixture.call("Bash", json!({"command": "true"})).unwrap_err();
    assert!(error.to_string().contains("another `cwd`"), "{error}");
    let root = fixture.path("").to_string_lossy().into_owned();
    let chmod = json!({"command": format!("chmod 755 {root}"), "cwd": "/tmp"});
    fixture.call("Bash", chmod).unwrap();
    fixture.bash("true");
}

#[test]
fn the_lines_of_a_large_change_are_not_counted() {
    let fixture = Fixture::new();
    fs::write(fixture.path("large.bin"), vec![7; 3 << 20]).unwrap();
    fixture.bash("rm large.bin; echo more >> a.txt");
    fixture.bash("echo more >> a.txt");
    let history = fixture.runtime.history().unwrap();
    assert_eq!(fixture.runtime.lines_of(&history[0]), None);
    assert_eq!(fixture.runtime.lines_of(&history[1]), Some((1, 0)));
}

#[test]
fn a_mode_is_restored_after_a_later_edit() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let mode = || fs::metadata(fixture.path("a.txt")).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(fixture.path("a.txt"), fs::Permissions::from_mode(0o644)).unwrap();
    let write = |content: &str| {
        fixture.call("Write", json!({"file_path": "a.txt", "content": content})).unwrap()
    };
    fixture.call("Read", json!({"file_path": "a.txt"})).unwrap();
    write("1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    for command in ["chmod 755 a.txt", "sed -i 1s/1/one/ a.txt; chmod 755 a.txt"] {
        let changed = fixture.call("Bash", json!({"command": command})).unwrap();
        let id = changed.metadata()["change"].as_u64().unwrap();
        fixture.bash("echo more >> a.txt");
        assert_eq!(mode(), 0o755);
        let undone = fixture.call("Undo", json!({"id": id})).unwrap();
        assert_eq!(mode(), 0o644, "{command}: {}", undone.output());
        assert!(fs::read_to_string(fixture.path("a.txt")).unwrap().ends_with("more\n"));
        assert!(fs::read_to_string(fixture.path("a.txt")).unwrap().starts_with("1\n"));
    }
}

#[test]
fn a_plain_undo_reverts_no_change_of_a_session_beside_it() {
    let fixture = Fixture::new();
    let (own, other) = (&fixture.session, fixture.runtime.session());
    // The journal counts in milliseconds.
    std::thread::sleep(Duration::from_millis(5));
    let call = |session: &Session, tool: &str, args: Value| {
        fixture.runtime.call(session, Call::new(tool, args), Options::default())
    };
    let write = |session: &Session, name: &str| {
        call(session, "Write", json!({"file_path": name, "content": "new\n"})).unwrap();
    };
    write(&other, "other.txt");
    let error = call(own, "Undo", json!({})).unwrap_err();
    assert_eq!(error.message(), "this session has made no change that can be undone");
    assert!(
        error.hint_text().ends_with("Undo with id reverts one of their changes: 1."),
        "{error}"
    );
    write(own, "own.txt");
    write(&other, "late.txt");
    call(own, "Undo", json!({})).unwrap();
    let exists = ["other.txt", "own.txt", "late.txt"].map(|name| fixture.path(name).exists());
    assert_eq!(exists, [true, false, true]);
    call(own, "Undo", json!({"id": 1})).unwrap();
    assert!(!fixture.path("other.txt").exists());
    // A session that works alone reverts what was there before it.
    let next = fixture.runtime.session();
    call(&next, "Undo", json!({})).unwrap();
    assert!(!fixture.path("late.txt").exists());
}

#[test]
fn a_plain_undo_that_conflicts_names_the_change_before() {
    let fixture = Fixture::new();
    fs::write(fixture.path("b.txt"), NUMBERS).unwrap();
    fixture.bash("echo first > a.txt");
    fixture.edit("b.txt", "1", "one");
    fixture.edit("b.txt", "9", "nine");
    fs::write(fixture.path("b.txt"), fixture.text("b.txt").replace("nine", "NINE")).unwrap();
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.hint_text().contains("Undo with id 2 reverts an earlier change"), "{error}");
    fixture.call("Undo", json!({"id": 2})).unwrap();
    assert_eq!(fixture.text("b.txt"), NUMBERS.replace('9', "NINE"));
    // The only earlier change is about another file.
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(!error.hint_text().contains("an earlier change"), "{error}");
}

#[test]
fn a_plain_undo_that_conflicts_names_only_changes_that_can_be_undone() {
    let fixture = Fixture::new();
    fs::write(fixture.path("b.txt"), NUMBERS).unwrap();
    fixture.edit("b.txt", "1", "one");
    fixture.bash("sed -i s/9/first/ b.txt");
    fixture.bash("sed -i s/first/second/ b.txt");
    fs::write(fixture.path("b.txt"), fixture.text("b.txt").replace("second", "third")).unwrap();
    // Change 2 has the same conflict.
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(error.hint_text().contains("Undo with id 1 reverts an earlier change"), "{error}");
    fixture.call("Undo", json!({"id": 1})).unwrap();
    let error = fixture.call("Undo", json!({})).unwrap_err();
    assert!(!error.hint_text().contains("an earlier change"), "{error}");
}

#[test]
fn files_that_are_not_generated_come_first_and_a_diff_has_only_net_changes() {
    let fixture = Fixture::new();
    fixture.bash(
        "mkdir -p node_modules/x && for n in 1 2 3 4 5; do echo $n > node_modules/x/$n.js; done; echo z > z.txt",
    );
    let history = fixture.runtime.history().unwrap();
    let summary = history[0].summary();
    assert!(summary.ends_with(": z.txt (created), and 5 ignored or generated"), "{summary}");
    assert_eq!(history[0].files[0].path, "z.txt");
    let diff = fixture.runtime.diff_since(None).unwrap();
    assert!(diff.ends_with("[ignored or generated: 5 files in node_modules]\n"), "{diff}");
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fixture.runtime.diff_since(None).unwrap(), "");
}

#[test]
fn a_conflict_names_the_changes_of_other_sessions() {
    let fixture = Fixture::new();
    let other = fixture.runtime.session();
    let edit = |session: &Session, file: &str, old: &str, new: &str| {
        let call = |tool: &str, args: Value| {
            fixture.runtime.call(session, Call::new(tool, args), Options::default()).unwrap()
        };
        call("Read", json!({"file_path": file}));
        call("Edit", json!({"file_path": file, "old_string": old, "new_string": new}));
    };
    fs::write(fixture.path("a.txt"), format!("before\n{NUMBERS}")).unwrap();
    edit(&fixture.session, "a.txt", "9", "nine");
    edit(&other, "a.txt", "7", "seven");
    edit(&fixture.session, "a.txt", "before", "mine");
    edit(&other, "a.txt", "mine", "theirs");
    let error = fixture.call("Undo", json!({})).unwrap_err();
    let hint = error.hint_text();
    assert!(hint.contains("Change 4 is by another session"), "{hint}");
    // Its own earlier change, not the one of the other session.
    assert!(hint.contains("id 1 reverts an earlier change"), "{hint}");
}

#[test]
fn a_conflict_names_only_changes_of_the_file_that_conflicts() {
    let fixture = Fixture::new();
    let other = fixture.runtime.session();
    let apply = |session: &Session, patch: &str| {
        let call = Call::new("ApplyPatch", json!({"patch": patch}));
        fixture.runtime.call(session, call, Options::default()).unwrap();
    };
    let file = |name: &str, old: &str, new: &str| {
        format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n")
    };
    let made = "--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1,7 @@\n+1\n+2\n+3\n+4\n+5\n+6\n+7\n";
    apply(&fixture.session, made);
    apply(&fixture.session, &(file("a.txt", "before", "mine") + &file("c.txt", "1", "one")));
    apply(&other, "--- a/c.txt\n+++ b/c.txt\n@@ -7 +7 @@\n-7\n+seven\n");
    apply(&other, &file("a.txt", "mine", "theirs"));
    let error = fixture.call("Undo", json!({})).unwrap_err();
    let hint = error.hint_text();
    assert!(hint.contains("Change 4 is by another session"), "{hint}");
    assert!(!hint.contains('3'), "{hint}");
}

impl Fixture {
    /// Starts a job, and waits until a file contains a text. Returns the id of the job.
    fn job(&self, command: &str, name: &str, text: &str) -> String {
        let job = json!({"command": format!("{command}; sleep 600"), "run_in_background": true});
        let started = self.call("Bash", job).unwrap();
        crate::eventually(|| {
            fs::read_to_string(self.path(name)).is_ok_and(|now| now.contains(text))
        });
        started.metadata()["bash_id"].as_str().unwrap().to_owned()
    }

    fn edit(&self, name: &str, old: &str, new: &str) {
        self.call("Read", json!({"file_path": name})).unwrap();
        let edit = json!({"file_path": name, "old_string": old, "new_string": new});
        self.call("Edit", edit).unwrap();
    }

    /// Ends a job. Returns its reply, after its changes were recorded.
    fn kill(&self, id: &str) -> String {
        self.call("KillShell", json!({"shell_id": id})).unwrap().text()
    }
}

const NUMBERS: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

#[test]
fn undo_of_a_job_keeps_an_edit_that_was_made_while_it_ran() {
    for (command, before) in [
        ("sed -i s/1/JOB/ a.txt", NUMBERS),
        ("exec 3<> a.txt; printf J >&3", NUMBERS),
        ("sed s/1/JOB/ b.txt > a.txt", "old\n2\n3\n4\n5\n6\n7\n8\n9\n"),
    ] {
        let fixture = Fixture::new();
        fs::write(fixture.path("a.txt"), before).unwrap();
        fs::write(fixture.path("b.txt"), NUMBERS).unwrap();
        let id = fixture.job(&format!("{command}; echo x > other"), "other", "x");
        fixture.edit("a.txt", "9", "NINE");
        let ended = fixture.kill(&id);
        assert!(ended.contains("modified a.txt; created other; Undo with id 2"), "{ended}");
        let undone = fixture.call("Undo", json!({})).unwrap().text();
        assert!(undone.contains("Later changes were kept in: a.txt (change 1)."), "{undone}");
        assert_eq!(fixture.text("a.txt"), before.replace('9', "NINE"), "{command}");
        assert!(!fixture.path("other").exists());
        fixture.call("Undo", json!({})).unwrap();
        assert_eq!(fixture.text("a.txt"), before, "{command}");
    }
}

#[test]
fn undo_of_a_job_does_not_delete_a_file_that_was_edited_since() {
    for command in
        ["cp b.txt new.txt", "mkdir d; cp b.txt d/new.txt", "mkdir x; cp b.txt x/new.txt; mv x d"]
    {
        let fixture = Fixture::new();
        fs::write(fixture.path("b.txt"), NUMBERS).unwrap();
        let name = if command.contains('d') { "d/new.txt" } else { "new.txt" };
        let name = if command.starts_with("cp") { "new.txt" } else { name };
        let id = fixture.job(command, name, "9");
        fixture.edit(name, "9", "NINE");
        fixture.kill(&id);
        let error = fixture.call("Undo", json!({"id": 2})).unwrap_err().text();
        let why = format!("it created {name}, which was changed since\n");
        assert!(error.contains(&why) && error.contains("Undo with id 1 first."), "{error}");
        assert_eq!(fixture.text(name), NUMBERS.replace('9', "NINE"), "{command}");
    }
}

#[test]
fn an_undo_of_several_changes_reverts_them_in_the_order_in_which_they_were_made() {
    for undo in [json!({"since": 1}), json!({"steps": 2})] {
        for command in ["cp b.txt new.txt", "sed s/9/TEN/ b.txt > new.txt"] {
            let fixture = Fixture::new();
            fs::write(fixture.path("b.txt"), NUMBERS).unwrap();
            if command.starts_with("sed") {
                fs::write(fixture.path("new.txt"), NUMBERS).unwrap();
            }
            let id = fixture.job(&format!("{command}; echo x > end"), "end", "x");
            let last = if command.starts_with("sed") { "TEN" } else { "9" };
            fixture.edit("new.txt", last, "NINE");
            fixture.kill(&id);
            fixture.call("Undo", undo.clone()).unwrap();
            let now = fs::read_to_string(fixture.path("new.txt")).ok();
            assert_eq!(now.as_deref(), command.starts_with("sed").then_some(NUMBERS));
        }
    }
}

#[test]
fn an_undo_of_an_edit_names_no_job_that_wrote_the_file_before() {
    let fixture = Fixture::new();
    fs::write(fixture.path("a.txt"), NUMBERS).unwrap();
    let id = fixture.job("sed -i s/1/JOB/ a.txt", "a.txt", "JOB");
    fixture.edit("a.txt", "9", "NINE");
    fixture.kill(&id);
    fixture.edit("a.txt", "5", "FIVE");
    let undone = fixture.call("Undo", json!({"id": 1})).unwrap().text();
    assert!(undone.contains("Later changes were kept in: a.txt (change 3)."), "{undone}");
    assert_eq!(fixture.text("a.txt"), NUMBERS.replace('1', "JOB").replace('5', "FIVE"));
}

#[test]
fn undo_of_a_job_keeps_files_that_others_made_in_its_directory() {
    for after in ["echo job >> d/mine", "mv d e", "true"] {
        let fixture = Fixture::new();
        let command = format!(
            "mkdir d; echo job > d/job; until [ -f go ]; do sleep 0.01; done; {after}; rm go"
        );
        let id = fixture.job(&format!("{command}; echo x > end"), "d/job", "job");
        fixture.call("Write", json!({"file_path": "d/mine", "content": "mine\n"})).unwrap();
        fs::write(fixture.path("go"), "").unwrap();
        crate::eventually(|| fixture.path("end").exists());
        fixture.kill(&id);
        fixture.call("Undo", json!({})).unwrap();
        assert_eq!(fixture.text("d/mine"), "mine\n", "{after}");
        assert!(!fixture.path("d/job").exists() && !fixture.path("e").exists(), "{after}");
    }
}

#[test]
fn undo_of_a_command_keeps_what_another_command_wrote_meanwhile() {
    let fixture = Fixture::new();
    fs::write(fixture.path("a.txt"), NUMBERS).unwrap();
    let id = fixture.job("sed -i s/1/JOB/ a.txt", "a.txt", "JOB");
    let other = fixture.bash("sed -i s/9/NINE/ a.txt");
    assert!(other.output().contains("modified a.txt; Undo with id 1"), "{}", other.output());
    fixture.kill(&id);
    fixture.call("Undo", json!({})).unwrap();
    assert_eq!(fixture.text("a.txt"), NUMBERS.replace('9', "NINE"));
    fixture.call("Undo", json!({"id": 1})).unwrap();
    assert_eq!(fixture.text("a.txt"), NUMBERS);
}

#[test]
fn what_a_job_writes_between_edits_can_be_undone() {
    let fixture = Fixture::new();
    fs::write(fixture.path("a.txt"), NUMBERS).unwrap();
    let wait = |n: u8| format!("until [ -f go{n} ]; do sleep 0.01; done");
    let command = format!(
        "sed -i s/1/JOB/ a.txt; {}; sed -i s/5/FIVE/ a.txt; {}; sed -i s/7/SEVEN/ a.txt",
        wait(1),
        wait(2)
    );
    let id = fixture.job(&command, "a.txt", "JOB");
    fixture.edit("a.txt", "JOB", "EDIT");
    fs::write(fixture.path("go1"), "").unwrap();
    crate::eventually(|| fixture.text("a.txt").contains("FIVE"));
    fixture.edit("a.txt", "FIVE", "EDIT5");
    fs::write(fixture.path("go2"), "").unwrap();
    crate::eventually(|| fixture.text("a.txt").contains("SEVEN"));
    let ended = fixture.kill(&id);
    assert!(ended.contains("[modified a.txt; Undo with id 3, 4, 5 reverts this]"), "{ended}");
    fixture.call("Undo", json!({"id": 5})).unwrap();
    assert_eq!(fixture.text("a.txt"), "EDIT\n2\n3\n4\nEDIT5\n6\n7\n8\n9\n");
    fixture.call("Undo", json!({"since": 1})).unwrap();
    assert_eq!(fixture.text("a.txt"), NUMBERS);
}

#[test]
fn what_a_job_and_commands_write_again_is_not_undone_silently() {
    let fixture = Fixture::new();
    fs::write(fixture.path("a.txt"), NUMBERS).unwrap();
    let wait = |n: u8| format!("until [ -f go{n} ]; do sleep 0.01; done");
    let command = format!(
        "sed -i s/1/JOB/ a.txt; {}; sed -i s/5/FIVE/ a.txt; {}; sed -i s/7/SEVEN/ a.txt",
        wait(1),
        wait(2)
    );
    let id = fixture.job(&command, "a.txt", "JOB");
    fixture.edit("a.txt", "9", "NINE");
    fs::write(fixture.path("go1"), "").unwrap();
    crate::eventually(|| fixture.text("a.txt").contains("FIVE"));
    fixture.bash("sed -i s/3/THREE/ a.txt");
    fs::write(fixture.path("go2"), "").unwrap();
    crate::eventually(|| fixture.text("a.txt").contains("SEVEN"));
    let ended = fixture.kill(&id);
    // The second change has another one in it, and nothing tells which part is the job's.
    let lost = "not kept, so Undo cannot restore it: a.txt (another tool or command wrote it at the same time)";
    assert!(ended.contains("Undo with id 3 reverts this (exceptions below)"), "{ended}");
    assert!(ended.contains(lost), "{ended}");
    let error = fixture.call("Undo", json!({})).unwrap_err().text();
    assert!(error.contains("change 4 cannot be undone"), "{error}");
    fixture.call("Undo", json!({"id": 3})).unwrap();
    assert_eq!(fixture.text("a.txt"), "1\n2\nTHREE\n4\nFIVE\n6\nSEVEN\n8\nNINE\n");
}

#[test]
fn what_a_job_writes_after_an_edit_can_be_undone() {
    let fixture = Fixture::new();
    fs::write(fixture.path("a.txt"), NUMBERS).unwrap();
    let command =
        "sed -i s/1/JOB/ a.txt; until [ -f go ]; do sleep 0.01; done; sed -i s/5/FIVE/ a.txt";
    let id = fixture.job(command, "a.txt", "JOB");
    fixture.edit("a.txt", "9", "NINE");
    fs::write(fixture.path("go"), "").unwrap();
    crate::eventually(|| fixture.text("a.txt").contains("FIVE"));
    let ended = fixture.kill(&id);
    assert!(ended.contains("[modified a.txt; Undo with id 2, 3 reverts this]"), "{ended}");
    fixture.call("Undo", json!({"steps": 2})).unwrap();
    assert_eq!(fixture.text("a.txt"), NUMBERS.replace('9', "NINE"));
}
