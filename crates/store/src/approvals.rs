//! Puts the approval questions of this process into the store, where any machine of the tenant can answer them.
//!
//! The questions are asked here, too, and work without the store. A thread talks to it; another one listens to answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::random_bytes;
use toolcrib_net::Backoff;

use crate::approval_rows::{self, ApprovalAnswer, NewApproval, OpenApproval, parse_id};
use crate::asked_approval::{ApprovalOutcome, ApprovalState, AskedEntry, OutcomeSlot};
use crate::connection::Connection;
use crate::error::StoreError;
use crate::schema::identify;
use crate::url::StoreUrl;

/// The time limit for a statement, and for connecting.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long an answer of this process waits for the store.
const OUTCOME: Duration = Duration::from_secs(2);

/// How often followed questions are looked at without a notification, which a proxy of connections may not pass on.
const LOOK: Duration = Duration::from_secs(5);

/// A connection without use is closed after this time.
const IDLE: Duration = Duration::from_secs(60);

/// How long the thread that listens waits before it looks whether there is still something to listen to.
const LISTEN: Duration = Duration::from_secs(1);

/// The shortest time between two looks because of notifications: every role can send them.
const LEAST_BETWEEN: Duration = Duration::from_millis(20);

/// The time that the end of the program waits for the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// More questions than calls can wait.
const MAX_ASKED: usize = 4_096;

/// Limits of texts, in bytes. The table has the same.
const MAX_QUESTION_BYTES: usize = 128 << 10;
const MAX_RULE_BYTES: usize = 4_096;
const MAX_CALLER_BYTES: usize = 1_024;
const MAX_BY_BYTES: usize = 200;
const MAX_MESSAGE_BYTES: usize = 8_192;

/// The questions of a process in the store. Dropping it sends the last answers, within a moment.
pub struct SharedApprovals {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    /// The name of this machine, for people.
    node: String,
    notice: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: Vec<Arc<AskedEntry>>,
    requests: VecDeque<Request>,
    /// There may be an answer.
    is_notified: bool,
    is_ending: bool,
    has_ended: bool,
}

/// Something that the store is told about a question.
struct Request {
    entry: Arc<AskedEntry>,
    wanted: Wanted,
    slot: Arc<OutcomeSlot>,
}

enum Wanted {
    /// Settles it by an answer; and uses that one, or another one that was first.
    Settle {
        answer: ApprovalAnswer,
        uses: bool,
    },
    /// Uses the answer.
    Take,
    GiveBack,
    Withdraw,
}

/// A question of this process. Dropping it ends following, and the question stays in the store.
pub struct AskedApproval {
    entry: Arc<AskedEntry>,
    shared: Arc<Shared>,
}

impl SharedApprovals {
    /// Starts the threads. `notice` gets a sentence when the store cannot be asked, and when it can again.
    ///
    /// # Errors
    ///
    /// Fails if a thread cannot be started. A store that cannot be reached is no error.
    pub fn start(
        url: StoreUrl,
        node: &str,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<SharedApprovals> {
        let (node, notice) = (node.chars().take(50).collect(), Box::new(notice));
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { url, node, notice, state, changed });
        let asking = shared.clone();
        std::thread::Builder::new().name("approvals".to_owned()).spawn(move || {
            Asking::new(&asking).run();
            asking.state.lock().has_ended = true;
            asking.changed.notify_all();
        })?;
        let listening = shared.clone();
        std::thread::Builder::new()
            .name("approval answers".to_owned())
            .spawn(move || listening.listen())?;
        Ok(SharedApprovals { shared })
    }

    /// Puts a question into the store, without waiting.
    pub fn ask(&self, new: NewApproval) -> AskedApproval {
        let too_long = new.question.len() > MAX_QUESTION_BYTES;
        let rule = new.rule.filter(|rule| rule.len() <= MAX_RULE_BYTES);
        let caller = new.caller.map(|caller| bounded(&caller, MAX_CALLER_BYTES));
        let call = random_bytes::<16>().unwrap_or_default().map(|byte| format!("{byte:02x}"));
        let entry = Arc::new(AskedEntry::new(NewApproval { rule, caller, ..new }, call.concat()));
        let mut state = self.shared.state.lock();
        if too_long {
            entry.set_state(ApprovalState::Unavailable("the question is too long".to_owned()));
            entry.stop_following();
        } else if state.asked.len() >= MAX_ASKED {
            let why = "too many questions are open".to_owned();
            entry.set_state(ApprovalState::Unavailable(why));
            entry.stop_following();
        } else {
            state.asked.push(entry.clone());
            self.shared.changed.notify_all();
        }
        drop(state);
        AskedApproval { entry, shared: self.shared.clone() }
    }
}

