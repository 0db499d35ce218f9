//! `torture sandbox`: ways out of a sandbox, all of them tried through the product as an agent would, with
//! canaries outside that tell if one leads there: files, keys, sockets, servers, processes.
//!
//! Tried where the system allows everything, where only bubblewrap may make namespaces and where nobody may,
//! as whoever runs this and, if that is root, as somebody who is not.

mod attacks;
mod canaries;
#[allow(unreachable_pub, reason = "it is public in the crate that it belongs to")]
#[path = "../../../crates/testkit/src/command_directory.rs"]
mod command_directory;
mod trials;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::attacks::{ATTACKS, Attack};
use self::canaries::Canaries;
use self::command_directory::command_directory;
use super::Effort;
use super::report::{Report, Row};
use crate::conversation::Conversation;
use crate::error::Result;
use crate::{packages, product};

/// Somebody who is not root and owns nothing.
const NOBODY: u32 = 65534;

/// Rounds of the whole table.
const ROUNDS: usize = 5;

/// The levels, each with what `hobbled` takes away to get there.
const SYSTEMS: [(u8, Option<&str>); 3] =
    [(4, None), (3, Some("own-namespaces-refused")), (2, Some("namespaces-refused"))];

/// Where a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Where {
    level: u8,
    taken: Option<&'static str>,
    /// Nobody, instead of whoever runs this.
    nobody: bool,
}

/// A session in which commands are confined, and what must not change around it.
struct Trial {
    place: Where,
    canaries: Canaries,
    session: Conversation,
}

/// The whole table, in every place; no parts have names.
pub(super) fn run(_: &[String], effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let hobbled = product::build_hobbled()?;
    let rounds = effort.rounds.unwrap_or(if effort.smoke { 1 } else { ROUNDS });
    let mut report = Report::default();
    let users = if rustix::process::geteuid().is_root() { &[false, true][..] } else { &[false] };
    for (level, taken) in SYSTEMS {
        if let Some(why) = (level == 3).then(|| packages::BUBBLEWRAP.obtain().err()).flatten() {
            report.add(Row::skipped("sandbox", "everything: level 3", why.to_string()));
            continue;
        }
        for &nobody in users {
            let place = Where { level, taken, nobody };
            let started = std::time::Instant::now();
            let mut trial = Trial::start(&binary, &hobbled, place)?;
            for attack in ATTACKS.iter().filter(|attack| level >= attack.level) {
                let mut row =
                    Row::new("sandbox", format!("{} {}: {place}", attack.id, attack.what));
                for _ in 0..rounds {
                    trial.attack(attack, &mut row)?;
                }
                report.add(row);
            }
            trials::run(&mut trial, &mut report)?;
            println!("   {place}: {:.1} s", started.elapsed().as_secs_f64());
        }
    }
    report.finish("sandbox")
}

impl Trial {
    fn start(binary: &Path, hobbled: &Path, place: Where) -> Result<Trial> {
        // Beside the program, which every user can reach, unless commands have another directory there.
        let beside = binary.parent().ok_or("the program lies nowhere")?;
        let mut canaries = Canaries::make(&command_directory(beside)?)?;
        if place.nobody {
            canaries.give_to(NOBODY)?;
        }
        let mut words: Vec<PathBuf> = Vec::new();
        if place.nobody {
            let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            words.push("setpriv".into());
            words.extend(user.map(PathBuf::from));
            words.push("--clear-groups".into());
        }
        if let Some(taken) = place.taken {
            words.extend([hobbled.to_owned(), taken.into()]);
        }
        words.push(binary.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--root").arg(canaries.workspace());
        command.arg("--state").arg(canaries.top().join("state")).arg("run");
        command.env_clear().env("HOME", canaries.home()).current_dir(canaries.top());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let session = Conversation::start(command)?;
        let mut trial = Trial { place, canaries, session };
        let reply = trial.bash("true")?;
        let level = format!("level {}", place.level);
        if reply.pointer("/metadata/sandbox").and_then(Value::as_str) != Some(&level) {
            return Err(format!("this system does not give {level}: {reply}").into());
        }
        Ok(trial)
    }

    fn call(&mut self, tool: &str, args: Value) -> Result<Value> {
        self.session.ask(&format!("{}\n", json!({"id": 1, "tool": tool, "args": args})))
    }

    /// Runs a script that finds the canaries by variables.
    fn bash(&mut self, script: &str) -> Result<Value> {
        let variables = self.canaries.variables(self.session.pid());
        let args = json!({"command": format!("{variables}\n{script}"), "timeout": 5_000, "on_timeout": "kill"});
        self.call("Bash", args)
    }

    fn attack(&mut self, attack: &Attack, row: &mut Row) -> Result<()> {
        for script in attack.scripts {
            let reply = self.bash(script)?;
            let said = reply.to_string();
            let again = || format!("Bash {script:?} in {}", self.place);
            row.tally.add(crate::sandbox::kind(&reply));
            if said.contains(&self.canaries.got_out()) {
                row.violate(format!("it says that it got out: {said}"), again());
            }
            for damage in self.canaries.damage(&said)? {
                row.violate(damage, again());
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.nobody { "nobody" } else { "whoever runs this" };
        write!(f, "level {}, {who}", self.level)
    }
}
