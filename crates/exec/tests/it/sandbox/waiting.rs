//! Calls that wait for another process: no other call waits for them, and they end with their caller.

use std::time::{Duration, Instant};

use super::*;

fn python(lines: &str) -> String {
    format!("/usr/bin/python3 - <<'END'\n{lines}\nEND")
}

/// More callers than the limit of blocked calls, each killed while it waits.
#[test]
fn killed_callers_free_their_slots() {
    let fixture = Fixture::new();
    let lines = r#"
import os, signal, time
os.mkfifo("fifo"); os.mkfifo("later")
def state(child): return open(f"/proc/{child}/stat").read().rsplit(")")[1].split()[0]
# Starts a process that waits for a reader. Answers nothing if there was no place to wait in.
def waiting(name):
    child = os.fork()
    if child == 0:
        try: os.write(os.open(name, os.O_WRONLY), b"through")
        except BlockingIOError: pass
        os._exit(0)
    while state(child) not in "SZ": time.sleep(0.001)
    # Calls are taken in their order: after this one, the other has been.
    os.chmod(name, 0o600)
    while state(child) not in "SZ": time.sleep(0.001)
    if state(child) == "S": return child
    os.waitpid(child, 0)
for _ in range(150):
    child = waiting("fifo")
    if child: os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
while not waiting("later"): time.sleep(0.01)
print(open("later").read())
# No ghost of a killed writer lets a reader in.
reader = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
print(os.read(reader, 1))
"#;
    assert_eq!(fixture.run_ok(&python(lines)), "through\nb''\n");
}

/// Each side of a FIFO opens as soon as the other does, and not only when something is written.
#[test]
fn both_sides_of_a_fifo_open_together() {
    for supervise_reads in [false, true] {
        let mut fixture = Fixture::new();
        fixture.sandbox.supervise_reads = supervise_reads;
        let script = "mkfifo a b; (exec 3> a; read go < b; echo $go >&3) & \
                      exec 4< a; echo through > b; cat <&4";
        assert_eq!(fixture.run_ok(script), "through\n");
    }
}

/// The holder of a lease releases it only after another call was performed.
#[test]
fn a_lease_blocks_no_other_call() {
    for (lease, mode, supervise_reads) in
        [("RD", "w", false), ("WR", "w", false), ("WR", "r", true)]
    {
        let mut fixture = Fixture::new();
        fixture.sandbox.supervise_reads = supervise_reads;
        let lines = r#"
import fcntl, os, signal, sys, threading, time
signal.signal(signal.SIGIO, lambda *_: asked.append(1))
asked = []
os.close(os.open("leased", os.O_CREAT | os.O_WRONLY, 0o600))
held = os.open("leased", os.O_RDONLY)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_KINDLCK)
child = os.fork()
if child == 0:
    open("leased", "MODE").close()
    print("opened", flush=True)
    os._exit(0)
while not asked:
    time.sleep(0.001)
open("other", "w").close()
print("other is there", flush=True)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
os.waitpid(child, 0)
"#;
        let lines = lines.replace("KIND", lease).replace("MODE", mode);
        assert_eq!(fixture.run_ok(&python(&lines)), "other is there\nopened\n", "{lease} {mode}");
    }
}

/// A server that accepts no connection blocks no other call, and no killed caller.
#[test]
fn a_blocked_connect_ends_with_its_caller() {
    let fixture = Fixture::new();
    let lines = r#"
import os, signal, socket, time
server = socket.socket(socket.AF_UNIX); server.bind("server"); server.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect("server")
def waiting():
    child = os.fork()
    if child == 0:
        try:
            one = socket.socket(socket.AF_UNIX); one.connect("server")
            one.send(b"x")
        except BlockingIOError: pass
        os._exit(0)
    while open(f"/proc/{child}/stat").read().rsplit(")")[1].split()[0] not in "SZ":
        time.sleep(0.001)
    return child
for _ in range(100):
    child = waiting()
    os.chmod("server", 0o700)
    os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
open("other", "w").close()
timed = socket.socket(socket.AF_UNIX); timed.settimeout(None)
import struct
timed.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200_000))
while True:
    try: timed.connect("server"); print("connected")
    except BlockingIOError: print("timed out"); break
limit = timed.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)
print(struct.unpack("ll", limit)[0])
server.accept()
last = socket.socket(socket.AF_UNIX); last.connect("server"); print("through")
"#;
    assert_eq!(fixture.run_ok(&python(lines)), "timed out\n0\nthrough\n");
}

/// A command switches its sockets to blocking while they are connected to a server that accepts no connection.
/// The calls of other commands are still performed.
#[test]
fn a_socket_that_becomes_blocking_blocks_no_other_command() {
    let fixture = Fixture::new();
    let attack = include_str!("blocking_sockets.py");
    let attacker = fixture.start(&format!("exec /usr/bin/python3 - server <<'END'\n{attack}\nEND"));
    wait_for_output(&attacker);
    for _ in 0..20 {
        assert_eq!(fixture.run_ok("echo x > other; cat other; rm other; sleep 0.05"), "x\n");
    }
    attacker.end(toolcrib_exec::Ending::Immediate, toolcrib_exec::Status::Killed);
}

/// The number of threads of this process that wait for calls of commands.
fn waiting_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(name).filter(|name| name.trim() == "toolcrib-wait").count()
}

/// A server of another command accepts no connection, so the kernel would repeat the attempt for minutes.
#[test]
fn a_blocked_connect_ends_with_its_command() {
    let fixture = Fixture::new();
    let serve = r#"
import socket, time
server = socket.socket(); server.bind(("127.0.0.1", 7777)); server.listen(0)
held = [socket.socket() for _ in range(4)]
for one in held: one.setblocking(False); one.connect_ex(("127.0.0.1", 7777))
print("serves", flush=True); time.sleep(600)
"#;
    let server = fixture.start(&python(serve));
    wait_for_output(&server);
    let before = waiting_threads();
    let attack = include_str!("blocking_sockets.py");
    let attack = attack.split("# Both are ready").next().unwrap();
    let connect = "
for _ in range(20):
    if os.fork() == 0: connect_for_ever(socket.AF_INET, ('127.0.0.1', 7777))
print('attacks', flush=True)
os.wait()";
    // Not every attack hits the moment in which it blocks a thread.
    for _ in 0..4 {
        let client = fixture.start(&python(&format!("{attack}{connect}")));
        wait_for_output(&client);
        eventually("a thread waits", || waiting_threads() > before);
        std::thread::sleep(Duration::from_secs(1));
        client.end(toolcrib_exec::Ending::Immediate, toolcrib_exec::Status::Killed);
        client.wait(TEST_TIMEOUT, |now| now.all_exited);
        // Less than the kernel repeats the attempt for, and far more than the thread needs.
        let until = Instant::now() + Duration::from_secs(90);
        while waiting_threads() > before {
            assert!(Instant::now() < until, "a thread still waits");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert!(server.snapshot().status.is_running());
}
