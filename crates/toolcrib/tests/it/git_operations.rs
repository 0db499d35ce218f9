//! Git behaves in the sandbox as outside: each operation runs once without and once with the sandbox, from the
//! same files at the same path, and both must leave the same repositories, files and exit code.

mod rows;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use toolcrib::{Call, Caps, Options, Profile, Rules, Runtime, SandboxSettings, Session};

use self::rows::ROWS;

pub(super) struct Row {
    name: &'static str,
    /// Runs outside the sandbox, in the workspace, after [`SETUP`].
    setup: &'static str,
    /// Runs with and without the sandbox, in `repo`.
    command: &'static str,
    expected: Expected,
}

pub(super) enum Expected {
    /// The result is the same as outside.
    Same,
    /// Nothing changed, and the reply contains this text.
    Refused(&'static str),
    /// The result is the same as outside except for these files, which are unchanged, and the reply contains
    /// this text.
    Kept(&'static [&'static str], &'static str),
}

/// A repository whose commits add, change and remove protected files.
const SETUP: &str = r#"
set -e
git init -q repo && cd repo
mkdir src && echo one > a.txt && echo lib > src/lib.txt && printf '*.log\nbuild/\n' > .gitignore
git add -A && git commit -qm first && git tag first
mkdir -p .vscode .devcontainer .husky .claude sub
echo '{"v":1}' > .vscode/settings.json
echo '{"image":"x"}' > .devcontainer/devcontainer.json
printf '#!/bin/sh\ntrue\n' > .husky/pre-commit && chmod +x .husky/pre-commit
echo '{}' > .claude/settings.json
echo 'export A=1' > .envrc && echo 'export B=1' > sub/.envrc
git add -A && git commit -qm protected && git tag protected
echo 'export A=2' > .envrc && echo two > a.txt && git commit -qam second
git rm -rq .devcontainer && git commit -qm 'no devcontainer'
mkdir .devcontainer && echo '{"image":"y"}' > .devcontainer/devcontainer.json
git add -A && git commit -qm 'devcontainer again'
git branch old first && git checkout -qb side protected && echo side > side.txt && git add side.txt && git commit -qm side
git checkout -qb conflict protected && echo conflict > a.txt && git commit -qam conflict
git checkout -qb topic main && echo t1 > t.txt && git add t.txt && git commit -qm t1
echo 'export A=3' > .envrc && git commit -qam t2 && echo 'export A=4' > .envrc && echo t3 > t.txt && git commit -qam t3
git checkout -q main
cd .. && git clone -q --bare repo remote.git && git clone -q --bare repo ../outside.git
git -C repo remote add origin ../remote.git && git -C repo fetch -q && git -C repo branch -q -u origin/main
"#;

pub(crate) struct GitFixture {
    top: tempfile::TempDir,
    /// Files that [`SETUP`] creates.
    template: PathBuf,
}

/// State of a directory: repositories as git reports them, and files.
type State = BTreeMap<String, String>;

impl GitFixture {
    pub(crate) fn new() -> GitFixture {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        let template = top.path().join("template");
        let here = GitFixture { top, template };
        for directory in ["template/ws", "home"] {
            fs::create_dir_all(here.top.path().join(directory)).unwrap();
        }
        let configuration = "[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n[gc]\n\tautoDetach = false\n[maintenance]\n\tautoDetach = false\n[advice]\n\tdetachedHead = false\n";
        fs::write(here.top.path().join("home/.gitconfig"), configuration).unwrap();
        let (code, text) = here.run_outside(SETUP, &here.template.join("ws"));
        assert_eq!(code, 0, "{text}");
        here
    }

    pub(crate) fn ws(&self) -> PathBuf {
        self.top.path().join("ws")
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let text = |text: &str| OsString::from(text);
        let mut variables = vec![
            (text("PATH"), text("/usr/local/bin:/usr/bin:/bin")),
            (text("HOME"), self.top.path().join("home").into()),
            (text("GIT_CONFIG_NOSYSTEM"), text("1")),
            (text("LC_ALL"), text("C")),
        ];
        for role in ["AUTHOR", "COMMITTER"] {
            variables.push((format!("GIT_{role}_NAME").into(), text("a")));
            variables.push((format!("GIT_{role}_EMAIL").into(), text("a@b")));
            variables.push((format!("GIT_{role}_DATE").into(), text("2024-01-02T03:04:05Z")));
        }
        variables
    }

    /// Creates the workspace anew and runs a script in it.
    pub(crate) fn set_up(&self, setup: &str) {
        for directory in ["ws", "outside.git", "state"] {
            let _ = fs::remove_dir_all(self.top.path().join(directory));
        }
        let copy = "cp -a template/ws template/outside.git . && cd ws && git -C repo update-index -q --refresh\n";
        let (code, text) = self.run_outside(&format!("set -e; {copy}{setup}"), self.top.path());
        assert_eq!(code, 0, "{text}");
    }

