//! Notes of commands about git state, which Undo does not revert. The git commands in them must work.

use std::fs;

use serde_json::json;
use toolcrib::Rules;

use crate::git_protection::Commands;

/// A repository on branch `two`. `one` and `two` change the same line, and `other` another file.
const SETUP: &str = r"
set -e
git init -q base && cd base
echo base > a.txt && echo x > x.txt && git add -A && git commit -qm base
echo more > b.txt && git add -A && git commit -qm more
git checkout -qb other && echo other > c.txt && git add -A && git commit -qm other
git checkout -qb one main && echo one > a.txt && git commit -qam one && echo one again > a.txt && git commit -qam again
git checkout -qb two main && echo two > a.txt && git commit -qam two
";

/// Head and branches of a repository.
const STATE: &str = "git symbolic-ref -q HEAD || git rev-parse HEAD; git rev-parse -q --verify HEAD; git for-each-ref refs/heads refs/tags; ls -d .git/*_HEAD .git/rebase* .git/BISECT_LOG 2>/dev/null | grep -v ORIG_HEAD";

/// The git commands in notes, in order.
fn git_commands(text: &str) -> Vec<String> {
    let notes = text.lines().filter(|line| line.starts_with('['));
    let quoted = notes.flat_map(|note| note.split('`').skip(1).step_by(2));
    quoted.filter(|one| one.starts_with("git ")).map(str::to_owned).collect()
}

/// Setup, command, and a part of the reply.
type Row = (&'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("", "git checkout -q one", "`git checkout two` does, if it comes before the undo]"),
    (
        "",
        "git checkout -q one && git merge two",
        "`git merge --abort`, then `git checkout two` does",
    ),
    (
        "",
        "git checkout -q one; git cherry-pick two",
        "`git cherry-pick --abort`, then `git checkout two`",
    ),
    (
        "",
        "git checkout -q one; git revert --no-edit HEAD~1",
        "`git revert --abort`, then `git checkout two`",
    ),
    (
        "",
        "git checkout -q one; git rebase two",
        "`git rebase --abort`, then `git checkout two` does",
    ),
    ("", "git rebase one", "`git rebase --abort` does]"),
    ("", "git rebase two one", "`git rebase --abort`, then `git checkout two` does"),
    (
        "",
        "git merge one",
        "a merge is not finished; an undo does not end it: `git merge --abort` does]",
    ),
    (
        "",
        "git checkout -q --detach one; git merge two",
        "`git merge --abort`, then `git checkout two` does",
    ),
    ("git checkout -q --detach", "git checkout -q one; git merge two", "(detached) to"),
    ("", "git cherry-pick other one", "`git cherry-pick --abort` does]"),
    (
        "",
        "git checkout -q main; git cherry-pick other one~1 two",
        "`git cherry-pick --abort`, then `git checkout two`",
    ),
    (
        "",
        "git switch -q --orphan fresh",
        "(two) to fresh (no commits); an undo does not move it back: `git checkout two` does",
    ),
    ("", "git checkout -q --orphan fresh", "(two) to fresh (no commits)"),
    ("", "git commit -q --allow-empty -m x; git checkout -q one", "`git checkout -B two "),
    ("", "git commit -q --amend -m x", "`git reset "),
    ("", "git reset -q --hard HEAD~1", "`git reset "),
    (
        "",
        "git commit -q --allow-empty -m x; git commit -q --allow-empty --amend -m y",
        "`git reset ",
    ),
    ("", "git checkout -q one; git branch -q -D two", "`git checkout -B two "),
    ("", "git checkout -q -B one two", "branch one was moved"),
    (
        "",
        "git branch -m renamed",
        "[note: branch two was renamed to renamed: `git branch -m two` renames it back]",
    ),
    ("", "git branch -m one renamed", "`git branch -m renamed one` renames it back]"),
    (
        "",
        "git branch -m renamed; git commit -q --amend --allow-empty -m x",
        "`git branch -m two` renames it back]",
    ),
    ("", "git branch -M one", "branch two was renamed to one, which was at "),
    (
        "",
        "git branch -m one renamed; git checkout -q renamed",
        "`git branch -m renamed one` renames it back]",
    ),
    (
        "",
        "git branch -m renamed; git checkout -q one",
        "`git branch -m renamed two` renames it back]",
    ),
    ("", "git bisect start two main~1", "`git bisect reset` does]"),
    (
        "",
        "git checkout -q one; git bisect start one main~1",
        "`git bisect reset`, then `git checkout two`",
    ),
    ("git format-patch -q -1 one --stdout > ../p", "git am -q ../p", "a git am is not finished"),
    (
        "git format-patch -q main..two --stdout > ../p",
        "git checkout -q one; git am -q ../p",
        "`git am --abort`, then `git checkout two`",
    ),
    ("git checkout -q one", "git checkout -q --detach", "(detached)"),
    ("git checkout -q --detach one", "git checkout -q two", "(detached) to"),
    (
        "git switch -q --orphan fresh",
        "echo y > y; git add y; git commit -qm y",
        "`git update-ref -d HEAD` does]",
    ),
    (
        "git switch -q --orphan fresh",
        "git checkout -q one",
        "`git symbolic-ref HEAD refs/heads/fresh` does]",
    ),
    (
        "git switch -q --orphan fresh",
        "git switch -q --orphan again",
        "fresh (no commits) to again (no commits)",
    ),
];

