//! Systems with fewer features: the level is detected, reported, and not undercut.

use toolcrib_exec::{JobError, Refusal, Unwritable, try_to_escape};

use super::*;

/// A session on a system with fewer features.
pub(super) fn hobbled(hows: &[&str]) -> Fixture {
    Fixture::with(hobbled_launcher(hows))
}

pub(super) fn hobbled_launcher(hows: &[&str]) -> Launcher {
    let mut arguments: Vec<_> = hows.iter().map(|how| how.into()).collect();
    arguments.push(example_path("shim").into());
    Launcher { program: example_path("hobbled"), arguments, workspace: None }
}

fn support_of(fixture: &Fixture) -> (Level, String, String) {
    let support = fixture.runner.sandbox_support();
    (support.level, support.missing.join("\n"), support.reasons.join("\n"))
}

/// Sessions on systems where no program can make namespaces.
pub(super) fn hobbled_to_landlock_only() -> Vec<Fixture> {
    let mut fixtures = vec![hobbled(&["namespaces-refused"])];
    if rustix::process::geteuid().is_root() {
        // Root needs no user namespace to make others, so bubblewrap would make them.
        fixtures.push(Fixture::as_nobody(&[], &["namespaces-used-up"]));
    } else {
        fixtures.push(hobbled(&["namespaces-used-up"]));
    }
    fixtures
}

#[test]
fn without_namespaces_landlock_and_the_filter_confine() {
    for mut fixture in hobbled_to_landlock_only() {
        fixture.guard = Arc::new(AllowAll);
        let (level, missing, reasons) = support_of(&fixture);
        assert_eq!(level, Level::Landlock, "{reasons}");
        assert!(missing.contains("change the owner and the timestamps"), "{missing}");
        assert!(
            reasons.starts_with("Level 4: could not create user and network namespaces"),
            "{reasons}"
        );

        for script in [
            "echo x > $T/out/canary",
            "echo x > $T/out/new",
            "truncate -s 0 $T/out/canary",
            "rm -f $T/out/canary",
            "mv $T/out/canary $T/ws/",
            "mkdir $T/out/d",
            "ln $T/out/canary link",
            "echo x > /tmp/new-by-a-test",
            "cat ~/.ssh/id_rsa",
            "cat ~/.netrc",
            "cat /proc/$PPID/../$PPID/mem | head -c 1; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)",
            "mount -t tmpfs none /mnt",
            "unshare -Ur true",
            "cat < /dev/tcp/127.0.0.1/1",
        ] {
            let words = [
                "Permission denied",
                "Operation not permitted",
                "cross-device",
                "must be superuser",
            ];
            fixture.assert_refused(script, &words);
        }
        for family in ["AF_INET", "AF_UNIX", "AF_VSOCK"] {
            let lines = format!("import socket\nsocket.socket(socket.{family})");
            fixture.assert_python_refused(&lines, &["Operation not permitted"]);
        }
        fixture.assert_canary_unchanged();

        fixture.run_ok(
            "echo x > new; mkdir -p a/b; mv new a/b/; echo y > /dev/null; cat /etc/hostname",
        );
        fixture.run_ok("export TMPDIR=$T/tmp; f=$(mktemp); cat <<< x > $f; ls / $T > /dev/null");
        fixture.run_ok("git init -q . && git add file && git commit -q -m one");
        let status = fixture.run_ok("grep -E '^(CapEff|NoNewPrivs)' /proc/self/status");
        assert_eq!(status, "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n");
        assert_eq!(
            fixture.start("exit 3").wait(TEST_TIMEOUT, |now| now.all_exited).ended.unwrap().exit,
            Exit::Code(3)
        );
    }
}

