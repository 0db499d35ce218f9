//! A stopped rebase: the user's `git rebase --continue` runs no program that a command added.

use std::fs;
use std::process::Command;

use crate::sandboxed::Sandboxed;

/// Runs git outside the sandbox, as the user.
fn git(here: &Sandboxed, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.editor=true"])
        .args(words)
        .current_dir(here.top.path().join("ws/r"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A user's repository with a rebase of two commits that stopped at the first, and a stopped cherry-pick.
fn with_stopped_rebase() -> Sandboxed {
    let here = Sandboxed::new();
    let path = here.top.path().join("ws/r");
    fs::create_dir(&path).unwrap();
    git(&here, &["init", "-q", "-b", "main"]);
    let commit = |name: &str, text: &str| {
        fs::write(path.join(name), text).unwrap();
        git(&here, &["add", name]);
        git(&here, &["commit", "-q", "-m", text]);
    };
    commit("f", "one");
    git(&here, &["checkout", "-q", "-b", "side"]);
    commit("f", "two");
    commit("g", "three");
    git(&here, &["checkout", "-q", "main"]);
    commit("f", "four");
    here
}

fn run(here: &Sandboxed, command: &str) -> String {
    let text = here.bash(&format!("cd T/ws/r && d=$(echo .git)/rebase-merge && {command}"));
    match text {
        Ok(reply) => reply.output().to_owned(),
        Err(error) => error.text().to_string(),
    }
}

#[test]
fn commands_cannot_add_programs_to_a_stopped_rebase() {
    let here = with_stopped_rebase();
    git(&here, &["checkout", "-q", "side"]);
    let text = git(&here, &["rebase", "--exec", "true", "main"]);
    assert!(text.contains("Could not apply"), "{text}");
    let todo = "ws/r/.git/rebase-merge/git-rebase-todo";
    let before = here.read(todo);
    assert!(before.contains("exec true"), "{before}");
    let mark = here.top.path().join("MARK").display().to_string();
    for command in [
        format!("echo 'exec touch {mark}' >> $d/git-rebase-todo"),
        format!("(cat $d/git-rebase-todo; echo ' x touch {mark}') > t; mv t $d/git-rebase-todo"),
        format!("echo 'x touch {mark}' > t; ln -f t $d/git-rebase-todo; ln -sf $PWD/t $d/git-rebase-todo"),
        "ln $d/git-rebase-todo t2; echo 'exec touch x' >> t2".to_owned(),
        format!("cp -r $d e; echo 'exec touch {mark}' > e/git-rebase-todo; mv $d old; mv e $d; mv old $d"),
        format!("cp -r $d e2; echo 'exec touch {mark}' > e2/git-rebase-todo; mv $d old; ln -s $PWD/e2 $d; mv old $d"),
        "mkdir -p 'git-merge-..'; echo ../../x > $d/strategy".to_owned(),
        "echo ../../x > s; mv s $d/strategy".to_owned(),
        "mkdir -p $(echo .git)/sequencer; printf '[options]\\n\\tstrategy = ../../x\\n' > $(echo .git)/sequencer/opts".to_owned(),
    ] {
        let text = run(&here, &command);
        // One of the commands may have moved the whole rebase away, which is harmless.
        let now = fs::read_to_string(here.top.path().join(todo)).unwrap_or_default();
        assert!(now == before || now.is_empty(), "{command}: {now}");
        assert!(!here.top.path().join("ws/r/.git/rebase-merge/strategy").exists(), "{command}");
        let opts = here.top.path().join("ws/r/.git/sequencer/opts");
        assert!(!opts.exists(), "{command}");
        let is_told = ["protected", "denied", "was refused"].iter().any(|word| text.contains(word));
        assert!(is_told, "{command}: {text}");
        if now.is_empty() {
            git(&here, &["rebase", "--quit"]);
            let _ = fs::remove_dir_all(here.top.path().join("ws/r/.git/rebase-merge"));
            git(&here, &["checkout", "-q", "-f", "side"]);
            git(&here, &["rebase", "--exec", "true", "main"]);
            assert_eq!(here.read(todo), before);
        }
    }
    let text = run(&here, &format!("echo 'exec touch {mark}' >> $d/git-rebase-todo"));
    assert!(text.contains("can make programs run code: exec touch"), "{text}");
    git(&here, &["add", "f"]);
    git(&here, &["rebase", "--continue"]);
    assert!(!here.top.path().join("MARK").exists());
}

#[test]
fn rebase_and_cherry_pick_work_without_new_programs() {
    let here = with_stopped_rebase();
    let git_inside = "git -c user.name=a -c user.email=a@b -c core.editor=true";
    let text = run(
        &here,
        &format!(
            "git checkout -q side; {git_inside} rebase main; echo m > f; git add f; {git_inside} rebase --continue && git log --oneline | wc -l"
        ),
    );
    assert!(text.contains("\n4\n"), "{text}");
    // The user's own steps remain, including one that fails and is put back.
    git(&here, &["reset", "-q", "--hard", "HEAD~2"]);
    git(&here, &["cherry-pick", "ORIG_HEAD"]);
    let text = git(&here, &["rebase", "--reschedule-failed-exec", "--exec", "false", "HEAD~1"]);
    assert!(text.contains("false"), "{text}");
    let text = run(&here, &format!("{git_inside} rebase --continue"));
    assert!(text.contains("false") && !text.contains("could not write"), "{text}");
    assert!(here.read("ws/r/.git/rebase-merge/git-rebase-todo").contains("exec false"));
    git(&here, &["rebase", "--abort"]);
    // A new step is denied, and git names the file.
    let text = run(&here, &format!("{git_inside} rebase --exec true HEAD~1"));
    assert!(text.contains("can make programs run code: exec true. `git rebase --abort`"), "{text}");
    let text = run(&here, &format!("{git_inside} rebase --abort && git status"));
    assert!(!text.contains("rebas"), "{text}");
    // Cherry-picks with a built-in strategy.
    let text = run(
        &here,
        &format!(
            "git checkout -q -B pick main; {git_inside} cherry-pick --strategy=ort side~1 side; echo n > f; git add f; {git_inside} cherry-pick --continue && git log --oneline | wc -l"
        ),
    );
    assert!(!text.contains("was refused"), "{text}");
}

/// A directory becomes a git directory only without such steps.
#[test]
fn directory_with_rebase_programs_cannot_become_a_git_directory() {
    let here = Sandboxed::new();
    for (name, file, text) in [
        ("a", "rebase-merge/git-rebase-todo", "exec touch x"),
        ("b", "rebase-merge/strategy", "../../x"),
        ("c", "sequencer/opts", "[options]\n\tstrategy = ../../x\n"),
    ] {
        let _ = here.bash(&format!(
            "mkdir -p {name}/rebase-merge {name}/sequencer; printf '%s' '{text}' > {name}/{file}; mkdir {name}/objects {name}/refs"
        ));
        assert!(!here.top.path().join("ws").join(name).join("refs").exists(), "{name}");
    }
    // A descriptor opened before refers to another file.
    let script = "import os\nos.makedirs('d/rebase-merge')\nf = os.open('d/rebase-merge/git-rebase-todo', os.O_CREAT | os.O_WRONLY)\nos.mkdir('d/objects'); os.mkdir('d/refs')\nos.write(f, b'exec touch x')";
    here.bash(&format!("python3 - <<'END'\n{script}\nEND")).unwrap();
    assert!(here.top.path().join("ws/d/refs").exists());
    assert_eq!(here.read("ws/d/rebase-merge/git-rebase-todo"), "");
}
