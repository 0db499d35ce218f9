//! Git may write only the user's own content to protected files, and a user's repository is never damaged by a
//! command.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, Options, Reply, Rules, Runtime, Session};

use crate::git_operations::GitFixture;

pub(crate) struct Commands {
    pub(crate) here: GitFixture,
    runtime: Runtime,
    session: Session,
}

impl Commands {
    /// Creates a workspace with a repository, modified by a script.
    pub(crate) fn after(setup: &str) -> Commands {
        Commands::with_rules(setup, Rules::default())
    }

    /// The same with rules.
    pub(crate) fn with_rules(setup: &str, rules: Rules) -> Commands {
        let here = GitFixture::new();
        here.set_up(setup);
        let (runtime, session) = here.runtime_with(rules);
        let commands = Commands { here, runtime, session };
        commands.output("cd repo");
        commands
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    /// Runs a command in the repository and returns the reply or error text.
    pub(crate) fn output(&self, command: &str) -> String {
        match self.call("Bash", json!({"command": command})) {
            Err(error) if error.kind() == ErrorKind::Denied => panic!("{command}: {error}"),
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.here.ws().join(name)).ok()
    }
}

const NESTED: &str = "cp -a repo copy && mv copy repo/nested && cp -a remote.git repo/bare.git && mkdir repo/wide && cp -a repo/nested repo/wide/deep && cd repo && git gc -q && cd nested && git checkout -q topic";

/// State of a repository, as git reports it and as files.
fn repositories(commands: &Commands) -> String {
    let look = "for d in .git bare.git nested/.git wide/deep/.git; do echo $d; (cd $d && find . ! -name '*.lock' | sort; cat HEAD config; git --git-dir=. fsck --no-progress --no-dangling 2>&1; git --git-dir=. for-each-ref); done";
    commands.here.run_outside(look, &commands.here.ws().join("repo")).1
}

#[test]
fn user_repository_is_never_partially_removed() {
    let commands = Commands::after(NESTED);
    let before = repositories(&commands);
    for command in [
        "rm -rf $(echo .git)",
        "rm -rf $(echo bare.git)",
        "rm -rf * $(ls -A)",
        "find . -delete",
        "find $(echo .git) -type f -exec rm -f {} +",
        "find . -depth -print0 | xargs -0 rm -rf",
        "mv $(echo .git) x",
        "mv nested/$(echo .git) nested/x",
        "python3 -c 'import shutil; shutil.rmtree(\".g\" + \"it\")'",
        "python3 -c 'import shutil; shutil.rmtree(\"bare.git\")'",
        "python3 -c 'import shutil; shutil.rmtree(\"wide\", ignore_errors=True)'",
        "perl -e 'use File::Path; rmtree(\"wide\")'",
        "git clean -ffdx",
        "(cd .. && rm -rf repo)",
        "(cd nested && rm -rf ../nested)",
        "d=$(echo .git); rm $d/HEAD $d/config $d/index; rm -r $d/objects; rmdir $d/refs",
        "echo 'import os,sys\nfor r,d,f in os.walk(sys.argv[1],topdown=False):\n  for n in f:\n    try: os.remove(r+\"/\"+n)\n    except OSError: pass' > /tmp/r.py; python3 /tmp/r.py .",
    ] {
        let text = commands.output(command);
        assert_eq!(repositories(&commands), before, "{command}: {text}");
        // A successful command is told about a denial once per session.
        if text.starts_with("exit code") {
            assert!(
                text.contains("only git may remove or overwrite its parts"),
                "{command}: {text}"
            );
        }
        let notes = text.lines().filter(|line| line.starts_with("[refused by the sandbox")).count();
        assert!(notes <= 3, "{text}");
        // The files are in the journal, the commits in the repository.
        commands.output("git checkout -q -f main");
    }
}

/// Only the command `clean` of git is restricted, and not every git with this word.
#[test]
fn git_removes_its_own_files_whatever_its_arguments_are() {
    let commands = Commands::after("");
    for command in [
        "echo 1 > clean && git add clean && git commit -qm clean",
        "git checkout -qb clean && git checkout -q - && git branch -D clean",
        "git tag clean && git tag -d clean",
        "echo 2 > clean && git stash push -qm clean && git stash drop -q",
        "git -C . commit -q --allow-empty -m apply",
    ] {
        let text = commands.output(command);
        assert!(!text.contains("refused by the sandbox"), "{command}: {text}");
        assert!(!text.contains("unable to unlink"), "{command}: {text}");
    }
}

/// The reflog of the stash has the only names of all stash entries but the last.
#[test]
fn reflogs_made_in_the_session_are_removed_by_git_only() {
    let commands = Commands::after("");
    commands.output("for n in 1 2; do echo $n >> a.txt && git stash push -q -m entry$n; done");
    commands.output("git branch new && git branch other");
    let reflogs = |commands: &Commands| {
        ["stash", "heads/new", "heads/other"].map(|name| {
            commands.read(&format!("repo/.git/logs/refs/{name}")).map(|log| log.lines().count())
        })
    };
    assert_eq!(reflogs(&commands), [Some(2), Some(1), Some(1)]);
    for remove in ["rm -rf $(echo .git)", "rm $(echo .git)/logs/refs/stash", "git clean -ffdx"] {
        let text = commands.output(remove);
        assert_eq!(reflogs(&commands), [Some(2), Some(1), Some(1)], "{remove}: {text}");
    }
    commands.output("git stash drop -q && git branch -q -D new && git branch -q -m other moved");
    assert_eq!(reflogs(&commands), [Some(1), None, None]);
    commands.output("git stash drop -q && git branch -q -D moved && git branch -q x/y && git branch -q -D x/y && git branch -q x");
    assert_eq!(reflogs(&commands), [None, None, None]);
    assert!(commands.read("repo/.git/logs/refs/heads/x").is_some());
}

#[test]
fn repository_created_by_a_command_can_be_removed() {
    let commands = Commands::after("");
    for (make, remove) in [
        ("git clone -q . ../one", "rm -rf ../one"),
        ("git clone -q . ../one && mv ../one ../two", "rm -rf ../two"),
        ("git init -q ../one && git init -q --bare ../two.git", "rm -rf ../one ../two.git"),
        ("cp -a ../repo ../one", "rm -rf ../one"),
        ("git clone -q . inner", "git clean -ffdxq"),
        ("git clone -q . ../one", "python3 -c 'import shutil; shutil.rmtree(\"../one\")'"),
        ("git worktree add -q ../one side", "rm -rf ../one && git worktree prune"),
        (
            "git -c protocol.file.allow=always submodule add -q ../remote.git inner",
            "git submodule -q deinit -f inner && git rm -qf inner && rm -rf $(echo .git)/modules/inner",
        ),
    ] {
        commands.output(make);
        let text = commands.output(remove);
        for name in ["one", "two", "two.git", "repo/inner", "repo/.git/modules/inner"] {
            assert!(!commands.here.ws().join(name).exists(), "{make}; {remove}: {text}");
        }
    }
}

/// tar and cp remove a file before they create it. If the new one is refused, the old one stays.
#[test]
fn a_protected_file_stays_if_its_replacement_is_refused() {
    let setup = "cd repo && mkdir -p .vscode new/.vscode && echo '{}' > .vscode/tasks.json && chmod 640 .vscode/tasks.json && echo '{\"evil\":1}' > new/.vscode/tasks.json && tar cf new.tar -C new .vscode";
    let commands = Commands::after(setup);
    for command in [
        "tar xf new.tar",
        "tar xf new.tar --unlink-first",
        "cp --remove-destination new/.vscode/tasks.json .vscode/tasks.json",
        "rm .vscode/tasks.json; cp new/.vscode/tasks.json .vscode/tasks.json",
        "mv new/.vscode/tasks.json .vscode/tasks.json",
    ] {
        let text = commands.output(command);
        assert!(text.contains("protected: it can make programs run code"), "{command}: {text}");
        assert!(!text.contains("deleted"), "{command}: {text}");
        let file = commands.here.ws().join("repo/.vscode/tasks.json");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n", "{command}: {text}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o640, "{command}");
    }
    // A removal alone is one.
    let text = commands.output("rm .vscode/tasks.json");
    assert!(
        text.contains("deleted .vscode/tasks.json")
            || text.contains("deleted repo/.vscode/tasks.json"),
        "{text}"
    );
    commands.output("cp new/.vscode/tasks.json .vscode/tasks.json");
    assert_eq!(commands.read("repo/.vscode/tasks.json"), None, "an earlier command removed it");
}

