//! `torture policy`: a command allowed without approval runs only analyzed commands and changes nothing.
//!
//! Every script of the corpora in crates/policy/corpus runs through `toolcrib call Bash` with the profile
//! `cautious`, without an approver, in the sandbox and under strace. A script that is not allowed must not start
//! anything. An allowed script may start only programs that `toolcrib policy test` lists, and must not change the
//! workspace. The default profile must not ask about an ordinary script.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::scratch::{self, Scratch};
use toolcrib_devtools::{process, system_packages, workspace};

use super::Effort;
use super::report::{Report, Row};

/// The corpora, and whether their scripts are ordinary.
const CORPORA: [(&str, bool); 4] =
    [("reads", true), ("ordinary", true), ("hostile", false), ("dangerous", false)];

/// A smoke run takes one of this many scripts.
const SMOKE_STRIDE: usize = 16;

/// The time limit of a script.
const TIMEOUT_MS: u64 = 5_000;

pub(super) fn run(effort: Effort) -> Result<()> {
    system_packages::STRACE.obtain()?;
    let binary = effort.build()?;
    let mut report = Report::default();
    for (name, ordinary) in CORPORA {
        // Not in memory: the sandbox replaces that directory.
        let place = Scratch::new(&binary)?;
        create_files(&place.workspace())?;
        let trial = Trial { place, before: Vec::new() };
        let trial = Trial { before: trial.listing()?, ..trial };
        let scripts = corpus(name)?;
        let stride = if effort.smoke { SMOKE_STRIDE } else { 1 };
        let mut row = Row::new(name, format!("scripts, one of {stride}"));
        // A login shell also runs the machine's profile.
        for script in scripts.iter().filter(|script| !script.contains("bash -lc")).step_by(stride) {
            trial.run(script, ordinary, &mut row)?;
        }
        report.add(row);
    }
    report.finish("policy")
}

/// The scripts of a corpus, one JSON string per line.
fn corpus(name: &str) -> Result<Vec<String>> {
    let path = workspace::root().join("crates/policy/corpus").join(format!("{name}.jsonl"));
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.starts_with("//"));
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Creates the files that the scripts use.
fn create_files(workspace: &Path) -> Result<()> {
    fs::create_dir(workspace.join("src"))?;
    for name in ["a", "b", "f", "a.rs", "a.txt", "a.csv", "x.json", "Cargo.toml", "src/lib.rs"] {
        fs::write(workspace.join(name), "one\ntwo\n")?;
    }
    let git = ["init", "--quiet"];
    process::capture(Command::new("git").args(git).current_dir(workspace))?;
    // The trace would show if one of these ran instead of the program with its name.
    for name in ["ls", "git", "cat"] {
        fs::write(workspace.join(name), "#!/bin/sh\ntouch MARK\n")?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(workspace.join(name), executable)?;
    }
    Ok(())
}

struct Trial {
    place: Scratch,
    /// The workspace before the scripts.
    before: Vec<String>,
}

impl Trial {
    fn run(&self, script: &str, ordinary: bool, row: &mut Row) -> Result<()> {
        let usual = self.decide(script, "workspace")?;
        if ordinary && usual["decision"] != "allow" {
            row.violate(format!("{script:?} is asked about: {}", usual["why"]), script);
        }
        let decided = self.decide(script, "cautious")?;
        let allowed = decided["decision"] == "allow";
        row.tally.add(decided["decision"].as_str().unwrap_or("no decision"));
        let (reply, started) = self.trace(script)?;
        let again = format!("toolcrib call Bash --profile cautious, {script:?}");
        if !allowed {
            let kind = scratch::kind(&reply);
            // A command that bash rejects fails: no permission would make it run.
            let is_broken = decided["rule"] == "command:broken";
            let expected = if is_broken { "failed" } else { "denied" };
            if kind != expected || !started.is_empty() {
                row.violate(format!("{script:?} was not allowed, and {kind}: {started:?}"), again);
            }
            return Ok(());
        }
        if ["io", "denied", "unsupported"].contains(&scratch::kind(&reply)) {
            row.violate(format!("{script:?} was allowed, and did not run: {reply}"), &again);
        }
        let seen = programs(&decided);
        row.tally.add_many("programs started", started.len() as u64);
        for program in started.iter().filter(|program| !seen.contains(*program)) {
            row.violate(
                format!("{script:?} ran {program}, which the analysis did not find"),
                &again,
            );
        }
        let after = self.listing()?;
        if after != self.before {
            row.violate(format!("{script:?} changed the workspace: {after:?}"), again);
        }
        Ok(())
    }

