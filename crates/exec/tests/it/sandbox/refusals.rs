//! Denied actions are reported by the action that was tried, not by the error message of a program.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixListener;

use toolcrib_exec::{DeniedAction, MAX_REFUSALS, Refusal, Unwritable};

use super::supervised::RecordingGuard;
use super::*;

/// An address that is reserved for documentation (RFC 5737) and so has no host.
const UNUSED_ADDRESS: &str = "192.0.2.1";

fn refusals_of(fixture: &Fixture, script: &str) -> Vec<Refusal> {
    let job = fixture.start(script);
    wait_for_result(&job);
    job.refusals()
}

fn written(fixture: &Fixture, name: &str, why: Unwritable) -> Refusal {
    Refusal::Write(fs::canonicalize(fixture.top.path()).unwrap().join(name), why)
}

#[test]
fn denied_writes_are_reported_with_path_and_reason() {
    for mut fixture in Fixture::for_each_sandbox() {
        for directory in ["ws/.git/hooks", "ws/vendor"] {
            fs::create_dir_all(fixture.path(directory)).unwrap();
        }
        fs::write(fixture.path("ws/.git/config"), "").unwrap();
        fixture.sandbox.read_only.push(pinned(&fixture.path("ws/vendor")));
        let outside = |name: &str| written(&fixture, name, Unwritable::Outside);
        for (script, refusal) in [
            ("echo x > $T/out/new", outside("out/new")),
            ("echo x 2>/dev/null > ../out/new", outside("out/new")),
            ("cd $T/out; echo x >> canary", outside("out/canary")),
            ("ln -s $T/out/canary l; echo x > l; rm l", outside("out/canary")),
            ("ln -s $T/out d; echo x > d/new; rm d", outside("out/new")),
            ("cp file $T/out/f2", outside("out/f2")),
            ("touch $T/out/new", outside("out/new")),
            (
                "/usr/bin/python3 -c 'import os; d = os.open(os.environ[\"T\"], os.O_RDONLY); os.open(\"out/new\", os.O_CREAT | os.O_WRONLY, dir_fd=d)'",
                outside("out/new"),
            ),
            (
                "f=.git/hooks/pre-commit; echo x > $f",
                written(&fixture, "ws/.git/hooks/pre-commit", Unwritable::Protected),
            ),
            ("echo x >> .git/config", written(&fixture, "ws/.git/config", Unwritable::Protected)),
            ("echo x > vendor/new", written(&fixture, "ws/vendor/new", Unwritable::ReadOnly)),
            ("echo x > ~/.ssh/key", written(&fixture, "home/.ssh/key", Unwritable::Hidden)),
        ] {
            assert!(
                refusals_of(&fixture, script).contains(&refusal),
                "{script}: {:?}",
                refusals_of(&fixture, script)
            );
        }
        fixture.assert_canary_unchanged();
    }
}

#[test]
fn denied_creations_removals_and_renames_are_reported() {
    for mut fixture in Fixture::for_each_sandbox() {
        for directory in ["ws/.git/hooks", "ws/vendor", "ws/a", "out/d"] {
            fs::create_dir_all(fixture.path(directory)).unwrap();
        }
        for file in ["ws/.git/config", "ws/.git/x", "ws/vendor/f", "ws/b"] {
            fs::write(fixture.path(file), "").unwrap();
        }
        if fixture.run_ok("id -u") != "0\n" {
            fixture.chown_all(NOBODY);
        }
        fixture.sandbox.read_only.push(pinned(&fixture.path("ws/vendor")));
        let top = fs::canonicalize(fixture.top.path()).unwrap();
        let change = |action, name: &str, why| Refusal::Change(action, top.join(name), why);
        use Unwritable::{Outside, ParentOfProtected, Protected, ReadOnly};
        for (script, refusals) in [
            ("mkdir $T/out/new", vec![change(DeniedAction::Make, "out/new", Outside)]),
            ("mkdir -p $T/out/new/er", vec![change(DeniedAction::Make, "out/new", Outside)]),
            ("ln -s x $T/out/link", vec![change(DeniedAction::Make, "out/link", Outside)]),
            ("mkfifo vendor/fifo", vec![change(DeniedAction::Make, "ws/vendor/fifo", ReadOnly)]),
            ("rm -f $T/out/canary", vec![change(DeniedAction::Remove, "out/canary", Outside)]),
            ("rmdir $T/out/d", vec![change(DeniedAction::Remove, "out/d", Outside)]),
            ("rm -f vendor/f", vec![change(DeniedAction::Remove, "ws/vendor/f", ReadOnly)]),
            ("chmod 700 $T/out/canary", vec![change(DeniedAction::Change, "out/canary", Outside)]),
            (
                "f=.git/config; chmod 700 $f",
                vec![change(DeniedAction::Change, "ws/.git/config", Protected)],
            ),
            (
                "f=.git/config; rm -f $f",
                vec![change(DeniedAction::Remove, "ws/.git/config", Protected)],
            ),
            ("mv .git g2", vec![change(DeniedAction::Rename, "ws/.git", ParentOfProtected)]),
            (
                "mv .git/x .git/config",
                vec![change(DeniedAction::Rename, "ws/.git/config", Protected)],
            ),
            (
                "mv $T/out/canary $T/out/other",
                vec![change(DeniedAction::Rename, "out/other", Outside)],
            ),
            // A rename between mounts is a copy and a removal.
            ("mv $T/out/canary .", vec![change(DeniedAction::Remove, "out/canary", Outside)]),
        ] {
            let job = fixture.start(script);
            wait_for_result(&job);
            assert_eq!(job.refusals(), refusals, "{script}");
        }
        for script in [
            "mkdir -p a/b a/b; mkdir a; mv a c; mv c a; ln -s x l; rm l; rmdir a/b; chmod 600 b",
            "mkdir -p $T/out; mkdir $T/out/d; rm -f $T/out/nothing; mv nothing else; rmdir file",
            "mkdir nowhere/a; rmdir a/nothing; chmod 600 nothing; mv file file; mkdir /tmp/d; rmdir /tmp/d",
        ] {
            let job = fixture.start(script);
            wait_for_result(&job);
            assert_eq!(job.refusals(), [], "{script}");
        }
        let names = fs::read_dir(fixture.path("out")).unwrap().count();
        assert_eq!((names, read(&fixture.path("out/canary"))), (2, "canary".to_owned()));
    }
}