/// A hard link onto an existing file fails without a sandbox, too: libgit2 tries it for each write of a configuration.
#[test]
fn a_link_onto_an_existing_file_is_no_refusal() {
    let commands = Commands::after("");
    let text = commands.output(
        "git init -q ../one && cd ../one && cp $(echo .git)/config c && ln c $(echo .git)/config",
    );
    assert!(text.contains("File exists") && !text.contains("refused"), "{text}");
}

/// Commits that a command made are not the user's, however they reach the repository.
#[test]
fn session_commits_cannot_write_protected_files() {
    let commands = Commands::after("");
    // A commit with other content, as `refs/heads/evil`, without a file in the work tree.
    let evil = "export GIT_INDEX_FILE=/tmp/i; b=$(echo 'export EVIL=1' | git hash-object -w --stdin); git read-tree main; git update-index --add --cacheinfo 100644,$b,.envrc --cacheinfo 100755,$b,.husky/evil --cacheinfo 100644,$b,new/.envrc; c=$(git commit-tree -p main -m evil $(git write-tree)); git update-ref refs/heads/evil $c; unset GIT_INDEX_FILE";
    commands.output(evil);
    let python = "import os, sys\nd = sys.argv[1]\nfor name in ('.envrc', 'new/.envrc', '.husky/evil'):\n  try:\n    os.makedirs(os.path.dirname(d + '/' + name), exist_ok=True)\n    f = os.open(d + '/' + name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)\n    os.write(f, b'export EVIL=1\\n')\n  except OSError: pass\n";
    fs::write(commands.here.ws().join("write.py"), python).unwrap();
    for command in [
        "git checkout -q evil; git checkout -q -f main",
        "git checkout -q -f evil -- .envrc; git reset -q --hard",
        "git merge -q evil; git reset -q --hard HEAD~1",
        "git cherry-pick evil; git reset -q --hard HEAD~1",
        "git clone -q -b evil . ../c1",
        "git clone -q --shared -b evil . ../c2",
        "git clone -q . ../c3; cd ../c3; git fetch -q; git checkout -q origin/evil",
        "git worktree add -q ../c4 evil",
        "git gc -q; git clone -q --no-local -b evil . ../c5",
        // A session's repository stays the session's after a rename.
        "git clone -q -n . ../made; cd ../made; git update-ref refs/heads/main $(git rev-parse origin/evil); cd ..; mkdir up; mv made up/made; mv up up2; git clone -q up2/made c6; cd up2/made; git checkout -q -f main",
        "git clone -q --bare . ../b.git; cd ..; git -C b.git update-ref refs/heads/main $(git -C repo rev-parse evil); mkdir c7; mv b.git c7/$(echo .git); cd c7; git config core.bare false; git checkout -q -f main",
        // At a path where this process sees other files than the command.
        "git clone -q --bare . /tmp/t.git; git -C /tmp/t.git update-ref refs/heads/main $(git rev-parse evil); git clone -q /tmp/t.git ../c8",
        // The content is reviewed for any program named git.
        "cp $(readlink -f $(command -v python3)) ../git; ../git ../write.py .; git reset -q --hard; rm ../git",
        // An object whose content does not match its id.
        "o=$(git rev-parse main:.envrc); e=$(git rev-parse evil:.envrc); p=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); mkdir -p $(dirname $p); rm -f $p; cp .git/objects/$(echo $e | cut -c1-2)/$(echo $e | cut -c3-) $p; git checkout -q -f main -- .envrc",
        // The user's own references, renamed away and changed.
        "d=$(echo .git); mv $d/refs $d/r; echo $(git rev-parse evil) > $d/r/heads/side; mv $d/r $d/refs; git checkout -q -f side",
        // Another path.
        "git update-index --add --cacheinfo 100644,$(git rev-parse main:a.txt),.envrc; git checkout-index -qf .envrc; git reset -q --hard",
    ] {
        let text = commands.output(command);
        let found = commands.here.run_outside(
            "grep -rl EVIL --include=.envrc --include=evil . --exclude-dir=.git; grep -l two repo/.envrc",
            &commands.here.ws(),
        );
        assert_eq!(found.1, "", "{command}: {text}");
    }
    let kept = commands.read("repo/.envrc").unwrap();
    assert!(kept.starts_with("export A="), "{kept}");
}

