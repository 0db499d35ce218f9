//! Processes: none outside is visible or reachable, none inside survives.

use std::collections::BTreeSet;
use std::time::Instant;

use toolcrib_exec::{Ending, Status};

use super::*;

const REFUSED: &[&str] = &["Operation not permitted", "Permission denied", "Read-only file system"];

#[test]
fn processes_outside_are_invisible_and_unreachable() {
    for fixture in Fixture::for_each_sandbox() {
        let outside = std::process::id();
        fixture.assert_refused(&format!("kill -9 {outside}"), &["No such process"]);
        fixture.assert_refused(&format!("cat /proc/{outside}/environ"), &["No such file"]);
        assert_eq!(fixture.run_ok("echo $PPID").trim(), "1");
        fixture.run_ok("test $(ls -d /proc/[0-9]* | wc -l) -lt 8");
        // This kills everything inside except the first process, and nothing outside.
        assert_eq!(fixture.run("kill -9 -1; kill -9 1; echo alive").exit, Exit::Code(0));
        assert_eq!(fixture.run("trap '' TERM; kill 0; echo alive").output, "alive\n");
        assert_eq!(fixture.run_ok("readlink /proc/1/root"), "/\n");
        fixture.assert_refused(
            "cat /proc/1/root$T/home/.ssh/id_rsa",
            &["No such file", "Permission denied"],
        );
    }
}

#[test]
fn process_ids_of_commands_differ() {
    if !Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        return;
    }
    for mut fixture in Fixture::for_each_user() {
        fixture.sandbox.limits.processes = 4096;
        let ids: BTreeSet<String> = (0..6).map(|_| fixture.run_ok("echo $$")).collect();
        assert!(ids.len() > 1, "{ids:?}");
    }
}

#[test]
fn a_command_inherits_nothing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run_ok("exec ls /proc/self/fd"), "0\n1\n2\n3\n");
    fixture.assert_refused("echo x > /dev/tty", &["No such device"]);
}

#[test]
fn privileges_cannot_be_gained() {
    for fixture in Fixture::for_each_sandbox() {
        let status = fixture.run_ok("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
        let none = "0000000000000000";
        // bubblewrap may lack the privilege to clear the bounding set, but then nothing can be gained from
        // it.
        let bound = fixture.runner.sandbox_support().level == Level::Namespaces;
        for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(
                status.contains(&format!("{line}:\t{none}\n")) || line == "CapBnd" && !bound,
                "{status}"
            );
        }
        assert!(
            status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"),
            "{status}"
        );
        for script in [
            "unshare -Ur true",
            "unshare -m true",
            "mount -t tmpfs none /mnt",
            "mount -o remount,rw /",
            "umount /proc",
            "nsenter -t 1 -m true",
            "chroot . true",
        ] {
            let mut words = REFUSED.to_vec();
            words.extend(["must be superuser", "Function not implemented"]);
            fixture.assert_refused(script, &words);
        }
    }
}

