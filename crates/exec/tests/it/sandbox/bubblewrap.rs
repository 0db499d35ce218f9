//! The system's bubblewrap, where only that may make namespaces. What holds there is among the other tests,
//! which take these systems with the rest; here is what is different.

use toolcrib_exec::{Ending, Status};

use super::levels::hobbled;
use super::*;

/// Sessions on such systems: as whoever runs this and, if that is root, as somebody who is not; where bubblewrap
/// is trusted, where it has rights of its own, and where root needs no more.
pub(super) fn benches() -> Vec<Bench> {
    if !Path::new("/usr/bin/bwrap").exists() {
        eprintln!("not tried: bubblewrap is not installed");
        return Vec::new();
    }
    let mut benches = vec![hobbled(&["own-namespaces-refused"])];
    if rustix::process::geteuid().is_root() {
        benches.push(Bench::of_nobody(&[], &["own-namespaces-refused"]));
        benches.push(Bench::of_nobody(&["only-setuid-bubblewrap"], &[]));
    }
    benches
}

#[test]
fn where_only_bubblewrap_makes_namespaces_it_makes_ours() {
    for bench in benches() {
        let enforced = bench.shells.enforced();
        assert_eq!(enforced.level, Level::Bubblewrap, "{enforced:#?}");
        let [reason] = enforced.reasons.as_slice() else { panic!("{enforced:#?}") };
        assert!(reason.starts_with("Level 4: could not make namespaces of users"), "{reason}");
    }
}

#[test]
fn what_it_lacks_is_said_and_so() {
    for bench in benches() {
        let missing = bench.shells.enforced().missing.join("\n");
        assert!(missing.contains("a loopback of its own"), "{missing}");
        let server = bench.start("exec /usr/bin/python3 -u -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 8124)); print(1)\ns.accept()'");
        wrote(&server);
        bench.refused("cat < /dev/tcp/127.0.0.1/8124", &["Connection refused"]);
        bench.passes("/usr/bin/python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())'");
    }
}

#[test]
fn for_whoever_is_not_root_a_fork_bomb_stops() {
    for bench in benches() {
        // Nobody is to be bombed whom nothing protects.
        assert_eq!(bench.shells.enforced().level, Level::Bubblewrap);
        if bench.passes("id -u") == "0\n" {
            continue;
        }
        let job = bench.start("bomb() { bomb | bomb & }; bomb; sleep 600");
        let text = |job: &Job| String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
        eventually("it is refused", || text(&job).contains("Resource temporarily unavailable"));
        job.end(Ending::Immediate, Status::Killed);
        assert!(job.wait(LONG, |now| now.over).over);
        assert_eq!(bench.passes("echo well"), "well\n");
    }
}

#[test]
fn a_command_has_as_many_handles_as_it_is_given_and_many_names_can_be_hidden() {
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
fn what_bubblewrap_says_is_repeated() {
    // One that knows how to make namespaces of users, and is not allowed to.
    if !Path::new("/usr/bin/bwrap").exists() || !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::of_nobody(&[], &["namespaces-refused"]);
    let reasons = bench.shells.enforced().reasons.join("\n");
    assert!(reasons.contains("Level 3: could not start bubblewrap: bwrap: "), "{reasons}");
}

#[test]
fn whoever_lists_commands_finds_it_once_without_what_is_in_between() {
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
        let over = job.wait(LONG, |now| now.over);
        assert_eq!((over.status, over.killed), (Status::Killed, 2));
    }
}