impl Drop for SharedApprovals {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_ANSWERS;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

impl AskedApproval {
    /// How the question is in the store, as far as it is known.
    pub fn state(&self) -> ApprovalState {
        self.entry.state()
    }

    /// The same, after it was asked, or could not be. Waits at most for a time.
    pub fn wait_until_known(&self, most: Duration) -> ApprovalState {
        self.entry.wait_until_known(most)
    }

    /// Settles the question by an answer that was given here, unless the store has one. If the call `uses` the answer, no
    /// other call gets it.
    pub fn settle(&self, answer: &ApprovalAnswer, uses: bool) -> ApprovalOutcome {
        let answer = ApprovalAnswer {
            allows: answer.allows,
            by: bounded(&answer.by, MAX_BY_BYTES),
            message: answer.message.as_deref().map(|text| bounded(text, MAX_MESSAGE_BYTES)),
        };
        self.request(Wanted::Settle { answer, uses }).wait(OUTCOME)
    }

    /// Uses the answer for this call: no other call gets it.
    pub fn take(&self) -> ApprovalOutcome {
        self.request(Wanted::Take).wait(OUTCOME)
    }

    /// The call was cancelled and has not used its answer.
    pub fn give_back(&self) {
        self.request(Wanted::GiveBack);
    }

    /// The question needs no answer any more.
    pub fn withdraw(&self) {
        if self.entry.withdraw() {
            self.request(Wanted::Withdraw);
        }
    }

    /// The call does not wait any more. The question stays in the store.
    pub fn leave(&self) {
        self.entry.stop_following();
    }

    fn request(&self, wanted: Wanted) -> Arc<OutcomeSlot> {
        let slot = Arc::new(OutcomeSlot::default());
        // A question that the store does not have cannot be settled there.
        if self.entry.id().is_none() {
            slot.fill(ApprovalOutcome::Unreachable);
            return slot;
        }
        let mut state = self.shared.state.lock();
        let request = Request { entry: self.entry.clone(), wanted, slot: slot.clone() };
        if state.requests.len() >= MAX_ASKED
            && let Some(oldest) = state.requests.pop_front()
        {
            oldest.slot.fill(ApprovalOutcome::Unreachable);
        }
        state.requests.push_back(request);
        self.shared.changed.notify_all();
        slot
    }
}

impl Drop for AskedApproval {
    fn drop(&mut self) {
        self.entry.stop_following();
    }
}

fn bounded(text: &str, most: usize) -> String {
    let text: String = text.chars().filter(|char| *char != '\0').collect();
    text[..text.floor_char_boundary(most)].to_owned()
}

impl Shared {
    /// Listens to answers while there are followed questions.
    fn listen(&self) {
        let (mut connection, mut backoff) = (None, Backoff::default());
        loop {
            {
                let mut state = self.state.lock();
                while !state.is_ending && !state.asked.iter().any(|entry| entry.can_change()) {
                    if self.changed.wait_for(&mut state, IDLE).timed_out() {
                        connection = None;
                    }
                }
                if state.is_ending {
                    return;
                }
            }
            let listening = match connection.take() {
                Some(listening) => Ok(listening),
                None => self.connect_listener(),
            };
            let notified = listening.and_then(|mut listening: Connection| {
                let notified = listening.wait_for_notification(LISTEN)?;
                connection = Some(listening);
                Ok(notified)
            });
            match notified {
                Ok(false) => backoff.reset(),
                Ok(true) => {
                    self.notified();
                    std::thread::sleep(LEAST_BETWEEN);
                }
                // The other thread reports the problem.
                Err(_) => {
                    self.changed.wait_for(&mut self.state.lock(), backoff.next_wait());
                }
            }
        }
    }

    fn connect_listener(&self) -> Result<Connection, StoreError> {
        let mut connection = Connection::open_within(&self.url, PATIENCE)?;
        identify(&mut connection)?;
        approval_rows::listen(&mut connection)?;
        // An answer may have come before.
        self.notified();
        Ok(connection)
    }