#[test]
fn dangerous_system_calls_are_denied() {
    for fixture in Fixture::for_each_sandbox() {
        for (call, arguments) in [
            (libc::SYS_ptrace, "16, 1, 0, 0"),
            (libc::SYS_process_vm_writev, "1, 0, 0, 0, 0, 0"),
            (libc::SYS_bpf, "0, 0, 0"),
            (libc::SYS_userfaultfd, "0"),
            (libc::SYS_keyctl, "0, 0"),
            (libc::SYS_perf_event_open, "0, 0, 0, 0, 0"),
            (libc::SYS_open_by_handle_at, "0, 0, 0"),
            (libc::SYS_setns, "0, 0"),
            (libc::SYS_pivot_root, "0, 0"),
            (libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
        ] {
            let lines = format!(
                "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                 assert libc.syscall({call}, {arguments}) == -1\nraise SystemExit(os.strerror(ctypes.get_errno()))"
            );
            fixture.assert_python_refused(&lines, &["Operation not permitted"]);
        }
        fixture.assert_python_refused(
            "import fcntl, pty\nmaster, slave = pty.openpty()\nfcntl.ioctl(slave, 0x5412, b'x')",
            &["Operation not permitted"],
        );
        fixture.assert_python_refused("open('/proc/1/mem', 'r+b')", REFUSED);
    }
}

/// Ways to detach a process from its command.
const TRICKS: [&str; 6] = [
    "setsid sleep N & true",
    "nohup sleep N >/dev/null 2>&1 & true",
    "(setsid sh -c 'sleep N & sleep N' >/dev/null 2>&1 &) ; true",
    "trap '' TERM HUP INT; sleep N & true",
    "sleep N & sleep 0.3; kill -STOP $!",
    "/usr/bin/python3 -c 'import os,time\nfor i in range(3):\n  if os.fork(): os._exit(0)\n  os.setsid()\nos.execvp(\"sleep\", [\"sleep\", \"N\"])'",
];

#[test]
fn no_process_survives_an_ended_command() {
    for (user, fixture) in Fixture::for_each_sandbox().into_iter().enumerate() {
        for (number, trick) in TRICKS.iter().enumerate() {
            let seconds =
                format!("{}{}", 500_000 + std::process::id() % 10_000, user * 10 + number);
            let job = fixture.start(&trick.replace('N', &seconds));
            job.wait(TEST_TIMEOUT, |now| !now.status.is_running());
            eventually(trick, || alive(&seconds) > 0);
            assert!(!job.processes().is_empty(), "{trick}");
            assert!(job.processes().iter().all(|process| process.name != "shim"), "{trick}");
            job.end(Ending::Immediate, Status::Killed);
            assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited, "{trick}");
            assert_eq!(alive(&seconds), 0, "{trick}");
        }
    }
}

#[test]
fn no_process_survives_its_session_or_its_shim() {
    let fixture = Fixture::new();
    let seconds = format!("{}77", 500_000 + std::process::id() % 10_000);
    let job = fixture.start(&format!("setsid sleep {seconds} & sleep {seconds}"));
    eventually("it runs", || alive(&seconds) == 2);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(job.shim_pid()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("nothing is left", || alive(&seconds) == 0);
    fixture.start(&format!("trap '' TERM; setsid sleep {seconds} & sleep {seconds}"));
    eventually("it runs", || alive(&seconds) == 2);
    drop(fixture);
    eventually("nothing is left", || alive(&seconds) == 0);
}

#[test]
fn a_command_can_handle_sigterm() {
    let fixture = Fixture::new();
    let job = fixture.start("trap 'echo bye; exit 3' TERM; echo ready; sleep 600 & wait");
    wait_for_output(&job);
    job.end(Ending::Polite, Status::Killed);
    let result = wait_for_result(&job);
    assert_eq!((result.exit, result.output.as_str()), (Exit::Code(3), "ready\nbye\n"));
    assert_eq!(job.snapshot().status, Status::Killed);
}

#[test]
fn a_fork_bomb_is_stopped_and_can_be_ended() {
    for fixture in Fixture::for_each_user() {
        // Never start a fork bomb without a limit.
        assert_eq!(fixture.runner.sandbox_support().level, Level::Namespaces);
        let job = fixture.start("bomb() { bomb | bomb & }; bomb; sleep 600");
        let text = |job: &Job| String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
        wait_for_output(&job);
        eventually("it is refused", || text(&job).contains("Resource temporarily unavailable"));
        assert!(job.processes().len() <= 400);
        let began = Instant::now();
        job.end(Ending::Immediate, Status::Killed);
        assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited);
        assert!(began.elapsed() < TEST_TIMEOUT);
        assert_eq!(fixture.run_ok("echo well"), "well\n");
    }
}

#[test]
fn a_sandboxed_command_is_listed_once() {
    let fixture = Fixture::new();
    let job = fixture.start("echo ready; sleep 600");
    wait_for_output(&job);
    let all = toolcrib_exec::all_running_jobs(&[]);
    let found: Vec<_> = all.iter().filter(|listed| listed.id == job.global_id()).collect();
    let [listed] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((listed.shim, listed.script.as_slice()), (job.shim_pid(), job.script()));
    assert_eq!(listed.directory, fixture.path("ws"));
    let ours = listed.processes.iter().any(|process| process.name == "shim");
    assert!(!listed.processes.is_empty() && !ours, "{listed:?}");
    let (told, gone) = listed.end(Ending::Prompt);
    assert!(told >= 1 && gone);
    assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited);
}
