//! The thread of a server: starts it, gives it one text after the other, ends it when it is idle.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib_exec::Jobs;
use toolcrib_lsp::{ClientError, ClientSettings, Diagnostic, Errors, new_errors};

use super::check::{Check, CheckOutcome, FoundError};
use super::conversation::{Conversation, Failure};
use super::definition::LanguageServer;
use super::project_files::{ProjectChanges, ProjectFiles};

/// A server without checks ends after this time.
const IDLE_TIME: Duration = Duration::from_secs(5 * 60);

/// How long a server may take to start and to load the project.
const LOAD_TIME: Duration = Duration::from_secs(10 * 60);

/// Starts of a server that failed, after which it is not started again.
const MAX_FAILURES: u32 = 2;

/// Checks that wait. Beyond them, the oldest is not made.
const MAX_QUEUE: usize = 40;

/// How often an idle thread looks at the output of its server.
const IDLE_POLL: Duration = Duration::from_millis(200);

pub(super) struct ServerThread {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Box<Check>>,
    is_ending: bool,
    has_ended: bool,
    /// Why the server is not started again.
    disabled: Option<String>,
}

impl ServerThread {
    pub(super) fn start(
        definition: LanguageServer,
        root: PathBuf,
        jobs: Arc<Jobs>,
    ) -> Arc<ServerThread> {
        let shared = Arc::new(ServerThread { state: Mutex::default(), changed: Condvar::new() });
        let thread = std::thread::Builder::new().name("language server".to_owned());
        let for_thread = shared.clone();
        let run = move || {
            let mut server = Server { definition, root, running: None, failures: 0 };
            server.run(&for_thread, &jobs);
            if let Some((conversation, _)) = server.running {
                conversation.end();
            }
        };
        if thread.spawn(run).is_err() {
            shared.state.lock().has_ended = true;
        }
        shared
    }

    /// Adds a check. Returns it if the thread has ended.
    pub(super) fn submit(&self, check: Box<Check>) -> Result<(), Box<Check>> {
        let mut state = self.state.lock();
        if let Some(why) = &state.disabled {
            check.result.set(CheckOutcome::Failed(why.clone()));
            return Ok(());
        }
        if state.has_ended || state.is_ending {
            return Err(check);
        }
        if state.queue.len() >= MAX_QUEUE
            && let Some(oldest) = state.queue.pop_front()
        {
            oldest.result.set(CheckOutcome::Unanswered);
        }
        state.queue.push_back(check);
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn end(&self) {
        self.state.lock().is_ending = true;
        self.changed.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    /// Whether the server failed, so that it is not started again.
    pub(super) fn is_disabled(&self) -> bool {
        self.state.lock().disabled.is_some()
    }

    fn is_ending(&self) -> bool {
        self.state.lock().is_ending
    }

    /// Ends for good, because the server failed at this check.
    fn give_up(&self, check: &Check, why: String) {
        check.result.set(CheckOutcome::Failed(why.clone()));
        self.finish(Some(why));
    }

    /// Gives all waiting checks up.
    fn finish(&self, disabled: Option<String>) {
        let mut state = self.state.lock();
        state.has_ended = true;
        let outcome = match &disabled {
            Some(why) => CheckOutcome::Failed(why.clone()),
            None => CheckOutcome::Unanswered,
        };
        state.disabled = disabled;
        for check in state.queue.drain(..) {
            check.result.set(outcome.clone());
        }
    }
}

/// The server of a thread.
struct Server {
    definition: LanguageServer,
    root: PathBuf,
    /// The running server, and the files of the project that it knows.
    running: Option<(Conversation, Arc<ProjectFiles>)>,
    failures: u32,
}

/// Why a check has no errors to report.
enum Stopped {
    Failure(Failure),
    TimedOut,
    Ending,
    LargeText,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failure(failure)
    }
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Stopped {
        match error {
            ClientError::LargeText => Stopped::LargeText,
            error => Stopped::Failure(Failure::Broken(error.to_string())),
        }
    }
}

impl Server {
    fn run(&mut self, shared: &ServerThread, jobs: &Jobs) {
        while let Some(check) = self.next_check(shared) {
            loop {
                let outcome = match self.check(shared, jobs, &check) {
                    Ok(outcome) => outcome,
                    Err(Stopped::Failure(failure)) => match self.failed(&failure) {
                        Some(why) => return shared.give_up(&check, why),
                        None => continue,
                    },
                    // The same text would only take as long again.
                    Err(Stopped::TimedOut) => match self.failed(&Failure::timeout()) {
                        Some(why) => return shared.give_up(&check, why),
                        None => CheckOutcome::Unanswered,
                    },
                    Err(Stopped::Ending | Stopped::LargeText) => CheckOutcome::Unanswered,
                };
                check.result.set(outcome);
                break;
            }
        }
        shared.finish(None);
    }

