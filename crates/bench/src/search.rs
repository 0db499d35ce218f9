//! `bench search`: Grep and Glob compared with ripgrep and fd, alternating, on Debian's kernel sources and on our
//! own. Ours run in one long session, as with an agent; the others are started for each query, as agents do. A
//! row counts only if both results are equal. Before each query on the kernel sources, one of their files is
//! written, so that the index must detect the change.

mod plot;
mod queries;
mod trees;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::peers::{self, Peers};
use toolcrib_devtools::{process, workspace};

use self::queries::{Peer, QUERIES, Query};
use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

/// A query on the kernel takes a second, so a few measurements suffice.
const LARGE_ROUNDS: usize = 15;
/// A row of the table.
struct Row {
    what: String,
    ours: Times,
    theirs: Times,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let peers = if rounds.is_smoke { peers::install_debug()? } else { peers::install()? };
    let binary = rounds.build()?;
    let mut tables = Vec::new();
    let small = trees::small()?;
    tables.push(measure("our sources", &binary, &peers, small.path(), false, rounds, report)?);
    match if rounds.is_smoke { None } else { trees::kernel()? } {
        Some(kernel) => {
            let rounds = rounds.at_most(LARGE_ROUNDS);
            tables.push(measure("the kernel", &binary, &peers, &kernel, true, rounds, report)?);
        }
        None => report.note("The kernel's sources are left out."),
    }
    if !rounds.is_smoke {
        let svg = workspace::root().join("docs/search.svg");
        std::fs::write(&svg, plot::draw(&tables))?;
        report.note(&format!("Wrote {}", svg.display()));
    }
    Ok(())
}

fn measure(
    name: &'static str,
    binary: &Path,
    peers: &Peers,
    tree: &Path,
    is_large: bool,
    rounds: Rounds,
    report: &mut Report,
) -> Result<(&'static str, Vec<Row>)> {
    let top = tempfile::tempdir()?;
    let [watched, unwatched] = ["watched", "unwatched"].map(|name| top.path().join(name));
    std::fs::write(&watched, "search_seconds = 600\n")?;
    std::fs::write(&unwatched, "search_seconds = 600\nindex_watches = 0\n")?;
    let product = |word: &str, config: &Path| {
        let mut command = Command::new(binary);
        command.arg(word).arg(format!("--root={}:ro", tree.display()));
        command.arg(format!("--config={}", config.display()));
        command.arg(format!("--state={}", top.path().join("state").display()));
        command
    };
    if is_large {
        report.add(&build(&mut product("index", &watched))?);
    }
    let scratch = is_large.then(|| Scratch(tree.join("written-between-two-questions")));
    let start = |config: &Path| -> Result<Contest<'_>> {
        let conversation = LineProcess::start(product("run", config))?;
        Ok(Contest { conversation, peers, tree, asked: 0 })
    };
    let mut rows = Vec::new();
    let of_tree = |query: &&Query| query.large.is_none_or(|large| large == is_large);
    let mut ask = |contest: &mut Contest<'_>, query: &Query, how: &str| -> Result<()> {
        contest.check(query)?;
        let what = format!("{}{how}", query.what);
        let mut row = Row { what, ours: Times::default(), theirs: Times::default() };
        for round in 0..rounds.warm_up + rounds.measured {
            if let Some(scratch) = &scratch {
                std::fs::write(&scratch.0, format!("{round}\n"))?;
            }
            let (ours, theirs) = (contest.ours(query)?.0, contest.theirs(query)?.0);
            if round >= rounds.warm_up {
                row.ours.add(ours);
                row.theirs.add(theirs);
            }
        }
        rows.push(row);
        Ok(())
    };
    let mut contest = start(&watched)?;
    for query in QUERIES.iter().filter(of_tree) {
        ask(&mut contest, query, "")?;
    }
    let mut contest = start(&unwatched)?;
    for query in QUERIES.iter().filter(of_tree).filter(|query| query.also_unwatched) {
        ask(&mut contest, query, ", unwatched")?;
    }
    report.add(&table(name, tree, &rows)?);
    Ok((name, rows))
}

