//! Sandboxed commands: what they cannot do, and what they still can.
//!
//! Each test has its own directory with a workspace, files outside that must not change, and a session.
//! Mounts are only made in the namespaces of the commands.

mod as_the_kernel;
mod attributes;
mod bubblewrap;
mod files;
mod levels;
mod limits;
mod network;
mod network_by_name;
mod processes;
mod projects;
mod proxy;
mod refusals;
mod streams;
mod supervised;
mod waiting;
mod work;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use toolcrib_exec::{
    AllowAll, Command, Exit, FileAccess, FileAction, Guard, GuardVerdict, Job, JobError, JobRunner,
    Jobs, Launcher, Level, Limits, Network, OutputLimits, PinnedPath, Program, RefusedContent,
    Sandbox, StartOptions, Stdin, Unwritable,
};

use crate::sandbox_visible_directory::sandbox_visible_directory;
use crate::{TEST_TIMEOUT, alive, eventually, example_path};

/// A user other than root who owns nothing.
const NOBODY: u32 = 65534;

/// A workspace, files outside of it, and a session.
struct Fixture {
    top: TempDir,
    runner: Arc<JobRunner>,
    jobs: Jobs,
    sandbox: Sandbox,
    guard: Arc<dyn Guard>,
    /// More environment variables of its commands.
    variables: Vec<(OsString, OsString)>,
}

