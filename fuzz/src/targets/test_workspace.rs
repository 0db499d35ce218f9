//! A directory with a runtime for it, for targets that try the product as a whole.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::{Call, Caps, Error, Limits, Options, Profile, Reply, Runtime, Session};

/// Where a file system without a disk usually is: syncing to one would be all that is measured.
const MEMORY: &str = "/dev/shm";

/// Calls after which a place is made anew, so that its journal stays short.
const CALLS: usize = 500;

/// Less than usual, so that more is tried.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// This very program, which answers as a helper if it is started as one.
const OURSELVES: &str = "/proc/self/exe";

pub(super) struct Place {
    // Before the directory, so that it is gone before that is.
    session: Session,
    runtime: Runtime,
    directory: TempDir,
    calls: usize,
}

impl Place {
    /// Does something in the place of this thread.
    pub(super) fn with<T>(work: impl FnOnce(&mut Place) -> T) -> T {
        thread_local!(static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) });
        PLACE.with_borrow_mut(|place| {
            // Taken out: if the work panics, the next one does not find what it left.
            let mut here = place.take().filter(|place| place.calls < CALLS).unwrap_or_else(make);
            let done = work(&mut here);
            *place = Some(here);
            done
        })
    }

    /// A file of the workspace.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("ws").join(name)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<Reply, Error> {
        self.calls += 1;
        self.runtime.call(&self.session, Call::new(tool, arguments), Options::default())
    }
}

/// A directory that is gone in the end.
pub(super) fn scratch() -> TempDir {
    let directory = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
    directory.expect("a temporary directory")
}

fn make() -> Place {
    let directory = scratch();
    std::fs::create_dir(directory.path().join("ws")).expect("a workspace");
    let runtime = Runtime::builder()
        .root(directory.path().join("ws"))
        .journal(directory.path().join("state"), Caps::default())
        .profile(Profile::Open)
        .limits(Limits { search_time: SEARCH_TIME, ..Limits::default() })
        .helper(OURSELVES)
        .build()
        .expect("a runtime");
    Place { session: runtime.session(), runtime, directory, calls: 0 }
}
