//! Limits on memory, on the size of files and on the size of the session's `/tmp`.

use toolcrib_exec::{Amount, ExceededLimit, MeasuredLimit, Status};

use super::*;

const MIB: u64 = 1 << 20;

/// Allocates and sleeps, in one process or in several.
const HOG: &str = "import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20)) * int(sys.argv[2])
        time.sleep(600)
time.sleep(600)
";

/// A command that takes this much memory in each of some processes, and runs until it is killed.
fn hog(processes: u32, megabytes: u32) -> String {
    format!("/usr/bin/python3 - {processes} {megabytes} <<'END'\n{HOG}END\n")
}

/// The limit for which a command was killed.
fn killed_by(fixture: &Fixture, script: &str) -> ExceededLimit {
    let job = fixture.start(script);
    let now = job.wait(TEST_TIMEOUT, |now| now.all_exited);
    let output = String::from_utf8_lossy(&job.read(0, 1 << 20).1).into_owned();
    assert_eq!(now.status, Status::Killed, "{output}");
    let exceeded = job.exceeded_limit().unwrap();
    assert!(exceeded.used > exceeded.allowed, "{exceeded:?}");
    exceeded
}

#[test]
fn a_command_with_too_much_memory_is_killed() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.sandbox.limits.memory = Amount::Bytes(192 * MIB);
        for script in [hog(1, 256), hog(4, 64)] {
            let exceeded = killed_by(&fixture, &script);
            assert_eq!(exceeded.limit, MeasuredLimit::Memory);
            assert_eq!(exceeded.allowed, 192 * MIB);
        }
        // The session goes on.
        assert_eq!(fixture.run_ok("echo next"), "next\n");
    }
}

/// Files in memory, which belong to no process.
#[test]
fn files_in_shared_memory_count() {
    let mut fixture = Fixture::new();
    fixture.sandbox.limits.memory = Amount::Bytes(192 * MIB);
    let script = "head -c 256M /dev/zero > /dev/shm/file; sleep 600";
    assert_eq!(killed_by(&fixture, script).limit, MeasuredLimit::Memory);
}

/// A page that a process shares with its children counts once.
#[test]
fn shared_memory_counts_once() {
    let mut fixture = Fixture::new();
    fixture.sandbox.limits.memory = Amount::Bytes(256 * MIB);
    let script = "/usr/bin/python3 - <<'END'
import os, time
held = os.urandom(128 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
for _ in range(4):
    os.wait()
print('done')
END
";
    assert_eq!(fixture.run_ok(script), "done\n");
}

#[test]
fn memory_is_limited_without_namespaces() {
    let mut fixture = levels::hobbled(&["namespaces-refused"]);
    fixture.sandbox.limits.memory = Amount::Bytes(192 * MIB);
    assert_eq!(killed_by(&fixture, &hog(4, 64)).limit, MeasuredLimit::Memory);
}

#[test]
fn a_command_that_fills_tmp_is_killed_and_another_one_is_not() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.sandbox.limits.tmp_size = Amount::Bytes(32 * MIB);
        let other = fixture.start("echo started; sleep 600");
        wait_for_output(&other);
        let script = "exec > /tmp/large; head -c 48M /dev/zero; sleep 600";
        let exceeded = killed_by(&fixture, script);
        assert_eq!((exceeded.limit, exceeded.allowed), (MeasuredLimit::TmpSize, 32 * MIB));
        assert!(other.snapshot().status.is_running());
        fs::remove_file(fixture.path("tmp/large")).unwrap();
    }
}

#[test]
fn each_process_has_a_limited_memory_if_that_is_wanted() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.sandbox.limits.process_memory = Amount::Bytes(256 * MIB);
        let script = "/usr/bin/python3 -c 'bytearray(512 << 20)'";
        fixture.assert_refused(script, &["MemoryError"]);
    }
}

#[test]
fn files_have_a_limited_size_if_that_is_wanted() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.sandbox.limits.file_size = Amount::Bytes(Limits::LEAST_FILE_SIZE);
        let result = fixture.run("head -c 20M /dev/zero > large");
        assert_eq!(result.exit, Exit::Code(128 + 25), "{}", result.output);
        fixture.assert_refused("truncate -s 1G sparse", &["File too large", "size limit"]);
        assert_eq!(fs::metadata(fixture.path("ws/large")).unwrap().len(), Limits::LEAST_FILE_SIZE);
        fixture.run_ok("head -c 10M /dev/zero > small; head -c 10M /dev/zero > /tmp/small");
    }
}

/// They reserve terabytes, which a limit on the memory of a process would refuse. Finding leaks needs `ptrace`.
#[test]
fn sanitizers_work_with_the_usual_limits() {
    let fixture = Fixture::new();
    fixture.run_ok(
        "echo 'int main(void) { return 0; }' > a.c
        for one in address thread; do
            cc -fsanitize=$one -o $one a.c && ASAN_OPTIONS=detect_leaks=0 ./$one || exit
        done",
    );
}
