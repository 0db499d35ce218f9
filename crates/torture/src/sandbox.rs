//! `torture sandbox`: escape attempts through the tools, with canaries outside that detect an escape: files,
//! keys, sockets, servers, processes.
//!
//! They run on a system that allows everything, on one where only bubblewrap may create namespaces, and on one
//! without namespaces, as the current user and, if that is root, also as `nobody`.

mod attacks;
mod canaries;
mod multi_call_attacks;
#[allow(unreachable_pub, reason = "it is public in the crate that it belongs to")]
#[path = "../../../crates/testkit/src/sandbox_visible_directory.rs"]
mod sandbox_visible_directory;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;
use toolcrib_devtools::{product, system_packages};

use self::attacks::{ATTACKS, Attack};
use self::canaries::Canaries;
use self::sandbox_visible_directory::sandbox_visible_directory;
use super::Effort;
use super::report::{Report, Row};

/// The user id of `nobody`.
const NOBODY: u32 = 65534;

/// Rounds of the whole table.
const ROUNDS: usize = 5;

/// The levels, each with the capability that `hobbled` removes to get there.
const SYSTEMS: [(u8, Option<&str>); 3] =
    [(4, None), (3, Some("own-namespaces-refused")), (2, Some("namespaces-refused"))];

/// The environment of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Environment {
    level: u8,
    removed: Option<&'static str>,
    /// Whether it runs as `nobody` instead of the current user.
    nobody: bool,
}

/// A session with confined commands, and the canaries around it.
struct Trial {
    environment: Environment,
    canaries: Canaries,
    session: LineProcess,
    /// Output of the first command. It explains the missing parts of the sandbox.
    first_output: String,
}

/// Runs all attacks in every environment.
pub(super) fn run(effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let hobbled = product::build_debug_example("hobbled")?;
    let rounds = effort.rounds.unwrap_or(if effort.smoke { 1 } else { ROUNDS });
    let mut report = Report::default();
    let users = if rustix::process::geteuid().is_root() { &[false, true][..] } else { &[false] };
    for (level, removed) in SYSTEMS {
        if let Some(why) =
            (level == 3).then(|| system_packages::BUBBLEWRAP.obtain().err()).flatten()
        {
            report.add(Row::skipped("sandbox", "everything: level 3", why.to_string()));
            continue;
        }
        for &nobody in users {
            let environment = Environment { level, removed, nobody };
            let started = std::time::Instant::now();
            let mut trial = Trial::start(&binary, &hobbled, environment)?;
            for attack in ATTACKS.iter().filter(|attack| level >= attack.level) {
                let mut row =
                    Row::new("sandbox", format!("{} {}: {environment}", attack.id, attack.what));
                for _ in 0..rounds {
                    trial.attack(attack, &mut row)?;
                }
                report.add(row);
            }
            multi_call_attacks::run(&mut trial, &mut report)?;
            println!("   {environment}: {:.1} s", started.elapsed().as_secs_f64());
        }
    }
    report.finish("sandbox")
}

impl Trial {
    fn start(binary: &Path, hobbled: &Path, environment: Environment) -> Result<Trial> {
        // Next to the program, which every user can reach, unless the sandbox replaces that directory.
        let next_to = binary.parent().ok_or("the program lies nowhere")?;
        let mut canaries = Canaries::make(&sandbox_visible_directory(next_to)?)?;
        if environment.nobody {
            canaries.give_to(NOBODY)?;
        }
        let mut words: Vec<PathBuf> = Vec::new();
        if environment.nobody {
            let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            words.push("setpriv".into());
            words.extend(user.map(PathBuf::from));
            words.push("--clear-groups".into());
        }
        if let Some(removed) = environment.removed {
            words.extend([hobbled.to_owned(), removed.into()]);
        }
        words.push(binary.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--root").arg(canaries.workspace());
        command.arg("--state").arg(canaries.top().join("state")).arg("run");
        command.env_clear().env("HOME", canaries.home()).current_dir(canaries.top());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let session = LineProcess::start(command)?;
        let mut trial = Trial { environment, canaries, session, first_output: String::new() };
        let reply = trial.bash("true")?;
        trial.first_output = output_of(&reply).to_owned();
        let level = format!("level {}", environment.level);
        if reply.pointer("/metadata/sandbox").and_then(Value::as_str) != Some(&level) {
            return Err(format!("this system does not give {level}: {reply}").into());
        }
        Ok(trial)
    }

    fn call(&mut self, tool: &str, args: Value) -> Result<Value> {
        self.session.ask(&format!("{}\n", json!({"id": 1, "tool": tool, "args": args})))
    }

    /// Runs a script that finds the canaries through variables.
    fn bash(&mut self, script: &str) -> Result<Value> {
        let variables = self.canaries.variables(self.session.pid());
        let args = json!({"command": format!("{variables}\n{script}"), "timeout": 5_000, "on_timeout": "kill"});
        self.call("Bash", args)
    }

    fn attack(&mut self, attack: &Attack, row: &mut Row) -> Result<()> {
        for script in attack.scripts {
            let reply = self.bash(script)?;
            let reply_text = reply.to_string();
            let again = || format!("Bash {script:?} in {}", self.environment);
            row.tally.add(toolcrib_devtools::scratch::kind(&reply));
            if reply_text.contains(&self.canaries.escape_word()) {
                row.violate(format!("it reports an escape: {reply_text}"), again());
            }
            for damage in self.canaries.damage(&reply_text)? {
                row.violate(damage, again());
            }
        }
        Ok(())
    }
}

fn output_of(reply: &Value) -> &str {
    reply.pointer("/output").and_then(Value::as_str).unwrap_or_default()
}

impl std::fmt::Display for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.nobody { "nobody" } else { "the current user" };
        write!(f, "level {}, {who}", self.level)
    }
}
