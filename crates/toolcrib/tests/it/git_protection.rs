//! What git may write in a work tree is the user's own; and a repository of the user's is whole, whatever a command tries.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, Options, Reply, Runtime, Session};

use crate::git_operations::Here;

struct Commands {
    here: Here,
    runtime: Runtime,
    session: Session,
}

impl Commands {
    /// In a workspace with a repository, and what a script makes of it.
    fn after(setup: &str) -> Commands {
        let here = Here::new();
        here.make(setup);
        let (runtime, session) = here.runtime();
        Commands { here, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    /// Runs a command in the repository, however it ends, and answers all that was said.
    fn says(&self, command: &str) -> String {
        match self.call("Bash", json!({"command": command, "cwd": "repo"})) {
            Err(error) if error.kind() == ErrorKind::Denied => panic!("{command}: {error}"),
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.here.ws().join(name)).ok()
    }
}

const NESTED: &str = "cp -a repo copy && mv copy repo/nested && cp -a remote.git repo/bare.git && mkdir repo/wide && cp -a repo/nested repo/wide/deep && cd repo && git gc -q && cd nested && git checkout -q topic";

/// What a repository is, as git sees it and as it lies on disk.
fn repositories(commands: &Commands) -> String {
    let look = "for d in .git bare.git nested/.git wide/deep/.git; do echo $d; (cd $d && find . ! -name '*.lock' | sort; cat HEAD config; git --git-dir=. fsck --no-progress --no-dangling 2>&1; git --git-dir=. for-each-ref); done";
    commands.here.outside(look, &commands.here.ws().join("repo")).1
}

#[test]
fn a_repository_of_the_users_is_never_removed_in_part() {
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
        "cd .. && rm -rf repo",
        "cd nested && rm -rf ../nested",
        "d=$(echo .git); rm $d/HEAD $d/config $d/index; rm -r $d/objects; rmdir $d/refs",
        "echo 'import os,sys\nfor r,d,f in os.walk(sys.argv[1],topdown=False):\n  for n in f:\n    try: os.remove(r+\"/\"+n)\n    except OSError: pass' > /tmp/r.py; python3 /tmp/r.py .",
    ] {
        let said = commands.says(command);
        assert_eq!(repositories(&commands), before, "{command}: {said}");
        // A command that goes well is told of a refusal once in a session.
        if said.starts_with("exit code") {
            assert!(said.contains("nothing of it was removed"), "{command}: {said}");
        }
        let notes = said.lines().filter(|line| line.starts_with("[refused by the sandbox")).count();
        assert!(notes <= 3, "{said}");
        // The files are in the journal, the commits in the repository.
        commands.says("git checkout -q -f main");
    }
}

#[test]
fn a_repository_that_a_command_made_can_be_removed_by_the_next() {
    let commands = Commands::after("");
    for (make, remove) in [
        ("git clone -q . ../one", "rm -rf ../one"),
        ("git clone -q . ../one && mv ../one ../two", "rm -rf ../two"),
        ("git init -q ../one && git init -q --bare ../two.git", "rm -rf ../one ../two.git"),
        ("cp -a ../repo ../one", "rm -rf ../one"),
        ("git clone -q . inner", "git clean -ffdxq"),
        ("git clone -q . ../one", "python3 -c 'import shutil; shutil.rmtree(\"../one\")'"),
        ("git worktree add -q ../one side", "rm -rf ../one && git worktree prune"),
    ] {
        commands.says(make);
        let said = commands.says(remove);
        for name in ["one", "two", "two.git", "repo/inner"] {
            assert!(!commands.here.ws().join(name).exists(), "{make}; {remove}: {said}");
        }
    }
}

/// Commits that a command has made are not the user's, whatever way they come.
#[test]
fn no_commit_of_the_session_writes_a_protected_file() {
    let commands = Commands::after("");
    // A commit with another content, as `refs/heads/evil`, without a file in the work tree.
    let evil = "export GIT_INDEX_FILE=/tmp/i; b=$(echo 'export EVIL=1' | git hash-object -w --stdin); git read-tree main; git update-index --add --cacheinfo 100644,$b,.envrc --cacheinfo 100755,$b,.husky/evil --cacheinfo 100644,$b,new/.envrc; c=$(git commit-tree -p main -m evil $(git write-tree)); git update-ref refs/heads/evil $c; unset GIT_INDEX_FILE";
    commands.says(evil);
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
        // A repository of the session under another name is still the session's.
        "git clone -q -n . ../made; cd ../made; git update-ref refs/heads/main $(git rev-parse origin/evil); cd ..; mkdir up; mv made up/made; mv up up2; git clone -q up2/made c6; cd up2/made; git checkout -q -f main",
        "git clone -q --bare . ../b.git; cd ..; git -C b.git update-ref refs/heads/main $(git -C repo rev-parse evil); mkdir c7; mv b.git c7/$(echo .git); cd c7; git config core.bare false; git checkout -q -f main",
        // Where this program sees other files than the command.
        "git clone -q --bare . /tmp/t.git; git -C /tmp/t.git update-ref refs/heads/main $(git rev-parse evil); git clone -q /tmp/t.git ../c8",
        // A program that says it is git is asked for the content, as git is.
        "cp $(readlink -f $(command -v python3)) ../git; ../git ../write.py .; git reset -q --hard; rm ../git",
        // An object whose name does not fit its content.
        "o=$(git rev-parse main:.envrc); e=$(git rev-parse evil:.envrc); p=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); mkdir -p $(dirname $p); rm -f $p; cp .git/objects/$(echo $e | cut -c1-2)/$(echo $e | cut -c3-) $p; git checkout -q -f main -- .envrc",
        // The user's own references, renamed away and changed.
        "d=$(echo .git); mv $d/refs $d/r; echo $(git rev-parse evil) > $d/r/heads/side; mv $d/r $d/refs; git checkout -q -f side",
        // Another path.
        "git update-index --add --cacheinfo 100644,$(git rev-parse main:a.txt),.envrc; git checkout-index -qf .envrc; git reset -q --hard",
    ] {
        let said = commands.says(command);
        let found = commands.here.outside(
            "grep -rl EVIL --include=.envrc --include=evil . --exclude-dir=.git; grep -l two repo/.envrc",
            &commands.here.ws(),
        );
        assert_eq!(found.1, "", "{command}: {said}");
    }
    let kept = commands.read("repo/.envrc").unwrap();
    assert!(kept.starts_with("export A="), "{kept}");
}

