//! `bench replies`: the length of replies. Replays an hour of an agent's work on a generated project, and counts the
//! characters of the replies of each tool. Fails if a call that should succeed fails, or the reverse.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{Scratch, is_success};
use toolcrib_devtools::{cache, process};

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};

/// Modules of the project, and functions of each.
const MODULES: usize = 40;
const FUNCTIONS: usize = 30;

/// One call, and whether it succeeds.
struct Step {
    tool: &'static str,
    args: Value,
    succeeds: bool,
}

/// The replies of one tool.
#[derive(Default)]
struct Count {
    calls: usize,
    characters: usize,
    failed: usize,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let scratch = Scratch::beneath(&rounds.build()?, &cache::directory()?.join("replies"))?;
    create_project(&scratch.workspace())?;
    let mut command = scratch.command(&["run"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", scratch.top());
    let mut session = LineProcess::start(command)?;
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (number, Step { tool, args, succeeds }) in steps().into_iter().enumerate() {
        let reply = session.ask(&call_line(number, tool, &args, true))?;
        if is_success(&reply) != succeeds {
            return Err(format!("unexpected reply to {tool} {args}: {reply}").into());
        }
        let output = reply.get("output").and_then(Value::as_str).unwrap_or_default();
        let count = counts.entry(tool).or_default();
        count.calls += 1;
        count.characters += output.chars().count();
        count.failed += usize::from(!succeeds);
    }
    report.add(&table(&counts));
    Ok(())
}

fn table(counts: &BTreeMap<&str, Count>) -> Table {
    let mut table = Table::new("tool", &["calls", "failed", "characters of replies"]);
    let cells = |calls, failed, characters: usize| {
        [Cell::Count(calls), Cell::Count(failed), Cell::whole(Some(characters as f64))]
    };
    for (tool, Count { calls, failed, characters }) in counts {
        table.row(*tool, cells(*calls, *failed, *characters));
    }
    let sum = |part: fn(&Count) -> usize| counts.values().map(part).sum::<usize>();
    let all = cells(sum(|count| count.calls), sum(|count| count.failed), sum(|c| c.characters));
    table.row("all", all);
    table
}

fn create_project(workspace: &Path) -> Result<()> {
    for directory in ["src/tasks", "tests", "docs"] {
        fs::create_dir_all(workspace.join(directory))?;
    }
    for module in 0..MODULES {
        let path = workspace.join(format!("src/tasks/module_{module:02}.py"));
        fs::write(path, module_text(module))?;
        let page = format!("# Module {module}\n\nIts functions add numbers.\n");
        fs::write(workspace.join(format!("docs/module_{module:02}.md")), page)?;
    }
    fs::write(workspace.join("src/tasks/__init__.py"), "")?;
    fs::write(workspace.join("README.md"), "# Tasks\n\nA project that adds numbers.\n")?;
    // The repository is older than the session, so commands cannot remove it.
    for words in [
        &["init", "--quiet"][..],
        &["config", "user.name", "Tester"],
        &["config", "user.email", "tester@example.org"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "First"],
    ] {
        process::run(Command::new("git").args(words).current_dir(workspace))?;
    }
    Ok(())
}

fn module_text(module: usize) -> String {
    let function = |number: usize| {
        format!(
            "def task_{number}(value):\n    \"\"\"Add a number.\"\"\"\n    total = value + {module}\n    return total\n"
        )
    };
    (0..FUNCTIONS).map(function).collect::<Vec<_>>().join("\n\n")
}

fn bash(command: &str) -> Step {
    step("Bash", json!({ "command": command }))
}

fn step(tool: &'static str, args: Value) -> Step {
    Step { tool, args, succeeds: true }
}

impl Step {
    fn fails(self) -> Step {
        Step { succeeds: false, ..self }
    }
}

fn steps() -> Vec<Step> {
    [looking_around(), editing(), undoing(), git(), commands()].into_iter().flatten().collect()
}

fn looking_around() -> Vec<Step> {
    vec![
        step("LS", json!({"path": "."})),
        step("Glob", json!({"pattern": "src/**/*.py"})),
        step("Grep", json!({"pattern": "def task_7\\b", "output_mode": "content"})),
        step("Grep", json!({"pattern": "total"})),
        step("Grep", json!({"pattern": "no such text"})),
        step("Read", json!({"file_path": "src/tasks/module_00.py"})),
        step("Read", json!({"file_path": "src/tasks/module_01.py", "offset": 10, "limit": 20})),
        step("Read", json!({"file_path": "module_01.py"})).fails(),
        bash("git log --oneline | head -5; git status --short"),
        bash(
            "start=$(date +%s); echo \"took $(( $(date +%s) - start )) s\"; arr=(a b); echo \"${arr[0]} ${@}\"",
        ),
    ]
}

fn editing() -> Vec<Step> {
    let test =
        "import unittest\nfrom src.tasks import module_00\n\n\nclass Sums(unittest.TestCase):\n";
    let case = |number: usize| {
        format!(
            "    def test_{number}(self):\n        self.assertEqual(module_00.task_{number}(1), 1)\n\n"
        )
    };
    let test: String = std::iter::once(test.to_owned()).chain((0..FUNCTIONS).map(case)).collect();
    let file = "src/tasks/module_00.py";
    let renamed = json!([{"old_string": "result", "new_string": "total", "replace_all": true}]);
    vec![
        step(
            "Edit",
            json!({"file_path": file, "old_string": "def task_29(value):", "new_string": "def task_30(value):\n    return value\n\n\ndef task_29(value):"}),
        ),
        step(
            "Edit",
            json!({"file_path": file, "old_string": "total", "new_string": "result", "replace_all": true}),
        ),
        step("MultiEdit", json!({"file_path": file, "edits": renamed})),
        step(
            "Edit",
            json!({"file_path": file, "old_string": "def tsak_5(value):", "new_string": "x"}),
        )
        .fails(),
        step("Write", json!({"file_path": "tests/test_sums.py", "content": test})),
        step("Write", json!({"file_path": "tests/__init__.py", "content": ""})),
        bash("python3 -m unittest -v tests.test_sums 2>&1"),
        bash("python3 -m unittest -q tests.test_sums 2>&1 | tail -3"),
        step(
            "ApplyPatch",
            json!({"patch": "*** Begin Patch\n*** Update File: README.md\n@@\n # Tasks\n \n-A project that adds numbers.\n+A project that adds many numbers.\n*** End Patch\n"}),
        ),
    ]
}

fn undoing() -> Vec<Step> {
    vec![
        step("Undo", json!({})),
        bash("rm -rf docs && sed -i s/task_/job_/ src/tasks/*.py"),
        step("Undo", json!({})),
        step("Read", json!({"file_path": "src/tasks/module_02.py"})),
        step("Write", json!({"file_path": "src/tasks/module_02.py", "content": "x = 1\n"})),
        step("Undo", json!({"path": "src/tasks/module_02.py"})),
        step("History", json!({})),
        bash("rm -rf .git").fails(),
        bash("git status --short"),
    ]
}

fn git() -> Vec<Step> {
    let commands = [
        "git checkout -q -b feature",
        "git add -A && git commit -qm second",
        "git branch -m renamed",
        "git checkout -q HEAD~1",
        "git checkout -q renamed",
        "git branch old && git branch -d old",
        "git stash list; git remote add up https://example.org/x.git",
        "git clone -q . copy && rm -rf copy",
        "git gc -q; git diff HEAD~1 --stat | tail -1",
    ];
    commands.map(bash).into()
}

fn commands() -> Vec<Step> {
    vec![
        step("Bash", json!({"command": "sleep 600", "run_in_background": true})),
        step("ListShells", json!({})),
        bash("seq 1 200000"),
        bash("printf 'caf\\xe9 ok\\n'"),
        bash("false | true"),
        bash("for i in 1 2 3; do echo $i; done > /tmp/numbers; cat /tmp/numbers"),
        step("Read", json!({"file_path": "/tmp/numbers"})),
        bash("python3 -c 'import sys; sys.exit(3)'").fails(),
    ]
}
