//! Replies about commands that a limit ended.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{
    Amount, Call, CommandLimits, Error, ErrorKind, Options, Profile, Reply, Runtime,
    SandboxSettings, Session,
};

/// A runtime whose commands have small limits.
struct Limited {
    runtime: Runtime,
    session: Session,
    _top: tempfile::TempDir,
}

impl Limited {
    fn new(limits: CommandLimits) -> Limited {
        let top = crate::command_directory();
        fs::create_dir(top.path().join("ws")).unwrap();
        let runtime = Runtime::builder()
            .root(top.path().join("ws"))
            .journal(top.path().join("state"), toolcrib::Caps::default())
            .profile(Profile::Workspace)
            .sandbox(SandboxSettings { limits, ..SandboxSettings::default() })
            .helper(crate::helper())
            .build()
            .unwrap();
        Limited { session: runtime.session(), runtime, _top: top }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    /// The text of the reply to a command that fails, and the limit that it names.
    fn failure(&self, command: &str) -> (String, Value) {
        let error = self.call("Bash", json!({"command": command})).unwrap_err();
        (error.text().to_string(), error.metadata()["limit"].clone())
    }
}

#[test]
fn the_running_commands_of_all_sessions_are_limited() {
    let top = crate::command_directory();
    let runtime = Runtime::builder()
        .root(top.path())
        .profile(Profile::Open)
        .max_running_commands(2)
        .helper(crate::helper())
        .build()
        .unwrap();
    let (one, two) = (runtime.session(), runtime.session());
    let run = |session: &Session, command: &str, run_in_background: bool| {
        let args = json!({"command": command, "run_in_background": run_in_background});
        runtime.call(session, Call::new("Bash", args), Options::default())
    };
    run(&one, "sleep 600", true).unwrap();
    run(&two, "sleep 600", true).unwrap();
    for session in [&one, &two] {
        let error = run(session, "true", false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.text().contains("2 commands of all sessions"), "{error}");
    }
    // Its commands end with it.
    drop(one);
    while let Err(error) = run(&two, "true", false) {
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

const HOG: &str = "/usr/bin/python3 -c 'held = b\"x\" * (256 << 20); import time; time.sleep(600)'";

#[test]
fn the_reply_names_the_limit_that_ended_a_command() {
    let limits = CommandLimits {
        memory: Amount::Bytes(128 << 20),
        tmp_size: Amount::Bytes(32 << 20),
        file_size: Amount::Bytes(64 << 20),
        ..CommandLimits::DEFAULT
    };
    let here = Limited::new(limits);
    let (text, limit) = here.failure(HOG);
    assert_eq!(limit, "memory");
    assert!(text.contains("killed by SIGKILL"), "{text}");
    assert!(text.contains("[limit memory: the processes of the command had "), "{text}");
    assert!(
        text.contains(" and 128 MiB are allowed: it was killed; memory in config.toml"),
        "{text}"
    );

    let (text, limit) = here.failure("exec > /tmp/large; head -c 48M /dev/zero; sleep 600");
    assert_eq!(limit, "tmp_size");
    assert!(text.contains("and 32 MiB are allowed: the command was killed"), "{text}");

    let (text, limit) = here.failure("head -c 80M /dev/zero > large");
    assert_eq!(limit, "file_size");
    assert!(text.contains("[limit file_size: a file may have 64 MiB; "), "{text}");

    let reply = here.call("Bash", json!({"command": "rm /tmp/large; false || true"})).unwrap();
    assert!(!reply.metadata().contains_key("limit"), "{:?}", reply.metadata());
}

#[test]
fn a_background_job_tells_its_limit_too() {
    let memory = Amount::Bytes(128 << 20);
    let here = Limited::new(CommandLimits { memory, ..CommandLimits::DEFAULT });
    let started = here.call("Bash", json!({"command": HOG, "run_in_background": true})).unwrap();
    let id = started.metadata()["bash_id"].clone();
    let wait = json!({"bash_id": id, "wait_for": "exit", "timeout": 600_000});
    let reply = here.call("BashOutput", wait).unwrap();
    assert_eq!(reply.metadata()["limit"], "memory");
    assert!(reply.output().contains("[limit memory: "), "{}", reply.output());
}

#[test]
fn a_process_without_memory_tells_its_limit() {
    let process_memory = Amount::Bytes(256 << 20);
    let here = Limited::new(CommandLimits { process_memory, ..CommandLimits::DEFAULT });
    let (text, limit) = here.failure("/usr/bin/python3 -c 'bytearray(1 << 30)'");
    assert_eq!(limit, "process_memory");
    assert!(
        text.contains("[limit process_memory: a process may have 256 MiB of memory; "),
        "{text}"
    );
}