#[test]
fn rejected_write_is_reported_and_keeps_the_old_content() {
    let commands = Commands::after(
        "cd repo && git checkout -qb b1 && sed -i 1i#one .envrc && git commit -qam one && git checkout -qb b2 main && echo '#two' >> .envrc && git commit -qam two && git checkout -q b1",
    );
    let before = commands.read("repo/.envrc");
    let text = commands.output("git merge -q --no-edit b2");
    assert_eq!(commands.read("repo/.envrc"), before, "{text}");
    assert!(text.contains("[not written, because programs run its content"), "{text}");
    assert!(text.contains("git checkout -- repo/.envrc"), "{text}");
    assert!(!text.contains("refused by the sandbox"), "{text}");
}

#[test]
fn removed_protected_files_can_be_restored() {
    let commands = Commands::after(
        "echo mine > repo/src/.envrc; echo '{\"deny\":1}' > repo/.claude/settings.local.json",
    );
    let text = commands.output("rm .envrc src/.envrc sub/.envrc .claude/settings.json");
    assert!(text.contains("Undo with id"), "{text}");
    assert_eq!((commands.read("repo/.envrc"), commands.read("repo/src/.envrc")), (None, None));
    commands.call("Undo", json!({})).unwrap();
    assert_eq!(commands.read("repo/src/.envrc").as_deref(), Some("mine\n"));
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=2\n"));
    assert_eq!(commands.read("repo/.claude/settings.json").as_deref(), Some("{}\n"));
    // The file can restrict agents, and no commit contains it.
    let text = commands.output("rm .claude/settings.local.json");
    assert!(text.contains("refused by the sandbox: the path shown above"), "{text}");
    assert!(commands.read("repo/.claude/settings.local.json").is_some());
}

