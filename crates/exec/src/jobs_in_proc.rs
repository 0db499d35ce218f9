//! The running commands of every runtime of this user, found in `/proc`.
//!
//! There is no record on disk that could be stale: a shim has its job's id as an argument, and the script as
//! its descriptor 3.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Pid;

use crate::launch::{ID_PREFIX, WORKSPACE};
use crate::process_tree::{Process, ProcessTree, descendants};
use crate::shim_messages::Ending;

/// Bytes of a script that are read.
const MAX_SCRIPT: u64 = 4 << 10;

/// How the link to the script begins: it is a memory file of this name.
const SCRIPT_LINK: &[u8] = b"/memfd:script";

/// How long to kill a process tree before reporting that it does not end.
const KILL_TIMEOUT: Duration = Duration::from_secs(8);

/// A running command of any runtime of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningJob {
    /// The id among all commands of this user. It cannot be guessed. In its session the job has another id.
    pub id: String,
    /// The pid of its shim.
    pub shim: i32,
    /// The pid of the process that started it.
    pub runtime: i32,
    /// The script, or its first bytes.
    pub script: Vec<u8>,
    /// The initial working directory.
    pub directory: PathBuf,
    /// When it was started.
    pub started: Option<SystemTime>,
    /// The workspace of the runtime.
    pub workspace: Option<PathBuf>,
    /// The name of the user that it runs as, or the uid if there is no name.
    pub user: String,
    /// Its running processes.
    pub processes: Vec<Process>,
    /// Our own processes between the shim and the shell, if it runs in a sandbox.
    intermediate: Vec<Pid>,
}

/// Lists the commands of all shims that were started with these arguments, by any runtime of this user.
pub fn all_running_jobs(arguments: &[&str]) -> Vec<RunningJob> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<RunningJob> = pids.filter_map(|pid| read_job(pid, arguments)).collect();
    // In a sandbox, a shim has a descendant with the same arguments: the first process inside. If bubblewrap
    // made the sandbox, it is in between.
    let is_beneath =
        |outer: &RunningJob, inner: i32| outer.processes.iter().any(|one| one.pid == inner);
    let first: Vec<(i32, [i32; 2])> = all
        .iter()
        .filter_map(|inner| {
            let is_outer =
                |outer: &&RunningJob| outer.id == inner.id && is_beneath(outer, inner.shim);
            Some((all.iter().find(is_outer)?.shim, [inner.runtime, inner.shim]))
        })
        .collect();
    all.retain(|job| !first.iter().any(|&(_, [_, inner])| inner == job.shim));
    for job in &mut all {
        let intermediate = first.iter().filter(|(outer, _)| *outer == job.shim);
        let intermediate = intermediate.flat_map(|&(_, both)| both).filter(|&pid| pid != job.shim);
        job.intermediate = intermediate.filter_map(Pid::from_raw).collect();
        let RunningJob { intermediate, processes, .. } = job;
        processes.retain(|process| !intermediate.iter().any(|own| own.as_raw_pid() == process.pid));
    }
    all.sort_by_key(|job| (job.started, job.shim));
    all
}

impl RunningJob {
    /// Ends all its processes. Returns the number of signalled processes, and whether all have exited.
    pub fn end(&self, how: Ending) -> (u64, bool) {
        let (terminated, force_killed) = (AtomicU64::new(0), AtomicU64::new(0));
        let until = Instant::now() + KILL_TIMEOUT;
        let tree = ProcessTree {
            shim: self.shim,
            intermediate: &self.intermediate,
            terminated: &terminated,
            force_killed: &force_killed,
        };
        tree.end(how.grace(), KILL_TIMEOUT, &mut std::thread::sleep);
        let gone = || descendants(self.shim).is_empty();
        while !gone() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        (terminated.load(Ordering::Relaxed), gone())
    }
}

fn read_job(pid: i32, arguments: &[&str]) -> Option<RunningJob> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let cmdline: Vec<&[u8]> = line.strip_suffix(&[0])?.split(|&byte| byte == 0).collect();
    let [_, given @ .., id] = cmdline.as_slice() else { return None };
    let same = given.iter().copied().eq(arguments.iter().map(|argument| argument.as_bytes()));
    let id = std::str::from_utf8(id).ok().filter(|id| same && id.starts_with(ID_PREFIX))?;
    // Any program can have these arguments. Opening another file, such as a FIFO, could wait for ever.
    let script_link = std::fs::read_link(script_file(pid)).ok()?;
    script_link.as_os_str().as_bytes().starts_with(SCRIPT_LINK).then_some(())?;
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let runtime = fields.nth(1)?.parse().ok()?;
    // A shim that still waits for a command has not started a session.
    fields.nth(1).filter(|session| session.parse() == Ok(pid))?;
    let process = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(RunningJob {
        id: id.to_owned(),
        shim: pid,
        runtime,
        script: script(pid),
        directory,
        started: started(pid),
        workspace: workspace(pid),
        user: user_name(process.uid()),
        processes: descendants(pid),
        intermediate: Vec::new(),
    })
}

fn workspace(shim: i32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{shim}/environ")).ok()?;
    let prefix = format!("{WORKSPACE}=");
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    Some(OsString::from_vec(value.to_vec()).into())
}

fn user_name(uid: u32) -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid));
    user.ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

/// When the command was started. Its shim may have been started long before, so the time is that of the script,
/// which is stored when the command starts.
fn started(shim: i32) -> Option<SystemTime> {
    std::fs::metadata(script_file(shim)).ok()?.modified().ok()
}

fn script_file(shim: i32) -> String {
    format!("/proc/{shim}/fd/3")
}

fn script(shim: i32) -> Vec<u8> {
    use std::io::Read as _;
    let mut script = Vec::new();
    let mut options = std::fs::OpenOptions::new();
    if let Ok(file) = options.read(true).custom_flags(libc::O_NONBLOCK).open(script_file(shim)) {
        let _ = file.take(MAX_SCRIPT).read_to_end(&mut script);
    }
    script
}