#[test]
fn denials_by_landlock_and_the_filter_are_reported() {
    let fixture = hobbled(&["namespaces-refused"]);
    let refusals_of = |script: &str| {
        let job = fixture.start(script);
        wait_for_result(&job);
        job.refusals()
    };
    let out = fs::canonicalize(fixture.path("out")).unwrap();
    let write = |name: &str| vec![Refusal::Write(out.join(name), Unwritable::Outside)];
    assert_eq!(refusals_of("echo x > $T/out/new"), write("new"));
    assert_eq!(refusals_of("echo x > $T/out/canary"), write("canary"));
    assert_eq!(refusals_of("exec 3<> /dev/tcp/127.0.0.1/1"), [Refusal::AnySocket]);
    assert_eq!(
        refusals_of("echo x > new; echo y > $T/tmp/y; echo z > /dev/null; mkdir a; mv a b"),
        []
    );
    fixture.assert_python_refused("import socket\nsocket.socket()", &["Operation not permitted"]);
    fixture.assert_canary_unchanged();
}

#[test]
fn gaps_of_landlock_are_listed_as_missing() {
    let fixture = hobbled(&["namespaces-refused"]);
    fixture.run_ok("touch -d 2001-01-01 $T/out/canary");
    assert_eq!(fixture.run_ok("ls -A ~/.ssh"), "id_rsa\n");
    let (_, missing, _) = support_of(&fixture);
    assert!(
        missing.contains("timestamps") && missing.contains("list hidden directories"),
        "{missing}"
    );
}

#[test]
fn escape_attempts_report_what_is_blocked() {
    let got_out = |fixture: &Fixture| -> Vec<&str> {
        let attempts =
            try_to_escape(&fixture.jobs, &fixture.sandbox, &fixture.command("")).unwrap();
        assert!(attempts.len() >= 20, "{attempts:#?}");
        attempts
            .into_iter()
            .filter(|attempt| !attempt.blocked)
            .map(|attempt| attempt.description)
            .collect()
    };
    for fixture in Fixture::for_each_sandbox() {
        assert_eq!(got_out(&fixture), Vec::<&str>::new());
    }
    let open = got_out(&hobbled(&["namespaces-refused"]));
    assert!(!open.contains(&"change the mode of the home directory"), "{open:?}");
    assert!(!open.contains(&"create a file in the home directory"), "{open:?}");
    assert!(!open.contains(&"send Toolcrib a signal"), "{open:?}");
}

#[test]
fn an_older_landlock_enforces_what_it_knows_and_gaps_are_listed() {
    for version in 1..=6 {
        let shim = hobbled_launcher(&["namespaces-refused"]);
        let fixture = Fixture::with_max_landlock(version, shim);
        let (level, missing, reasons) = support_of(&fixture);
        assert_eq!(level, Level::Landlock, "{version}: {reasons}");
        for script in [
            "echo x > $T/out/new",
            "rm $T/out/canary",
            "cat ~/.ssh/id_rsa",
            "echo x >> $T/out/canary",
        ] {
            fixture.assert_refused(script, &["Permission denied"]);
        }
        fixture.run_ok("echo x > new; mkdir a; mv new a/; test -e a/new");
        let own = std::process::id();
        let signals = fixture.run(&format!("kill -0 {own}")).exit == Exit::Code(0);
        assert_eq!(signals, missing.contains("can send signals"), "{version}: {missing}");
        assert_eq!(signals, version < 6, "{version}");
        fixture.assert_canary_unchanged();
        let truncate = "import os; os.truncate(os.environ['T'] + '/out/canary', 3)";
        let script = format!("/usr/bin/python3 -c \"{truncate}\"");
        fixture.assert_refused(&script, &["Permission denied"]);
    }
    // As the second barrier, an old version is enough.
    let shim = Launcher { program: example_path("shim"), arguments: Vec::new(), workspace: None };
    let fixture = Fixture::with_max_landlock(1, shim);
    fixture.assert_refused(
        "truncate -s 0 $T/out/canary",
        &["Read-only file system", "Permission denied"],
    );
    fixture.run_ok("mkdir a b; echo x > a/f; mv a/f b/");
}

