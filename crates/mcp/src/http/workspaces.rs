//! Many workspaces in one server. A workspace is opened for its first request, and closed when it is idle.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use toolcrib::Runtime;
use toolcrib_http::{Refusal, bearer};

use super::authorization::Authorization;
use super::endpoint::{CallChecks, Checked, Endpoint, Endpoints, MetadataAnswer, Opened};
use super::guard::{Head, HeadCheck, WRONG_TOKEN};
use super::refused::Refused;
use super::session_count::{Owner, SessionCount};
use super::sessions::Sessions;
use super::workspace_id::WorkspaceId;
use crate::caller::Caller;
use crate::handler::{Handler, ServeOptions};
use crate::scope::Scope;

/// The maximum number of concurrent calls in a workspace. Further ones wait.
const MAX_CALLS: usize = 16;

/// The maximum number of unfinished requests for a workspace, so that one does not take the connections of all.
const MAX_REQUESTS: usize = 128;

/// The maximum number of those of one caller, so that one does not take the requests of all in a workspace.
const MAX_REQUESTS_OF_CALLER: usize = MAX_REQUESTS / 2;

/// A workspace without a session is closed after this time.
const MAX_IDLE: Duration = Duration::from_secs(5 * 60);

/// The workspaces of a server, as its host program knows them.
pub trait WorkspaceSource: Send + Sync + 'static {
    /// Whether a token is valid for a workspace; without one, whether it is valid for any. A server that identifies callers
    /// does not ask.
    fn admits(&self, workspace: Option<&WorkspaceId>, token: &[u8]) -> bool;

    /// Whether the tokens are known. If not, no request is admitted, and the source has reported why.
    fn knows_tokens(&self) -> bool {
        true
    }

    /// The device and inode of a workspace's directory. `None` if there is no such workspace. It is called for each
    /// request, and must be quick.
    fn find(&self, workspace: &WorkspaceId) -> Option<(u64, u64)>;

    /// Opens a workspace. `None` if that failed; the source has reported why.
    fn open(&self, workspace: &WorkspaceId) -> Option<OpenedWorkspace>;
}

/// An open workspace.
pub struct OpenedWorkspace {
    /// Its runtime.
    pub runtime: Runtime,
    /// The options of its calls.
    pub options: ServeOptions,
    /// Dropped when the workspace is closed.
    pub held: Box<dyn Any + Send + Sync>,
}

/// The open workspaces.
pub(super) struct Workspaces<S> {
    source: Arc<S>,
    heads: HeadCheck,
    authorization: Option<Authorization>,
    /// How many are open at most.
    max: usize,
    open: Mutex<HashMap<WorkspaceId, Arc<Workspace>>>,
    /// The sessions in all of them.
    sessions: Arc<SessionCount>,
}

/// A workspace that is open or being opened.
struct Workspace {
    /// The device and inode of its directory.
    directory: (u64, u64),
    opened: OnceCell<Served>,
    usage: Mutex<Usage>,
}

/// What serves an open workspace.
struct Served {
    endpoint: Arc<Endpoint<Handler>>,
    _held: Box<dyn Any + Send + Sync>,
}

struct Usage {
    /// The number of unfinished requests of each owner.
    requests: HashMap<Owner, usize>,
    last: Instant,
}

/// An unfinished request for a workspace, until dropped.
pub(super) struct RequestInWorkspace {
    workspace: Arc<Workspace>,
    owner: Owner,
}

const NOT_FOUND: Refusal = Refusal {
    status: StatusCode::NOT_FOUND,
    sentence: "There is no such workspace. A workspace is a directory in the one that toolcrib serve --workspaces names.",
};

const NO_TOKENS: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    sentence: "The tokens of this server cannot be read, so nobody has access. toolcrib serve prints the reason.",
};

const TOO_MANY_WORKSPACES: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    sentence: "Too many workspaces are in use. Try again later, or start toolcrib serve with a higher --max-workspaces.",
};

