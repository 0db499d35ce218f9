//! `bench exec`: the cost of a command through Bash, compared with the same command without Toolcrib.
//!
//! The contestants alternate, so that a slow phase of the machine affects all of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;
use toolcrib_devtools::system_packages;

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

/// Bytes of the flood; a smoke run uses fewer.
const FLOOD: u64 = 5_000_000_000;
const SMALL_FLOOD: u64 = 50_000_000;

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let directory = tempfile::tempdir()?;
    small(&binary, directory.path(), rounds, report)?;
    report.add(&processor_time(&binary, directory.path(), rounds)?);
    report.add(&changes(&binary, rounds)?);
    report.add(&git(&binary, rounds)?);
    let bytes = if rounds.measured < 10 { SMALL_FLOOD } else { FLOOD };
    report.add(&flood(&binary, directory.path(), bytes)?);
    Ok(())
}

fn small(binary: &Path, directory: &Path, rounds: Rounds, report: &mut Report) -> Result<()> {
    let mut open = session(binary, directory, "open")?;
    let mut confined = session(binary, directory, "workspace")?;
    let peer = system_packages::BUBBLEWRAP.obtain();
    let mut times: [Times; 5] = Default::default();
    for round in 0..rounds.warm_up + rounds.measured {
        let taken = [
            Some(timed(|| spawned("sh", &["-c", "true"]))?),
            Some(timed(|| spawned("bash", &BASH))?),
            Some(timed(|| bash(&mut open, "true").map(|_| ()))?),
            Some(timed(|| bash(&mut confined, "true").map(|_| ()))?),
            peer.is_ok().then(|| timed(|| wrapped(directory))).transpose()?,
        ];
        if round >= rounds.warm_up {
            let both = times.iter_mut().zip(taken);
            both.for_each(|(times, taken)| taken.into_iter().for_each(|taken| times.add(taken)));
        }
    }
    open.end()?;
    confined.end()?;
    let [sh, bash, ours, in_sandbox, in_bubblewrap] = &times;
    let mut table = Table::new("`true`", &["rounds", "p50 ms", "p90 ms", "to `sh -c true`"]);
    for (name, times) in [
        ("posix_spawn of sh -c", sh),
        ("posix_spawn of bash -c", bash),
        ("posix_spawn of bwrap … bash -c", in_bubblewrap),
        ("Bash, profile open", ours),
        ("Bash, in the sandbox", in_sandbox),
    ] {
        table.row(name, Cell::of_times(times, sh));
    }
    report.add(&table);
    let added =
        |with: &Times, without: &Times| Some(with.percentile_ms(50)? - without.percentile_ms(50)?);
    let (ours, theirs) = (added(in_sandbox, ours), added(in_bubblewrap, bash));
    let mut table = Table::new("added by a sandbox", &["ms", "to bubblewrap"]);
    table.row("ours", [Cell::exact(ours), Cell::ratio(ours, theirs)]);
    table.row("bubblewrap, same mounts", [Cell::exact(theirs), Cell::ratio(theirs, theirs)]);
    report.add(&table);
    if let Err(why) = peer {
        report.note(&format!("bubblewrap is not measured: {why}."));
    }
    Ok(())
}

/// Measures the processor time of `true`, with that of all its processes. It varies less than the elapsed time, and
/// limits how many commands a machine can run.
fn processor_time(binary: &Path, directory: &Path, rounds: Rounds) -> Result<Table> {
    let session_of = |profile: &str, commands: usize| -> Result<()> {
        let mut session = session(binary, directory, profile)?;
        for _ in 0..commands {
            bash(&mut session, "true")?;
        }
        session.end()?;
        Ok(())
    };
    // Without the start of the session and its first command.
    let per_command = |profile: &str| -> Result<f64> {
        let first = children_time(|| session_of(profile, 1))?;
        let all = children_time(|| session_of(profile, rounds.measured + 1))?;
        Ok(all.saturating_sub(first).as_secs_f64() * 1000.0 / rounds.measured as f64)
    };
    let bare = children_time(|| (0..rounds.measured).try_for_each(|_| spawned("bash", &BASH)))?;
    let bare = bare.as_secs_f64() * 1000.0 / rounds.measured as f64;
    let mut table = Table::new("processor time of `true`", &["ms", "to `bash -c true`"]);
    for (name, time) in [
        ("posix_spawn of bash -c", bare),
        ("Bash, profile open", per_command("open")?),
        ("Bash, in the sandbox", per_command("workspace")?),
    ] {
        table.row(name, [Cell::exact(Some(time)), Cell::ratio(Some(time), Some(bare))]);
    }
    Ok(table)
}

