//! Commands: their output, their exit, the state they leave, and that no process survives them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolcrib_exec::{
    Command, Ending, Exit, Job, JobError, JobRunner, Jobs, Launcher, OutputLimits, RunningLimit,
    StartOptions, Status, Stdin,
};

use crate::{TEST_TIMEOUT, alive, eventually, example_path};

fn jobs() -> Jobs {
    jobs_with(OutputLimits { bytes: 64 << 20, all_bytes: 1 << 30, directory: None }, 1000)
}

fn jobs_with(limits: OutputLimits, max: usize) -> Jobs {
    let launcher =
        Launcher { program: example_path("shim"), arguments: Vec::new(), workspace: None };
    JobRunner::new(launcher, limits).session(max)
}

fn command(script: &str) -> Command {
    Command {
        script: script.as_bytes().to_vec(),
        shell: PathBuf::from("/bin/bash"),
        directory: PathBuf::from("/"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: Stdin::EMPTY,
        separate_streams: false,
    }
}

/// Runs a script until its shell has ended and all its output has arrived.
fn finished(jobs: &Jobs, script: &str) -> Arc<Job> {
    let job = jobs.start(&command(script), StartOptions::unconfined()).unwrap();
    let now = job.wait(TEST_TIMEOUT, |now| !now.status.is_running() && now.closed);
    assert!(!now.status.is_running() && now.closed, "{now:?}");
    job
}

fn output(job: &Job) -> String {
    let (_, bytes) = job.read(0, 1 << 20);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn exit(job: &Job) -> Exit {
    job.snapshot().ended.unwrap().exit
}

/// A number of seconds that no other test sleeps for, to find the processes by.
fn unique_seconds(test: u32) -> String {
    format!("{}{test:03}", std::process::id() % 10_000 + 100_000)
}

#[test]
fn a_command_runs_and_reports_its_exit() {
    let jobs = jobs();
    for (script, expected, said) in [
        ("echo out; echo err >&2; exit 3", Exit::Code(3), "out\nerr\n"),
        ("true", Exit::Code(0), ""),
        ("exec sh -c 'exit 255'", Exit::Code(255), ""),
        ("kill -9 $$", Exit::Signal(9), ""),
        ("set -e; echo a; false; echo b", Exit::Code(1), "a\n"),
        ("cat; read x; echo \"$?\"", Exit::Code(0), "1\n"),
        ("trap 'echo bye' EXIT; exit 4", Exit::Code(4), "bye\n"),
        ("# only a word", Exit::Code(0), ""),
        ("", Exit::Code(0), ""),
    ] {
        let job = finished(&jobs, script);
        assert_eq!((exit(&job), output(&job).as_str()), (expected, said), "{script}");
        let succeeded = job.snapshot().status == Status::Completed;
        assert_eq!(succeeded, expected == Exit::Code(0), "{script}");
    }
}

#[test]
fn script_errors_name_their_line() {
    let jobs = jobs();
    let job = finished(&jobs, "echo one\nnosuchcommand\n");
    assert_eq!(output(&job), "one\n/dev/fd/3: line 2: nosuchcommand: command not found\n");
    assert_eq!(exit(&job), Exit::Code(127));
    let job = finished(&jobs, "echo one\nif then\n");
    assert!(output(&job).starts_with("one\n/dev/fd/3: line 2: syntax error"), "{}", output(&job));
    assert_eq!(exit(&job), Exit::Code(2));
}

#[test]
fn script_and_input_arrive_unchanged() {
    let jobs = jobs();
    let odd = "printf '%s' '\u{e4} \\ $HOME `x` \"\t!'\n";
    assert_eq!(output(&finished(&jobs, odd)), "\u{e4} \\ $HOME `x` \"\t!");
    let long = format!(": '{}'; echo end", "x".repeat(3 << 20));
    assert_eq!(output(&finished(&jobs, &long)), "end\n");
    let input: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let job = jobs
        .start(
            &Command { stdin: Stdin::Content(input.clone()), ..command("cat") },
            StartOptions::unconfined(),
        )
        .unwrap();
    job.wait(TEST_TIMEOUT, |now| now.closed);
    assert_eq!(job.read(0, 1 << 20).1, input);
}

#[test]
fn no_terminal_no_descriptor_and_no_variable_is_inherited() {
    let jobs = jobs();
    assert_eq!(output(&finished(&jobs, "ls /proc/self/fd")), "0\n1\n2\n3\n");
    assert_eq!(output(&finished(&jobs, ":; (ls /proc/self/fd) | wc -l")), "4\n");
    let tty = output(&finished(&jobs, "read x </dev/tty; tty"));
    assert!(tty.contains("/dev/tty: No such device") && tty.contains("not a tty"), "{tty}");
    let environment = output(&finished(&jobs, "env | cut -d= -f1 | sort | tr '\\n' ' '"));
    assert_eq!(environment, "PATH PWD SHLVL _ ");
}

#[test]
fn final_directory_and_exported_variables_are_reported() {
    let jobs = jobs();
    let job = finished(&jobs, "cd /usr; export A=$'x\\n\"y' B=1; unset B; exit 3");
    let state = job.snapshot().ended.unwrap().shell_state.unwrap();
    assert_eq!(state.directory, Some("/usr".into()));
    let of = |name: &str| state.environment.iter().find(|(known, _)| known == name);
    assert_eq!(of("A").unwrap().1, "x\n\"y");
    assert_eq!(of("B"), None);
    assert_eq!(finished(&jobs, "exec true").snapshot().ended.unwrap().shell_state, None);
}

#[test]
fn cpu_time_and_memory_are_reported() {
    let jobs = jobs();
    let job = finished(&jobs, "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo ${#x}");
    let ended = job.snapshot().ended.unwrap();
    assert!(ended.peak_bytes > 20_000_000, "{ended:?}");
    assert!(ended.cpu > Duration::ZERO, "{ended:?}");
}

#[test]
fn a_job_ends_with_its_shell_despite_background_processes() {
    let (jobs, seconds) = (jobs(), unique_seconds(1));
    let job = jobs
        .start(&command(&format!("sleep {seconds} & echo done")), StartOptions::unconfined())
        .unwrap();
    job.wait(TEST_TIMEOUT, |now| !now.status.is_running());
    eventually("its output comes", || output(&job) == "done\n");
    assert_eq!(job.snapshot().status, Status::Completed);
    let names = || job.processes().into_iter().map(|process| process.name).collect::<Vec<_>>();
    eventually("it sleeps", || names() == ["sleep"]);
    job.end(Ending::Polite, Status::Killed);
    let now = job.wait(TEST_TIMEOUT, |now| now.all_exited);
    assert_eq!((now.all_exited, now.killed, now.status), (true, 1, Status::Completed));
    assert_eq!(now.force_killed, 0);
    assert_eq!(alive(&seconds), 0);
}

#[test]
fn processes_that_sigterm_does_not_end_are_counted() {
    let (jobs, seconds) = (jobs(), unique_seconds(31));
    let script = format!("(trap '' TERM; echo ready; exec sleep {seconds}); true");
    let job = jobs.start(&command(&script), StartOptions::unconfined()).unwrap();
    eventually("it ignores SIGTERM", || output(&job) == "ready\n" && alive(&seconds) == 1);
    job.end(Ending::Prompt, Status::Killed);
    let now = job.wait(TEST_TIMEOUT, |now| now.all_exited);
    assert_eq!(now.status, Status::Killed);
    assert!(now.force_killed >= 1, "{now:?}");
}

/// Ways to leave a process group or a session, or to ignore SIGTERM.
fn daemons(seconds: &str) -> [String; 6] {
    [
        format!("setsid sleep {seconds} & sleep {seconds} & wait"),
        format!("nohup sleep {seconds} >/dev/null 2>&1 & wait"),
        format!("(setsid sh -c 'sleep {seconds} & sleep {seconds}' &) ; sleep {seconds}"),
        format!("trap '' TERM; sleep {seconds} & wait; sleep {seconds}; sleep {seconds}"),
        format!("sleep {seconds} & sleep 0.1; kill -STOP $!; wait"),
        format!("sh -c 'trap \"\" TERM HUP; while :; do sleep {seconds}; done' & wait"),
    ]
}

#[test]
fn ending_a_job_ends_all_its_processes() {
    let jobs = jobs();
    let seconds = unique_seconds(2);
    for script in daemons(&seconds) {
        let job = jobs.start(&command(&script), StartOptions::unconfined()).unwrap();
        eventually(&format!("it sleeps: {script}"), || alive(&seconds) > 0);
        job.end(Ending::Prompt, Status::TimedOut);
        let now = job.wait(TEST_TIMEOUT, |now| now.all_exited);
        assert!(now.all_exited && now.killed > 0, "{script}: {now:?}");
        assert_eq!(now.status, Status::TimedOut, "{script}");
        assert_eq!(alive(&seconds), 0, "{script}");
    }
}

#[test]
fn dropping_a_session_ends_its_commands() {
    let seconds = unique_seconds(3);
    for script in daemons(&seconds) {
        let jobs = jobs();
        jobs.start(&command(&script), StartOptions::unconfined()).unwrap();
        eventually("it sleeps", || alive(&seconds) > 0);
        drop(jobs);
        eventually("nothing is left", || alive(&seconds) == 0);
    }
}

#[test]
fn a_job_goes_through_its_states() {
    let jobs = jobs();
    let job = jobs.start(&command("sleep 600"), StartOptions::unconfined()).unwrap();
    assert_eq!(job.snapshot().status, Status::Running);
    assert_eq!(jobs.list_running().len(), 1);
    job.end(Ending::Polite, Status::Killed);
    let now = job.wait(TEST_TIMEOUT, |now| now.all_exited && now.closed);
    assert_eq!(now.status, Status::Killed);
    assert_eq!(now.ended.unwrap().exit, Exit::Signal(15));
    // Ending is idempotent.
    job.end(Ending::Polite, Status::Killed);
    assert_eq!(jobs.list_running().len(), 0);
    assert_eq!(jobs.get(job.id()).unwrap().id(), job.id());
    assert!(
        job.id() == "sh_1"
            && ["sh_0", "sh_01", "sh_+1", "1"].iter().all(|id| jobs.get(id).is_none())
    );
    assert_eq!(jobs.clean_up(Duration::from_secs(3600)), 0);
    assert_eq!(jobs.clean_up(Duration::ZERO), 1);
    jobs.start(&command("sleep 600"), StartOptions::unconfined()).unwrap();
    jobs.reset();
    assert!(jobs.list().is_empty());
}

#[test]
fn start_failures_are_errors_and_not_exit_codes() {
    let jobs = jobs();
    let start = |command: Command| jobs.start(&command, StartOptions::unconfined()).unwrap_err();
    let gone = Command { directory: "/nonexistent".into(), ..command("true") };
    let error = start(gone).to_string();
    assert_eq!(
        error,
        "could not enter the directory /nonexistent: No such file or directory (os error 2)"
    );
    let no_shell = Command { shell: "/nonexistent".into(), ..command("true") };
    assert!(start(no_shell).to_string().starts_with("could not start the shell /nonexistent"));
    let launcher =
        Launcher { program: "/nonexistent".into(), arguments: Vec::new(), workspace: None };
    let limits = OutputLimits { bytes: 1 << 20, all_bytes: 1 << 30, directory: None };
    let error = JobRunner::new(launcher, limits)
        .session(5)
        .start(&command("true"), StartOptions::unconfined())
        .unwrap_err();
    assert_eq!(error, JobError::NotLaunched { errno: 2 });
}

#[test]
fn a_full_session_forgets_the_oldest_finished_job() {
    let limits = OutputLimits { bytes: 1 << 20, all_bytes: 1 << 30, directory: None };
    let jobs = jobs_with(limits, 2);
    let first = finished(&jobs, "true");
    eventually("it is over", || first.snapshot().all_exited);
    let second = jobs.start(&command("sleep 600"), StartOptions::unconfined()).unwrap();
    let third = jobs.start(&command("sleep 600"), StartOptions::unconfined()).unwrap();
    assert!(jobs.get(first.id()).is_none());
    assert!(jobs.get(second.id()).is_some() && jobs.get(third.id()).is_some());
    assert_eq!(
        jobs.start(&command("true"), StartOptions::unconfined()).unwrap_err(),
        JobError::TooMany(2)
    );
}

#[test]
fn sessions_share_a_limit_of_running_jobs() {
    let limits = || OutputLimits { bytes: 1 << 20, all_bytes: 1 << 30, directory: None };
    let limit = RunningLimit::new(2);
    let [one, two] = [(); 2].map(|()| jobs_with(limits(), 5).limited_by(limit.clone()));
    let start = |jobs: &Jobs, script| jobs.start(&command(script), StartOptions::unconfined());
    let first = start(&one, "sleep 600").unwrap();
    start(&two, "sleep 600").unwrap();
    assert_eq!(start(&one, "true").unwrap_err(), JobError::TooManyInAll(2));
    assert_eq!(start(&two, "true").unwrap_err(), JobError::TooManyInAll(2));
    first.end(Ending::Immediate, Status::Killed);
    eventually("it is over", || first.snapshot().all_exited);
    start(&two, "sleep 600").unwrap();
    // A command that could not be started keeps no place.
    drop(two);
    for _ in 0..3 {
        let missing = Command { shell: "/nonexistent".into(), ..command("true") };
        assert!(one.start(&missing, StartOptions::unconfined()).is_err());
    }
    eventually("the others are over", || start(&one, "true").is_ok());
}

#[test]
fn head_and_tail_of_a_flood_are_kept() {
    let limits =
        OutputLimits { bytes: 1 << 20, all_bytes: 1 << 30, directory: Some("/tmp".into()) };
    let jobs = jobs_with(limits, 5);
    let job = jobs
        .start(
            &command("echo first; head -c 50000000 /dev/zero; echo last"),
            StartOptions::unconfined(),
        )
        .unwrap();
    let now = job.wait(TEST_TIMEOUT, |now| now.closed);
    assert_eq!(now.written, 50_000_011);
    assert_eq!(now.gap.end - now.gap.start, 50_000_011 - (1 << 20));
    assert!(job.read(0, 6).1 == b"first\n" && job.read(50_000_006, 9).1 == b"last\n");
}

#[test]
fn the_ports_of_a_job_are_found() {
    let jobs = jobs();
    let script = "exec python3 -c \"
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(600)\"";
    let job = jobs.start(&command(script), StartOptions::unconfined()).unwrap();
    eventually("it listens", || output(&job).ends_with('\n'));
    assert_eq!(vec![output(&job).trim().parse::<u16>().unwrap()], job.ports());
}

#[test]
fn a_command_outlives_the_thread_that_started_it() {
    let jobs = Arc::new(jobs());
    let of_thread = jobs.clone();
    let start = move || {
        of_thread.start(&command("sleep 0.3; echo alive"), StartOptions::unconfined()).unwrap()
    };
    let job = std::thread::spawn(start).join().unwrap();
    job.wait(TEST_TIMEOUT, |now| now.closed);
    assert_eq!(output(&job), "alive\n");
}

#[test]
fn a_command_that_kills_its_shim_is_reported_and_killed() {
    let (jobs, seconds) = (jobs(), unique_seconds(4));
    let script = format!("sleep 0.3; kill -9 $PPID; sleep {seconds}");
    // On a slow machine it may have ended before `start` returns.
    let broken = match jobs.start(&command(&script), StartOptions::unconfined()) {
        Ok(job) => job.wait(TEST_TIMEOUT, |now| now.all_exited).error,
        Err(error) => Some(error),
    };
    assert_eq!(broken, Some(JobError::ShimLost));
    eventually("nothing of it is left", || alive(&seconds) == 0);
}

#[test]
fn shims_are_forked_from_one_template_that_is_not_listed_as_a_job() {
    let word = format!("template-{}", std::process::id());
    let launcher = Launcher {
        program: example_path("shim"),
        arguments: vec![word.clone().into()],
        workspace: None,
    };
    let limits = OutputLimits { bytes: 1 << 20, all_bytes: 1 << 20, directory: None };
    let runner = JobRunner::new(launcher, limits);
    let jobs = runner.session(10);
    assert_eq!(pids_of(&word), [] as [i32; 0]);
    let first = finished(&jobs, "true").shim_pid();
    eventually("only the template is left", || !pids_of(&word).contains(&first));
    let template = pids_of(&word);
    assert_eq!(template.len(), 1);
    assert_eq!(toolcrib_exec::all_running_jobs(&[&word]), []);
    // Longer than the resolution of file times.
    std::thread::sleep(Duration::from_millis(100));
    let began = SystemTime::now() - Duration::from_millis(50);
    let start = |script| jobs.start(&command(script), StartOptions::unconfined()).unwrap();
    let running = [start("exec sleep 600"), start("exec sleep 601")];
    let mut expected: Vec<i32> = running.iter().map(|job| job.shim_pid()).collect();
    expected.extend(&template);
    expected.sort_unstable();
    let mut pids = pids_of(&word);
    pids.sort_unstable();
    assert_eq!(pids, expected);
    // The script is listed once the shim has stored it.
    let listed = toolcrib_exec::all_running_jobs(&[&word]);
    for (job, listed) in running.iter().zip(&listed) {
        assert_eq!((listed.id.as_str(), listed.shim), (job.global_id(), job.shim_pid()));
        assert_eq!(listed.script, job.script());
        assert_eq!(listed.runtime, i32::try_from(std::process::id()).unwrap());
        assert!(listed.started.unwrap() > began, "the age is that of the command");
    }
    assert_eq!(listed.len(), running.len());
    // A template that was killed is replaced. Running commands go on.
    let killed = rustix::process::Pid::from_raw(template[0]).unwrap();
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).unwrap();
    eventually("it is gone", || !pids_of(&word).contains(&template[0]));
    assert_eq!(output(&finished(&jobs, "echo well")), "well\n");
    eventually("there is another template", || pids_of(&word).len() == 3);
    assert!(running.iter().all(|job| job.snapshot().status.is_running()));
    drop((jobs, running, runner));
    eventually("no process is left", || alive(&word) == 0);
}

#[test]
fn a_program_with_the_arguments_of_a_shim_is_not_listed_as_a_job() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    // Opening the other end of such a file for reading waits for a writer.
    let script = format!("exec 3<>'{0}' 4<&-; echo; exec 3<'{0}'; read -r", fifo.display());
    let word = format!("imitation-{}", std::process::id());
    let mut imitation = std::process::Command::new("setsid")
        .args(["bash", "-c", &script, &word, "job_0123456789abcdef"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(imitation.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(toolcrib_exec::all_running_jobs(&["-c", &script, &word]), []);
    imitation.kill().unwrap();
    imitation.wait().unwrap();
}

/// The running processes with this argument.
fn pids_of(word: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(has).collect()
}

/// The exit of a shell and its output arrive on different channels. The thread that handles both is busy
/// here.
#[test]
fn an_exit_is_reported_after_all_output_of_the_shell() {
    let jobs = jobs();
    let flood = jobs.start(&command("yes flood"), StartOptions::unconfined()).unwrap();
    for round in 0..60 {
        let holds_output = round % 2 == 1;
        let background =
            if holds_output { format!("sleep {} & ", unique_seconds(900)) } else { String::new() };
        let script = format!("{background}head -c 400000 /dev/zero | tr '\\0' x; printf END");
        let job = jobs.start(&command(&script), StartOptions::unconfined()).unwrap();
        let now = job.wait(TEST_TIMEOUT, |now| !now.status.is_running());
        assert_eq!(now.written, 400_003, "{script}");
        assert_eq!(now.closed, !holds_output, "{script}");
        job.end(Ending::Immediate, Status::Killed);
    }
    flood.end(Ending::Immediate, Status::Killed);
}

#[test]
fn exit_codes_of_the_last_pipeline_are_reported() {
    let jobs = jobs();
    for (script, codes, last) in [
        ("(exit 3) | cat | tail -1", vec![3, 0, 0], "tail -1"),
        ("false | true; exit 0", vec![1, 0], "exit 0"),
        ("set -u; false | true\ntrue", vec![0], "true"),
        ("yes | head -1 > /dev/null", vec![141, 0], "head -1 > /dev/null"),
    ] {
        let state = finished(&jobs, script).snapshot().ended.unwrap().shell_state.unwrap();
        let reported = (state.pipe_codes.clone(), state.last_command.as_str());
        assert_eq!(reported, (codes, last), "{script}");
    }
}