const TOO_MANY_REQUESTS: Refusal = Refusal {
    status: StatusCode::TOO_MANY_REQUESTS,
    sentence: "Too many requests for this workspace are unfinished. Try again later.",
};

const NOT_OPENED: Refusal = Refusal {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    sentence: "The workspace could not be opened. toolcrib serve prints the reason.",
};

impl<S: WorkspaceSource> Workspaces<S> {
    pub(super) fn new(
        source: S,
        heads: HeadCheck,
        authorization: Option<Authorization>,
        max: usize,
    ) -> Self {
        let (open, sessions) = (Mutex::default(), Arc::default());
        Workspaces { source: Arc::new(source), heads, authorization, max, open, sessions }
    }

    /// Registers a request for a workspace whose directory has this device and inode.
    fn begin(
        &self,
        id: &WorkspaceId,
        directory: (u64, u64),
        owner: &Owner,
        now: Instant,
    ) -> Result<RequestInWorkspace, Refusal> {
        let mut open = self.open.lock();
        let replaced = open.get(id).is_some_and(|known| known.directory != directory);
        let replaced = replaced.then(|| open.remove(id)).flatten();
        let workspace = match open.get(id) {
            Some(known) => known.clone(),
            None => {
                let idle = (open.len() >= self.max).then(|| longest_idle(&open));
                let idle = idle.map(|idle| idle.ok_or(TOO_MANY_WORKSPACES)).transpose()?;
                idle.and_then(|idle| open.remove(&idle)).into_iter().for_each(Workspace::close);
                let new = Arc::new(Workspace::new(directory, now));
                open.insert(id.clone(), new.clone());
                new
            }
        };
        drop(open);
        replaced.into_iter().for_each(Workspace::close);
        RequestInWorkspace::begin(workspace, owner, now)
    }

    /// Opens a workspace.
    async fn serve(&self, id: &WorkspaceId, directory: (u64, u64)) -> Result<Served, Refusal> {
        let (source, id) = (self.source.clone(), id.clone());
        let opened = spawn_blocking(move || {
            // Nothing else may have taken the place of the directory while it was opened.
            source.open(&id).filter(|_| source.find(&id) == Some(directory))
        });
        let OpenedWorkspace { runtime, options, held } =
            opened.await.ok().flatten().ok_or(NOT_OPENED)?;
        let handler = Handler::new(runtime, options).map_err(|_| NOT_OPENED)?;
        let sessions = Sessions::among(self.sessions.clone());
        let handler = handler.with_max_calls(MAX_CALLS);
        let endpoint = Endpoint::new(handler, CallChecks::OWN, sessions);
        Ok(Served { endpoint: Arc::new(endpoint), _held: held })
    }

    /// Forgets a workspace, unless another directory has its name already.
    fn forget(&self, id: &WorkspaceId, is_it: impl FnOnce(&Workspace) -> bool) {
        let mut open = self.open.lock();
        let forgotten = open.get(id).is_some_and(|known| is_it(known));
        let forgotten = forgotten.then(|| open.remove(id)).flatten();
        drop(open);
        forgotten.into_iter().for_each(Workspace::close);
    }

    /// Ends the session of an owner with the longest idle time if there are too many.
    fn limit_sessions(&self, owner: &Owner) {
        if !self.sessions.is_full(owner) {
            return;
        }
        let open: Vec<Arc<Workspace>> = self.open.lock().values().cloned().collect();
        let sessions = open.iter().filter_map(|workspace| workspace.sessions());
        let idle = sessions.filter_map(|sessions| Some((sessions.longest_idle(owner)?, sessions)));
        if let Some((_, sessions)) = idle.min_by_key(|(used, _)| *used) {
            sessions.end_longest_idle(owner);
        }
    }
}

/// The workspace with the longest idle time, of those without a session.
fn longest_idle(open: &HashMap<WorkspaceId, Arc<Workspace>>) -> Option<WorkspaceId> {
    let unused = open.iter().filter_map(|(id, known)| Some((known.unused_since()?, id)));
    unused.min_by_key(|(since, _)| *since).map(|(_, id)| id.clone())
}