#[test]
fn ordinary_successes_and_failures_are_not_reported() {
    for fixture in Fixture::for_each_sandbox() {
        for script in [
            "cat $T/out/canary; echo x > new; mkdir -p a/b a/b; mv new a/; echo y > /tmp/y; true > /dev/null",
            "echo x > nowhere/new; mkdir nowhere/a/b; mv nothing else; echo x > /dev/stdout",
            "cd $T/out && mkdir -p $T/out && test ! -e new",
            "set -o noclobber; echo x > file; mkdir a; mkdir a",
            "echo x > /dev/shm/x; echo y > /run/y",
            "echo x > /proc/self/nothing; cat /etc/nothing",
        ] {
            assert_eq!(refusals_of(&fixture, script), [], "{script}");
        }
    }
}

#[test]
fn unreachable_addresses_are_reported() {
    for fixture in Fixture::for_each_sandbox() {
        let address = |port: u16| SocketAddr::new(UNUSED_ADDRESS.parse().unwrap(), port);
        let connect = format!("exec 3<> /dev/tcp/{UNUSED_ADDRESS}/443");
        assert_eq!(refusals_of(&fixture, &connect), [Refusal::Connect(address(443))]);
        let send = format!(
            "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"{UNUSED_ADDRESS}\", 9))'"
        );
        assert_eq!(refusals_of(&fixture, &send), [Refusal::Connect(address(9))]);
        let names = format!("exec 3<> /dev/udp/{UNUSED_ADDRESS}/53");
        assert_eq!(refusals_of(&fixture, &names), [Refusal::LookUp(address(53))]);
        // No server listens there, which the command can see for itself.
        assert_eq!(
            refusals_of(&fixture, "exec 3<> /dev/tcp/127.0.0.1/9; exec 3<> /dev/udp/::1/9"),
            []
        );
    }
}

#[test]
fn nothing_is_reported_while_the_network_is_on() {
    let mut fixture = Fixture::new();
    fixture.sandbox.network = Network::All;
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    assert_eq!(refusals_of(&fixture, &format!("echo x > /dev/udp/127.0.0.1/{port}")), []);
}

#[test]
fn denied_unix_sockets_are_reported_by_path() {
    for fixture in Fixture::for_each_sandbox() {
        let _listener = UnixListener::bind(fixture.path("out/s.sock")).unwrap();
        let connect = |path: &str| {
            format!(
                "/usr/bin/python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"T\"] + \"/{path}\")'"
            )
        };
        let socket = Refusal::Socket(fixture.path("out/s.sock"));
        assert_eq!(refusals_of(&fixture, &connect("out/s.sock")), [socket]);
        assert_eq!(refusals_of(&fixture, &connect("out/nothing")), []);
        fs::remove_file(fixture.path("out/s.sock")).unwrap();
    }
}

#[test]
fn the_number_of_reported_denials_is_limited() {
    let fixture = Fixture::new();
    let script = "for i in $(seq 300); do echo x > $T/out/$i; echo x > $T/out/$i; done 2>/dev/null; echo done";
    let job = fixture.start(script);
    assert_eq!(wait_for_result(&job).output, "done\n");
    assert_eq!(job.refusals().len(), MAX_REFUSALS + 1);
}

#[test]
fn supervised_calls_survive_load_signals_and_threads() {
    for fixture in Fixture::for_each_user() {
        // Many calls at once, with signals in between and children that are waited for. Calls are restarted
        // after a signal, as in most programs: otherwise a signal could interrupt a call that was not
        // received yet.
        let lines = "
import os, signal, threading
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work(n):
    for i in range(500):
        with open(f'f{n}-{i % 7}', 'w') as f: f.write('x')
        os.mkdir(f'd{n}'); os.rename(f'f{n}-{i % 7}', f'g{n}'); os.rmdir(f'd{n}')
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
for i in range(20):
    pid = os.fork()
    if not pid: open('child', 'w').close(); os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
signal.setitimer(signal.ITIMER_REAL, 0)
print('fine', ticks > 0)
";
        let script = format!("/usr/bin/python3 - <<'END'{lines}END");
        assert_eq!(fixture.run_ok(&script), "fine True\n");
        let result = fixture.run_with_guard(&script, &Arc::new(RecordingGuard::default()));
        assert_eq!(result.output, "fine True\n");
    }
}

#[test]
fn a_command_with_pending_calls_dies_with_its_shim() {
    let fixture = Fixture::new();
    let seconds = format!("{}88", 500_000 + std::process::id() % 10_000);
    let job = fixture.start(&format!("sleep {seconds} & while true; do echo x > new; done"));
    eventually("it runs", || alive(&seconds) == 1);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(job.shim_pid()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("nothing is left", || alive(&seconds) == 0);
    assert!(job.wait(TEST_TIMEOUT, |now| now.all_exited).all_exited);
}