#[test]
fn moved_head_is_reported() {
    let commands = Commands::after("");
    let text = commands.output("git checkout -q first");
    assert!(text.contains("reverts the files, not the git state]"), "{text}");
    assert!(text.contains("[HEAD moved from ") && text.contains("(main) to"), "{text}");
    assert!(text.contains("`git checkout main` does, if it comes before the undo]"), "{text}");
    let text = commands.output("git checkout -q main && git reset -q --hard HEAD~1");
    assert!(text.contains("(detached) to") && text.contains("(main); an undo"), "{text}");
    // An ordinary commit is what the command says.
    let text = commands.output("echo x >> a.txt && git commit -qam x");
    assert!(text.contains("reverts the files, not the git state]"), "{text}");
    assert!(text.contains("[HEAD moved from ") && text.contains(" (main)]"), "{text}");
    assert!(!text.contains("`git reset "), "{text}");
    let text = commands.output("echo x >> a.txt; git stash -q; git stash pop -q");
    assert!(text.contains("reverts this]") && !text.contains("HEAD moved"), "{text}");
    // Also without changed files.
    let text = commands.output("git commit -qam y");
    assert!(text.contains("HEAD moved") && text.contains(" (main)]"), "{text}");
    // The command of a note works in the directory of the next command.
    commands.output("git worktree add -q -b other ../wt first");
    let text = commands.output(
        "cd ../wt && echo x > x && git add x && git commit -qm x && git commit -q --amend -m y; cd ../repo",
    );
    assert!(text.contains("(other); an undo"), "{text}");
    let back = command_in(&text, "git -C ");
    let text =
        commands.output(&format!("{back}; git -C ../wt rev-parse HEAD; git rev-parse first"));
    let commits: Vec<&str> = text.lines().filter(|line| line.len() == 40).collect();
    assert_eq!((commits.len(), commits.first()), (2, commits.last()), "{text}");
    // The branch has moved, so checking it out does not go back.
    let text =
        commands.output("echo more >> a.txt && git commit -qam more && git checkout -q first");
    assert!(text.contains("`git checkout -B main "), "{text}");
}

/// Git stats a file right after a patch has written and closed it, so such a file must be replaced as a whole.
#[test]
fn patches_may_write_committed_content_to_protected_files() {
    let commands = Commands::after("");
    let text =
        commands.output("git format-patch -q main..topic -o ../patches && git am -q ../patches/*");
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=4\n"), "{text}");
    let status =
        commands.here.run_outside("git status --porcelain", &commands.here.ws().join("repo"));
    assert_eq!(status.1, "", "{text}");
    let text = commands.output("sed -i s/A=3/EVIL=3/ ../patches/0002*; git reset -q --hard main@{3}; git am -q ../patches/*; git am --abort");
    assert!(!commands.read("repo/.envrc").unwrap().contains("EVIL"), "{text}");
}

#[test]
fn undo_reports_unreverted_repository_changes() {
    let commands = Commands::after("");
    let text = commands.output("git clone -q . made");
    assert!(text.contains("reverts the files, not the git state"), "{text}");
    assert!(text.contains("made/.git was created; an undo does not remove it"), "{text}");
    let text = commands.output("rm -rf made");
    assert!(text.contains("made/.git was removed; an undo does not restore it"), "{text}");
    let text = commands.output("git worktree add -q wt first");
    assert!(text.contains("the work tree wt was added"), "{text}");
    let text = commands.output("echo more >> a.txt; git stash -q");
    assert!(text.contains("a stash entry was added"), "{text}");
}