impl Workspace {
    fn new(directory: (u64, u64), now: Instant) -> Self {
        let usage = Mutex::new(Usage { requests: HashMap::new(), last: now });
        Workspace { directory, opened: OnceCell::new(), usage }
    }

    fn sessions(&self) -> Option<&Sessions> {
        self.opened.get().map(|served| &**served.endpoint.sessions())
    }

    /// The time of its last request. `None` if a request is unfinished or if it has a session.
    fn unused_since(&self) -> Option<Instant> {
        let usage = self.usage.lock();
        let has_sessions = self.sessions().is_some_and(|sessions| !sessions.is_empty());
        (usage.requests.is_empty() && !has_sessions).then_some(usage.last)
    }

    /// Ends its sessions and their calls. Dropping the rest can take a moment, so another thread does it.
    fn close(self: Arc<Self>) {
        self.sessions().into_iter().for_each(Sessions::end_all);
        spawn_blocking(move || drop(self));
    }
}

impl RequestInWorkspace {
    fn begin(workspace: Arc<Workspace>, owner: &Owner, now: Instant) -> Result<Self, Refusal> {
        let mut usage = workspace.usage.lock();
        let own = usage.requests.get(owner).copied().unwrap_or_default();
        let has_many = owner.is_some() && own >= MAX_REQUESTS_OF_CALLER;
        if has_many || usage.requests.values().sum::<usize>() >= MAX_REQUESTS {
            return Err(TOO_MANY_REQUESTS);
        }
        usage.requests.insert(owner.clone(), own + 1);
        usage.last = now;
        drop(usage);
        Ok(RequestInWorkspace { workspace, owner: owner.clone() })
    }
}

impl Drop for RequestInWorkspace {
    fn drop(&mut self) {
        let mut usage = self.workspace.usage.lock();
        if let Some(own) = usage.requests.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                usage.requests.remove(&self.owner);
            }
        }
        usage.last = Instant::now();
    }
}

impl<S: WorkspaceSource> Endpoints for Workspaces<S> {
    type Handler = Handler;
    type Name = WorkspaceId;
    type Held = RequestInWorkspace;

    fn metadata(&self, head: Head<'_>) -> Option<MetadataAnswer> {
        self.authorization.as_ref()?.metadata(head, &self.heads, None)
    }

    async fn check(&self, head: Head<'_>) -> Result<Checked<WorkspaceId>, Refused> {
        let path = head.uri.path();
        let id = WorkspaceId::of_path(path);
        if self.authorization.is_none() {
            let token = bearer(head.headers);
            if !token.is_some_and(|token| self.source.admits(id.as_ref(), token)) {
                let refusal = if self.source.knows_tokens() { WRONG_TOKEN } else { NO_TOKENS };
                return Err(refusal.into());
            }
        }
        HeadCheck::check_target(head)?;
        let id = id.ok_or(Refusal {
            status: StatusCode::NOT_FOUND,
            sentence: "MCP is at /w/ID/mcp. ID is the name of a workspace: 1 to 64 letters, digits, `-`, `_` or `.`, and no `.` first.",
        })?;
        let caller = match &self.authorization {
            // Before anything that depends on whether the workspace exists.
            Some(authorization) => Some(authorization.caller(head, path, Some(&id)).await?),
            None => None,
        };
        if !id.agrees_with(head.headers) {
            return Err(Refused::from(Refusal {
                status: StatusCode::BAD_REQUEST,
                sentence: "Mcp-Param-Workspace names another workspace than the path.",
            }));
        }
        self.heads.check_headers(head)?;
        Ok(Checked { name: id, caller })
    }

    fn require(&self, path: &str, caller: &Caller, needed: &[Scope]) -> Result<(), Refused> {
        let authorization = self.authorization.as_ref();
        authorization.map_or(Ok(()), |authorization| authorization.require(path, caller, needed))
    }