    fn notified(&self) {
        self.state.lock().is_notified = true;
        self.changed.notify_all();
    }
}

/// The state of the thread that talks to the store.
struct Asking<'s> {
    shared: &'s Shared,
    connection: Option<Connection>,
    last_use: Instant,
    last_look: Instant,
    not_before: Option<Instant>,
    backoff: Backoff,
    problem: Option<String>,
}

impl<'s> Asking<'s> {
    fn new(shared: &'s Shared) -> Asking<'s> {
        let now = Instant::now();
        Asking {
            shared,
            connection: None,
            last_use: now,
            last_look: now,
            not_before: None,
            backoff: Backoff::default(),
            problem: None,
        }
    }

    fn run(&mut self) {
        loop {
            let (asked, requests, looks, is_ending) = self.wait();
            self.round(&asked, requests, looks);
            if is_ending {
                return;
            }
        }
    }

    /// Waits for something to do.
    fn wait(&mut self) -> (Vec<Arc<AskedEntry>>, VecDeque<Request>, bool, bool) {
        let mut state = self.shared.state.lock();
        let is_new = |entry: &Arc<AskedEntry>| entry.state() == ApprovalState::Unknown;
        loop {
            state.asked.retain(|entry| entry.can_change());
            let is_over = self.last_look.elapsed() >= LOOK;
            let looks = state.is_notified || (is_over && !state.asked.is_empty());
            let is_wanted = looks
                || state.is_ending
                || !state.requests.is_empty()
                || state.asked.iter().any(is_new);
            if is_wanted {
                break;
            }
            self.connection.take_if(|_| self.last_use.elapsed() > IDLE);
            let most = if state.asked.is_empty() { IDLE } else { LOOK };
            self.shared.changed.wait_for(&mut state, most);
        }
        let looks = state.is_notified || self.last_look.elapsed() >= LOOK;
        state.is_notified = false;
        let requests = std::mem::take(&mut state.requests);
        (state.asked.clone(), requests, looks, state.is_ending)
    }

    fn round(&mut self, asked: &[Arc<AskedEntry>], mut requests: VecDeque<Request>, looks: bool) {
        let is_down = self.not_before.is_some_and(|until| Instant::now() < until);
        let done =
            if is_down { Err(None) } else { self.talk(asked, &mut requests, looks).map_err(Some) };
        match done {
            Ok(()) => {
                self.not_before = None;
                self.backoff.reset();
                if self.problem.take().is_some() {
                    (self.shared.notice)("approval questions are in the store again");
                }
            }
            Err(error) => {
                if let Some(error) = error {
                    self.connection = None;
                    self.not_before = Some(Instant::now() + self.backoff.next_wait());
                    let problem = error.to_string();
                    if self.problem.is_none() {
                        (self.shared.notice)(&format!(
                            "approval questions cannot be put into the store: {problem}. They are asked only here."
                        ));
                    }
                    self.problem = Some(problem);
                }
                self.fail(asked, requests);
            }
        }
    }

    /// The store cannot be asked. Answers for it are sent later.
    fn fail(&mut self, asked: &[Arc<AskedEntry>], requests: VecDeque<Request>) {
        let why = self.problem.clone().unwrap_or_default();
        for entry in asked {
            entry.set_state(ApprovalState::Unavailable(why.clone()));
        }
        let now = Instant::now();
        for request in &requests {
            request.slot.fill(ApprovalOutcome::Unreachable);
        }
        let left = requests.into_iter().filter(|request| {
            request.entry.until > now && !matches!(request.wanted, Wanted::GiveBack)
        });
        let mut state = self.shared.state.lock();
        for request in left.collect::<Vec<_>>().into_iter().rev() {
            state.requests.push_front(request);
        }
        // Not at once again: the requests that are left would be tried in a loop.
        if !state.is_ending {
            let pause = self.not_before.map(|until| until.saturating_duration_since(now));
            let is_new = |state: &State| {
                let is_unanswered = |request: &Request| !request.slot.is_filled();
                let is_unknown = |entry: &Arc<AskedEntry>| entry.state() == ApprovalState::Unknown;
                state.is_ending
                    || state.requests.iter().any(is_unanswered)
                    || state.asked.iter().any(is_unknown)
            };
            let until = now + pause.unwrap_or_default();
            while !is_new(&state) {
                if self.shared.changed.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
        }
    }

    fn talk(
        &mut self,
        asked: &[Arc<AskedEntry>],
        requests: &mut VecDeque<Request>,
        looks: bool,
    ) -> Result<(), StoreError> {
        let shared = self.shared;
        self.last_use = Instant::now();
        // Answers may have come while there was no connection.
        let looks = looks || self.connection.is_none();
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let mut connection = Connection::open_within(&shared.url, PATIENCE)?;
                identify(&mut connection)?;
                none.insert(connection)
            }
        };
        for entry in asked.iter().filter(|entry| entry.can_change() && entry.id().is_none()) {
            put(connection, entry, &shared.node)?;
        }
        while let Some(request) = requests.front() {
            let outcome = tell(connection, request)?;
            let answered_late = !request.slot.fill(outcome.clone());
            if let (true, ApprovalOutcome::Other(_), Wanted::Settle { uses: true, .. }) =
                (answered_late, outcome, &request.wanted)
            {
                (shared.notice)(
                    "an approval question was answered here while the store could not be reached, and the store has another answer, which was not used",
                );
            }
            requests.pop_front();
        }
        if looks {
            self.last_look = Instant::now();
            look(connection, asked, &shared.node)?;
        }
        Ok(())
    }
}