#[test]
fn without_landlock_the_filter_remains() {
    let fixture = hobbled(&["namespaces-refused", "no-landlock"]);
    let (level, missing, reasons) = support_of(&fixture);
    assert_eq!(level, Level::Seccomp, "{reasons}");
    assert!(missing.contains("can read and write files outside"), "{missing}");
    assert!(reasons.contains("Level 2: could not create Landlock rules"), "{reasons}");
    fixture.assert_refused("unshare -Ur true", &["Operation not permitted"]);
    fixture.assert_refused("cat < /dev/tcp/127.0.0.1/1", &["Operation not permitted"]);
    fixture.run_ok("echo x > $T/out/new");
}

#[test]
fn without_landlock_namespaces_are_enough() {
    let fixture = hobbled(&["no-landlock"]);
    assert_eq!(fixture.runner.sandbox_support().level, Level::Namespaces);
    fixture.assert_refused("echo x > $T/out/canary", &["Read-only file system"]);
    fixture.run_ok("echo x > new");
    fixture.assert_canary_unchanged();
}

#[test]
fn without_any_confinement_nothing_is_started() {
    let fixture = hobbled(&["namespaces-refused", "no-landlock", "no-filters"]);
    let (level, missing, reasons) = support_of(&fixture);
    assert_eq!(level, Level::Nothing, "{reasons}");
    assert_eq!(reasons.lines().count(), 4, "{reasons}");
    assert!(missing.contains("System calls are not filtered"), "{missing}");
    let refused = fixture.try_to_start("true");
    assert_eq!(refused.unwrap_err(), JobError::NotConfinable);
}

/// Another program of the same user, with a terminal and a pipe.
const HOLDER: &str = r#"
import os, pty, select, sys
master, slave = pty.openpty()
reader, writer = os.pipe()
os.set_blocking(reader, False)
print(os.getpid(), os.ttyname(slave), reader, writer, slave, flush=True)
sys.stdin.read()
readable = [end for end in (master, reader) if select.select([end], [], [], 0)[0]]
print(len(readable), flush=True)
"#;

#[test]
fn without_namespaces_pipes_terminals_and_disks_of_others_are_out_of_reach() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};
    let fixture = hobbled(&["namespaces-refused"]);
    let mut holder = Command::new("/usr/bin/python3")
        .args(["-c", HOLDER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[process, terminal, reader, writer, slave] = &words[..] else { panic!("{line}") };
    let fds = format!("/proc/{process}/fd");
    let tasks = format!("/proc/{process}/task/{process}/fd");
    for script in [
        format!("echo x > {terminal}"),
        format!("echo x 1<> {terminal}"),
        format!("head -c 1 < {terminal}"),
        format!("echo x > {fds}/{writer}"),
        format!("echo x > {tasks}/{writer}"),
        format!("echo x 1<> {fds}/{reader}"),
        format!("echo x > {fds}/{slave}"),
        format!("head -c 1 < {fds}/{slave}"),
        format!("head -c 1 < {fds}/{reader}"),
        format!("ln -s {fds}/{writer} link; echo x > link"),
        format!("cd {fds} && echo x > {writer}"),
        format!("echo x > /proc/{process}/cwd/new-by-a-test"),
        format!("echo x > /proc/{process}/root$T/ws/new"),
    ] {
        fixture.assert_refused(
            &script,
            &["Permission denied", "No such file", "Operation not permitted"],
        );
    }
    let partitions = fs::read_to_string("/proc/partitions").unwrap_or_default();
    let disks = partitions.lines().skip(2).filter_map(|line| line.split_whitespace().nth(3));
    for disk in disks.map(|name| Path::new("/dev").join(name)).filter(|disk| disk.exists()) {
        fixture.assert_refused(&format!("head -c 1 {}", disk.display()), &["Permission denied"]);
    }
    // The command's own descriptors and the usual devices still work.
    fixture.run_ok("echo x | tee /dev/stderr > /dev/null; head -c 1 /dev/urandom /dev/zero; exec 3< /dev/null; ls /dev");
    drop(holder.stdin.take());
    let mut received = String::new();
    output.read_to_string(&mut received).unwrap();
    holder.wait().unwrap();
    assert_eq!(received, "0\n");
}