#[test]
fn what_could_not_be_written_is_said_and_the_old_content_stays() {
    let commands = Commands::after(
        "cd repo && git checkout -qb b1 && sed -i 1i#one .envrc && git commit -qam one && git checkout -qb b2 main && echo '#two' >> .envrc && git commit -qam two && git checkout -q b1",
    );
    let before = commands.read("repo/.envrc");
    let said = commands.says("git merge -q --no-edit b2");
    assert_eq!(commands.read("repo/.envrc"), before, "{said}");
    assert!(said.contains("[not written, since programs run what it says"), "{said}");
    assert!(said.contains("git checkout -- repo/.envrc"), "{said}");
    assert!(!said.contains("refused by the sandbox"), "{said}");
}

#[test]
fn removed_protected_files_come_back() {
    let commands = Commands::after(
        "echo mine > repo/src/.envrc; echo '{\"deny\":1}' > repo/.claude/settings.local.json",
    );
    let said = commands.says("rm .envrc src/.envrc sub/.envrc .claude/settings.json");
    assert!(said.contains("Undo with id"), "{said}");
    assert_eq!((commands.read("repo/.envrc"), commands.read("repo/src/.envrc")), (None, None));
    commands.call("Undo", json!({})).unwrap();
    assert_eq!(commands.read("repo/src/.envrc").as_deref(), Some("mine\n"));
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=2\n"));
    assert_eq!(commands.read("repo/.claude/settings.json").as_deref(), Some("{}\n"));
    // It can say what agents may not do, and no commit has it.
    let said = commands.says("rm .claude/settings.local.json");
    assert!(said.contains("refused by the sandbox: the path shown above"), "{said}");
    assert!(commands.read("repo/.claude/settings.local.json").is_some());
}

#[test]
fn a_moved_head_is_said_where_undo_is_offered() {
    let commands = Commands::after("");
    let said = commands.says("git checkout -q first");
    assert!(said.contains("restores these files only]"), "{said}");
    assert!(said.contains("[HEAD moved from ") && said.contains("(main) to"), "{said}");
    assert!(said.contains("`git checkout main` does]"), "{said}");
    let said = commands.says("git checkout -q main && git reset -q --hard HEAD~1");
    assert!(said.contains("(detached) to") && said.contains("(main), and an undo"), "{said}");
    let said = commands.says("echo x >> a.txt && git commit -qam x");
    assert!(said.contains("`git reset "), "{said}");
    let said = commands.says("echo x >> a.txt; git stash -q; git stash pop -q");
    assert!(said.contains("takes it back]") && !said.contains("HEAD moved"), "{said}");
    let said = commands.says("git commit -qam y");
    assert!(!said.contains("HEAD moved"), "{said}");
}

/// Git looks at a file that a patch changes right after it has closed it, so such a file is replaced as a whole.
#[test]
fn patches_change_protected_files_to_what_a_commit_has() {
    let commands = Commands::after("");
    let said =
        commands.says("git format-patch -q main..topic -o ../patches && git am -q ../patches/*");
    assert_eq!(commands.read("repo/.envrc").as_deref(), Some("export A=4\n"), "{said}");
    let status = commands.here.outside("git status --porcelain", &commands.here.ws().join("repo"));
    assert_eq!(status.1, "", "{said}");
    let said = commands.says("sed -i s/A=3/EVIL=3/ ../patches/0002*; git reset -q --hard main@{3}; git am -q ../patches/*; git am --abort");
    assert!(!commands.read("repo/.envrc").unwrap().contains("EVIL"), "{said}");
}

#[test]
fn what_undo_leaves_of_a_repository_is_said() {
    let commands = Commands::after("");
    let said = commands.says("git clone -q . made");
    assert!(said.contains("restores these files only"), "{said}");
    assert!(said.contains("made/.git was made, and an undo does not remove it"), "{said}");
    let said = commands.says("rm -rf made");
    assert!(said.contains("made/.git was removed, and an undo does not bring it back"), "{said}");
    let said = commands.says("git worktree add -q wt first");
    assert!(said.contains("wt/.git was made"), "{said}");
    let said = commands.says("echo more >> a.txt; git stash -q");
    assert!(said.contains("the stash has changed") || !said.contains("Undo with id"), "{said}");
}