    pub(crate) fn run_outside(&self, script: &str, directory: &Path) -> (i64, String) {
        let output = Command::new("bash")
            .args(["-c", script])
            .env_clear()
            .envs(self.environment())
            .current_dir(directory)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1).into(), String::from_utf8_lossy(&text).into_owned())
    }

    pub(crate) fn runtime(&self) -> (Runtime, Session) {
        self.runtime_with(Rules::default())
    }

    pub(crate) fn runtime_with(&self, rules: Rules) -> (Runtime, Session) {
        let variables = self.environment();
        let runtime = Runtime::builder()
            .root(self.ws())
            .journal(self.top.path().join("state"), Caps::default())
            .profile(Profile::Workspace)
            .rules(rules)
            .environment(move || variables.clone())
            .sandbox(SandboxSettings::default())
            .helper(crate::helper())
            .build()
            .unwrap();
        let session = runtime.session();
        (runtime, session)
    }

    fn state(&self) -> State {
        let mut state = State::new();
        self.collect_state(&self.ws(), &mut state);
        state
    }

    fn collect_state(&self, directory: &Path, state: &mut State) {
        let relative = |path: &Path| path.strip_prefix(self.ws()).unwrap().display().to_string();
        let is_bare = directory.join("objects").is_dir() && directory.join("HEAD").is_file();
        if is_bare || directory.join(".git").exists() {
            let ask = "git for-each-ref; git rev-parse HEAD; git symbolic-ref -q HEAD; git status --porcelain; git stash list; git config --local -l; git worktree list; git fsck --no-dangling --no-progress 2>&1; ls .git/hooks hooks 2>/dev/null";
            let (_, text) = self.run_outside(ask, directory);
            state.insert(format!("repository {}", relative(directory)), text);
        }
        if is_bare {
            return;
        }
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let about = fs::symlink_metadata(&path).unwrap();
            let executable = about.permissions().mode() & 0o111;
            if entry.file_name() == ".git" {
                continue;
            }
            if about.is_dir() {
                state.insert(relative(&path), "directory".to_owned());
                self.collect_state(&path, state);
            } else if about.is_symlink() {
                state.insert(relative(&path), format!("link {:?}", fs::read_link(&path).unwrap()));
            } else {
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                state.insert(relative(&path), format!("{executable:o} {content}"));
            }
        }
    }

    fn check(&self, row: &Row) -> Result<(), String> {
        let in_repo = self.ws().join("repo");
        self.set_up(row.setup);
        let before = self.state();
        let (outside_code, outside_text) = self.run_outside(row.command, &in_repo);
        let outside = self.state();
        self.set_up(row.setup);
        let (runtime, session) = self.runtime();
        let call = Call::new("Bash", json!({"command": row.command, "cwd": "repo"}));
        let reply = runtime.call(&session, call, Options::default());
        let (code, text) = match &reply {
            Ok(reply) => (reply.metadata()["exit_code"].as_i64(), reply.output().to_owned()),
            Err(error) => (error.metadata()["exit_code"].as_i64(), error.text().to_string()),
        };
        let inside = self.state();
        let about = || format!("inside: {text}\noutside: exit code {outside_code}, {outside_text}");
        match &row.expected {
            Expected::Same => {
                let difference = difference(&outside, &inside);
                if !difference.is_empty() || code != Some(outside_code) {
                    return Err(format!("exit code {code:?}\n{difference}{}", about()));
                }
                if text.contains("refused") {
                    return Err(format!("a note of a refusal\n{}", about()));
                }
            }
            Expected::Refused(sentence) => {
                let difference = difference(&before, &inside);
                if !difference.is_empty() || !text.contains(sentence) {
                    return Err(format!("{difference}{}", about()));
                }
            }
            Expected::Kept(names, sentence) => {
                let mut expected = outside;
                for name in *names {
                    expected
                        .insert((*name).to_owned(), before.get(*name).cloned().unwrap_or_default());
                }
                let of_files = |state: State| -> State {
                    state.into_iter().filter(|(name, _)| !name.starts_with("repository")).collect()
                };
                let difference = difference(&of_files(expected), &of_files(inside));
                if !difference.is_empty() || !text.contains(sentence) {
                    return Err(format!("{difference}{}", about()));
                }
            }
        }
        Ok(())
    }
}

fn difference(expected: &State, found: &State) -> String {
    let names: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let mut text = String::new();
    for name in names {
        let lines = |state: &State| -> Vec<String> {
            state
                .get(name)
                .map(|text| text.lines().map(str::to_owned).collect())
                .unwrap_or_default()
        };
        let (expected_lines, found_lines) = (lines(expected), lines(found));
        if expected.get(name) != found.get(name) {
            text += &format!("{name}\n");
            let missing = expected_lines.iter().filter(|line| !found_lines.contains(line));
            text.extend(missing.map(|line| format!("  - {line}\n")));
            let added = found_lines.iter().filter(|line| !expected_lines.contains(line));
            text.extend(added.map(|line| format!("  + {line}\n")));
        }
    }
    text
}

/// Checks every fourth row from `first` on, so that four tests share the work.
fn check_rows(first: usize) {
    let here = GitFixture::new();
    let only = std::env::var("GIT_ROW").unwrap_or_default();
    let rows = ROWS.iter().skip(first).step_by(4).filter(|row| row.name.contains(&only));
    let failed: Vec<String> = rows
        .filter_map(|row| here.check(row).err().map(|why| format!("=== {}: {why}", row.name)))
        .collect();
    assert!(failed.is_empty(), "{} rows failed\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn git_behaves_as_outside_1() {
    check_rows(0);
}

#[test]
fn git_behaves_as_outside_2() {
    check_rows(1);
}

#[test]
fn git_behaves_as_outside_3() {
    check_rows(2);
}

#[test]
fn git_behaves_as_outside_4() {
    check_rows(3);
}
