//! Servers are killed while they build an index and started again. Each must find the same as ripgrep.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::peers::Peers;
use toolcrib_devtools::random::Random;

use super::super::Effort;
use super::super::report::{Report, Row};

const ROUNDS: usize = 200;
const SMOKE: usize = 4;
const FILES: usize = 1_600;

pub(super) fn run(binary: &Path, peers: &Peers, effort: Effort, report: &mut Report) -> Result<()> {
    let rounds = if effort.smoke { SMOKE } else { ROUNDS };
    let mut row = Row::new("restarts", "killed at any moment, started again, queried at once");
    let top = tempfile::tempdir()?;
    let tree = top.path().join("tree");
    let mut random = Random::new(5);
    for at in 0..FILES {
        let directory = tree.join(format!("d{}", at % 40));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{at}")), random.text(3_000))?;
    }
    for round in 0..rounds {
        let mut command = Command::new(binary);
        command.arg("run").arg(format!("--root={}:ro", tree.display()));
        command.arg(format!("--state={}", top.path().join("state").display()));
        let mut conversation = LineProcess::start(command)?;
        for query in 0..3 {
            let file = format!("d{}/f{}", random.below(40), random.below(FILES as u64));
            let word = format!("needle{round}x{query}");
            let _ = fs::create_dir_all(tree.join(&file).with_file_name(""));
            fs::write(tree.join(&file), format!("{word}\n{}", random.text(2_000)))?;
            let pattern = if random.below(2) == 0 { word } else { format!("needle{round}") };
            let arguments = json!({"pattern": pattern, "head_limit": 0});
            let reply = conversation.ask(&call_line(query, "Grep", &arguments, true))?;
            let ours: BTreeSet<String> = reply["metadata"]["files"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default()
                .iter()
                .filter_map(|path| path.as_str().map(str::to_owned))
                .collect();
            let mut rg = Command::new(&peers.rg);
            rg.args(["--no-config", "-l", &pattern]).current_dir(&tree);
            let output = rg.output()?.stdout;
            let theirs: BTreeSet<String> =
                String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
            if ours != theirs {
                let what = format!("round {round}, {pattern}: ours {ours:?}, theirs {theirs:?}");
                row.violate(what, "cargo xtask torture index restarts");
            }
            row.tally.add("questions");
        }
        std::thread::sleep(Duration::from_millis(random.below(60)));
        conversation.kill()?;
        row.tally.add("kills");
    }
    report.add(row);
    Ok(())
}