#[test]
fn unfinished_operations_are_reported() {
    let commands = Commands::after(
        "cd repo && git checkout -q -b theirs && echo theirs > a.txt && git commit -qam theirs && git checkout -q main && echo ours > a.txt && git commit -qam ours && echo more > a.txt && git commit -qam more",
    );
    for (begin, end) in [
        ("git merge -q theirs", "git merge --abort"),
        ("git cherry-pick theirs", "git cherry-pick --abort"),
        ("git revert --no-edit HEAD~1", "git revert --abort"),
    ] {
        let text = commands.output(begin);
        assert!(text.contains("reverts the files, not the git state]"), "{text}");
        let note = format!("is not finished; an undo does not end it: `{end}` does");
        assert!(text.contains(&note), "{text}");
        commands.output(end);
    }
    let text = commands.output("git checkout -q theirs && git rebase -q main");
    // The command began at main, and the rebase at theirs.
    let repository = commands.here.ws().join("repo");
    let began = commands.here.run_outside("git rev-parse theirs", &repository).1;
    assert!(text.contains("`git rebase --abort`, then `git checkout main` does"), "{text}");
    let text =
        commands.output("echo both > a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue");
    let back = format!("`git reset --keep {}` reverts the rebase", &began[..9]);
    assert!(text.contains(&back), "{text}");
}

#[test]
fn a_changed_index_is_named_with_the_way_back() {
    for version in [2, 4] {
        let setup = format!("cd repo && git update-index --index-version {version}");
        let commands = Commands::after(&setup);
        let text = commands.output("echo x > new.py && git add new.py && git mv new.py new2.py");
        assert!(text.contains("reverts the files, not the git state]"), "{text}");
        assert!(text.contains("the index was changed (1 file)"), "{text}");
        let undone = commands.call("Undo", json!({})).unwrap().text();
        assert!(undone.contains("git state stays as it is: index]"), "{undone}");
        let status = || {
            let repository = commands.here.ws().join("repo");
            commands.here.run_outside("git status --porcelain", &repository).1
        };
        assert_eq!(status(), "AD new2.py\n");
        commands.output(&command_in(&text, "git reset -q -- "));
        assert_eq!(status(), "");
        // A refreshed index is not a change.
        let text = commands.output("echo y > other.txt; touch a.txt; git status --short");
        assert!(!text.contains("index"), "{text}");
    }
}

#[test]
fn branches_that_lost_commits_are_named_with_the_way_back() {
    let commands = Commands::after("");
    let commit = |name: &str| {
        let repository = commands.here.ws().join("repo");
        commands.here.run_outside(&format!("git rev-parse {name}"), &repository).1
    };
    for (head, begin, branch, back) in [
        ("main", "git branch -f topic main", "topic", "git branch -f topic "),
        ("main", "git switch -q -C side main", "side", "git update-ref refs/heads/side "),
        ("side", "git commit -q --amend -m other", "side", "git reset "),
        ("topic", "git rebase -q main side", "side", "git update-ref refs/heads/side "),
    ] {
        commands.output(&format!("git checkout -q {head}"));
        let before = commit(branch);
        let text = commands.output(begin);
        let named = text.lines().find(|line| line.contains(&before[..9]));
        let back = command_in(named.unwrap_or_else(|| panic!("{begin}: {text}")), back);
        assert_ne!(commit(branch), before);
        let text = commands.output(&back);
        assert_eq!(commit(branch), before, "{begin}: {text}");
        commands.output("git reset -q --hard");
    }
    // A fast-forward loses nothing.
    let text = commands.output("git checkout -q main; git branch -f old main");
    assert!(!text.contains("branch old"), "{text}");
}

#[test]
fn undo_says_which_git_state_stays() {
    let commands = Commands::after("");
    commands.output("git reset -q --hard HEAD~1");
    let undone = commands.call("Undo", json!({})).unwrap().text();
    assert!(undone.contains("git state stays as it is: HEAD, "), "{undone}");
    commands.output("git reset -q --hard");
    let text = commands.output("git config user.name Someone");
    assert!(text.contains("/config was changed; an undo does not restore it"), "{text}");
}

