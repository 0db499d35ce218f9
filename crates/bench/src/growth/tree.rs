//! A search, a listing and a command in trees of more and more files. A file is written before each search, so that no
//! search is answered from a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{is_success, remove_directory};
use toolcrib_devtools::{cache, peers, process};

use super::super::Rounds;
use super::super::times::Times;
use super::{Growth, Point, sizes};

const SMALLEST: u64 = 100;
const LARGEST: u64 = 1_000_000;
const FILES_OF_A_DIRECTORY: u64 = 100;
/// The word that one file has.
const WORD: &str = "needle";
/// A search without the index takes seconds in the largest tree.
const MAX_ROUNDS: usize = 15;

pub(super) fn measure(binary: &Path, rounds: Rounds) -> Result<Growth> {
    let rg = if rounds.is_smoke { peers::install_debug()?.rg } else { peers::install()?.rg };
    let rounds = rounds.at_most(MAX_ROUNDS);
    let points: Result<Vec<Point>> = sizes(SMALLEST, LARGEST, rounds)
        .map(|files| {
            let tree = make_once(files)?;
            Ok(Point { size: files, figures: measure_tree(binary, &rg, &tree, rounds)? })
        })
        .collect();
    Ok(Growth {
        title: "Tools in a tree of files",
        of: "files",
        unit: "ms",
        series: vec!["Grep of a rare word", "rg of a rare word", "Glob of a name", "Bash `true`"],
        points: points?,
    })
}

fn measure_tree(binary: &Path, rg: &Path, tree: &Path, rounds: Rounds) -> Result<Vec<Option<f64>>> {
    let state = tempfile::tempdir()?;
    let program = |word: &str| {
        let mut command = Command::new(binary);
        command.arg(word).arg("--root").arg(tree).arg("--state").arg(state.path().join("state"));
        command
    };
    process::capture(program("index").arg("build"))?;
    let mut session = LineProcess::start(program("run"))?;
    let mut times: [Times; 4] = Default::default();
    for round in 0..=rounds.measured {
        fs::write(tree.join("written"), format!("{round}\n"))?;
        let grep = call(&mut session, "Grep", &json!({"pattern": WORD}), WORD)?;
        let mut command = Command::new(rg);
        command.args(["--no-config", "-l", WORD]).current_dir(tree);
        let started = Instant::now();
        let found = process::capture(&mut command)?;
        let rg = started.elapsed();
        if found.lines().count() != 1 {
            return Err(format!("rg found {found:?}").into());
        }
        let glob = call(&mut session, "Glob", &json!({"pattern": "**/needle.txt"}), WORD)?;
        let bash = call(&mut session, "Bash", &json!({"command": "true"}), "")?;
        // The first round starts the sandbox and the watches.
        if round > 0 {
            times.iter_mut().zip([grep, rg, glob, bash]).for_each(|(all, time)| all.add(time));
        }
    }
    session.end()?;
    Ok(times.iter().map(|times| times.percentile_ms(50)).collect())
}

/// The time of a call whose reply has this word.
fn call(session: &mut LineProcess, tool: &str, args: &Value, word: &str) -> Result<Duration> {
    let started = Instant::now();
    let reply = session.ask(&call_line(1, tool, args, true))?;
    let time = started.elapsed();
    let output = reply["output"].as_str().unwrap_or_default();
    if is_success(&reply) && output.contains(word) {
        Ok(time)
    } else {
        Err(format!("{tool}: {reply}").into())
    }
}

/// Creates the tree once, because it takes long. A marker file next to it records that it is complete.
fn make_once(files: u64) -> Result<PathBuf> {
    let directory = cache::directory()?.join("bench-growth");
    let (tree, note) =
        (directory.join(files.to_string()), directory.join(format!("{files}.complete")));
    if note.is_file() {
        return Ok(tree);
    }
    remove_directory(&tree)?;
    for first in (0..files).step_by(usize::try_from(FILES_OF_A_DIRECTORY)?) {
        let inner = tree.join(format!("d{}/e{first}", first % 97));
        fs::create_dir_all(&inner)?;
        for number in first..first + FILES_OF_A_DIRECTORY {
            let text = format!("fn function_{number}() {{\n    compute({number});\n}}\n");
            fs::write(inner.join(format!("file_{number}.rs")), text)?;
        }
    }
    fs::write(tree.join("needle.txt"), format!("the {WORD}\n"))?;
    fs::write(note, "")?;
    Ok(tree)
}
