//! `torture policy`: what is allowed by itself runs only what was seen in it, and changes nothing.
//!
//! Every script of the corpora in crates/policy/corpus goes through `toolcrib call Bash` in the profile
//! `cautious`, with nobody there to ask, in the sandbox and under strace. What the policy does not allow must
//! not start anything. What it allows may start only programs that `toolcrib policy test` has named, and must
//! leave the workspace as it was. And no ordinary script is asked about in the default profile.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Effort;
use super::report::{Report, Row};
use crate::error::{Result, Usage};
use crate::sandbox::{self, Sandbox};
use crate::{packages, process, workspace};

/// The corpora, and whether what is in them is ordinary.
const CORPORA: [(&str, bool); 4] =
    [("reads", true), ("ordinary", true), ("hostile", false), ("dangerous", false)];

/// Of so many scripts a smoke run takes one.
const SMOKE_STRIDE: usize = 8;

/// A script that does not end has shown enough by then.
const LONGEST_MS: u64 = 5_000;

pub(super) fn run(parts: &[String], effort: Effort) -> Result<()> {
    if let Some(part) = parts.first() {
        return Err(Usage(format!("`{part}`: torture policy has no parts")).into());
    }
    packages::STRACE.obtain()?;
    let binary = effort.build()?;
    let mut report = Report::default();
    for (name, ordinary) in CORPORA {
        // Not in memory: what is there is not in a sandbox.
        let place = Sandbox::new(&binary)?;
        fill(&place.workspace())?;
        let trial = Trial { place, before: Vec::new() };
        let trial = Trial { before: trial.listing()?, ..trial };
        let scripts = corpus(name)?;
        let stride = if effort.smoke { SMOKE_STRIDE } else { 1 };
        let mut row = Row::new(name, format!("scripts, one of {stride}"));
        // A login shell also runs what the machine's profile says.
        for script in scripts.iter().filter(|script| !script.contains("bash -lc")).step_by(stride) {
            trial.run(script, ordinary, &mut row)?;
        }
        report.add(row);
    }
    report.finish("policy")
}

/// The scripts of a corpus: a JSON string a line.
fn corpus(name: &str) -> Result<Vec<String>> {
    let path = workspace::root().join("crates/policy/corpus").join(format!("{name}.jsonl"));
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.starts_with("//"));
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// What the scripts are about.
fn fill(workspace: &Path) -> Result<()> {
    fs::create_dir(workspace.join("src"))?;
    for name in ["a", "b", "f", "a.rs", "a.txt", "a.csv", "x.json", "Cargo.toml", "src/lib.rs"] {
        fs::write(workspace.join(name), "one\ntwo\n")?;
    }
    let git = ["init", "--quiet"];
    process::capture(Command::new("git").args(git).current_dir(workspace))?;
    // Were one of these taken for the program of its name, it would be seen.
    for name in ["ls", "git", "cat"] {
        fs::write(workspace.join(name), "#!/bin/sh\ntouch MARK\n")?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(workspace.join(name), executable)?;
    }
    Ok(())
}

struct Trial {
    place: Sandbox,
    /// The workspace as it was.
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
            let kind = sandbox::kind(&reply);
            if kind != "denied" || !started.is_empty() {
                row.violate(format!("{script:?} was not allowed, and {kind}: {started:?}"), again);
            }
            return Ok(());
        }
        if ["io", "denied", "unsupported"].contains(&sandbox::kind(&reply)) {
            row.violate(format!("{script:?} was allowed, and did not run: {reply}"), &again);
        }
        let seen = programs(&decided);
        row.tally.add_many("programs started", started.len() as u64);
        for program in started.iter().filter(|program| !seen.contains(*program)) {
            row.violate(format!("{script:?} ran {program}, which was not seen in it"), &again);
        }
        let after = self.listing()?;
        if after != self.before {
            row.violate(format!("{script:?} changed the workspace: {after:?}"), again);
        }
        Ok(())
    }

    /// What is decided on a script, before it is run.
    fn decide(&self, script: &str, profile: &str) -> Result<Value> {
        let words = ["policy", "test", script, "--json", "--profile", profile];
        let text = process::capture(&mut self.place.command(&words))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The reply to a call with a script, and the programs that were started for it.
    fn trace(&self, script: &str) -> Result<(Value, Vec<String>)> {
        let file = self.place.top().join("trace");
        let arguments = json!({"command": script, "timeout": LONGEST_MS, "on_timeout": "kill"});
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

/// The programs that were seen in a script, by their names.
fn programs(decided: &Value) -> BTreeSet<String> {
    let commands = decided["commands"].as_array().into_iter().flatten();
    let words = commands.flat_map(|command| command.as_array().into_iter().flatten().take(1));
    words.filter_map(Value::as_str).map(base).collect()
}

/// The programs that a trace has, but for ourselves, who come first, our keepers and the shells that they give
/// scripts to.
fn started(trace: &str) -> Vec<String> {
    let program = |line: &str| {
        let (_, rest) = line.split_once("execve(\"")?;
        let (path, rest) = rest.split_once('"')?;
        // The last is the shell that is asked whether it accepts a script; it runs nothing of it.
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
    fn what_a_script_started_is_told_from_what_we_did() {
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
