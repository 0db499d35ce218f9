//! Commands whose streams the caller has: pipes and terminals, in each sandbox.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_exec::{
    Command, CommandInput, CommandOutput, Ending, Exit, Job, OutputStream, Signal, StartOptions,
    Status, Stdin,
};

use super::Fixture;
use crate::{TEST_TIMEOUT, eventually};

fn spawn(fixture: &Fixture, script: &str, stdin: Stdin) -> Spawned {
    let command = Command { stdin, separate_streams: true, ..fixture.command(script) };
    let options = StartOptions::sandboxed(&fixture.sandbox, fixture.guard.clone());
    let (job, streams) = fixture.jobs.spawn(&command, options).unwrap();
    let (output, input) = streams.into_io();
    Spawned { job, output, input, stdout: String::new(), stderr: String::new() }
}

/// Our side of a running command.
struct Spawned {
    job: Arc<Job>,
    output: CommandOutput,
    input: Option<CommandInput>,
    stdout: String,
    stderr: String,
}

impl Spawned {
    /// Reads until the streams are closed, or until stdout has this end. Returns stdout.
    fn read_until(&mut self, end: Option<&str>) -> String {
        let Spawned { output, stdout, stderr, .. } = self;
        eventually("the output is complete", || {
            output.pass_on(Duration::from_millis(10), &mut |stream, bytes| {
                let text = std::str::from_utf8(bytes).unwrap();
                match stream {
                    OutputStream::Stdout => stdout.push_str(text),
                    OutputStream::Stderr => stderr.push_str(text),
                }
            });
            output.is_closed() || end.is_some_and(|end| stdout.ends_with(end))
        });
        std::mem::take(stdout)
    }

    fn write(&self, bytes: &[u8]) {
        self.input.as_ref().unwrap().write(bytes, &|| true).unwrap();
    }

    fn exit(&self) -> Exit {
        let now = self.job.wait(TEST_TIMEOUT, |now| !now.status.is_running());
        now.ended.unwrap_or_else(|| panic!("{:?}", now.error)).exit
    }
}

#[test]
fn pipes_carry_input_output_and_errors_apart() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "read -r line; echo \"got $line\"; echo oops >&2; cat; exit 3";
        let mut spawned = spawn(&fixture, script, Stdin::Pipe);
        spawned.write(b"one\n");
        assert_eq!(spawned.read_until(Some("\n")), "got one\n");
        spawned.write(b"two");
        spawned.input = None;
        assert_eq!(spawned.read_until(None), "two");
        assert_eq!(spawned.stderr, "oops\n");
        assert_eq!(spawned.exit(), Exit::Code(3));
    }
}

#[test]
fn output_waits_for_its_reader_and_is_complete() {
    let fixture = Fixture::new();
    let mut spawned = spawn(&fixture, "seq 300000", Stdin::EMPTY);
    assert!(spawned.input.is_none());
    let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(spawned.read_until(None), expected);
    assert_eq!(spawned.exit(), Exit::Code(0));
}

#[test]
fn a_terminal_has_a_size_job_control_and_one_output() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "test -t 0 && test -t 1 && test -t 2 || exit 9
            trap 'stty size; exit 7' WINCH
            stty size; ps -o tpgid= -p $$ | tr -d ' ' | grep -qx $$ || exit 8
            echo error >&2; read -r line; echo \"[$line]\"
            while :; do read -rt 0.2 -n 1 line; done";
        let terminal = Stdin::Terminal { rows: 30, columns: 90 };
        let mut spawned = spawn(&fixture, script, terminal);
        assert_eq!(spawned.read_until(Some("error\r\n")), "30 90\r\nerror\r\n");
        spawned.write(b"hello\n");
        assert_eq!(spawned.read_until(Some("]\r\n")), "hello\r\n[hello]\r\n");
        spawned.input.as_ref().unwrap().resize(50, 132).unwrap();
        assert_eq!(spawned.read_until(Some("132\r\n")), "50 132\r\n");
        assert_eq!(spawned.exit(), Exit::Code(7));
    }
}

#[test]
fn ctrl_c_in_a_terminal_interrupts_the_command() {
    for fixture in Fixture::for_each_sandbox() {
        let terminal = Stdin::Terminal { rows: 24, columns: 80 };
        let mut spawned = spawn(&fixture, "echo ready; sleep 1000", terminal);
        assert_eq!(spawned.read_until(Some("\n")), "ready\r\n");
        // The shell may not have started `sleep` yet.
        eventually("sleep runs", || spawned.job.processes().iter().any(|one| one.name == "sleep"));
        let interrupt = [3];
        spawned.write(&interrupt);
        assert_eq!(spawned.exit(), Exit::Signal(2));
    }
}

#[test]
fn a_signal_reaches_all_processes() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "trap 'echo shell; exit 5' USR1
            bash -c 'trap \"echo child; exit\" USR1; echo ready; while :; do sleep 0.1; done' &
            wait; wait";
        let mut spawned = spawn(&fixture, script, Stdin::EMPTY);
        assert_eq!(spawned.read_until(Some("\n")), "ready\n");
        spawned.job.signal(Signal::USR1);
        assert_eq!(spawned.exit(), Exit::Code(5));
        let mut lines: Vec<String> = spawned.read_until(None).lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["child", "shell"]);
        spawned.job.end(Ending::Immediate, Status::Killed);
    }
}