    fn connection_owner(checked: &Checked<WorkspaceId>) -> String {
        format!("{}\n{}", checked.name.as_str(), checked.caller_name())
    }

    async fn open(&self, id: WorkspaceId, owner: &Owner) -> Result<Opened<Self>, Refused> {
        let Some(directory) = self.source.find(&id) else {
            self.forget(&id, |_| true);
            return Err(NOT_FOUND.into());
        };
        let request = self.begin(&id, directory, owner, Instant::now())?;
        let workspace = request.workspace.clone();
        let opened = workspace.opened.get_or_try_init(|| self.serve(&id, directory)).await;
        match opened {
            Ok(served) => {
                self.limit_sessions(owner);
                Ok((served.endpoint.clone(), request))
            }
            Err(refusal) => {
                self.forget(&id, |known| std::ptr::eq(known, &*workspace));
                Err(refusal.into())
            }
        }
    }

    fn end_idle(&self, now: Instant) {
        let open: Vec<Arc<Workspace>> = self.open.lock().values().cloned().collect();
        for sessions in open.iter().filter_map(|workspace| workspace.sessions()) {
            sessions.end_idle(now);
        }
        drop(open);
        // The commands in a directory that was removed or replaced do not wait for the next request.
        let is_over = |id: &WorkspaceId, known: &Workspace| {
            let unused = known.unused_since();
            unused.is_some_and(|since| now.duration_since(since) >= MAX_IDLE)
                || self.source.find(id) != Some(known.directory)
        };
        let ended: Vec<_> = self.open.lock().extract_if(|id, known| is_over(id, known)).collect();
        for (_, workspace) in ended {
            workspace.close();
        }
    }

