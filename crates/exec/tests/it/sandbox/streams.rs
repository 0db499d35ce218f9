//! Commands whose streams the caller has: pipes and terminals, in each sandbox.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use toolcrib_exec::{
    Command, Ending, Exit, Job, Signal, StartOptions, Status, Stdin, Streams, resize_terminal,
};

use super::Fixture;
use crate::{TEST_TIMEOUT, eventually};

fn spawn(fixture: &Fixture, script: &str, stdin: Stdin) -> (Arc<Job>, Streams) {
    let command = Command { stdin, separate_streams: true, ..fixture.command(script) };
    let options = StartOptions::sandboxed(&fixture.sandbox, fixture.guard.clone());
    fixture.jobs.spawn(&command, options).unwrap()
}

/// Reads until the other end is closed, or until the output has this end.
fn read_until(stream: &OwnedFd, end: Option<&str>) -> String {
    let mut stream = File::from(stream.try_clone().unwrap());
    let mut bytes = Vec::new();
    let is_whole = |bytes: &[u8]| end.is_some_and(|end| bytes.ends_with(end.as_bytes()));
    eventually("the output is complete", || {
        let mut chunk = [0; 4096];
        while !is_whole(&bytes) {
            match stream.read(&mut chunk) {
                Ok(0) => return true,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // A terminal that no process has open any more.
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(5));
                    return true;
                }
            }
        }
        true
    });
    String::from_utf8(bytes).unwrap()
}

fn write(stream: &OwnedFd, bytes: &[u8]) {
    File::from(stream.try_clone().unwrap()).write_all(bytes).unwrap();
}

fn exit(job: &Job) -> Exit {
    let now = job.wait(TEST_TIMEOUT, |now| !now.status.is_running());
    now.ended.unwrap_or_else(|| panic!("{:?}", now.error)).exit
}

#[test]
fn pipes_carry_input_output_and_errors_apart() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "read -r line; echo \"got $line\"; echo oops >&2; cat; exit 3";
        let (job, mut streams) = spawn(&fixture, script, Stdin::Pipe);
        let stdin = streams.stdin.take().unwrap();
        write(&stdin, b"one\n");
        assert_eq!(read_until(&streams.stdout, Some("\n")), "got one\n");
        write(&stdin, b"two");
        drop(stdin);
        assert_eq!(read_until(&streams.stdout, None), "two");
        assert_eq!(read_until(streams.stderr.as_ref().unwrap(), None), "oops\n");
        assert_eq!(exit(&job), Exit::Code(3));
    }
}

#[test]
fn output_waits_for_its_reader_and_is_complete() {
    let fixture = Fixture::new();
    let (job, streams) = spawn(&fixture, "seq 300000", Stdin::EMPTY);
    assert!(streams.stdin.is_none());
    let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(read_until(&streams.stdout, None), expected);
    assert_eq!(exit(&job), Exit::Code(0));
}

#[test]
fn a_terminal_has_a_size_job_control_and_one_output() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "test -t 0 && test -t 1 && test -t 2 || exit 9
            trap 'stty size; exit 7' WINCH
            stty size; ps -o tpgid= -p $$ | tr -d ' ' | grep -qx $$ || exit 8
            echo error >&2; read -r line; echo \"[$line]\"
            while :; do read -rt 600 -n 1 line; done";
        let terminal = Stdin::Terminal { rows: 30, columns: 90 };
        let (job, streams) = spawn(&fixture, script, terminal);
        assert_eq!(read_until(&streams.stdout, Some("error\r\n")), "30 90\r\nerror\r\n");
        let stdin = streams.stdin.as_ref().unwrap();
        write(stdin, b"hello\n");
        assert_eq!(read_until(&streams.stdout, Some("]\r\n")), "hello\r\n[hello]\r\n");
        resize_terminal(stdin, 50, 132).unwrap();
        assert_eq!(read_until(&streams.stdout, Some("132\r\n")), "50 132\r\n");
        assert_eq!(exit(&job), Exit::Code(7));
    }
}

#[test]
fn ctrl_c_in_a_terminal_interrupts_the_command() {
    for fixture in Fixture::for_each_sandbox() {
        let terminal = Stdin::Terminal { rows: 24, columns: 80 };
        let (job, streams) = spawn(&fixture, "echo ready; sleep 1000", terminal);
        assert_eq!(read_until(&streams.stdout, Some("\n")), "ready\r\n");
        // The shell may not have started `sleep` yet.
        eventually("sleep runs", || job.processes().iter().any(|one| one.name == "sleep"));
        write(streams.stdin.as_ref().unwrap(), &[3]);
        assert_eq!(exit(&job), Exit::Signal(2));
    }
}

#[test]
fn a_signal_reaches_all_processes() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "trap 'echo shell; exit 5' USR1
            bash -c 'trap \"echo child; exit\" USR1; echo ready; while :; do sleep 0.1; done' &
            wait; wait";
        let (job, streams) = spawn(&fixture, script, Stdin::EMPTY);
        assert_eq!(read_until(&streams.stdout, Some("\n")), "ready\n");
        job.signal(Signal::USR1);
        assert_eq!(exit(&job), Exit::Code(5));
        let mut lines: Vec<String> =
            read_until(&streams.stdout, None).lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["child", "shell"]);
        job.end(Ending::Immediate, Status::Killed);
    }
}
