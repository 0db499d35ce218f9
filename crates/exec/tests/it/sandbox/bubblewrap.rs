//! The system's bubblewrap, where only that may make namespaces. The other tests also run on these systems;
//! the tests here check the differences.

use toolcrib_exec::{Ending, Status};

use super::levels::hobbled;
use super::*;

/// Sessions on such systems, as the current user and, if that is root, as another user: where bubblewrap is
/// trusted, where it is setuid, and where it needs nothing because root runs it.
pub(super) fn benches() -> Vec<Bench> {
    if !Path::new("/usr/bin/bwrap").exists() {
        eprintln!("not tried: bubblewrap is not installed");
        return Vec::new();
    }
    let mut benches = vec![hobbled(&["own-namespaces-refused"])];
    if rustix::process::geteuid().is_root() {
        benches.push(Bench::as_nobody(&[], &["own-namespaces-refused"]));
        benches.push(Bench::as_nobody(&["only-setuid-bubblewrap"], &[]));
    }
    benches
}

#[test]
fn bubblewrap_is_used_where_only_it_can_make_namespaces() {
    for bench in benches() {
        let enforced = bench.shells.sandbox_support();
        assert_eq!(enforced.level, Level::Bubblewrap, "{enforced:#?}");
        let [reason] = enforced.reasons.as_slice() else { panic!("{enforced:#?}") };
        assert!(reason.starts_with("Level 4: could not make namespaces of users"), "{reason}");
    }
}

#[test]
fn missing_protections_of_bubblewrap_are_reported() {
    for bench in benches() {
        let missing = bench.shells.sandbox_support().missing.join("\n");
        assert!(missing.contains("a loopback of its own"), "{missing}");
        let server = bench.start("exec /usr/bin/python3 -u -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 8124)); print(1)\ns.accept()'");
        wrote(&server);
        bench.refused("cat < /dev/tcp/127.0.0.1/8124", &["Connection refused"]);
        bench.passes("/usr/bin/python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())'");
    }
}

#[test]
fn a_fork_bomb_of_an_unprivileged_user_is_stopped() {
    for bench in benches() {
        // Never start a fork bomb without a limit.
        assert_eq!(bench.shells.sandbox_support().level, Level::Bubblewrap);
        if bench.passes("id -u") == "0\n" {
            continue;
        }
        let job = bench.start("bomb() { bomb | bomb & }; bomb; sleep 600");
        let text = |job: &Job| String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
        eventually("it is refused", || text(&job).contains("Resource temporarily unavailable"));
        job.end(Ending::Immediate, Status::Killed);
        assert!(job.wait(LONG, |now| now.all_exited).all_exited);
        assert_eq!(bench.passes("echo well"), "well\n");
    }
}

#[test]
fn nofile_limit_is_kept_and_many_paths_can_be_hidden() {
    for mut bench in benches() {
        let given = bench.passes("ulimit -Sn");
        for number in 0..700 {
            let name = bench.path(&format!("ws/d{number}"));
            fs::create_dir(&name).unwrap();
            bench.sandbox.hidden.push(name);
        }
        assert_eq!(bench.passes("ulimit -Sn"), given);
        bench.refused("echo x > d699/new", &["Read-only file system", "Permission denied"]);
    }
}

#[test]
fn errors_of_bubblewrap_are_repeated() {
    // A bubblewrap that could make user namespaces, but is not allowed to.
    if !Path::new("/usr/bin/bwrap").exists() || !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::as_nobody(&[], &["namespaces-refused"]);
    let reasons = bench.shells.sandbox_support().reasons.join("\n");
    assert!(reasons.contains("Level 3: could not start bubblewrap: bwrap: "), "{reasons}");
}

#[test]
fn intermediate_processes_are_not_listed() {
    for bench in benches() {
        let job = bench.start("echo ready; sleep 600");
        wrote(&job);
        let names = |processes: Vec<toolcrib_exec::Process>| {
            let mut names: Vec<String> = processes.into_iter().map(|one| one.name).collect();
            names.sort();
            names
        };
        eventually("nothing of ours is listed", || names(job.processes()) == ["bash", "sleep"]);
        job.end(Ending::Polite, Status::Killed);
        let over = job.wait(LONG, |now| now.all_exited);
        assert_eq!((over.status, over.killed), (Status::Killed, 2));
    }
}
