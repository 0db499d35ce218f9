//! Language servers that report the errors of edited files: one process for each server and root, shared by the
//! sessions of a runtime.

mod check;
mod conversation;
mod definition;
mod project_files;
mod server_thread;
mod session_checks;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use toolcrib_exec::Jobs;

pub(crate) use self::check::{Check, CheckOutcome, CheckResult, FoundError, Launch};
pub use self::definition::LanguageServer;
pub(crate) use self::project_files::ProjectFiles;
use self::server_thread::ServerThread;
pub(crate) use self::session_checks::{PendingCheck, SessionChecks};

/// Servers that run at a time. Others are not started until one of them has ended.
const MAX_RUNNING: usize = 8;

/// The language servers of a runtime. Dropping it ends them.
pub(crate) struct LanguageServers {
    definitions: Vec<LanguageServer>,
    /// The processes of all servers.
    jobs: Arc<Jobs>,
    running: Mutex<HashMap<(usize, PathBuf), Arc<ServerThread>>>,
    /// Sessions that use them.
    sessions: AtomicUsize,
}

impl LanguageServers {
    pub(crate) fn new(definitions: Vec<LanguageServer>, jobs: Jobs) -> LanguageServers {
        LanguageServers {
            definitions,
            jobs: Arc::new(jobs),
            running: Mutex::default(),
            sessions: AtomicUsize::new(0),
        }
    }

    /// All servers, whether their programs exist or not.
    pub(crate) fn definitions(&self) -> &[LanguageServer] {
        &self.definitions
    }

    /// The servers for a file, each with its number and the name of the file's language.
    pub(crate) fn for_file(&self, path: &Path) -> Vec<(usize, &LanguageServer, &str)> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let Some(extension) = extension else { return Vec::new() };
        let servers = self.definitions.iter().enumerate();
        servers
            .filter_map(|(at, server)| Some((at, server, server.language_of(extension)?)))
            .collect()
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Gives a check to the server with this number, and starts it if it does not run.
    pub(crate) fn submit(&self, server: usize, root: &Path, mut check: Box<Check>) {
        let Some(definition) = self.definitions.get(server) else { return };
        let mut running = self.running.lock();
        running.retain(|_, thread| !thread.has_ended() || thread.is_disabled());
        let key = (server, root.to_owned());
        if let Some(thread) = running.get(&key) {
            match thread.submit(check) {
                Ok(()) => return,
                Err(refused) => check = refused,
            }
        }
        let alive = running.values().filter(|thread| !thread.has_ended()).count();
        if alive >= MAX_RUNNING {
            check.result.set(CheckOutcome::Unanswered);
            return;
        }
        let thread = ServerThread::start(definition.clone(), root.to_owned(), self.jobs.clone());
        if let Err(refused) = thread.submit(check) {
            refused.result.set(CheckOutcome::Unanswered);
        }
        running.insert(key, thread);
    }

    /// Counts a session that uses the servers.
    pub(crate) fn begin_session(&self) {
        self.sessions.fetch_add(1, Ordering::AcqRel);
    }

    /// The last session that ends ends the servers, and their failures are forgotten.
    pub(crate) fn end_session(&self) {
        if self.sessions.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end_all();
        }
    }

    fn end_all(&self) {
        for (_, thread) in self.running.lock().drain() {
            thread.end();
        }
    }
}

impl Drop for LanguageServers {
    fn drop(&mut self) {
        self.end_all();
    }
}