    /// The decision on a script, before it runs.
    fn decide(&self, script: &str, profile: &str) -> Result<Value> {
        let words = ["policy", "test", script, "--json", "--profile", profile];
        let text = process::capture(&mut self.place.command(&words))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The reply to a call with a script, and the programs that it started.
    fn trace(&self, script: &str) -> Result<(Value, Vec<String>)> {
        let file = self.place.top().join("trace");
        let arguments = json!({"command": script, "timeout": TIMEOUT_MS, "on_timeout": "kill"});
        let mut call = self.place.call_command("Bash", &arguments);
        call.args(["--profile", "cautious"]);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-s", "4096", "-o"]);
        command.arg(&file).arg("--").arg(call.get_program()).args(call.get_args());
        command.env_clear().current_dir(self.place.top()).stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let output = command.output()?;
        let reply = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("`{}` gave no reply", process::describe(&command)))?;
        Ok((reply, started(&fs::read_to_string(&file)?)))
    }

    /// The names, sizes and times in the workspace.
    fn listing(&self) -> Result<Vec<String>> {
        let mut list = Command::new("find");
        list.arg(self.place.workspace()).args(["-not", "-path", "*/.git/*"]);
        let list = process::capture(list.args(["-type", "f", "-printf", "%P %s %m %T@\\n"]))?;
        let mut list: Vec<String> = list.lines().map(str::to_owned).collect();
        list.sort();
        Ok(list)
    }
}

/// The names of the programs that the analysis found in a script.
fn programs(decided: &Value) -> BTreeSet<String> {
    let commands = decided["commands"].as_array().into_iter().flatten();
    let words = commands.flat_map(|command| command.as_array().into_iter().flatten().take(1));
    words.filter_map(Value::as_str).map(base).collect()
}

/// The programs in a trace, except `toolcrib` itself, which comes first, its shims and the shells that they start.
fn started(trace: &str) -> Vec<String> {
    let program = |line: &str| {
        let (_, rest) = line.split_once("execve(\"")?;
        let (path, rest) = rest.split_once('"')?;
        // The last is the shell that checks the syntax of a script and runs nothing.
        let ours = ["\"toolcrib-helper\"", "\"--norc\", \"/dev/fd/3\"]", "\"-n\", \"/dev/fd/0\"]"];
        let ours = ours.iter().any(|words| rest.contains(words));
        (rest.trim_end().ends_with("= 0") && !ours).then(|| base(path))
    };
    trace.lines().filter_map(program).skip(1).collect()
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_programs_of_the_script_from_ours() {
        let trace = "1 execve(\"/x/toolcrib\", [\"toolcrib\"], 0x7 /* 1 var */) = 0\n\
                     2 execve(\"/proc/self/exe\", [\"x\", \"toolcrib-helper\", \"keep\"], 0x7) = 0\n\
                     3 execve(\"/bin/bash\", [\"/bin/bash\", \"--norc\", \"/dev/fd/3\"], 0x7) = 0\n\
                     4 execve(\"/usr/local/bin/ls\", [\"ls\"], 0x7 /* 1 var */) = -1 ENOENT (No such file)\n\
                     4 execve(\"/bin/ls\", [\"ls\"], 0x7 /* 1 var */) = 0\n";
        assert_eq!(started(trace), ["ls"]);
        assert_eq!(started(""), Vec::<String>::new());
    }

    #[test]
    fn the_corpora_have_hundreds_of_scripts() {
        let counts = CORPORA.map(|(name, _)| corpus(name).map_or(0, |scripts| scripts.len()));
        assert!(counts.iter().sum::<usize>() > 300 && counts.iter().all(|&count| count > 50));
    }
}
