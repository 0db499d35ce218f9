//! The store with a real PostgreSQL, which each test starts for itself.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests look at the disk and the server from outside, and fail by panicking"
)]

mod approvals;
mod audit;
mod isolation;
mod leases;
mod quotas;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::{AuditEvent, CallRecord, Caps};
use toolcrib_fs::Journal;
use toolcrib_store::{
    AuditSender, FollowedLog, StoreUrl, StoredLog, add_tenant, compare, initialize,
};
use toolcrib_testkit::PostgresServer;

/// The database of the store.
const DATABASE: &str = "tools";

/// A server with a store.
struct StoreServer {
    server: PostgresServer,
}

impl StoreServer {
    /// `None` if PostgreSQL is not installed.
    fn start() -> Option<StoreServer> {
        let server = PostgresServer::start()?;
        server.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let store = StoreServer { server };
        let made = initialize(&store.admin()).unwrap();
        assert_eq!(made.before, 0);
        Some(store)
    }

    fn admin(&self) -> StoreUrl {
        StoreUrl::parse(&self.server.admin_url(DATABASE)).unwrap()
    }

    fn tenant(&self, name: &str) -> StoreUrl {
        add_tenant(&self.admin(), name, &format!("{name}-secret")).unwrap()
    }

    /// Runs statements as a tenant. Returns the output, or the error.
    fn as_tenant(&self, name: &str, statements: &str) -> Result<String, String> {
        let done = self.server.try_psql(name, &format!("{name}-secret"), DATABASE, statements);
        if !done.status.success() {
            return Err(String::from_utf8(done.stderr).unwrap());
        }
        Ok(String::from_utf8(done.stdout).unwrap().trim().to_owned())
    }

    fn as_admin(&self, statements: &str) -> String {
        self.server.psql(DATABASE, statements)
    }
}

/// A machine with a state directory and one workspace.
struct Node {
    top: tempfile::TempDir,
    journal: Journal,
    notices: Arc<Mutex<Vec<String>>>,
    calls: AtomicUsize,
}

const WORKSPACE: &str = "/ws";

impl Node {
    fn new() -> Node {
        let top = tempfile::tempdir().unwrap();
        let journal = Journal::open(top.path().join("state"), Caps::default()).unwrap();
        Node { top, journal, notices: Arc::default(), calls: AtomicUsize::new(0) }
    }

    fn state(&self) -> PathBuf {
        self.top.path().join("state")
    }

    fn add(&self, count: usize) {
        self.add_to(WORKSPACE, count);
    }

    fn add_to(&self, workspace: &str, count: usize) {
        for _ in 0..count {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let message = Some("é\"\\\u{1}".repeat(40));
            let call = CallRecord { id: number.to_string(), message, ..CallRecord::default() };
            self.journal.record_audit(workspace, &AuditEvent::call(None, None, call)).unwrap();
        }
    }

    fn sender(&self, url: &StoreUrl) -> AuditSender {
        let notices = self.notices.clone();
        let notice = move |text: &str| notices.lock().push(text.to_owned());
        AuditSender::start(url.clone(), self.state(), notice).unwrap()
    }

    fn send(&self, url: &StoreUrl) -> (FollowedLog, AuditSender) {
        let sender = self.sender(url);
        let outbox = self.journal.audit_outbox(WORKSPACE);
        (sender.follow(outbox, "ws"), sender)
    }

    fn compare(&self, url: &StoreUrl) -> Option<StoredLog> {
        compare(url, &mut self.journal.audit_outbox(WORKSPACE), "ws").unwrap()
    }

    /// Waits until the store has this number of records of the log, and nothing is wrong.
    fn wait_for(&self, url: &StoreUrl, records: u64) -> StoredLog {
        loop {
            let outbox = &mut self.journal.audit_outbox(WORKSPACE);
            let found = compare(url, outbox, "ws").ok().flatten();
            if let Some(found) = found.filter(|found| found.chain.records >= records) {
                assert_eq!((found.problem(), found.chain.records), (None, records), "{found:?}");
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log_file(&self) -> PathBuf {
        let files = std::fs::read_dir(self.state().join("audit")).unwrap().flatten();
        let is_log =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
        files.map(|entry| entry.path()).find(is_log).unwrap()
    }

    fn has_notice(&self, words: &str) -> bool {
        self.notices.lock().iter().any(|notice| notice.contains(words))
    }
}

/// Waits until something is so.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(30));
    }
}

fn rewrite(file: &Path, change: impl FnOnce(&str) -> String) {
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, change(&text)).unwrap();
}

impl Node {
    /// The file of a workspace with several.
    fn log_of(&self, workspace: &str) -> PathBuf {
        let files = std::fs::read_dir(self.state().join("audit")).unwrap().flatten();
        let mut positions = files
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "store"));
        let named = format!("\"workspace\":\"{workspace}\"");
        let is_it = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains(&named);
        positions.find(is_it).unwrap().with_extension("jsonl")
    }
}