/// Asks a question. Fails only if the connection is lost.
fn put(connection: &mut Connection, entry: &AskedEntry, node: &str) -> Result<(), StoreError> {
    match approval_rows::ask(connection, &entry.new, node) {
        Ok((id, is_answered)) => entry.asked(id, is_answered),
        Err(error) if error.ends_connection() => return Err(error),
        Err(error) => entry.set_state(ApprovalState::Unavailable(error.to_string())),
    }
    Ok(())
}

/// Tells the store about a question. Fails only if the connection is lost.
fn tell(connection: &mut Connection, request: &Request) -> Result<ApprovalOutcome, StoreError> {
    let Request { entry, wanted, .. } = request;
    let Some(id) = entry.id() else { return Ok(ApprovalOutcome::Unreachable) };
    let question = (id, entry.new.digest.as_str());
    let call = entry.call.as_str();
    let told = match wanted {
        Wanted::Settle { answer, uses } => {
            let for_call = uses.then_some(call);
            approval_rows::answer(connection, question, Some(answer), for_call)
                .map(|answered| settled(answered, answer, (call, *uses)))
        }
        Wanted::Take => approval_rows::answer(connection, question, None, Some(call))
            .map(|answered| taken(answered, call)),
        Wanted::GiveBack => {
            approval_rows::give_back(connection, id, call).map(|()| ApprovalOutcome::Own)
        }
        Wanted::Withdraw => approval_rows::withdraw(connection, id).map(|()| ApprovalOutcome::Own),
    };
    match told {
        Err(error) if error.ends_connection() => Err(error),
        Err(_) => Ok(ApprovalOutcome::Unreachable),
        Ok(outcome) => Ok(outcome),
    }
}

/// The result of an answer of this process.
fn settled(
    answered: Option<approval_rows::Answered>,
    given: &ApprovalAnswer,
    (call, uses): (&str, bool),
) -> ApprovalOutcome {
    // The store has lost the question.
    let Some(answered) = answered else { return ApprovalOutcome::Own };
    match (answered.answer, answered.used_by) {
        // It has ended without an answer there.
        (None, _) => ApprovalOutcome::Own,
        (Some(_), Some(used_by)) if used_by != call && uses => ApprovalOutcome::UsedElsewhere,
        // It is the same if it was sent before and the reply was lost.
        (Some(answer), _) if answered.has_won || answer == *given => ApprovalOutcome::Own,
        (Some(_), None) if answered.is_over => ApprovalOutcome::Own,
        (Some(answer), _) => ApprovalOutcome::Other(answer),
    }
}

/// The answer that a call uses.
fn taken(answered: Option<approval_rows::Answered>, call: &str) -> ApprovalOutcome {
    match answered.and_then(|answered| Some((answered.answer?, answered.used_by))) {
        None => ApprovalOutcome::Expired,
        Some((answer, Some(used_by))) if used_by == call => ApprovalOutcome::Other(answer),
        Some((_, Some(_))) => ApprovalOutcome::UsedElsewhere,
        Some((_, None)) => ApprovalOutcome::Expired,
    }
}

