//! The system's bubblewrap, where only that may make namespaces. The other tests also run on these systems;
//! the tests here check the differences.

use toolcrib_exec::{Ending, Status};

use super::levels::hobbled;
use super::*;

/// Sessions on such systems, as the current user and, if that is root, as another user: where bubblewrap is
/// trusted, where it is setuid, and where it needs nothing because root runs it.
pub(super) fn fixtures() -> Vec<Fixture> {
    if !Path::new("/usr/bin/bwrap").exists() {
        eprintln!("not tried: bubblewrap is not installed");
        return Vec::new();
    }
    let mut fixtures = vec![hobbled(&["own-namespaces-refused"])];
    if rustix::process::geteuid().is_root() {
        fixtures.push(Fixture::as_nobody(&[], &["own-namespaces-refused"]));
        fixtures.push(Fixture::as_nobody(&["only-setuid-bubblewrap"], &[]));
    }
    fixtures
}

#[test]
fn bubblewrap_is_used_where_only_it_can_make_namespaces() {
    for fixture in fixtures() {
        let support = fixture.runner.sandbox_support();
        assert_eq!(support.level, Level::Bubblewrap, "{support:#?}");
        let [reason] = support.reasons.as_slice() else { panic!("{support:#?}") };
        assert!(
            reason.starts_with("Level 4: could not create user and network namespaces"),
            "{reason}"
        );
    }
}

#[test]
fn missing_protections_of_bubblewrap_are_reported() {
    for fixture in fixtures() {
        let missing = fixture.runner.sandbox_support().missing.join("\n");
        assert!(missing.contains("its own loopback"), "{missing}");
        let server = fixture.start("exec /usr/bin/python3 -u -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 8124)); print(1)\ns.accept()'");
        wait_for_output(&server);
        fixture.assert_refused("cat < /dev/tcp/127.0.0.1/8124", &["Connection refused"]);
        fixture.run_ok("/usr/bin/python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())'");
    }
}

#[test]
fn a_fork_bomb_of_an_unprivileged_user_is_stopped() {
    for fixture in fixtures() {
        // Never start a fork bomb without a limit.
        assert_eq!(fixture.runner.sandbox_support().level, Level::Bubblewrap);
        if fixture.run_ok("id -u") == "0\n" {
            continue;
        }
        let job = fixture.start("bomb() { bomb | bomb & }; bomb; sleep 600");
        let text = |job: &Job| String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
        eventually("it is refused", || text(&job).contains("Resource temporarily unavailable"));
        job.end(Ending::Immediate, Status::Killed);
        assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited);
        assert_eq!(fixture.run_ok("echo well"), "well\n");
    }
}

#[test]
fn nofile_limit_is_kept_and_many_paths_can_be_hidden() {
    for mut fixture in fixtures() {
        let given = fixture.run_ok("ulimit -Sn");
        let names: Vec<_> = (0..700).map(|number| fixture.path(&format!("ws/d{number}"))).collect();
        names.iter().for_each(|name| fs::create_dir(name).unwrap());
        fixture.sandbox.hidden.add(&names);
        assert_eq!(fixture.run_ok("ulimit -Sn"), given);
        fixture
            .assert_refused("echo x > d699/new", &["Read-only file system", "Permission denied"]);
    }
}

#[test]
fn errors_of_bubblewrap_are_repeated() {
    // A bubblewrap that could make user namespaces, but is not allowed to.
    if !Path::new("/usr/bin/bwrap").exists() || !rustix::process::geteuid().is_root() {
        return;
    }
    let fixture = Fixture::as_nobody(&[], &["namespaces-refused"]);
    let reasons = fixture.runner.sandbox_support().reasons.join("\n");
    assert!(reasons.contains("Level 3: could not start bubblewrap: bwrap: "), "{reasons}");
}

#[test]
fn intermediate_processes_are_not_listed() {
    for fixture in fixtures() {
        let job = fixture.start("echo ready; sleep 600");
        wait_for_output(&job);
        let names = |processes: Vec<toolcrib_exec::Process>| {
            let mut names: Vec<String> = processes.into_iter().map(|one| one.name).collect();
            names.sort();
            names
        };
        eventually("nothing of ours is listed", || names(job.processes()) == ["bash", "sleep"]);
        job.end(Ending::Polite, Status::Killed);
        let over = job.wait(TEST_TIMEOUT, |now| now.all_exited);
        assert_eq!((over.status, over.killed), (Status::Killed, 2));
    }
}
