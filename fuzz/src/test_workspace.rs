//! A temporary workspace with a runtime, for targets that use whole tools.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::{Call, Caps, Error, Limits, Options, Profile, Reply, Runtime, Session};

/// The usual mount point of a file system in memory. On a disk, syncing would dominate the time.
const MEMORY: &str = "/dev/shm";

/// The number of calls after which the workspace is replaced, so that its journal stays short.
const CALLS: usize = 500;

/// Less than the default, so that more inputs run.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// This program, which acts as a helper if it is started as one.
const THIS_PROGRAM: &str = "/proc/self/exe";

pub(crate) struct TestWorkspace {
    // Before the directory, so that it is dropped first.
    session: Session,
    runtime: Runtime,
    directory: TempDir,
    calls: usize,
}

impl TestWorkspace {
    /// Runs a function with the workspace of this thread.
    pub(crate) fn with<T>(work: impl FnOnce(&mut TestWorkspace) -> T) -> T {
        thread_local!(static WORKSPACE: RefCell<Option<TestWorkspace>> = const { RefCell::new(None) });
        WORKSPACE.with_borrow_mut(|slot| {
            // Taken out, so that a panic discards the workspace.
            let mut workspace = slot.take().filter(|slot| slot.calls < CALLS).unwrap_or_else(make);
            let result = work(&mut workspace);
            *slot = Some(workspace);
            result
        })
    }

    /// A file of the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("ws").join(name)
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Reply, Error> {
        self.calls += 1;
        self.runtime.call(&self.session, Call::new(tool, arguments), Options::default())
    }
}

/// A temporary directory, in memory if possible.
pub(crate) fn scratch() -> TempDir {
    let directory = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
    directory.expect("a temporary directory")
}

fn make() -> TestWorkspace {
    let directory = scratch();
    std::fs::create_dir(directory.path().join("ws")).expect("a workspace");
    let runtime = Runtime::builder()
        .root(directory.path().join("ws"))
        .journal(directory.path().join("state"), Caps::default())
        .profile(Profile::Open)
        .limits(Limits { search_time: SEARCH_TIME, ..Limits::default() })
        .helper(THIS_PROGRAM)
        .build()
        .expect("a runtime");
    TestWorkspace { session: runtime.session(), runtime, directory, calls: 0 }
}
