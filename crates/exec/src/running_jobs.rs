//! The commands of every runtime of this user, as the list of processes has them.
//!
//! There is no record on disk that could be stale: a keeper is a process with its job's id among its
//! arguments, and holds the script as its descriptor 3.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Pid;

use crate::launch::WORKSPACE;
use crate::shim::{Doomed, Process, descendants};
use crate::wire::Ending;

/// What every id of a keeper begins with; random digits follow.
pub(crate) const ID_PREFIX: &str = "job_";

/// What is read of a script.
const MAX_SCRIPT: u64 = 4 << 10;

/// How long a tree is killed for before it is said that it does not end.
const PATIENCE: Duration = Duration::from_secs(8);

/// A command that some runtime of this user runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningJob {
    /// Its id among all commands of this user, which cannot be guessed. In its session it has another.
    pub id: String,
    /// The process that keeps it.
    pub keeper: i32,
    /// The process that it was started for.
    pub runtime: i32,
    /// What it runs, or the beginning of it.
    pub script: Vec<u8>,
    /// Where it began.
    pub directory: PathBuf,
    /// When it was started.
    pub started: Option<SystemTime>,
    /// The workspace of the runtime.
    pub workspace: Option<PathBuf>,
    /// The user that it runs as: a name, or a number if there is none.
    pub user: String,
    /// What runs of it.
    pub processes: Vec<Process>,
    /// The processes of ours between the keeper and the shell, if it runs in a sandbox.
    between: Vec<Pid>,
}

/// Every command that a keeper started with these arguments keeps, for whichever runtime of this user.
pub fn all_running_jobs(arguments: &[&str]) -> Vec<RunningJob> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<RunningJob> = pids.filter_map(|pid| kept(pid, arguments)).collect();
    // In a sandbox, a keeper has a process of the same name beneath it, the first inside; and bubblewrap in
    // between, if that made it.
    let is_beneath =
        |outer: &RunningJob, inner: i32| outer.processes.iter().any(|one| one.pid == inner);
    let first: Vec<(i32, [i32; 2])> = all
        .iter()
        .filter_map(|inner| {
            let is_outer =
                |outer: &&RunningJob| outer.id == inner.id && is_beneath(outer, inner.keeper);
            Some((all.iter().find(is_outer)?.keeper, [inner.runtime, inner.keeper]))
        })
        .collect();
    all.retain(|kept| !first.iter().any(|&(_, [_, inner])| inner == kept.keeper));
    for kept in &mut all {
        let between = first.iter().filter(|(outer, _)| *outer == kept.keeper);
        let between = between.flat_map(|&(_, both)| both).filter(|&pid| pid != kept.keeper);
        kept.between = between.filter_map(Pid::from_raw).collect();
        let RunningJob { between, processes, .. } = kept;
        processes.retain(|process| !between.iter().any(|own| own.as_raw_pid() == process.pid));
    }
    all.sort_by_key(|kept| (kept.started, kept.keeper));
    all
}

impl RunningJob {
    /// Ends all that it runs; answers how many processes were told, and whether all have ended.
    pub fn end(&self, how: Ending) -> (u64, bool) {
        let ended = AtomicU64::new(0);
        let until = Instant::now() + PATIENCE;
        let doomed = Doomed { ancestor: self.keeper, between: &self.between, ended: &ended };
        doomed.end(how.grace(), PATIENCE, &mut std::thread::sleep);
        let gone = || descendants(self.keeper).is_empty();
        while !gone() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        (ended.load(Ordering::Relaxed), gone())
    }
}

fn kept(pid: i32, arguments: &[&str]) -> Option<RunningJob> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> = line.strip_suffix(&[0])?.split(|&byte| byte == 0).collect();
    let [_, given @ .., id] = words.as_slice() else { return None };
    let same = given.iter().copied().eq(arguments.iter().map(|argument| argument.as_bytes()));
    let id = std::str::from_utf8(id).ok().filter(|id| same && id.starts_with(ID_PREFIX))?;
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let runtime = fields.nth(1)?.parse().ok()?;
    // A keeper that still waits for a command has not begun a session.
    fields.nth(1).filter(|session| session.parse() == Ok(pid))?;
    let process = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(RunningJob {
        id: id.to_owned(),
        keeper: pid,
        runtime,
        script: script(pid),
        directory,
        started: process.modified().ok(),
        workspace: workspace(pid),
        user: user_name(process.uid()),
        processes: descendants(pid),
        between: Vec::new(),
    })
}

fn workspace(keeper: i32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{keeper}/environ")).ok()?;
    let prefix = format!("{WORKSPACE}=");
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    Some(OsString::from_vec(value.to_vec()).into())
}

fn user_name(uid: u32) -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid));
    user.ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

fn script(keeper: i32) -> Vec<u8> {
    use std::io::Read as _;
    let mut script = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{keeper}/fd/3")) {
        let _ = file.take(MAX_SCRIPT).read_to_end(&mut script);
    }
    script
}
