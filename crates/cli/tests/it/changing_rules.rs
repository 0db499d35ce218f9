//! Rules that change while a server runs.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::approvals::{LineClient, project};
use crate::toolcrib;

const DENYING: &str = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**/a.txt\"]\n";

const IS_DENIED: &str = "a rule denies it";

/// Repeats a call until its reply is as expected: changes apply a second after they were made.
fn until(mut call: impl FnMut() -> String, is_expected: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let reply = call();
        if is_expected(&reply) {
            return reply;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{reply}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn write(run: &mut LineClient, path: &str) -> String {
    run.write(1, path);
    run.receive().to_string()
}

fn read(run: &mut LineClient) -> String {
    run.send(json!({"id": 2, "tool": "Read", "args": {"file_path": "src/a.txt"}}));
    run.receive().to_string()
}

fn bash(run: &mut LineClient, command: &str) -> String {
    run.send(json!({"id": 3, "tool": "Bash", "args": {"command": command}}));
    run.receive().to_string()
}

/// Longer than a change needs to apply.
fn let_it_apply() {
    std::thread::sleep(Duration::from_millis(1_500));
}

#[test]
fn the_command_that_a_refusal_names_helps() {
    let top = project();
    let rules = top.path().join("rules.toml");
    let mut run = LineClient::start(top.path(), &["--profile", "cautious"]);
    let denied = write(&mut run, "src/a.txt");
    let step = denied.split("run `").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<&str> = step.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
    let added = toolcrib(&top.path().join("ws"), &words, b"");
    assert!(added.status.success(), "{words:?}: {added:?}");
    until(|| write(&mut run, "src/a.txt"), |reply| !reply.contains("was not allowed"));
    // An invalid file changes nothing, and replies say so: each session is told once, refusals always.
    let allowing = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, format!("{allowing}[[rule]]\ndecision = \"maybe\"\n")).unwrap();
    let is_told = |reply: &str| reply.contains("not applied: ") && reply.contains("maybe");
    let told = until(|| write(&mut run, "src/a.txt"), is_told);
    assert!(!told.contains("was not allowed"), "{told}");
    assert!(!is_told(&write(&mut run, "src/a.txt")));
    assert!(is_told(&write(&mut run, "b.txt")) && is_told(&write(&mut run, "b.txt")));
    fs::write(&rules, format!("{allowing}{DENYING}")).unwrap();
    until(|| write(&mut run, "src/a.txt"), |reply| reply.contains(IS_DENIED));
    // Also for files that commands read.
    let read = bash(&mut run, "grep -r x src");
    assert!(!read.contains("a.txt:x") && read.contains("a.txt"), "{read}");
    fs::write(&rules, allowing).unwrap();
    let allowed = until(|| write(&mut run, "src/a.txt"), |reply| !reply.contains(IS_DENIED));
    assert!(!allowed.contains("not allowed") && !allowed.contains("not applied"), "{allowed}");
    assert!(run.end().is_empty());
}

#[test]
fn a_missing_or_truncated_file_drops_no_rule() {
    let top = project();
    let rules = top.path().join("rules.toml");
    fs::write(&rules, DENYING).unwrap();
    let mut run = LineClient::start(top.path(), &[]);
    assert!(read(&mut run).contains(IS_DENIED));
    fs::write(&rules, "").unwrap();
    let reply = until(|| read(&mut run), |reply| reply.contains("the file is empty"));
    assert!(reply.contains(IS_DENIED), "{reply}");
    // A comment is no failed write.
    fs::write(&rules, "# none\n").unwrap();
    until(|| read(&mut run), |reply| !reply.contains(IS_DENIED));
    fs::write(&rules, DENYING).unwrap();
    until(|| read(&mut run), |reply| reply.contains(IS_DENIED));
    fs::remove_file(&rules).unwrap();
    let reply = read(&mut run);
    assert!(reply.contains(IS_DENIED) && reply.contains("the file is missing"), "{reply}");
    // A new file without rules is what the operator wants.
    fs::write(top.path().join("new.toml"), "# none\n").unwrap();
    fs::rename(top.path().join("new.toml"), &rules).unwrap();
    until(|| read(&mut run), |reply| !reply.contains(IS_DENIED));
    assert!(run.end().is_empty());
}

#[test]
fn a_hard_link_in_the_workspace_does_not_change_the_rules() {
    let top = project();
    let rules = top.path().join("rules.toml");
    fs::write(&rules, DENYING).unwrap();
    fs::hard_link(&rules, top.path().join("ws/link.toml")).unwrap();
    let mut run = LineClient::start(top.path(), &[]);
    let allowing = DENYING.replace("deny", "allow");
    bash(&mut run, &format!("printf '%s' '{allowing}' > link.toml; rm link.toml"));
    // The command has changed the file. It was allowed to, because it only knows the path.
    assert_eq!(fs::read_to_string(&rules).unwrap(), allowing);
    assert!(!top.path().join("ws/link.toml").exists());
    let_it_apply();
    let reply = read(&mut run);
    assert!(reply.contains(IS_DENIED) && reply.contains("hard link"), "{reply}");
    // Only a new file is the operator's.
    fs::copy(&rules, top.path().join("new.toml")).unwrap();
    fs::rename(top.path().join("new.toml"), &rules).unwrap();
    until(|| read(&mut run), |reply| !reply.contains(IS_DENIED));
    assert!(run.end().is_empty());
}

/// The program is started below the workspace, and its options are relative paths.
#[test]
fn a_moved_working_directory_does_not_lead_to_other_rules() {
    let top = project();
    let rules = top.path().join("rules.toml");
    fs::write(&rules, DENYING).unwrap();
    let start = top.path().join("ws/sub");
    fs::create_dir(&start).unwrap();
    let mut run = LineClient::start_with(
        &start,
        &["--root", "..", "--state", "../../state", "--rules", "../../rules.toml"],
    );
    assert!(read(&mut run).contains(IS_DENIED));
    bash(&mut run, "mkdir -p a/b; echo '# nothing' > a/rules.toml; mv sub a/b/sub; echo moved");
    let_it_apply();
    assert!(read(&mut run).contains(IS_DENIED));
    assert!(top.path().join("ws/a/rules.toml").exists());
    assert!(top.path().join("ws/a/b/sub").is_dir() && !start.exists());
    assert!(run.end().is_empty());
}