/// The result of a command.
#[derive(Debug)]
struct CommandResult {
    exit: Exit,
    output: String,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(Launcher {
            program: example_path("shim"),
            arguments: Vec::new(),
            workspace: None,
        })
    }

    /// One for each available user: the current one, and another user if that is root.
    fn for_each_user() -> Vec<Fixture> {
        let mut fixtures = vec![Fixture::new()];
        if rustix::process::geteuid().is_root() {
            fixtures.push(Fixture::as_nobody(&[], &[]));
        }
        fixtures
    }

    /// One for each user, with our own namespaces and with those of bubblewrap.
    fn for_each_sandbox() -> Vec<Fixture> {
        let mut fixtures = Fixture::for_each_user();
        fixtures.extend(bubblewrap::fixtures());
        fixtures
    }

    /// As a user other than root, on a system with fewer features: some removed by root, some by that user.
    fn as_nobody(by_root: &[&str], by_nobody: &[&str]) -> Fixture {
        let hobbled = |hows: &[&str]| -> Vec<OsString> {
            let program = (!hows.is_empty()).then(|| example_path("hobbled").into());
            program.into_iter().chain(hows.iter().map(|how| how.into())).collect()
        };
        let mut words = hobbled(by_root);
        let user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        words.extend(user.map(OsString::from));
        words.extend(hobbled(by_nobody));
        words.push(example_path("shim").into());
        let program = words.remove(0).into();
        let fixture = Fixture::with(Launcher { program, arguments: words, workspace: None });
        fixture.chown_all(NOBODY);
        fixture
    }

    fn with(launcher: Launcher) -> Fixture {
        Fixture::with_max_landlock(i64::MAX, launcher)
    }

    /// On a system with no newer Landlock version than this.
    fn with_max_landlock(landlock: i64, launcher: Launcher) -> Fixture {
        // Not in /tmp: commands see another one.
        let place = sandbox_visible_directory(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let top = tempfile::Builder::new().prefix("sandbox-").tempdir_in(place).unwrap();
        let at = |name: &str| top.path().join(name);
        for directory in ["ws", "tmp", "out", "home/.ssh"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("out/canary"), "canary").unwrap();
        fs::write(at("home/.ssh/id_rsa"), "secret key").unwrap();
        fs::write(at("home/.netrc"), "secret password").unwrap();
        fs::write(at("ws/file"), "mine").unwrap();
        let sandbox = Sandbox {
            writable: vec![pinned(&at("ws"))],
            read_only: Vec::new(),
            hidden: vec![at("home/.ssh"), at("home/.netrc"), at("home/.aws")].into(),
            replaced: Vec::new(),
            tmp: at("tmp"),
            supervise_reads: false,
            network: Network::None,
            limits: Limits { processes: 400, ..Limits::DEFAULT },
        };
        let limits = OutputLimits { bytes: 64 << 20, all_bytes: 1 << 30, directory: None };
        let runner = JobRunner::with_max_landlock(landlock, launcher, limits);
        let jobs = runner.session(200);
        let protected = vec![at("ws/.git/hooks"), at("ws/.git/config")];
        let guard = Arc::new(ProtectPaths(protected, Mutex::default()));
        Fixture { top, runner, jobs, sandbox, guard, variables: Vec::new() }
    }

    /// Changes the owner of all files.
    fn chown_all(&self, user: u32) {
        let mut open = vec![self.top.path().to_owned()];
        while let Some(path) = open.pop() {
            chown(&path, Some(user), Some(user)).unwrap();
            if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Makes a command that starts in the workspace. `$T` is the directory of the test.
    fn command(&self, script: &str) -> Command {
        let author =
            ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let mut environment = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), self.path("home").into()),
            ("T".into(), self.top.path().into()),
            ("LC_ALL".into(), "C".into()),
        ];
        environment.extend(author.map(|name| (name.into(), "a@b".into())));
        environment.extend(self.variables.iter().cloned());
        Command {
            script: script.as_bytes().to_vec(),
            shell: PathBuf::from("/bin/bash"),
            directory: self.path("ws"),
            environment,
            stdin: Stdin::EMPTY,
            separate_streams: false,
        }
    }

    fn try_to_start(&self, script: &str) -> Result<Arc<Job>, JobError> {
        self.jobs.start(
            &self.command(script),
            StartOptions::sandboxed(&self.sandbox, self.guard.clone()),
        )
    }

    fn start(&self, script: &str) -> Arc<Job> {
        self.try_to_start(script).unwrap()
    }

    fn run(&self, script: &str) -> CommandResult {
        wait_for_result(&self.start(script))
    }

    /// Runs a script that must succeed.
    fn run_ok(&self, script: &str) -> String {
        let result = self.run(script);
        assert_eq!(result.exit, Exit::Code(0), "{script}\n{}", result.output);
        result.output
    }

    /// Runs a script that must fail with one of these messages.
    fn assert_refused(&self, script: &str, words: &[&str]) {
        let result = self.run(script);
        assert_ne!(result.exit, Exit::Code(0), "{script}\n{}", result.output);
        let said = result.output.to_lowercase();
        let expected = words.iter().any(|word| said.contains(&word.to_lowercase()));
        assert!(expected, "{script}\n{}", result.output);
    }

    /// Runs Python code that must fail with one of these messages.
    fn assert_python_refused(&self, lines: &str, words: &[&str]) {
        self.assert_refused(&format!("/usr/bin/python3 - <<'END'\n{lines}\nEND\n"), words);
    }

    fn assert_canary_unchanged(&self) {
        let canary = self.path("out/canary");
        assert_eq!(fs::read_to_string(&canary).unwrap(), "canary");
        let names: Vec<_> = fs::read_dir(self.path("out")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}

/// Protects some paths.
#[derive(Debug)]
struct ProtectPaths(Vec<PathBuf>, Mutex<Vec<String>>);

impl Guard for ProtectPaths {
    fn decide(&self, accesses: &[FileAccess], _: &dyn Fn() -> Option<Program>) -> GuardVerdict {
        let renames = accesses.iter().any(|access| access.action == FileAction::RenameFrom);
        for (number, access) in accesses.iter().enumerate() {
            let refuse = |why| GuardVerdict::Refuse { access: number, why, restore: None };
            for protected in &self.0 {
                if access.path.starts_with(protected) {
                    return refuse(Unwritable::Protected);
                }
                if renames && protected.starts_with(&access.path) {
                    return refuse(Unwritable::ParentOfProtected);
                }
            }
        }
        GuardVerdict::Allow
    }

    fn review(&self, _: &Path, _: &[u8], _: bool) -> Result<(), RefusedContent> {
        Ok(())
    }

    fn may_read(&self, _: &Path) -> bool {
        true
    }

    fn supervision_failed(&self, why: &io::Error) {
        self.1.lock().push(why.to_string());
    }

    fn finished(&self) {}
}

fn pinned(path: &Path) -> PinnedPath {
    PinnedPath::of(fs::canonicalize(path).unwrap()).unwrap()
}

/// Waits for the end of a command.
fn wait_for_result(job: &Job) -> CommandResult {
    let now = job.wait(TEST_TIMEOUT, |now| !now.status.is_running() && now.closed);
    let output = String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
    let ended = now.ended.unwrap_or_else(|| panic!("{:?}\n{output}", now.error));
    CommandResult { exit: ended.exit, output }
}

/// Waits until a command has written something or has closed its output.
fn wait_for_output(job: &Job) {
    eventually(
        "it writes or ends",
        || matches!(job.snapshot(), now if now.written > 0 || now.closed),
    );
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_level_is_detected() {
    for fixture in Fixture::for_each_user() {
        let support = fixture.runner.sandbox_support();
        assert_eq!(support.level, Level::Namespaces, "{support:#?}");
        assert_eq!(support.reasons, Vec::<String>::new());
    }
}
