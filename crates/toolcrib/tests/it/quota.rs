//! Limits of the host on calls and commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    Call, CallCommand, CommandPlace, Error, ErrorKind, Options, OverQuota, Quota, Reply, Runtime,
    Session,
};

use crate::{command_directory, eventually, workspace_runtime};

/// A host that allows a number of calls, and commands unless it is full.
#[derive(Default)]
struct Host {
    calls: AtomicUsize,
    max_calls: AtomicUsize,
    /// Places that are taken by commands that have not started.
    places: AtomicUsize,
    is_full: AtomicBool,
    started: Mutex<Vec<CallCommand>>,
}

fn over(limit: &'static str) -> OverQuota {
    let (message, retry_after) = (format!("{limit} is reached"), Duration::from_secs(7));
    OverQuota { limit, message, retry_after }
}

/// The quota of a host.
struct OfHost(Arc<Host>);

struct Place(Arc<Host>);

impl CommandPlace for Place {
    fn started(self: Box<Self>, command: CallCommand) {
        self.0.started.lock().push(command);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.places.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Quota for OfHost {
    fn is_limited(&self) -> bool {
        true
    }

    fn check_call(&self, runs_command: &dyn Fn() -> bool) -> Result<(), OverQuota> {
        if self.0.calls.load(Ordering::SeqCst) >= self.0.max_calls.load(Ordering::SeqCst) {
            return Err(over("calls"));
        }
        if runs_command() { self.check_command() } else { Ok(()) }
    }

    fn begin_call(&self) -> Result<(), OverQuota> {
        self.check_call(&|| false)?;
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn check_command(&self) -> Result<(), OverQuota> {
        if self.0.is_full.load(Ordering::SeqCst) { Err(over("commands")) } else { Ok(()) }
    }

    fn begin_command(&self) -> Result<Box<dyn CommandPlace>, OverQuota> {
        self.check_command()?;
        self.0.places.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Place(self.0.clone())))
    }
}

fn call(
    runtime: &Runtime,
    session: &Session,
    tool: &str,
    arguments: Value,
) -> Result<Reply, Error> {
    runtime.call(session, Call::new(tool, arguments), Options::default())
}

#[test]
fn calls_and_commands_beyond_a_limit_do_not_run() {
    let top = command_directory();
    std::fs::create_dir(top.path().join("ws")).unwrap();
    let mut runtime = workspace_runtime(top.path());
    assert!(!runtime.is_limited());
    assert_eq!(runtime.check_quota("Bash", &json!({"command": "echo x"})), Ok(()));
    let host = Arc::new(Host::default());
    host.max_calls.store(3, Ordering::SeqCst);
    runtime.set_quota(Arc::new(OfHost(host.clone())));
    assert!(runtime.is_limited());
    let session = runtime.session();
    let write = |name: &str| {
        let arguments = json!({"file_path": name, "content": "x\n"});
        call(&runtime, &session, "Write", arguments)
    };
    let bash = || call(&runtime, &session, "Bash", json!({"command": "sleep 0.1; touch ran"}));
    write("one").unwrap();
    // Asking counts nothing, and knows calls that run commands by their declared accesses.
    host.is_full.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(runtime.check_quota("Read", &json!({"file_path": "one"})), Ok(()));
        assert_eq!(runtime.check_quota("KillShell", &json!({"shell_id": "sh_1"})), Ok(()));
        let refusal = runtime.check_quota("bash", &json!({"command": "echo x"}));
        assert_eq!(refusal.unwrap_err().limit, "commands");
        // A call that cannot be decoded is explained by the call itself.
        assert_eq!(runtime.check_quota("Bash", &json!({"commnd": 5})), Ok(()));
        assert_eq!(runtime.check_quota("Nothing", &json!({})), Ok(()));
    }
    let refused = bash().unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Limit, "commands is reached"));
    assert!(refused.text().contains("The call was not run. Repeat it after 7 s"), "{refused:?}");
    assert!(!top.path().join("ws/ran").exists() && host.started.lock().is_empty());
    host.is_full.store(false, Ordering::SeqCst);
    bash().unwrap();
    assert!(top.path().join("ws/ran").exists());
    let command = host.started.lock().pop().unwrap();
    assert!(command.duration() >= Duration::from_millis(100), "{:?}", command.duration());
    eventually(|| !command.has_processes());
    assert_eq!(host.places.load(Ordering::SeqCst), 0);
    // All three calls were counted, also the one that failed.
    assert_eq!(host.calls.load(Ordering::SeqCst), 3);
    let refused = write("two").unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Limit, "calls is reached"));
    assert!(!top.path().join("ws/two").exists());
    assert_eq!(runtime.check_quota("Read", &json!({})).unwrap_err().limit, "calls");
    assert_eq!(host.calls.load(Ordering::SeqCst), 3);
}
