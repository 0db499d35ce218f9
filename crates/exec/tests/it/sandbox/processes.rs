//! Processes: none outside is seen or reached, none inside is left.

use std::time::Instant;

use toolcrib_exec::{Ending, Status};

use super::*;

const REFUSED: &[&str] = &["Operation not permitted", "Permission denied", "Read-only file system"];

#[test]
fn no_process_outside_is_seen_or_reached() {
    for bench in Bench::with_every_view() {
        let outside = std::process::id();
        bench.refused(&format!("kill -9 {outside}"), &["No such process"]);
        bench.refused(&format!("cat /proc/{outside}/environ"), &["No such file"]);
        assert_eq!(bench.passes("echo $PPID").trim(), "1");
        bench.passes("test $(ls -d /proc/[0-9]* | wc -l) -lt 8");
        // Everything inside ends, the first process and all outside excepted.
        assert_eq!(bench.run("kill -9 -1; kill -9 1; echo alive").exit, Exit::Code(0));
        assert_eq!(bench.run("trap '' TERM; kill 0; echo alive").output, "alive\n");
        assert_eq!(bench.passes("readlink /proc/1/root"), "/\n");
        bench
            .refused("cat /proc/1/root$T/home/.ssh/id_rsa", &["No such file", "Permission denied"]);
    }
}

#[test]
fn a_command_inherits_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.passes("exec ls /proc/self/fd"), "0\n1\n2\n3\n");
    bench.refused("echo x > /dev/tty", &["No such device"]);
}

#[test]
fn nobody_gains_rights() {
    for bench in Bench::with_every_view() {
        let status = bench.passes("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
        let none = "0000000000000000";
        // Where bubblewrap has no right to give up what could be had, there is none to be had.
        let bound = bench.shells.enforced().level == Level::Namespaces;
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
            bench.refused(script, &words);
        }
    }
}

#[test]
fn calls_that_lead_into_others_or_into_the_kernel_are_refused() {
    for bench in Bench::with_every_view() {
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
            bench.python_refused(&lines, &["Operation not permitted"]);
        }
        bench.python_refused(
            "import fcntl, pty\nmaster, slave = pty.openpty()\nfcntl.ioctl(slave, 0x5412, b'x')",
            &["Operation not permitted"],
        );
        bench.python_refused("open('/proc/1/mem', 'r+b')", REFUSED);
    }
}

/// Ways to be forgotten by whoever waits for a command.
const TRICKS: [&str; 6] = [
    "setsid sleep N & true",
    "nohup sleep N >/dev/null 2>&1 & true",
    "(setsid sh -c 'sleep N & sleep N' >/dev/null 2>&1 &) ; true",
    "trap '' TERM HUP INT; sleep N & true",
    "sleep N & sleep 0.3; kill -STOP $!",
    "/usr/bin/python3 -c 'import os,time\nfor i in range(3):\n  if os.fork(): os._exit(0)\n  os.setsid()\nos.execvp(\"sleep\", [\"sleep\", \"N\"])'",
];

#[test]
fn nothing_is_left_of_a_command_that_is_ended() {
    for (user, bench) in Bench::with_every_view().into_iter().enumerate() {
        for (number, trick) in TRICKS.iter().enumerate() {
            let seconds =
                format!("{}{}", 500_000 + std::process::id() % 10_000, user * 10 + number);
            let job = bench.start(&trick.replace('N', &seconds));
            job.wait(LONG, |now| !now.status.is_running());
            eventually(trick, || alive(&seconds) > 0);
            assert!(!job.processes().is_empty(), "{trick}");
            assert!(job.processes().iter().all(|process| process.name != "shim"), "{trick}");
            job.end(Ending::Immediate, Status::Killed);
            assert!(job.wait(LONG, |now| now.over).over, "{trick}");
            assert_eq!(alive(&seconds), 0, "{trick}");
        }
    }
}

#[test]
fn nothing_is_left_when_the_session_ends_or_the_keeper_is_killed() {
    let bench = Bench::new();
    let seconds = format!("{}77", 500_000 + std::process::id() % 10_000);
    let job = bench.start(&format!("setsid sleep {seconds} & sleep {seconds}"));
    eventually("it runs", || alive(&seconds) == 2);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(job.keeper()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("nothing is left", || alive(&seconds) == 0);
    bench.start(&format!("trap '' TERM; setsid sleep {seconds} & sleep {seconds}"));
    eventually("it runs", || alive(&seconds) == 2);
    drop(bench);
    eventually("nothing is left", || alive(&seconds) == 0);
}

#[test]
fn a_command_that_is_asked_to_end_may_say_a_last_word() {
    let bench = Bench::new();
    let job = bench.start("trap 'echo bye; exit 3' TERM; echo ready; sleep 600 & wait");
    wrote(&job);
    job.end(Ending::Polite, Status::Killed);
    let ran = ran(&job);
    assert_eq!((ran.exit, ran.output.as_str()), (Exit::Code(3), "ready\nbye\n"));
    assert_eq!(job.snapshot().status, Status::Killed);
}

#[test]
fn a_fork_bomb_stops_and_ends() {
    for bench in Bench::for_everybody() {
        // Nobody is to be bombed whom nothing protects.
        assert_eq!(bench.shells.enforced().level, Level::Namespaces);
        let job = bench.start("bomb() { bomb | bomb & }; bomb; sleep 600");
        let text = |job: &Job| String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
        wrote(&job);
        eventually("it is refused", || text(&job).contains("Resource temporarily unavailable"));
        assert!(job.processes().len() <= 400);
        let began = Instant::now();
        job.end(Ending::Immediate, Status::Killed);
        assert!(job.wait(LONG, |now| now.over).over);
        assert!(began.elapsed() < LONG);
        assert_eq!(bench.passes("echo well"), "well\n");
    }
}

#[test]
fn whoever_lists_commands_finds_one_in_a_sandbox_once() {
    let bench = Bench::new();
    let job = bench.start("echo ready; sleep 600");
    wrote(&job);
    let all = toolcrib_exec::all_running_jobs(&[]);
    let found: Vec<_> = all.iter().filter(|kept| kept.id == job.keeper_id()).collect();
    let [kept] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((kept.keeper, kept.script.as_slice()), (job.keeper(), job.script()));
    assert_eq!(kept.directory, bench.path("ws"));
    let ours = kept.processes.iter().any(|process| process.name == "shim");
    assert!(!kept.processes.is_empty() && !ours, "{kept:?}");
    let (told, gone) = kept.end(Ending::Prompt);
    assert!(told >= 1 && gone);
    assert!(job.wait(LONG, |now| now.over).over);
}
