//! Everyday work succeeds in a sandbox.

use super::*;

#[test]
fn git_works() {
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.guard = Arc::new(AllowAll);
        fixture.run_ok("git init -q -b main . && git add file && git commit -q -m one");
        let out = fixture.run_ok(
            "git checkout -q -b two && echo two > two && git add two && git commit -q -m two && \
             git checkout -q main && echo three > three && git add -A && git commit -q -m three && \
             git rebase -q two && echo x >> file && git stash -q && git stash pop -q && \
             git worktree add -q wt && git branch -d two && git gc -q && git log --oneline | wc -l",
        );
        assert_eq!(out.lines().last(), Some("3"), "{out}");
        assert!(fixture.path("ws/wt/two").exists());
        fixture.run_ok("git commit -q -am four && git fsck");
    }
}

#[test]
fn python_works() {
    for fixture in Fixture::for_each_sandbox() {
        fixture.run_ok("/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'print(1)'");
        let lines = "
import asyncio, multiprocessing, os, pty, sqlite3, subprocess, tempfile, threading
db = sqlite3.connect('db'); db.execute('create table t(x)'); db.execute('insert into t values(1)'); db.commit()
with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')
assert multiprocessing.get_context('fork').Pool(2).map(abs, [-1, 2]) == [1, 2]
multiprocessing.Lock()
asyncio.run(asyncio.sleep(0))
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.check_output(['echo', 'x']) == b'x\\n'
m, s = pty.openpty(); os.write(s, b'x')
assert os.path.exists('/dev/shm') and open('/dev/urandom', 'rb').read(2)
print('fine')
";
        assert_eq!(fixture.run_ok(&format!("/usr/bin/python3 - <<'END'{lines}END")), "fine\n");
        assert!(fixture.path("ws/db").exists());
    }
}

#[test]
fn the_shell_works() {
    for fixture in Fixture::for_each_sandbox() {
        let script = "
cat <<END
here $((1 + 1))
END
cat <<<string
diff <(echo a) <(echo a) && echo same
f=$(mktemp) && d=$(mktemp -d) && echo x > $f && mv $f $d/ && ls $d | wc -l
printf 'all: a b c d\\na b c d:\\n\\t@sleep 0.1; echo $@ > $@\\n' > Makefile && make -s -j4 && cat a b c d | tr '\\n' ' '
echo; coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} line; echo $line
echo err >&2; true > /dev/null
seq 1 100000 | sort -rn -S 100k | head -1 2>&1
ulimit -c; hostname > /dev/null; id -u > /dev/null; ps -e | wc -l > /dev/null
";
        let out = fixture.run_ok(script);
        let expected = "here 2\nstring\nsame\n1\na b c d \nhi\nerr\n100000\n0\n";
        assert_eq!(out, expected);
    }
    // The output is a pipe that belongs to the current user.
    assert_eq!(Fixture::new().run_ok("echo x > /dev/stdout; echo y > /dev/fd/2"), "x\ny\n");
}

#[test]
fn final_directory_and_variables_of_a_sandboxed_command_are_reported() {
    let fixture = Fixture::new();
    let job = fixture.start("mkdir d; cd d; export X=1; exit 4");
    assert_eq!(wait_for_result(&job).exit, Exit::Code(4));
    let state = job.snapshot().ended.unwrap().shell_state.unwrap();
    assert_eq!(state.directory, Some(fixture.path("ws/d")));
    assert!(state.environment.contains(&("X".into(), "1".into())));
}

#[test]
fn preparation_errors_name_their_step() {
    let mut fixture = Fixture::new();
    fixture.sandbox.writable.push(PinnedPath { path: "/nowhere".into(), identity: (1, 1) });
    let error = fixture.try_to_start("true").unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not open /nowhere: No such file or directory (os error 2)"
    );
}

#[test]
fn a_hundred_commands_run_at_once() {
    let wrapped = bubblewrap::fixtures().into_iter().take(1);
    for fixture in Fixture::for_each_user().into_iter().chain(wrapped) {
        // All of them run before the first ends.
        let script = |number: usize| {
            format!("touch started-{number}; while [ ! -e go ]; do sleep 0.05; done; echo {number}")
        };
        let jobs: Vec<_> = (0..100).map(|number| fixture.start(&script(number))).collect();
        eventually("all run", || {
            (0..100).all(|n| fixture.path(&format!("ws/started-{n}")).exists())
        });
        fs::write(fixture.path("ws/go"), "").unwrap();
        for (number, job) in jobs.iter().enumerate() {
            assert_eq!(wait_for_result(job).output, format!("{number}\n"));
        }
    }
}

#[test]
fn a_server_is_reachable_by_the_next_command() {
    for fixture in Fixture::for_each_user() {
        fs::write(fixture.path("ws/index.html"), "hello\n").unwrap();
        let server =
            fixture.start("exec /usr/bin/python3 -u -m http.server --bind 127.0.0.1 8123 2>&1");
        wait_for_output(&server);
        let client = "/usr/bin/python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:8123/index.html\").read())'";
        assert_eq!(fixture.run_ok(client), "b'hello\\n'\n");
    }
}

#[test]
fn node_works() {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        return;
    }
    for fixture in Fixture::for_each_sandbox() {
        fs::write(
            fixture.path("ws/a.test.js"),
            "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2));\n",
        )
        .unwrap();
        fs::write(fixture.path("ws/package.json"), "{\"scripts\": {\"test\": \"node --test\"}}")
            .unwrap();
        let out = fixture.run_ok("node --test 2>&1");
        assert!(out.contains("pass 1"), "{out}");
        if std::process::Command::new("npm").arg("--version").output().is_ok() {
            let out = fixture.run_ok("export npm_config_cache=$PWD/.npm; npm test 2>&1");
            assert!(out.contains("pass 1"), "{out}");
        }
    }
}