    /// Ends a server that failed. Returns why it is not started again, if it is not.
    fn failed(&mut self, failure: &Failure) -> Option<String> {
        if let Some((conversation, _)) = self.running.take() {
            conversation.end();
        }
        self.failures += 1;
        match failure {
            Failure::Final(why) => Some(why.clone()),
            Failure::Broken(why) if self.failures >= MAX_FAILURES => Some(why.clone()),
            Failure::Broken(_) => None,
        }
    }

    /// The next check. `None` if there was none for a while, or if the server is to end.
    fn next_check(&mut self, shared: &ServerThread) -> Option<Box<Check>> {
        let idle_since = Instant::now();
        loop {
            {
                let mut state = shared.state.lock();
                if state.is_ending {
                    return None;
                }
                if let Some(check) = state.queue.pop_front() {
                    return Some(check);
                }
                if idle_since.elapsed() >= IDLE_TIME {
                    // No check is added after this.
                    state.has_ended = true;
                    return None;
                }
                shared.changed.wait_for(&mut state, IDLE_POLL);
            }
            let is_broken = match &mut self.running {
                Some((conversation, _)) => conversation.drain().is_err(),
                None => false,
            };
            // A check starts it again, and counts the failures.
            if is_broken && let Some((conversation, _)) = self.running.take() {
                conversation.end();
                self.failures += 1;
            }
        }
    }

    fn check(
        &mut self,
        shared: &ServerThread,
        jobs: &Jobs,
        check: &Check,
    ) -> Result<CheckOutcome, Stopped> {
        let answer_time = self.definition.answer_time;
        let conversation = self.conversation(jobs, check)?;
        let before = match &check.was {
            Some(was) => errors_of(shared, conversation, (check, was), answer_time)?,
            None => Errors::default(),
        };
        let after = errors_of(shared, conversation, (check, &check.now), answer_time)?;
        if before.is_cut || after.is_cut {
            return Ok(CheckOutcome::TooMany);
        }
        let was = check.was.as_deref().unwrap_or_default();
        let new = new_errors((was, &before.errors), (&check.now, &after.errors));
        Ok(CheckOutcome::Errors(new.into_iter().map(found).collect()))
    }

    /// The running server, which knows the files of the project as they are.
    fn conversation(&mut self, jobs: &Jobs, check: &Check) -> Result<&mut Conversation, Failure> {
        let known = self.running.take();
        let kept = match known {
            None => None,
            Some((mut conversation, project)) => match check.project.changes_since(&project) {
                ProjectChanges::Files(changes) => {
                    conversation.files_changed(&check.path, changes);
                    Some(conversation)
                }
                ProjectChanges::Restart => {
                    conversation.end();
                    None
                }
            },
        };
        let conversation = match kept {
            Some(conversation) => conversation,
            None => {
                let settings = ClientSettings {
                    root: self.root.clone(),
                    options: self.definition.options.clone(),
                    waits_for_quiescence: self.definition.waits_for_quiescence,
                };
                Conversation::start(jobs, &check.launch, settings)?
            }
        };
        let (conversation, _) = self.running.insert((conversation, check.project.clone()));
        Ok(conversation)
    }
}

/// Gives a text to the server, and waits for its errors.
fn errors_of(
    shared: &ServerThread,
    conversation: &mut Conversation,
    (check, text): (&Check, &str),
    answer_time: Duration,
) -> Result<Errors, Stopped> {
    let version = conversation.client().set_text(&check.path, &check.language, text)?;
    let loading = Instant::now() + LOAD_TIME;
    let mut answering = None;
    loop {
        conversation.exchange(&|| shared.is_ending())?;
        if let Some(errors) = conversation.answer(&check.path, version) {
            return Ok(errors);
        }
        if shared.is_ending() {
            return Err(Stopped::Ending);
        }
        let now = Instant::now();
        if conversation.is_settled() {
            if now >= *answering.get_or_insert(now + answer_time) {
                return Err(Stopped::TimedOut);
            }
        } else if now >= loading {
            return Err(Stopped::TimedOut);
        } else {
            answering = None;
        }
    }
}

fn found(error: &Diagnostic) -> FoundError {
    let Diagnostic { line, code, message } = error;
    FoundError { line: u64::from(*line) + 1, code: code.clone(), message: message.clone() }
}