#[test]
fn commands_in_notes_restore_head_and_branches() {
    let copies = "cd ..; for n in $(seq 0 NN); do cp -r base r$n; done";
    let setup = format!("{SETUP}{}", copies.replace("NN", &ROWS.len().to_string()));
    let commands = Commands::after(&setup);
    let mut failures = Vec::new();
    for (number, (prepare, command, expected)) in ROWS.iter().enumerate() {
        let repository = commands.here.ws().join(format!("r{number}"));
        let state = || commands.here.run_outside(STATE, &repository).1;
        let (code, text) =
            commands.here.run_outside(&format!(": {number}; {prepare}"), &repository);
        assert_eq!(code, 0, "{prepare}: {text}");
        let before = state();
        commands.output(&format!("cd ../r{number}"));
        let text = commands.output(command);
        let ways = git_commands(&text);
        let replies: Vec<String> = ways.iter().map(|way| commands.output(way)).collect();
        let after = state();
        if !text.contains(expected) || after != before {
            failures.push(format!(
                "{prepare}; {command}: {text}\n{ways:?}: {replies:?}\nbefore: {before}\nafter: {after}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Git refuses to check out the previous commit then, because it sees changes in the files that it could not write.
#[test]
fn a_checkout_that_could_not_write_a_file_is_reverted_by_the_commands_in_the_note() {
    let rules = "[[rule]]\nname = \"generated\"\ndecision = \"deny\"\nkind = \"edit\"\npaths = [\"**/gen/**\"]\nwhy = \"run make\"\n";
    let setup = "git init -q base && cd base && mkdir gen && echo 1 > gen/x && echo 1 > a.txt && git add -A && git commit -qm one
        git checkout -qb other && echo 2 > gen/x && echo 2 > gen/y && echo 2 > a.txt && git add -A && git commit -qm two
        git checkout -q main";
    let commands = Commands::with_rules(setup, Rules::parse(rules).unwrap());
    commands.output("cd ../base");
    for (before, command) in [
        ("true", "git checkout other"),
        ("git checkout -q --detach", "git checkout other"),
        ("git checkout -q main", "git checkout -B main other"),
    ] {
        commands.output(before);
        let state =
            || commands.output(&format!("{STATE}; git status --porcelain; cat a.txt gen/x"));
        let clean = state();
        let text = commands.output(command);
        assert!(text.contains("but not every file could be written; an undo"), "{text}");
        assert!(text.contains("(run make (rule:generated); the operator"), "{text}");
        let ways = git_commands(&text);
        commands.call("Undo", json!({})).unwrap();
        let replies: Vec<String> = ways.iter().map(|way| commands.output(way)).collect();
        assert_eq!(state(), clean, "{command}: {text}\n{ways:?}: {replies:?}");
    }
}

/// A step of an operation that had begun before does not lead to a reset of its branch.
#[test]
fn a_step_of_an_unfinished_operation_names_where_its_abort_leads() {
    let commands = Commands::after(&format!(
        "{SETUP}for n in 1 2 3 4 5 6 7 8; do git commit -q --allow-empty -m $n; done; git bisect start HEAD main~1"
    ));
    commands.output("cd ../base");
    let text = commands.output("git bisect good");
    assert!(
        text.contains("HEAD moved from ") && text.contains("`git bisect reset` moves it to "),
        "{text}"
    );
    assert!(!text.contains("git reset"), "{text}");
}

/// The head does not move, and the files are not all that was lost.
#[test]
fn an_aborted_operation_is_not_restored_by_an_undo() {
    let commands = Commands::after(&format!(
        "{SETUP}git checkout -q -b side; echo side > x.txt; git commit -qam side; git checkout -q -; \
         echo ours > x.txt; git commit -qam ours; git merge side || true"
    ));
    commands.output("cd ../base");
    let text = commands.output("git merge --abort");
    assert!(text.contains("a merge was ended; an undo does not resume it"), "{text}");
    assert!(!text.contains("reverts this]"), "{text}");
}

#[test]
fn an_index_that_equals_the_commit_needs_no_unstaging() {
    let commands = Commands::after(SETUP);
    commands.output("cd ../base");
    for command in [
        "echo y > new; git add new; git reset -q; echo z > z",
        "git rm -q --cached x.txt; git add x.txt; echo 1 > z",
        "git rm -q x.txt; git reset -q --hard; echo 2 > z",
    ] {
        let text = commands.output(command);
        assert!(!text.contains("unstages"), "{command}: {text}");
    }
    let text = commands.output("git add z new; git rm -q --cached x.txt");
    assert!(!text.contains("unstages"), "without changed files there is no undo: {text}");
    let text = commands.output("echo v >> z; git add z");
    assert!(
        text.contains("the index was changed (1 file)") && text.contains(" unstages it]"),
        "{text}"
    );
}

/// Only the index had that version.
#[test]
fn a_dropped_staged_version_is_named_with_the_way_back() {
    for (before, command) in [
        ("echo staged > x.txt; git add x.txt; echo work > x.txt", "git reset -q"),
        ("echo staged > x.txt; git add x.txt; echo work > x.txt", "git restore --staged x.txt"),
        ("echo staged > new; git add new; echo work > new", "git rm -q --cached -f new"),
    ] {
        let commands = Commands::after(&format!("{SETUP}{before}"));
        commands.output("cd ../base");
        let staged = commands.output("git diff --cached");
        let text = commands.output(command);
        let note = text.split("the staged version of 1 file was dropped: `").nth(1);
        let note = note.unwrap_or_else(|| panic!("{command}: {text}"));
        commands.output(note.split('`').next().unwrap());
        assert_eq!(commands.output("git diff --cached"), staged, "{command}");
    }
    let commands = Commands::after(SETUP);
    commands.output("cd ../base");
    for command in [
        "echo 1 > x.txt; git add x.txt; git reset -q",
        "echo 2 > x.txt; git commit -qam two",
        "echo 3 > x.txt; git add x.txt; echo 4 > x.txt; git add x.txt",
        "git commit -qm four; git checkout -q HEAD~1",
    ] {
        let text = commands.output(command);
        assert!(!text.contains("the staged version"), "{command}: {text}");
    }
}

#[test]
fn an_added_work_tree_is_named_with_the_command_that_removes_it() {
    let commands = Commands::after(SETUP);
    commands.output("cd ../base");
    let text = commands.output("git worktree add -q tree one");
    assert!(text.contains("reverts the files, not the git state]"), "{text}");
    assert!(!text.contains("HEAD moved") && !text.contains(".git was created"), "{text}");
    let way = "`git worktree remove --force tree` removes it]";
    assert!(text.contains(way), "{text}");
    let undone = commands.call("Undo", json!({})).unwrap().text();
    assert!(
        undone.contains("removed 3 files in base/tree/, which has other entries and stays"),
        "{undone}"
    );
    assert!(undone.contains("git state stays as it is: the work tree "), "{undone}");
    assert!(!undone.contains("HEAD"), "{undone}");
    assert!(commands.here.ws().join("base/tree/.git").exists());
    commands.output("git worktree remove --force tree");
    let repository = commands.here.ws().join("base");
    let listed = commands.here.run_outside("git worktree list; ls -d tree", &repository).1;
    assert!(!listed.contains("base/tree") && listed.contains("No such file"), "{listed}");
    // Also in another directory, and outside the workspace.
    let text = commands.output("git worktree add -q /tmp/tree one");
    assert!(text.contains("`git worktree remove --force /tmp/tree` removes it]"), "{text}");
    let text = commands.output("cd .. && git -C base worktree add -q ../far other");
    let way = git_commands(&text).remove(0);
    commands.output(&way);
    assert!(!commands.here.ws().join("far").exists(), "{way}");
}

#[test]
fn pruned_commits_of_a_reflog_are_not_named() {
    let commands = Commands::after(&format!(
        "{SETUP}git checkout -q --detach && git commit -q --allow-empty -m lost && git checkout -q two"
    ));
    commands.output("cd ../base");
    let repository = commands.here.ws().join("base");
    let lost = commands.here.run_outside("git rev-parse --short=9 HEAD@{1}", &repository).1;
    let text = commands.output("git reflog expire --expire=now --all; git gc -q --prune=now");
    assert!(text.contains("their commits: ") && !text.contains(lost.trim()), "{lost}: {text}");
}

#[test]
fn the_reflog_of_a_work_tree_is_named_with_its_commits() {
    let commands = Commands::after(&format!("{SETUP}git worktree add -q ../tree -b tree"));
    commands.output("cd ../base; git -C ../tree status");
    let text = commands.output("git -C ../tree reflog expire --expire=now --all");
    let tree = "the reflog of HEAD of work tree tree lost ";
    let note = text.lines().find(|line| line.contains(tree)).unwrap_or(&text);
    assert!(note.contains(tree) && note.contains("their commits: "), "{text}");
}

#[test]
fn a_stash_entry_is_reported_without_changed_files() {
    let commands = Commands::after(SETUP);
    commands.output("cd ../base; true");
    let text = commands.output("cd ../base; echo hi > hi.txt; git stash -q -u");
    assert!(
        text.contains("a stash entry was added: `git stash pop` restores its changes"),
        "{text}"
    );
    let text = commands.output("for n in 1 2; do echo $n > $n; git stash -q -u; done");
    assert!(text.contains("2 stash entries were added: `git stash pop` restores"), "{text}");
}

/// Undo restores content of the user's commits, although a command has written it before.
#[test]
fn undo_restores_protected_files_with_committed_content() {
    let commands = Commands::after("");
    commands.output("git switch -q old");
    commands.output("git switch -q main");
    let text = commands.output("rm -rf .devcontainer .envrc");
    assert!(text.contains("reverts this]"), "{text}");
    let undone = commands.call("Undo", json!({})).unwrap().text();
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=2\n"), "{undone}");
    let content = commands.read("repo/.devcontainer/devcontainer.json");
    assert_eq!(content.as_deref(), Some("{\"image\":\"y\"}\n"), "{undone}");
    // Another runtime knows the commits as well.
    commands.output("rm .envrc");
    let (runtime, session) = commands.here.runtime();
    let undo = toolcrib::Call::new("Undo", json!({}));
    runtime.call(&session, undo, toolcrib::Options::default()).unwrap();
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=2\n"));
}

/// A commit of the session does not make its content the user's.
#[test]
fn undo_does_not_restore_protected_content_that_a_session_committed() {
    let commands = Commands::after("");
    let evil = "export EVIL=1\n";
    fs::write(commands.here.ws().join("repo/plain"), evil).unwrap();
    let blob = "b=$(git hash-object -w plain); git update-index --cacheinfo 100644,$b,.envrc; git commit -qm evil; git checkout -q -- .envrc";
    let text = commands.output(blob);
    commands.output("rm -f .envrc; git checkout -q -- .envrc");
    for id in 1..6 {
        let _ = commands.call("Undo", json!({"id": id}));
    }
    assert_ne!(commands.read("repo/.envrc").as_deref(), Some(evil), "{text}");
}

#[test]
fn only_content_of_the_session_is_noted_as_run_later() {
    let commands = Commands::after(
        "cd repo && mkdir tests && echo 'import os' > tests/conftest.py && echo a: > Makefile && git add -A && git commit -qm build",
    );
    for command in [
        "git switch -q old",
        "git switch -q main",
        "git worktree add -q tree main",
        "git clone -q . clone",
    ] {
        let text = commands.output(command);
        assert!(!text.contains("outside the sandbox when"), "{command}: {text}");
    }
    let text = commands.output("echo 'import sys' >> tests/conftest.py");
    assert!(text.contains("tests/conftest.py: it runs outside the sandbox when"), "{text}");
    let text = commands
        .output("echo b: > Makefile; git commit -qam build; git switch -q old; git switch -q main");
    assert!(text.contains("Makefile: its rules run outside the sandbox when"), "{text}");
}