/// The command that a note names, by its beginning.
fn command_in(text: &str, beginning: &str) -> String {
    let from = text.find(beginning).unwrap_or_else(|| panic!("no {beginning}: {text}"));
    text[from..].split('`').next().unwrap().to_owned()
}

#[test]
fn removed_stash_entries_are_named_with_the_way_back() {
    let commands = Commands::after(
        "cd repo && for n in 1 2 3 4 5; do echo $n >> a.txt && git stash push -q -m entry$n; done",
    );
    let text = commands.output("git stash drop -q stash@{3}");
    assert!(text.contains("stash entry \"On main: entry2\" was removed; it was at "), "{text}");
    assert!(!text.contains("entry3") && !text.contains("stash has changed"), "{text}");
    let text = commands.output("git stash clear");
    assert!(text.contains("entry5") && text.contains("and 1 more stash entry"), "{text}");
    commands.output(&command_in(&text, "git stash store "));
    let text = commands.output("git stash list | wc -l; git stash show -p | tail -1");
    assert!(text.starts_with("1\n+5\n"), "{text}");
}

#[test]
fn removed_branches_and_tags_are_named_with_the_way_back() {
    let commands = Commands::after(
        "cd repo && for b in gone kept twin packed; do git branch $b first; done && git tag mark first && git tag -a -m note annotated first && git pack-refs --all && git branch loose first",
    );
    let text =
        commands.output("git branch -q -D gone loose; git tag -d mark annotated > /dev/null");
    let back: Vec<String> =
        ["git branch gone ", "git branch loose ", "git tag mark ", "git tag annotated "]
            .map(|command| command_in(&text, command))
            .into();
    assert!(text.contains("branch gone was deleted; it was at "), "{text}");
    let text = commands.output(&format!(
        "{}; git rev-parse gone loose mark first | uniq | wc -l; git cat-file -t annotated",
        back.join("; ")
    ));
    assert!(text.starts_with("1\ntag\n"), "{text}");

    let text = commands.output("git branch -q -m kept other");
    assert!(!text.contains("was deleted") && text.contains("was renamed to other"), "{text}");
    // A deleted branch that names the same commit as a renamed one.
    let text = commands.output("git branch -q -m other renamed; git branch -q -D twin");
    assert!(text.contains("branch twin was deleted"), "{text}");
    assert!(!text.contains("branch other was deleted"), "{text}");
    let text = commands.output("git update-ref -d refs/heads/packed");
    assert!(text.contains("branch packed was deleted"), "{text}");

    let text = commands.output("git tag moving first; git branch packed first");
    assert!(!text.contains("moving"), "{text}");
    let text = commands.output("git tag -f moving main > /dev/null");
    assert!(text.contains("tag moving was moved; it was at "), "{text}");
    assert!(text.contains("`git tag -f moving "), "{text}");

    commands.output("git branch lost $(git commit-tree -m y -p HEAD HEAD^{tree})");
    let text = commands.output("git branch -q -D lost; git gc -q --prune=now");
    assert!(text.contains("branch lost was deleted; it was at "), "{text}");
    assert!(text.contains(", which the repository no longer has"), "{text}");
}

#[test]
fn removed_entries_of_the_reflog_are_counted() {
    let commands = Commands::after("cd repo && git checkout -q first && git checkout -q main");
    let text = commands.output("git commit -q --allow-empty -m more");
    assert!(!text.contains("reflog"), "{text}");
    let text = commands.output("git reflog expire --expire=now --all");
    assert!(
        text.contains("the reflog of HEAD lost ") && text.contains("their commits: "),
        "{text}"
    );
    let text = commands.output("git status");
    assert!(!text.contains("reflog"), "{text}");
}

#[test]
fn refused_settings_are_counted_and_the_others_are_written() {
    let commands = Commands::after("");
    let text = commands.output("git config user.name Me && git config core.editor vim");
    assert!(text.contains("a write to repo/.git/config was refused, because"), "{text}");
    assert!(!text.contains("not changed"), "{text}");
    assert!(commands.read("repo/.git/config").unwrap().contains("name = Me"));
    let text = commands.output(
        "for n in $(seq 30); do git config alias.a$n '!x'; done; d=$(echo .git); echo '[core] editor = x' > $d/config.worktree; for m in 1 2 3; do mkdir -p m$m && git init -q m$m && git -C m$m config core.editor x; done",
    );
    assert!(text.contains(" and 25 more"), "{text}");
    assert!(text.contains("more files were refused, for the same reason"), "{text}");
}
