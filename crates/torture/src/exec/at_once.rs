//! A thousand concurrent commands in a session with the usual limit of a thousand descriptors.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::line_process::LineProcess;

use super::{Effort, Report, Result, call};
use crate::report::Row;

const COMMANDS: usize = 1_000;

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let commands = effort.rounds.unwrap_or(if effort.smoke { 40 } else { COMMANDS });
    let directory = tempfile::tempdir()?;
    let mut shell = Command::new("sh");
    // The descriptor limit of a usual login.
    shell.args(["-c", "ulimit -Sn 1024; exec \"$@\"", "sh"]).arg(binary);
    shell.args(["--profile", "open", "--state"]).arg(directory.path().join("state"));
    shell.arg("--root").arg(directory.path()).arg("run").env_remove("SHELL");
    let mut session = LineProcess::start(shell)?;
    let mut row = Row::new("at-once", format!("{commands} commands at the same time"));
    let mut ids = Vec::new();
    for number in 0..commands {
        let command = format!("ulimit -Sn; read -t 300 < <(sleep 300); echo {number}");
        let args = json!({"command": command, "run_in_background": true});
        let reply = call(&mut session, "Bash", args)?;
        match reply.pointer("/metadata/bash_id").and_then(Value::as_str) {
            Some(id) => ids.push(id.to_owned()),
            None => row.violate(reply.to_string(), format!("Bash {number}")),
        }
    }
    let first = ids.first().cloned().unwrap_or_default();
    let wait = json!({"bash_id": first, "wait_for": "output", "timeout": 30_000});
    let limit_reply = call(&mut session, "BashOutput", wait)?;
    if !limit_reply["output"].as_str().is_some_and(|output| output.starts_with("1024\n")) {
        row.violate(format!("another descriptor limit: {limit_reply}"), "ulimit -Sn");
    }
    let list = call(&mut session, "ListShells", json!({}))?;
    let shells = list.pointer("/metadata/shells").and_then(Value::as_array);
    let running = shells.into_iter().flatten().filter(|shell| shell["status"] == "running").count();
    row.tally.add_many("running at the same time", running as u64);
    if running < commands {
        row.violate(format!("{running} of {commands} run"), "ListShells");
    }
    let pid = session.pid();
    session.end()?;
    if std::path::Path::new(&format!("/proc/{pid}")).exists() {
        row.violate("the server is still there".to_owned(), "end of input");
    }
    report.add(row);
    Ok(())
}