/// Looks at the questions that calls wait for.
fn look(
    connection: &mut Connection,
    asked: &[Arc<AskedEntry>],
    node: &str,
) -> Result<(), StoreError> {
    let known: Vec<_> = asked.iter().filter_map(|entry| Some((entry.id()?, entry))).collect();
    if known.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = known.iter().map(|(id, _)| *id).collect();
    let found = approval_rows::followed(connection, &ids)?;
    for (id, entry) in known {
        match found.iter().find(|found| found.id == id) {
            None => {
                entry.forget_id();
                put(connection, entry, node)?;
            }
            Some(found) if found.used_by.as_ref().is_some_and(|used_by| *used_by != entry.call) => {
                entry.set_state(ApprovalState::UsedElsewhere);
            }
            Some(found) if found.is_over => entry.set_state(ApprovalState::Expired),
            Some(found) => entry.asked(id, found.is_answered),
        }
    }
    Ok(())
}

/// The questions that wait for an answer and that the role sees, oldest first.
///
/// # Errors
///
/// Fails if the store cannot be asked.
pub fn open_approvals(url: &StoreUrl) -> Result<Vec<OpenApproval>, StoreError> {
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    approval_rows::open(&mut connection)
}

/// What [`answer_approval`] has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenApproval {
    /// The answer settled the question.
    Settled,
    /// It has this answer already.
    Before(ApprovalAnswer),
    /// It was not answered in time, or is needed no more.
    Over,
    /// The tenant has no such question.
    Unknown,
}

/// Answers a question of the tenant, unless it has an answer.
///
/// # Errors
///
/// Fails if the store cannot be asked, or if the id is none. After a lost connection, the answer may have been given.
pub fn answer_approval(
    url: &StoreUrl,
    id: &str,
    answer: &ApprovalAnswer,
) -> Result<GivenApproval, StoreError> {
    let question = parse_id(id).ok_or_else(|| {
        StoreError::settings("the id of a question is a number and 8 digits, such as 17-3fa9c2d1")
    })?;
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    let given = ApprovalAnswer {
        allows: answer.allows,
        by: bounded(&answer.by, MAX_BY_BYTES),
        message: answer.message.as_deref().map(|text| bounded(text, MAX_MESSAGE_BYTES)),
    };
    let answered = approval_rows::answer(&mut connection, question, Some(&given), None)?;
    Ok(match answered {
        None => GivenApproval::Unknown,
        Some(answered) if answered.has_won => GivenApproval::Settled,
        Some(answered) => answered.answer.map_or(GivenApproval::Over, GivenApproval::Before),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval_rows::Answered;

    fn given() -> ApprovalAnswer {
        ApprovalAnswer { allows: true, by: "me".to_owned(), message: None }
    }

    fn answered(answer: ApprovalAnswer, is_over: bool, used_by: Option<&str>) -> Option<Answered> {
        let used_by = used_by.map(str::to_owned);
        Some(Answered { has_won: false, is_over, answer: Some(answer), used_by })
    }

    #[test]
    fn one_answer_is_used_by_one_call() {
        let other = || ApprovalAnswer { allows: false, ..given() };
        let settle = |answered, uses| settled(answered, &given(), ("me", uses));
        let own = ApprovalOutcome::Own;
        // The reply to the same answer was lost.
        assert_eq!(settle(answered(given(), false, Some("me")), true), own);
        assert_eq!(settle(answered(given(), false, None), false), own);
        // Another answer was first.
        let first = ApprovalOutcome::Other(other());
        assert_eq!(settle(answered(other(), false, Some("me")), true), first);
        assert_eq!(settle(answered(other(), false, None), false), first);
        let elsewhere = ApprovalOutcome::UsedElsewhere;
        assert_eq!(settle(answered(given(), false, Some("you")), true), elsewhere);
        // The question has ended there, or was lost.
        assert_eq!(settle(answered(other(), true, None), true), own);
        assert_eq!(settle(None, true), own);
        assert_eq!(taken(answered(other(), false, Some("me")), "me"), first);
        assert_eq!(taken(answered(other(), false, Some("you")), "me"), elsewhere);
        assert_eq!(taken(answered(other(), true, None), "me"), ApprovalOutcome::Expired);
        assert_eq!(taken(None, "me"), ApprovalOutcome::Expired);
    }
}