/// Builds the index as a server does in the background. The table has the cost.
fn build(command: &mut Command) -> Result<Table> {
    let status: Value =
        serde_json::from_str(&process::capture(command.args(["build", "--json"]))?)?;
    let figure = |key: &str| status[0][key].as_f64();
    let mut table = Table::new("index", &["files", "MB", "seconds to build"]);
    let megabytes = figure("bytes").map(|bytes| bytes / 1e6);
    let files = Cell::whole(figure("indexed_files"));
    table.row("built", [files, Cell::whole(megabytes), Cell::exact(figure("seconds"))]);
    Ok(table)
}

/// A file that is removed when dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn table(name: &str, tree: &Path, rows: &[Row]) -> Result<Table> {
    let title = format!("{name}, {} files", trees::count(tree)?);
    let columns =
        ["rounds", "ours p50 ms", "theirs p50 ms", "ours min ms", "theirs min ms", "p50 ratio"];
    let mut table = Table::new(title, &columns);
    for Row { what, ours, theirs } in rows {
        let cells = [
            Cell::Count(ours.count()),
            Cell::exact(ours.percentile_ms(50)),
            Cell::exact(theirs.percentile_ms(50)),
            Cell::exact(ours.percentile_ms(0)),
            Cell::exact(theirs.percentile_ms(0)),
            Cell::ratio(ours.percentile_ms(50), theirs.percentile_ms(50)),
        ];
        table.row(what.as_str(), cells);
    }
    Ok(table)
}

struct Contest<'a> {
    conversation: LineProcess,
    peers: &'a Peers,
    tree: &'a Path,
    asked: usize,
}

impl Contest<'_> {
    fn ours(&mut self, query: &Query) -> Result<(Duration, Value)> {
        self.asked += 1;
        let arguments: Value = serde_json::from_str(query.ours.1)?;
        let line = call_line(self.asked, query.ours.0, &arguments, true);
        let started = Instant::now();
        self.conversation.say(&line)?;
        let reply = self.conversation.line()?;
        // The time ends with the last byte and excludes parsing, as with the peer.
        let time = started.elapsed();
        let reply: Value =
            serde_json::from_str(&reply.ok_or("the process ended without a reply")?)?;
        if reply["success"] == true {
            Ok((time, reply))
        } else {
            Err(format!("{}: {}", query.what, reply["output"]).into())
        }
    }

    /// The time from spawn to exit, with the output read to the end.
    fn theirs(&self, query: &Query) -> Result<(Duration, String)> {
        let mut command = match query.peer {
            Peer::Rg => {
                let mut rg = Command::new(&self.peers.rg);
                rg.args(["--no-config", "--hidden", "-g=!.git", "--max-filesize=10M", "--crlf"]);
                rg
            }
            Peer::RgFiles => {
                let mut rg = Command::new(&self.peers.rg);
                rg.args(["--no-config", "--files"]);
                rg
            }
            Peer::Fd => Command::new(&self.peers.fd),
        };
        command.args(query.theirs).current_dir(self.tree).stdin(Stdio::null());
        let started = Instant::now();
        let output = command.output()?;
        let time = started.elapsed();
        if output.status.code().is_none_or(|code| code > 1) {
            return Err(format!("{}: {}", query.what, output.status).into());
        }
        Ok((time, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Checks that both find the same, as far as one page shows.
    fn check(&mut self, query: &Query) -> Result<()> {
        let reply = self.ours(query)?.1;
        let printed = self.theirs(query)?.1;
        let facts = &reply["metadata"];
        let lines = printed.lines().count() as u64;
        let sum = || -> u64 {
            let counts =
                printed.lines().filter_map(|line| line.rsplit_once(':')?.1.parse::<u64>().ok());
            counts.sum()
        };
        let ours = |key: &str| facts[key].as_u64();
        let ours_total = ours("total").or(ours("total_matches")).or(ours("at_least"));
        let counts_all = !facts["files_with_matches"].is_null();
        let (ours, theirs) = (ours_total, if counts_all { sum() } else { lines });
        // All counts are there. They are a minimum only because of the large files, which the peer skips as well.
        let same = if facts["at_least"].is_null() || counts_all {
            ours == Some(theirs)
        } else {
            ours.is_some_and(|ours| ours <= theirs)
        };
        if same {
            Ok(())
        } else {
            Err(format!("{}: ours {ours:?}, theirs {theirs}", query.what).into())
        }
    }
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (self.ours.percentile_ms(50)?, self.theirs.percentile_ms(50)?);
        Some(ours / theirs)
    }
}