    fn end_all(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        open.into_values().for_each(Workspace::close);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use toolcrib::Principal;

    use super::*;
    use crate::http::session_count::{MAX_OF_CALLER, MAX_SESSIONS};

    /// Workspaces in a temporary directory.
    struct Source {
        top: tempfile::TempDir,
        opened: AtomicUsize,
        fails: AtomicBool,
    }

    impl WorkspaceSource for Source {
        fn admits(&self, _: Option<&WorkspaceId>, _: &[u8]) -> bool {
            true
        }

        #[allow(clippy::disallowed_methods, reason = "a test looks at the disk")]
        fn find(&self, workspace: &WorkspaceId) -> Option<(u64, u64)> {
            use std::os::unix::fs::MetadataExt as _;
            let found = std::fs::symlink_metadata(self.top.path().join(workspace.as_str())).ok()?;
            found.is_dir().then(|| (found.dev(), found.ino()))
        }

        fn open(&self, workspace: &WorkspaceId) -> Option<OpenedWorkspace> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            if self.fails.load(Ordering::Relaxed) {
                return None;
            }
            let root = self.top.path().join(workspace.as_str());
            let runtime = Runtime::builder().root(root).build().ok()?;
            Some(OpenedWorkspace { runtime, options: ServeOptions::default(), held: Box::new(()) })
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a test makes directories")]
    fn workspaces(max: usize, names: &[&str]) -> Workspaces<Source> {
        let top = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::create_dir(top.path().join(name)).unwrap();
        }
        let heads = HeadCheck::new(&[], None).unwrap();
        let (opened, fails) = (AtomicUsize::new(0), AtomicBool::new(false));
        Workspaces::new(Source { top, opened, fails }, heads, None, max)
    }

    fn run(test: impl AsyncFnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    }

    fn id(name: &str) -> WorkspaceId {
        WorkspaceId::parse(name).unwrap()
    }

    fn status<T>(opened: Result<T, Refused>) -> u16 {
        opened.map_or_else(|refused| refused.refusal.status.as_u16(), |_| 200)
    }

    #[test]
    fn an_idle_workspace_is_closed_and_opened_again() {
        run(async || {
            let all = workspaces(10, &["a"]);
            let (endpoint, request) = all.open(id("a"), &None).await.unwrap();
            let (same, second) = all.open(id("a"), &None).await.unwrap();
            assert!(Arc::ptr_eq(&endpoint, &same));
            let later = || Instant::now() + MAX_IDLE;
            all.end_idle(later());
            assert_eq!(all.open.lock().len(), 1, "requests are unfinished");
            drop((same, second, request));
            endpoint.sessions().of_connection(1, &None).unwrap();
            all.end_idle(later());
            assert_eq!(all.open.lock().len(), 1, "it has a session");
            endpoint.sessions().end_connection(1);
            all.end_idle(Instant::now());
            assert_eq!(all.open.lock().len(), 1, "it was just used");
            all.end_idle(later());
            assert_eq!(all.open.lock().len(), 0);
            let (new, _request) = all.open(id("a"), &None).await.unwrap();
            assert!(!Arc::ptr_eq(&endpoint, &new));
            assert_eq!(all.source.opened.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn requests_at_the_same_time_open_a_workspace_once() {
        run(async || {
            let all = workspaces(1, &["a"]);
            let (one, two) = tokio::join!(all.open(id("a"), &None), all.open(id("a"), &None));
            assert!(Arc::ptr_eq(&one.unwrap().0, &two.unwrap().0));
            assert_eq!(all.source.opened.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn a_workspace_that_cannot_be_opened_is_forgotten() {
        run(async || {
            let all = workspaces(1, &["a", "b"]);
            all.source.fails.store(true, Ordering::Relaxed);
            assert_eq!(status(all.open(id("a"), &None).await), 500);
            assert_eq!(all.open.lock().len(), 0);
            all.source.fails.store(false, Ordering::Relaxed);
            assert_eq!(status(all.open(id("b"), &None).await), 200);
            assert_eq!(status(all.open(id("a"), &None).await), 200);
        });
    }

    #[test]
    fn only_an_idle_workspace_makes_room() {
        run(async || {
            let all = workspaces(2, &["a", "b", "c"]);
            let (a, in_a) = all.open(id("a"), &None).await.unwrap();
            let (_, in_b) = all.open(id("b"), &None).await.unwrap();
            assert_eq!(status(all.open(id("c"), &None).await), 503);
            drop(in_a);
            a.sessions().of_connection(1, &None).unwrap();
            assert_eq!(status(all.open(id("c"), &None).await), 503);
            a.sessions().end_connection(1);
            assert_eq!(status(all.open(id("c"), &None).await), 200);
            assert!(!all.open.lock().contains_key(&id("a")));
            drop(in_b);
            assert_eq!(status(all.open(id("a"), &None).await), 200);
        });
    }

    #[test]
    fn the_unfinished_requests_of_a_workspace_are_limited() {
        run(async || {
            let all = workspaces(2, &["a", "b"]);
            let mut held = Vec::new();
            for _ in 0..MAX_REQUESTS {
                held.push(all.open(id("a"), &None).await.unwrap());
            }
            assert_eq!(status(all.open(id("a"), &None).await), 429);
            assert_eq!(status(all.open(id("b"), &None).await), 200);
            held.pop();
            assert_eq!(status(all.open(id("a"), &None).await), 200);
        });
    }

    fn owner(issuer: &str, subject: &str) -> Owner {
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        Some(Arc::new(Principal { issuer, subject }))
    }

    #[test]
    fn a_caller_does_not_take_the_requests_of_others() {
        run(async || {
            let all = workspaces(2, &["a"]);
            let (alice, bob) = (owner("i", "alice"), owner("i", "bob"));
            let mut held = Vec::new();
            for _ in 0..MAX_REQUESTS_OF_CALLER {
                held.push(all.open(id("a"), &bob).await.unwrap());
            }
            assert_eq!(status(all.open(id("a"), &bob).await), 429);
            assert_eq!(status(all.open(id("a"), &alice).await), 200);
            held.pop();
            assert_eq!(status(all.open(id("a"), &bob).await), 200);
        });
    }

    #[test]
    fn connections_belong_to_a_caller_in_a_workspace() {
        let of = |workspace: &str, owner: Owner| {
            let scopes = [Scope::Read].into_iter().collect();
            let caller = owner
                .map(|principal| Caller { principal, in_token: scopes, granted: scopes })
                .map(Arc::new);
            Workspaces::<Source>::connection_owner(&Checked { name: id(workspace), caller })
        };
        let alice = || owner("i", "alice");
        assert_eq!(of("a", alice()), of("a", alice()));
        assert_eq!(of("a", None), of("a", None));
        for other in [of("b", alice()), of("a", owner("j", "alice")), of("a", owner("i", "bob"))] {
            assert_ne!(of("a", alice()), other);
        }
        assert_ne!(of("a", None), of("b", None));
    }

    #[test]
    fn a_caller_does_not_end_the_sessions_of_others_in_other_workspaces() {
        run(async || {
            let all = workspaces(10, &["a", "b"]);
            let (alice, bob) = (owner("i", "alice"), owner("i", "bob"));
            let (a, _in_a) = all.open(id("a"), &alice).await.unwrap();
            let (b, _in_b) = all.open(id("b"), &bob).await.unwrap();
            a.sessions().of_connection(0, &alice).unwrap();
            for number in (1..).take(MAX_OF_CALLER) {
                b.sessions().of_connection(number, &bob).unwrap();
            }
            assert!(b.sessions().of_connection(0, &bob).is_ok(), "the oldest of bob has ended");
            assert!(!a.sessions().is_empty());
            assert_eq!(all.sessions.total(), MAX_OF_CALLER + 1);
        });
    }

    #[test]
    fn the_sessions_of_all_workspaces_are_limited() {
        run(async || {
            let all = workspaces(10, &["a", "b"]);
            let (a, _in_a) = all.open(id("a"), &None).await.unwrap();
            let (b, _in_b) = all.open(id("b"), &None).await.unwrap();
            let in_use = a.sessions().of_connection(0, &None).unwrap();
            for number in (1..).take(MAX_SESSIONS - 2) {
                b.sessions().of_connection(number, &None).unwrap();
            }
            let last = b.sessions().of_connection(0, &None).unwrap();
            all.open(id("a"), &None).await.unwrap();
            assert_eq!(all.sessions.total(), MAX_SESSIONS - 1);
            assert!(Arc::ptr_eq(&in_use, &a.sessions().of_connection(0, &None).unwrap()));
            assert!(Arc::ptr_eq(&last, &b.sessions().of_connection(0, &None).unwrap()));
        });
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test replaces directories")]
    fn a_replaced_directory_is_another_workspace() {
        run(async || {
            let all = workspaces(10, &["a", "b"]);
            let at = |name: &str| all.source.top.path().join(name);
            let (old, in_old) = all.open(id("a"), &None).await.unwrap();
            old.sessions().of_connection(1, &None).unwrap();
            std::fs::rename(at("a"), at("moved")).unwrap();
            assert_eq!(status(all.open(id("a"), &None).await), 404);
            assert!(old.sessions().is_empty() && all.open.lock().is_empty());
            std::fs::rename(at("b"), at("a")).unwrap();
            let (new, _request) = all.open(id("a"), &None).await.unwrap();
            assert!(!Arc::ptr_eq(&old, &new));
            drop(in_old);
            std::fs::rename(at("a"), at("b")).unwrap();
            std::os::unix::fs::symlink(at("moved"), at("a")).unwrap();
            assert_eq!(status(all.open(id("a"), &None).await), 404, "a symlink is no workspace");
            // Also without a request.
            let (old, _request) = all.open(id("b"), &None).await.unwrap();
            old.sessions().of_connection(1, &None).unwrap();
            all.end_idle(Instant::now());
            assert!(!old.sessions().is_empty());
            std::fs::rename(at("b"), at("c")).unwrap();
            all.end_idle(Instant::now());
            assert!(old.sessions().is_empty() && all.open.lock().is_empty());
        });
    }
}