/// The processor time of the child processes that end during some work.
fn children_time(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let before = ended_children_time()?;
    work()?;
    Ok(ended_children_time()?.saturating_sub(before))
}

fn ended_children_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').ok_or("no process name")?.1.split_ascii_whitespace();
    // The times in user and in kernel mode, in ticks.
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// The arguments of a shell that does nothing.
const BASH: [&str; 4] = ["--noprofile", "--norc", "-c", "true"];

/// Runs this shell in bubblewrap, with namespaces and mounts as in our sandbox, but without a seccomp filter,
/// Landlock and supervisor.
fn wrapped(directory: &Path) -> Result<()> {
    let root = directory.to_string_lossy();
    let mut words =
        vec!["--ro-bind", "/", "/", "--bind", &root, "/tmp", "--bind", &root, "/var/tmp"];
    words.extend(["--tmpfs", "/run", "--dev", "/dev", "--bind", &root, &root]);
    words.extend(["--proc", "/proc", "--unshare-user", "--unshare-pid", "--unshare-net"]);
    words.extend(["--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]);
    words.extend(["--cap-drop", "ALL", "bash"]);
    words.extend(BASH);
    spawned(system_packages::BUBBLEWRAP.program, &words)
}

/// The number of files in the tree that commands change.
const TREE: usize = 5_000;

/// Measures the cost of change capture: the same command with the profile `open`, which captures nothing.
fn changes(binary: &Path, rounds: Rounds) -> Result<Table> {
    let directory = tempfile::tempdir()?;
    let fill = format!(
        "mkdir d{{1..50}}; for i in {{1..{TREE}}}; do head -c 4000 /dev/urandom | base64 > d$((i % 50 + 1))/f$i; done"
    );
    let root = directory.path().join("tree");
    std::fs::create_dir(&root)?;
    spawned("bash", &["-c", &format!("cd {} && {fill}", root.display())])?;
    let start = |profile| session_in(binary, &root, &directory.path().join(profile), profile);
    let (mut open, mut confined) = (start("open")?, start("workspace")?);
    let title = format!("among {TREE} files");
    let mut table = Table::new(title, &["open ms", "captured ms", "difference ms"]);
    for (what, script) in [
        ("nothing changed", "true"),
        ("all of them read", "cat d*/* > /dev/null"),
        ("100 rewritten", "for f in d7/*; do echo $RANDOM > $f; done"),
        ("1,000 rewritten", "for f in d1?/*; do echo $RANDOM > $f; done"),
        ("500 made and removed", "cp -r d2 new; cp -r d3 d4 d5 d6 new; rm -r new"),
    ] {
        let mut times = [Times::default(), Times::default()];
        for _ in 0..(rounds.measured / 20).max(1) {
            times[0].add(timed(|| bash(&mut open, script).map(|_| ()))?);
            times[1].add(timed(|| bash(&mut confined, script).map(|_| ()))?);
        }
        let [open, kept] = times.map(|times| times.percentile_ms(50));
        table.row(what, [Cell::exact(open), Cell::exact(kept), Cell::difference(kept, open)]);
    }
    open.end()?;
    confined.end()?;
    Ok(table)
}

/// Measures git in the sandbox, where each file that it writes is checked and captured.
fn git(binary: &Path, rounds: Rounds) -> Result<Table> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("tree");
    std::fs::create_dir(&root)?;
    let commit = "git -c user.name=a -c user.email=a@b commit -q -m";
    let fill = format!(
        "git init -q repo && cd repo && mkdir d{{1..40}} && for i in {{1..2000}}; do echo $i > d$((i % 40 + 1))/f$i; done && git add -A && {commit} one && git tag one && for i in {{1..1000}}; do echo more >> d$((i % 40 + 1))/f$i; done && {commit} two -a && git tag two"
    );
    spawned("bash", &["-c", &format!("cd {} && {fill}", root.display())])?;
    let start = |profile| session_in(binary, &root, &directory.path().join(profile), profile);
    let (mut open, mut confined) = (start("open")?, start("workspace")?);
    let mut table = Table::new("git", &["open ms", "sandbox ms", "ratio"]);
    for (what, before, script) in [
        ("clone of 2,000 files", "rm -rf copy", "git clone -q repo copy"),
        (
            "checkout that changes 1,000 files",
            "git -C repo checkout -q two",
            "git -C repo checkout -q one",
        ),
        ("status", "true", "git -C repo status --porcelain"),
    ] {
        let mut times = [Times::default(), Times::default()];
        for _ in 0..(rounds.measured / 20).max(1) {
            bash(&mut open, before)?;
            times[0].add(timed(|| bash(&mut open, script).map(|_| ()))?);
            bash(&mut open, before)?;
            times[1].add(timed(|| bash(&mut confined, script).map(|_| ()))?);
        }
        let [open, confined] = times.map(|times| times.percentile_ms(50));
        let cells = [Cell::exact(open), Cell::exact(confined), Cell::ratio(confined, open)];
        table.row(what, cells);
    }
    open.end()?;
    confined.end()?;
    Ok(table)
}

fn flood(binary: &Path, directory: &Path, bytes: u64) -> Result<Table> {
    let script = format!("head -c {bytes} /dev/zero");
    let peer = timed(|| spawned("sh", &["-c", &format!("{script} | cat >/dev/null")]))?;
    let mut session = session(binary, directory, "open")?;
    let began = Instant::now();
    let reply = bash(&mut session, &script)?;
    let ours = began.elapsed();
    if reply.pointer("/metadata/bytes").and_then(Value::as_u64) != Some(bytes) {
        return Err(format!("not all bytes came: {reply}").into());
    }
    let rate = |time: Duration| Some(bytes as f64 / 1e6 / time.as_secs_f64());
    let (ours, theirs) = (rate(ours), rate(peer));
    let memory = Some(session.peak_memory()? as f64 / 1e6);
    session.end()?;
    let title = format!("{} MB of output", bytes / 1_000_000);
    let mut table = Table::new(title, &["MB/s", "to the pipe", "peak MB of the server"]);
    let cells = |rate, memory| [Cell::whole(rate), Cell::ratio(rate, theirs), Cell::whole(memory)];
    table.row("`… | cat >/dev/null`", cells(theirs, None));
    table.row("Bash", cells(ours, memory));
    Ok(table)
}

fn session(binary: &Path, directory: &Path, profile: &str) -> Result<LineProcess> {
    session_in(binary, directory, &directory.join("state"), profile)
}

fn session_in(binary: &Path, root: &Path, state: &Path, profile: &str) -> Result<LineProcess> {
    let mut command = Command::new(binary);
    command.args(["--profile", profile, "--state"]).arg(state);
    command.arg("--root").arg(root).arg("run").env_remove("SHELL");
    LineProcess::start(command)
}

fn bash(session: &mut LineProcess, script: &str) -> Result<Value> {
    let args = json!({"command": script, "timeout": 600_000});
    let reply = session.ask(&format!("{}\n", json!({"id": 1, "tool": "Bash", "args": args})))?;
    if reply["success"] == true { Ok(reply) } else { Err(format!("Bash failed: {reply}").into()) }
}

fn spawned(program: &str, arguments: &[&str]) -> Result<()> {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed").into()) }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}
