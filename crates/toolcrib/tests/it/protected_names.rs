//! Commands cannot create protected files, in any way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::sandboxed::Sandboxed;

const GIT: &str = "git -c user.name=a -c user.email=a@b";

impl Sandboxed {
    fn ws(&self, name: &str) -> std::path::PathBuf {
        self.top.path().join("ws").join(name)
    }

    /// Runs a command and returns the reply or error text. Names are hidden from the command parser, so that
    /// the decision is made when they are used.
    fn output(&self, command: &str) -> String {
        let unread =
            command.replace(".git", "${G}").replace("config", "${C}").replace("hooks", "${H}");
        let unread = unread.replace("${G}${C}", ".gitconfig").replace(".vscode", "${V}");
        let command = format!(
            "G=$(echo .git); C=$(echo config); H=$(echo hooks); V=$(echo .vscode); {unread}"
        );
        match self.bash(&command) {
            Err(error) if error.kind() == toolcrib::ErrorKind::Denied => {
                panic!("{command}: {error}")
            }
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    }

    /// Asserts that git, run by the user outside, runs no program (`touch MARK`) that a command configured.
    fn assert_git_runs_nothing(&self, directory: &str) {
        let status = std::process::Command::new("git")
            .args(["-c", "safe.directory=*", "-c", "safe.bareRepository=all", "status"])
            .current_dir(self.ws(directory))
            .output()
            .unwrap();
        let mark = self.top.path().join("MARK");
        assert!(!mark.exists(), "{directory}: {status:?}");
    }
}

/// A command text that prints a malicious configuration.
fn evil_configuration(here: &Sandboxed) -> String {
    let mark = here.top.path().join("MARK");
    format!("printf '[core]\\n\\tfsmonitor = touch {}; false\\n'", mark.display())
}

#[test]
fn commands_cannot_create_protected_files() {
    let here = Sandboxed::new();
    let text = here.output(
        "for f in $(echo .envrc sub/.vscode/tasks.json .mcp.json); do mkdir -p $(dirname $f); echo x > $f; done; true",
    );
    for name in [".envrc", "sub/.vscode/tasks.json", ".mcp.json"] {
        assert!(!here.ws(name).exists(), "{name}");
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("allow_protected"), "{text}");
    // An existing file of the user is not written.
    fs::write(here.ws(".envrc"), "mine").unwrap();
    for command in ["echo x > $f", "mv $f x", "ln $f x", "chmod +x $f", "truncate -s0 $f"] {
        here.assert_denied(&format!("f=$(echo .envrc); {command}"));
    }
    assert_eq!(here.read("ws/.envrc"), "mine");
}

#[test]
fn links_and_renames_cannot_create_protected_files() {
    let here = Sandboxed::new();
    here.bash("mkdir -p vs cur && echo '{}' > vs/tasks.json && echo '{}' > cur/mcp.json").unwrap();
    for command in [
        "ln -s cur .cursor",
        "mv cur .cursor",
        "cp -r cur x && ln -s x .zed",
        "ln vs/tasks.json .vscode/settings.json",
        "mkdir d && cd d && mv ../vs .vscode",
        "ln -s vs l && mv l .cursor",
        "ln -s /etc .claude",
        "mkdir -p q/.vscode r/.vscode && cp vs/tasks.json r/t && mv r/t r/.vscode/tasks.json",
        "exec 3> vs/x; ln /proc/self/fd/3 .envrc || ln -L /proc/self/fd/3 .envrc",
        "mkdir .cursor && mv --exchange cur .cursor || mv -T cur .cursor",
    ] {
        here.assert_denied(command);
    }
    assert!(here.ws(".vscode").is_dir() && !here.ws(".vscode").is_symlink());
    assert_eq!(here.read("ws/.vscode/tasks.json"), "canary");
    assert!(!here.ws(".cursor/mcp.json").exists());
    // A file can be removed, since Undo can restore it; it cannot be replaced.
    here.assert_denied("rm -r .vscode; ln -sT vs .vscode");
    assert!(!here.ws(".vscode").is_symlink());
    // An ordinary directory of that name is allowed.
    here.bash("mkdir plain && mv plain .zed && echo x > .zed/notes").unwrap();
}

#[test]
fn many_other_files_do_not_weaken_protection() {
    let here = Sandboxed::new();
    here.bash(
        "mkdir many && cd many && seq 30000 | xargs touch; cd ..; mkdir -p $(seq -f 'd/%.0f' 600)",
    )
    .unwrap();
    here.bash("seq 11000 | xargs touch; git init -q pkg").unwrap();
    for name in [".git/hooks/pre-commit", "pkg/.git/hooks/pre-commit", "d/600/.vscode/tasks.json"] {
        here.assert_denied(&format!("f=$(echo {name}); mkdir -p $(dirname $f); echo x > $f"));
        assert!(!here.ws(name).exists(), "{name}");
    }
}

#[test]
fn background_processes_cannot_create_protected_files() {
    let here = Sandboxed::new();
    let late = "git init -q sub; (sleep 0.3; for f in $(echo sub/.git/hooks/pre-commit .envrc .vscode/mcp.json); do echo x > $f; done; echo x > finished) > /dev/null 2>&1 & sleep 0.1";
    here.bash(late).unwrap();
    let finished = here.ws("finished");
    for _ in 0..1_000 {
        if finished.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(finished.exists());
    for name in ["sub/.git/hooks/pre-commit", ".envrc", ".vscode/mcp.json"] {
        assert!(!here.ws(name).exists(), "{name}");
    }
}

#[test]
fn commands_can_create_use_and_remove_a_repository() {
    let here = Sandboxed::new();
    here.bash(&format!(
        "git init -q r && cd r && git config user.name me && {GIT} commit -q --allow-empty -m one && \
         git remote add origin T/ws/x && git branch -q two && git checkout -q two"
    ))
    .unwrap();
    here.bash("cd .. && git clone -q r copy && git -C copy status").unwrap();
    here.bash("cp -r r copied && git -C copied log --oneline").unwrap();
    here.bash(&format!(
        "cd r && git worktree add -q ../w && cd ../w && {GIT} commit -q --allow-empty -m two && \
         cd ../r && git worktree remove ../w && {GIT} -c protocol.file.allow=always submodule --quiet add T/ws/copy sub && \
         {GIT} commit -q -m sub && git gc -q"
    ))
    .unwrap();
    here.bash("cd .. && rm -rf r copy copied").unwrap();
    assert!(!here.ws("r").exists() && !here.ws("copied").exists());
}

#[test]
fn harmless_git_configuration_is_allowed() {
    let here = Sandboxed::new();
    fs::write(here.ws(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(here.ws(".git/config"), "[core]\n\tbare = false\n").unwrap();
    here.bash("git config user.name somebody && git remote add origin https://example.org/x")
        .unwrap();
    assert!(here.read("ws/.git/config").contains("example.org"));
    let before = here.read("ws/.git/config");
    for command in [
        "git config core.fsmonitor ./evil",
        "git config core.hooksPath x",
        "git config alias.x '!evil'",
        "echo '[remote \"o\"]uploadpack=touch X;git-upload-pack #]' > c && cat .git/config >> c && mv c .git/config",
    ] {
        let text = here.output(command);
        assert_eq!(here.read("ws/.git/config"), before, "{command}: {text}");
        assert!(text.contains("can make programs run code"), "{text}");
    }
    let text = here.output("printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config");
    assert_eq!(here.read("ws/.git/config"), before);
    assert!(text.contains("core.fsmonitor (line "), "{text}");
    // A descriptor that stays open refers to another file.
    here.bash(
        "python3 -c '
import os
f = open(\".git/c\", \"w\"); f.write(open(\".git/config\").read()); f.flush()
os.rename(\".git/c\", \".git/config\"); f.write(\"[core]\\n\\tfsmonitor = evil\\n\"); f.flush()'",
    )
    .unwrap();
    assert_eq!(here.read("ws/.git/config"), before);
}

/// Wherever a command points git, git finds no program to run.
#[test]
fn commands_cannot_prepare_a_dangerous_git_directory() {
    let here = Sandboxed::new();
    let evil = evil_configuration(&here);
    here.bash(&format!("git init -q r && cd r && {GIT} commit -q --allow-empty -m one && cd .."))
        .unwrap();
    for (directory, command) in [
        (
            "p1",
            format!(
                "git init -q --bare b && cp -r b e1 && {evil} > e1/config; mkdir p1; echo 'gitdir: ../e1' > p1/.git"
            ),
        ),
        (
            "p2",
            format!(
                "mkdir e2 && {evil} > e2/config && cp -r r/.git/[!c]* e2/; mkdir p2; ln -s ../e2 p2/.git"
            ),
        ),
        (
            "p3",
            format!(
                "mkdir -p r/.git/worktrees/evil && cp -r r/.git/[!w]* r/.git/worktrees/evil/; {evil} > r/.git/worktrees/evil/config; mkdir p3; echo 'gitdir: ../r/.git/worktrees/evil' > p3/.git"
            ),
        ),
        (
            "p4",
            format!(
                "cp -r b e4; {evil} > e4/x; mv e4/x e4/config; ln -s ../../../e4 r/.git/worktrees/evil4; mkdir p4; echo 'gitdir: ../r/.git/worktrees/evil4' > p4/.git"
            ),
        ),
        (
            "p5",
            format!(
                "d=r/.git/modules/a/b/c/d/e/f/g; mkdir -p $d; cp -r b/* $d/; {evil} > $d/config; mkdir p5; echo \"gitdir: ../$d\" > p5/.git"
            ),
        ),
        (
            "p6",
            format!(
                "mkdir p6 c6; cp -r b/* c6/; {evil} > c6/config.worktree; echo ../c6 > e6; git init -q p6; echo ../../c6 > p6/.git/commondir"
            ),
        ),
        (
            "p7",
            format!(
                "mkdir -p x7 p7 && {evil} > x7/config && mkdir x7/refs && echo 'ref: refs/heads/m' > x7/HEAD && mkdir x7/objects; mv x7 p7/.git"
            ),
        ),
        (
            "p8",
            format!(
                "mkdir -p x8 p8 && mkdir x8/refs x8/o && echo 'ref: refs/heads/m' > x8/HEAD && {evil} > x8/config; mv x8/o x8/objects; mv x8 p8/.git"
            ),
        ),
        ("e9", format!("cp -r b e9; rm -r e9/objects; {evil} > e9/config; mkdir e9/objects; true")),
        (
            "p10",
            format!(
                "git init -q p10; {evil} > c10; ln c10 h10; ln -f c10 p10/.git/config; cp c10 p10/.git/config; cat c10 > p10/.git/config; dd if=c10 of=p10/.git/config"
            ),
        ),
        (
            "p11",
            format!(
                "git init -q p11; (cd p11/.git; rm -r refs objects; {evil} > config; mkdir refs objects)"
            ),
        ),
    ] {
        here.output(&command);
        here.output("true");
        if here.ws(directory).exists() {
            here.assert_git_runs_nothing(directory);
        }
    }
    let hook = "cp -r b e12; printf '#!/bin/sh\\nexit 1\\n' > e12/hooks/pre-commit; echo x > e12/hooks/x.sample";
    here.output(hook);
    assert!(!here.ws("e12/hooks/pre-commit").exists() && here.ws("e12/hooks/x.sample").exists());
}

/// The user's repository is protected at its real path.
#[test]
fn protection_follows_the_real_git_directory() {
    let here = Sandboxed::new();
    let make = |name: &str| {
        let directory = here.ws(name);
        for part in ["hooks", "objects", "refs/heads", "info"] {
            fs::create_dir_all(directory.join(part)).unwrap();
        }
        fs::write(directory.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(directory.join("config"), "[core]\n\tbare = false\n").unwrap();
    };
    make("gitdata");
    make("other/g.git");
    make("here/.git");
    fs::create_dir_all(here.ws("a")).unwrap();
    symlink("../gitdata", here.ws("a/.git")).unwrap();
    fs::create_dir_all(here.ws("b")).unwrap();
    fs::write(here.ws("b/.git"), "gitdir: ../other/g.git\n").unwrap();
    fs::create_dir_all(here.ws("here/.githooks")).unwrap();
    fs::write(here.ws("here/team.gitconfig"), "").unwrap();
    let config =
        "[core]\n\tbare = false\n\thooksPath = .githooks\n[include]\n\tpath = ../team.gitconfig\n";
    fs::write(here.ws("here/.git/config"), config).unwrap();
    fs::hard_link(here.ws("here/.git/config"), here.ws("here/hl")).unwrap();
    for name in [
        "gitdata/hooks/pre-commit",
        "other/g.git/hooks/pre-commit",
        "a/.git/hooks/pre-commit",
        "here/.githooks/pre-commit",
        "here/team.gitconfig",
        "here/hl",
    ] {
        let before = fs::read(here.ws(name)).ok();
        here.assert_denied(&format!("f=$(echo {name}); echo evil > $f"));
        let write = json!({"file_path": name, "content": "evil"});
        here.call("Write", write).unwrap_err();
        assert_eq!(fs::read(here.ws(name)).ok(), before, "{name}");
    }
    for name in ["gitdata/config", "other/g.git/config"] {
        here.output(&format!("printf '[core]\\n\\tfsmonitor = evil\\n' > {name}"));
        assert!(!here.read(&format!("ws/{name}")).contains("evil"), "{name}");
        let write = json!({"file_path": name, "content": "evil"});
        here.call("Write", write).unwrap_err();
    }
}

#[test]
fn repository_is_not_removed_by_accident() {
    let here = Sandboxed::new();
    fs::write(here.ws(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let names = |directory: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(&here.ws(".git"));
    for command in [
        "d=$(echo .git); rm -rf $d",
        "rm -rf * .g*",
        "mv $(echo .git) x",
        "find . -type f -print0 | xargs -0 rm",
    ] {
        here.output(command);
        assert_eq!(names(&here.ws(".git")), before, "{command}");
    }
}

#[test]
fn commits_are_not_overwritten_by_accident() {
    let here = Sandboxed::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        let output = command.current_dir(here.ws("mine")).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    fs::create_dir(here.ws("mine")).unwrap();
    fs::write(here.ws("mine/a.txt"), "text  \n").unwrap();
    git(&["init", "-q"]);
    git(&["add", "a.txt"]);
    git(&["commit", "-qm", "one"]);
    for command in [
        "(cd mine; for f in $(find .git/objects -type f); do : > x; mv -f x $f; done)",
        "(cd mine; for f in $(find .git/objects -type f); do chmod u+w $f; : > $f; done)",
        "(cd mine; find . -type f -exec sed -i 's/[ \\t]*$//' {} \\;)",
        "(cd mine/.git; for f in HEAD index refs/heads/*; do : > $f; done)",
        "(cd mine; mv .git/objects/*/* .)",
    ] {
        let output = here.output(command);
        assert!(
            output.contains("refused by the sandbox") || output.contains("Permission denied"),
            "{command}: {output}"
        );
        git(&["fsck", "--strict"]);
        assert_eq!(git(&["log", "--format=%s"]), "one\n", "{command}");
    }
    // Git itself goes on, and so does a program that follows git's protocol.
    here.output(&format!("(cd mine; echo more >> a.txt; {GIT} commit -qam two)"));
    let library =
        "(cd mine; cp .git/index .git/index.lock && mv .git/index.lock .git/index && echo done)";
    assert!(here.output(library).contains("done"));
    assert_eq!(git(&["log", "--format=%s"]), "two\none\n");
}

#[test]
fn files_that_a_command_added_to_a_repository_can_be_removed() {
    let here = Sandboxed::new();
    fs::write(here.ws(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let output = here.output(
        "touch .git/.msg.swp && rm .git/.msg.swp && d=$(mktemp -d -p .git) && touch $d/x && rm -r $d && echo gone",
    );
    assert!(output.contains("gone"), "{output}");
    // Also by the next command.
    here.output("touch .git/later");
    assert!(here.output("rm .git/later && echo gone").contains("gone"));
}

/// A root that is the user's home: the runtime executes no file that a command writes there.
#[test]
fn files_written_by_commands_are_not_executed_by_the_runtime() {
    use toolcrib::{Call, Options, Profile, Runtime};
    let top = crate::command_directory();
    let home = top.path().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join(".bash_profile"),
        format!("touch {0}/ESCAPED; export PLANTED=1\n", top.path().display()),
    )
    .unwrap();
    let variables = vec![
        ("HOME".into(), home.clone().into_os_string()),
        ("PATH".into(), "/usr/bin:/bin".into()),
    ];
    let runtime = Runtime::builder()
        .root(&home)
        .profile(Profile::Workspace)
        .environment(move || variables.clone())
        .login_shell("/bin/bash")
        .helper(crate::helper())
        .build()
        .unwrap();
    let session = runtime.session();
    let call = Call::new("Bash", json!({"command": "echo $PLANTED"}));
    assert_eq!(runtime.call(&session, call, Options::default()).unwrap().output(), "1\n");
    assert!(!top.path().join("ESCAPED").exists());
}

/// Bypasses found by reviewing the source, each with the directory in which git is run afterwards.
#[test]
fn review_cannot_be_bypassed() {
    let here = Sandboxed::new();
    let evil_text =
        format!("[core]\\n\\tfsmonitor = touch {}/MARK; false\\n", here.top.path().display());
    let python = |lines: &str| {
        let lines = lines.replace("EVIL", &evil_text);
        format!("cat > s.py <<'END'\nimport os\nfrom os import *\n{lines}\nEND\npython3 s.py")
    };
    let make = "def w(p, t):\n  f = open(p, O_CREAT|O_WRONLY|O_TRUNC, 0o644); write(f, t.encode()); close(f)\ndef head(d):\n  w(d+'/HEAD', 'ref: refs/heads/main\\n')\n";
    for (directory, lines) in [
        // A descriptor, a hard link and a mapping of a configuration, kept while its directory becomes a git
        // directory.
        (
            "p1",
            "mkdir('d1'); head('d1'); f = open('d1/config', O_RDWR|O_CREAT); mkdir('d1/objects'); mkdir('d1/refs'); write(f, 'EVIL'.encode()); mkdir('p1'); w('p1/.git', 'gitdir: ../d1')",
        ),
        (
            "p2",
            "mkdir('d2'); head('d2'); w('d2/config', ''); link('d2/config', 'notes'); mkdir('d2/objects'); mkdir('d2/refs'); w('notes', 'EVIL'); mkdir('p2'); w('p2/.git', 'gitdir: ../d2')",
        ),
        (
            "p3",
            "import mmap; mkdir('d3'); head('d3'); t = '#' * 200; w('d3/config', t); f = open('d3/config', O_RDWR); m = mmap.mmap(f, 200); mkdir('d3/objects'); mkdir('d3/refs'); e = 'EVIL'.encode(); m[:len(e)] = e; m.flush(); mkdir('p3'); w('p3/.git', 'gitdir: ../d3')",
        ),
        // The session's private directory, by the path that other programs see.
        (
            "p4",
            "import re; real = [l.split()[3] for l in __builtins__.open('/proc/self/mountinfo') if l.split()[4] == '/tmp'][0]; mkdir('/tmp/g'); head('/tmp/g'); w('/tmp/g/config', 'EVIL'); mkdir('p4'); w('p4/.git', 'gitdir: ' + real + '/g'); mkdir('/tmp/g/objects'); mkdir('/tmp/g/refs')",
        ),
        // A directory that this process may not read.
        (
            "p5",
            "makedirs('a5/p5'); chdir('a5/p5'); a = open('..', O_RDONLY); fchmod(a, 0); w('config', 'EVIL'); head('.'); mkdir('objects'); mkdir('refs'); fchmod(a, 0o755)",
        ),
    ] {
        let script = python(&format!("{make}for x in [1]:\n  {}", lines.replace("; ", "\n  ")));
        here.output(&script);
        let directory = if directory == "p5" { "a5/p5" } else { directory };
        if here.ws(directory).exists() {
            here.assert_git_runs_nothing(directory);
        }
    }
    // A directory with a protected file cannot get its name by an exchange.
    here.output(&python("import ctypes\nmkdir('.vscod'); mkdir('vs'); f = open('vs/mcp.json', O_CREAT|O_WRONLY); close(f)\nctypes.CDLL(None).renameat2(-100, b'.vscode', -100, b'vs', 2)\nctypes.CDLL(None).renameat2(-100, b'vs', -100, b'.vscode', 2)"));
    assert!(!here.ws(".vscode/mcp.json").exists());
    // A staged file cannot be published through another name of its directory.
    here.output(&python("makedirs('c/objects'); makedirs('c/refs'); f = open('c/config', O_CREAT|O_WRONLY); write(f, b'[user]\\nname = x\\n'); rename('c/refs', 'c/r'); rename('c', '.cargo'); close(f)"));
    assert!(!here.ws(".cargo/config").exists());
    // File tools cannot create a git directory.
    for (name, content) in [
        ("y/HEAD", "ref: refs/heads/main\n"),
        ("y/config", "[core]\n\tfsmonitor = x\n"),
        ("y/objects/a", ""),
        ("y/refs/a", ""),
    ] {
        let _ = here.call("Write", json!({"file_path": name, "content": content}));
    }
    assert!(!(here.ws("y/objects").exists() && here.ws("y/refs").exists()));
}

/// Outside, git tests whether modes can be changed by changing the mode of its configuration.
#[test]
fn new_repository_equals_one_made_outside() {
    let here = Sandboxed::new();
    here.bash("git init -q fresh && chmod 755 fresh && git clone -q fresh cloned 2>/dev/null")
        .unwrap();
    for name in ["fresh", "cloned"] {
        let config = here.read(&format!("ws/{name}/.git/config"));
        assert!(config.contains("filemode = true"), "{config}");
    }
}

/// Paths in the user's git configuration, and their parent directories.
#[test]
fn configured_paths_cannot_be_replaced() {
    let here = Sandboxed::new();
    fs::write(here.ws(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let config =
        "[core]\n\tbare = false\n\thooksPath = tools/hooks\n[include]\n\tpath = ../conf/x.cfg\n";
    fs::write(here.ws(".git/config"), config).unwrap();
    fs::create_dir_all(here.ws("tools/hooks")).unwrap();
    fs::create_dir_all(here.ws("conf")).unwrap();
    for command in [
        "mv tools t2",
        "mkdir -p t3/hooks; echo x > t3/hooks/pre-commit; mv -T t3 tools",
        "mv conf c2",
        "echo x > tools/hooks/pre-commit",
        "echo x > conf/x.cfg",
        "rmdir conf; ln -s c3 conf",
    ] {
        here.assert_denied(command);
    }
    assert!(!here.ws("tools/hooks/pre-commit").exists() && !here.ws("conf/x.cfg").exists());
}

/// A work tree that a symlink leads out of the workspace is rejected: a checkout would write there.
#[test]
fn work_tree_through_a_symlink_is_rejected() {
    let here = Sandboxed::new();
    here.bash("ln -s T/out link; mkdir inside; git init -q r").unwrap();
    let before = here.read("ws/r/.git/config");
    for value in ["../../link", "../../inside/../link", "../link", "../../inside"] {
        let text = here.output(&format!("git -C r config core.worktree {value}"));
        assert!(text.contains("core.worktree"), "{text}");
        assert_eq!(here.read("ws/r/.git/config"), before, "{value}");
    }
    // Before the directory becomes a git directory.
    here.output(
        "mkdir d && printf '[core]\\n\\tworktree = ../link\\n' > d/config && mkdir d/objects d/refs",
    );
    assert!(!here.ws("d/refs").exists());
}

/// Git follows includes, also nested ones.
#[test]
fn paths_in_included_configurations_are_protected() {
    let here = Sandboxed::new();
    fs::write(here.ws(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    for (name, text) in [
        (".git/config", "[core]\n\tbare = false\n[include]\n\tpath = ../conf/first\n"),
        (
            "conf/first",
            "[includeIf \"gitdir:**\"]\n\tpath = deep/second\n[include]\n\tpath = first\n",
        ),
        ("conf/deep/second", "[include]\n\tpath = ../linked\n[core]\n\thooksPath = my-hooks\n"),
        ("conf/fifth", "[include]\n\tpath = sixth\n"),
        (".git/config.worktree", "[include]\n\tpath = ../for-worktree\n"),
    ] {
        fs::create_dir_all(here.ws(name).parent().unwrap()).unwrap();
        fs::write(here.ws(name), text).unwrap();
    }
    symlink("fifth", here.ws("conf/linked")).unwrap();
    fs::create_dir_all(here.ws("my-hooks")).unwrap();
    for name in [
        "conf/first",
        "conf/deep/second",
        "conf/linked",
        "conf/fifth",
        "conf/sixth",
        "my-hooks/pre-commit",
        "for-worktree",
    ] {
        let before = fs::read(here.ws(name)).ok();
        here.assert_denied(&format!("f=$(echo {name}); echo x > $f"));
        here.assert_denied(&format!("f=$(echo {name}); echo x > x; mv x $f"));
        here.call("Write", json!({"file_path": name, "content": "x"})).unwrap_err();
        assert_eq!(fs::read(here.ws(name)).ok(), before, "{name}");
    }
    here.assert_denied("mv conf/deep conf/d2");
    here.bash("echo x > conf/other; echo x > hooks; rm conf/other").unwrap();
}

/// The configuration that names a path may be outside the roots.
#[test]
fn paths_of_repositories_outside_the_roots_are_protected() {
    use toolcrib::{Call, Options, Profile, Runtime};
    let top = crate::command_directory();
    let at = |name: &str| top.path().join(name);
    for name in ["repo/sub/hooks", "repo/sub/deep", "tree/hooks", "tree/sub", "ro"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    for directory in ["repo/.git", "main/.git", "ro/.git"] {
        for part in ["objects", "refs", "worktrees/w"] {
            fs::create_dir_all(at(directory).join(part)).unwrap();
        }
        fs::write(at(directory).join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    let hooks = |path: &str| format!("[core]\n\thooksPath = {path}\n");
    fs::write(at("repo/.git/config"), hooks("sub/hooks")).unwrap();
    fs::write(at("main/.git/config"), hooks("hooks")).unwrap();
    let other = at("tree/of-another").display().to_string();
    fs::write(at("ro/.git/config"), hooks(&other)).unwrap();
    fs::write(at("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
    let gitdir = at("main/.git/worktrees/w").display().to_string();
    fs::write(at("tree/.git"), format!("gitdir: {gitdir}\n")).unwrap();
    let runtime = Runtime::builder()
        .root(at("repo/sub"))
        .root(at("tree"))
        .read_only_root(at("ro"))
        .profile(Profile::Workspace)
        .helper(crate::helper())
        .build()
        .unwrap();
    let session = runtime.session();
    let call = |tool: &str, args| runtime.call(&session, Call::new(tool, args), Options::default());
    for name in ["repo/sub/hooks/pre-commit", "tree/hooks/pre-commit", "tree/of-another/pre-commit"]
    {
        let path = at(name).display().to_string();
        let command = format!("f=$(echo {path}); mkdir -p $(dirname $f); echo x > $f");
        call("Bash", json!({"command": command})).unwrap_err();
        call("Write", json!({"file_path": path, "content": "x"})).unwrap_err();
        assert!(!at(name).exists(), "{name}");
    }
    let command = format!("echo x > deep/file; mkdir {}/tree/sub/hooks", top.path().display());
    call("Bash", json!({"command": command})).unwrap();
}
