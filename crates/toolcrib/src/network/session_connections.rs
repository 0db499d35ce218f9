//! Decides on the connections of a session's commands.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib_exec::Gateway;
use toolcrib_fs::{ConnectionRecord as StoredConnection, Journal, now_ms};
use toolcrib_net::{
    AddressRuling, Attempt, ConnectionPolicy, ConnectionRecord, Outcome, RequestLine,
    RequestRefusal, RequestRuling, Resolver, Ruling,
};
use toolcrib_policy::{
    Access, ApprovalScope, Decision, Policy, RequestSubject, RequestVerdict, SessionApprovals,
    Verdict,
};

use super::gateway::SessionGateway;
use super::inspection::Inspection;
use super::log::{ConnectionSink, entry};
use super::notes::{HostNote, HostOutcome};

/// How long a connection waits for an answer. The least patient clients give up after 10 s.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// Hosts that are remembered per command for its reply.
const MAX_NOTES: usize = 50;

/// Commands whose hosts and answers are remembered. Beyond that, all are forgotten.
const MAX_COMMANDS: usize = 1_000;

/// Questions that wait at a time. Beyond that, connections are refused.
const MAX_QUESTIONS: usize = 20;

/// How long the reply about a command that has ended waits for the result of its inspected connections.
const RESULT_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 500 });

/// The connections of one session: rules, approvals, open questions and notes.
pub(crate) struct SessionConnections {
    /// Ports of commands that are reachable on this machine's loopback.
    expose: Vec<u16>,
    /// `None` if no host is inspected.
    inspection: Option<Arc<Inspection>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    rules: Option<SessionRules>,
    /// The number of calls that can ask the approver now.
    askers: usize,
    /// Questions without an answer, in order.
    questions: Vec<OpenQuestion>,
    by_job: HashMap<Arc<str>, JobConnections>,
    exposed: HashMap<u16, Result<(), String>>,
}

/// The hosts of one command.
#[derive(Default)]
struct JobConnections {
    /// Allowed for this command before it started.
    approved: SessionApprovals,
    /// Answers that hold for this command only.
    answers: HashMap<HostQuestion, HostAnswer>,
    /// Not reported yet.
    notes: Vec<HostNote>,
    /// Numbers of inspected connections that have not ended.
    inspected: HashSet<u64>,
}

/// The rules and the answers of a session, and where connections are recorded.
pub(crate) struct SessionRules {
    pub(crate) policy: Arc<Policy>,
    pub(crate) remembered: SessionApprovals,
    pub(crate) refused: SessionApprovals,
    pub(crate) journal: Option<Journal>,
    /// Receives connections.
    pub(crate) on_connection: Option<ConnectionSink>,
    pub(crate) session: u64,
    pub(crate) workspace: String,
}

/// A host and a port that the approver is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HostQuestion {
    pub(crate) host: String,
    pub(crate) port: u16,
}

struct OpenQuestion {
    question: HostQuestion,
    /// The commands that wait.
    jobs: Vec<Arc<str>>,
    /// Whether a call asks it.
    is_asked: bool,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAnswer {
    /// Allowed for the commands that wait.
    Allowed,
    /// Refused for the commands that wait.
    Refused,
    /// No answer came in time.
    Unanswered,
    /// The rules and approvals of the session decide now.
    ByRules,
}

/// The decision on a connection.
enum Decided {
    Allowed { rule: String },
    Refused { rule: String, why: String, remedy: String },
}

impl fmt::Debug for SessionConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionConnections").finish_non_exhaustive()
    }
}

impl SessionConnections {
    /// The network of a new session, and its gateway for commands.
    pub(crate) fn new(
        resolver: Arc<dyn Resolver>,
        expose: Vec<u16>,
        inspection: Option<Arc<Inspection>>,
    ) -> (Arc<SessionConnections>, Arc<dyn Gateway>) {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let network = Arc::new(SessionConnections { expose, inspection, state, changed });
        let gateway = SessionGateway { network: network.clone(), resolver };
        (network, Arc::new(gateway))
    }

    /// Takes over the rules and answers of the session. Called before each command, and after each answer.
    pub(crate) fn set_rules(&self, rules: SessionRules) {
        self.state.lock().rules = Some(rules);
        self.changed.notify_all();
    }

    /// Inspected hosts, if there are some.
    pub(super) fn inspection(&self) -> Option<&Inspection> {
        self.inspection.as_deref()
    }

    /// Whether a port is to be reachable on this machine's loopback.
    pub(super) fn exposes(&self, port: u16) -> bool {
        self.expose.contains(&port)
    }

    /// A port is reachable now, or cannot be, for this reason.
    pub(super) fn set_exposed(&self, port: u16, outcome: Result<(), String>) {
        self.state.lock().exposed.insert(port, outcome);
    }

    /// Whether a port is reachable on this machine's loopback. `None` if that was not wanted.
    pub(crate) fn exposed(&self, port: u16) -> Option<Result<(), String>> {
        self.state.lock().exposed.get(&port).cloned()
    }

    /// Allows hosts to a command that is about to be started.
    pub(crate) fn allow_once(&self, job: &str, hosts: SessionApprovals) {
        if hosts.is_empty() {
            return;
        }
        self.state.lock().job(&job.into()).approved = hosts;
    }

    /// The hosts that a command tried to reach since the last call of this method, in order.
    ///
    /// The notes of a command that `has_ended` are complete: whether a program accepted the certificate of an inspected
    /// host is known only after it has closed the connection.
    pub(crate) fn take_notes(&self, job: &str, has_ended: bool) -> Vec<HostNote> {
        let mut state = self.state.lock();
        let is_open = |state: &mut State| {
            state.by_job.get(job).is_some_and(|job| has_ended && !job.inspected.is_empty())
        };
        self.changed.wait_while_for(&mut state, is_open, RESULT_TIMEOUT);
        state.by_job.get_mut(job).map(|job| std::mem::take(&mut job.notes)).unwrap_or_default()
    }

    /// A call begins to wait for its command, and can ask the approver.
    pub(crate) fn add_asker(&self) {
        self.state.lock().askers += 1;
    }

    /// A call no longer waits.
    pub(crate) fn remove_asker(&self) {
        let mut state = self.state.lock();
        state.askers = state.askers.saturating_sub(1);
        if state.askers == 0 {
            state.questions.clear();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Takes the next question that no call asks yet.
    pub(crate) fn take_question(&self) -> Option<HostQuestion> {
        let mut state = self.state.lock();
        let next = state.questions.iter_mut().find(|open| !open.is_asked)?;
        next.is_asked = true;
        Some(next.question.clone())
    }

    /// A question has its answer.
    pub(crate) fn answer(&self, question: &HostQuestion, answer: HostAnswer) {
        let mut state = self.state.lock();
        let answered = state.questions.extract_if(.., |open| open.question == *question);
        let jobs: Vec<Arc<str>> = answered.flat_map(|open| open.jobs).collect();
        if answer != HostAnswer::ByRules {
            for job in &jobs {
                state.job(job).answers.insert(question.clone(), answer);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Decides on a connection, and waits for an answer if a call can ask.
    fn decide_or_ask(&self, attempt: &Attempt) -> Decided {
        let question = HostQuestion { host: attempt.host.to_string(), port: attempt.port };
        let requester = &attempt.requester;
        let until = Instant::now() + ANSWER_TIMEOUT;
        let mut has_waited = false;
        let mut state = self.state.lock();
        loop {
            let Some(verdict) = state.rules.as_ref().map(|rules| rules.decide(&question)) else {
                return Decided::refused("network:list", "the session has no rules yet");
            };
            if verdict.decision != Decision::Ask {
                return Decided::by(verdict);
            }
            if state.was_started_with(requester, &verdict.asks) {
                return Decided::Allowed { rule: "answer".to_owned() };
            }
            match state.by_job.get(requester).and_then(|job| job.answers.get(&question)) {
                Some(HostAnswer::Allowed) => return Decided::Allowed { rule: "answer".to_owned() },
                Some(HostAnswer::Refused) => {
                    return Decided::refused("answer", "the answer was no");
                }
                Some(_) => return Decided::unanswered(attempt, verdict),
                None if state.askers == 0 => return Decided::by(verdict),
                None => {}
            }
            let is_full = state.questions.len() >= MAX_QUESTIONS;
            let open = state.questions.iter_mut().find(|open| open.question == question);
            match open {
                Some(open) if open.jobs.contains(requester) => {}
                Some(open) => open.jobs.push(requester.clone()),
                None if has_waited || is_full => {
                    return Decided::by(verdict);
                }
                None => state.questions.push(OpenQuestion {
                    question: question.clone(),
                    jobs: vec![requester.clone()],
                    is_asked: false,
                }),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Decided::unanswered(attempt, verdict);
            }
            has_waited = true;
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Whether the requests of a connection are decided on. Fails with the reason if that is not possible.
    fn inspects(&self, attempt: &Attempt) -> Result<bool, String> {
        let (host, port) = (attempt.host.to_string(), attempt.port);
        let state = self.state.lock();
        let by_rule = state.rules.as_ref().is_some_and(|rules| rules.policy.inspects(&host, port));
        let inspection = self.inspection.as_deref();
        let has_credential = |one: &Inspection| one.has_credential_for(&attempt.host, port);
        if !by_rule && !inspection.is_some_and(has_credential) {
            return Ok(false);
        }
        let problem = inspection.map_or(Some("this build does not"), Inspection::problem);
        problem.map_or(Ok(true), |problem| Err(format!("requests cannot be inspected: {problem}")))
    }

    fn note(&self, attempt: &Attempt, request: Option<&str>, outcome: HostOutcome) {
        let mut state = self.state.lock();
        let notes = &mut state.job(&attempt.requester).notes;
        let request = request.map(str::to_owned);
        let note = HostNote { target: attempt.target(), request, outcome };
        if notes.len() < MAX_NOTES && !notes.contains(&note) {
            notes.push(note);
        }
    }
}

impl ConnectionPolicy for SessionConnections {
    fn decide(&self, attempt: &Attempt) -> Ruling {
        let target = attempt.target();
        let (decided, is_inspected) = match (self.decide_or_ask(attempt), self.inspects(attempt)) {
            (Decided::Allowed { .. }, Err(problem)) => {
                (Decided::refused("network:inspect", &problem), false)
            }
            (decided, is_inspected) => (decided, is_inspected.unwrap_or(false)),
        };
        match decided {
            Decided::Allowed { rule } => {
                self.note(attempt, None, HostOutcome::Allowed { rule: rule.clone() });
                if is_inspected {
                    let mut state = self.state.lock();
                    state.job(&attempt.requester).inspected.insert(attempt.number);
                    Ruling::Inspect { rule }
                } else {
                    Ruling::Allow { rule }
                }
            }
            Decided::Refused { rule, why, remedy } => {
                let outcome = HostOutcome::Refused { rule: rule.clone(), why: why.clone(), remedy };
                self.note(attempt, None, outcome);
                let reason =
                    format!("Toolcrib refused the connection to {target}: {why} ({rule}).");
                Ruling::Deny { rule, reason }
            }
        }
    }

    fn decide_request(&self, attempt: &Attempt, request: &RequestLine<'_>) -> RequestRuling {
        let subject = RequestSubject {
            method: request.method,
            path: request.path.path(),
            query: request.path.query(),
            is_upgrade: request.is_upgrade,
        };
        let state = self.state.lock();
        let host = attempt.host.to_string();
        let verdict = state
            .rules
            .as_ref()
            .map(|rules| rules.policy.decide_request(&host, attempt.port, &subject));
        match verdict {
            Some(RequestVerdict { is_allowed: true, .. }) => RequestRuling::Allow,
            Some(RequestVerdict { rule, why, remedy, .. }) => {
                RequestRuling::Deny(RequestRefusal { rule, why, remedy })
            }
            None => RequestRuling::Deny(RequestRefusal {
                rule: "network:list".to_owned(),
                why: "the session has no rules yet".to_owned(),
                remedy: String::new(),
            }),
        }
    }

    fn request_refused(&self, attempt: &Attempt, subject: &str, refusal: &RequestRefusal) {
        let RequestRefusal { rule, why, remedy } = refusal.clone();
        let reason = format!("{subject}: {why}");
        self.note(attempt, Some(subject), HostOutcome::Refused { rule: rule.clone(), why, remedy });
        // The number of no connection: the one of the request goes on.
        let attempt = Attempt { number: 0, ..attempt.clone() };
        let outcome = Outcome::Refused(reason);
        let (address, duration) = (None, Duration::ZERO);
        let record =
            ConnectionRecord { attempt, outcome, rule, address, sent: 0, received: 0, duration };
        self.store(&record, false);
    }

    fn address_ruling(&self, address: SocketAddr) -> Option<AddressRuling> {
        let state = self.state.lock();
        let Some(decision) =
            state.rules.as_ref()?.policy.decide_address(address.ip(), address.port())
        else {
            // An approval names the address as well. Whether it is one of this command is decided later.
            return state.has_approved(address).then_some(AddressRuling::Ask);
        };
        Some(match decision {
            (Decision::Allow, false) => AddressRuling::Allow,
            (Decision::Allow, true) => AddressRuling::AllowInspected,
            (Decision::Ask, _) => AddressRuling::Ask,
            (Decision::Deny, _) => AddressRuling::Deny,
        })
    }

    fn connected(&self, attempt: &Attempt, rule: &str, address: SocketAddr) {
        let record = ConnectionRecord {
            attempt: attempt.clone(),
            outcome: Outcome::Connected,
            rule: rule.to_owned(),
            address: Some(address),
            sent: 0,
            received: 0,
            duration: Duration::ZERO,
        };
        self.store(&record, true);
    }

    fn refused(&self, attempt: &Attempt, reason: &str) {
        let (why, remedy) = (reason.to_owned(), String::new());
        self.note(attempt, None, HostOutcome::Failed { why, remedy });
    }

    fn address_refused(&self, attempt: &Attempt, reason: &str, address: SocketAddr) {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let state = self.state.lock();
        let remedy = state.rules.as_ref().map(|rules| rules.policy.address_remedy(ip, port));
        drop(state);
        let (why, remedy) = (reason.to_owned(), remedy.unwrap_or_default());
        self.note(attempt, None, HostOutcome::Failed { why, remedy });
    }

    fn ended(&self, record: &ConnectionRecord) {
        self.store(record, false);
        let Attempt { requester, number, .. } = &record.attempt;
        if let Some(job) = self.state.lock().by_job.get_mut(requester) {
            job.inspected.remove(number);
        }
        self.changed.notify_all();
    }
}

impl SessionConnections {
    /// Stores a connection that has ended or `is_open`.
    fn store(&self, record: &ConnectionRecord, is_open: bool) {
        let (decision, why) = match &record.outcome {
            Outcome::Connected => ("allowed", None),
            Outcome::Refused(why) => ("refused", Some(why.clone())),
            Outcome::Failed(why) => ("failed", Some(why.clone())),
        };
        let stored = |rules: &SessionRules| {
            let stored = StoredConnection {
                time_ms: now_ms(),
                process: 0,
                session: rules.session,
                workspace: rules.workspace.clone(),
                job: record.attempt.requester.to_string(),
                number: record.attempt.number,
                is_open,
                host: record.attempt.host.to_string(),
                port: record.attempt.port,
                address: record.address.map(|address| address.to_string()),
                decision: decision.to_owned(),
                rule: record.rule.clone(),
                why,
                sent: record.sent,
                received: record.received,
                duration_ms: milliseconds(record.duration),
            };
            (rules.journal.clone(), rules.on_connection.clone(), stored)
        };
        let stored = self.state.lock().rules.as_ref().map(stored);
        let Some((journal, on_connection, stored)) = stored else { return };
        if let Some(on_connection) = on_connection {
            on_connection(&entry(stored.clone()));
        }
        if let Some(journal) = journal {
            // `doctor` reports a journal that cannot be written.
            let _ = journal.record_connection(stored);
        }
    }
}

impl State {
    fn job(&mut self, id: &Arc<str>) -> &mut JobConnections {
        if self.by_job.len() >= MAX_COMMANDS && !self.by_job.contains_key(id) {
            self.by_job.clear();
        }
        self.by_job.entry(id.clone()).or_default()
    }

    /// Whether an answer for the session or for a command covers an address that no rule names.
    fn has_approved(&self, address: SocketAddr) -> bool {
        let scope = ApprovalScope::address(address);
        let is_remembered = |rules: &SessionRules| rules.remembered.contains(&scope);
        self.rules.as_ref().is_some_and(is_remembered)
            || self.by_job.values().any(|job| job.approved.contains(&scope))
    }

    /// Whether all of these accesses were allowed for a command before it started.
    fn was_started_with(&self, job: &Arc<str>, asks: &SessionApprovals) -> bool {
        let covers = |allowed: &SessionApprovals| asks.iter().all(|ask| allowed.contains(ask));
        !asks.is_empty() && self.by_job.get(job).is_some_and(|job| covers(&job.approved))
    }
}

impl SessionRules {
    fn decide(&self, question: &HostQuestion) -> Verdict {
        let verdict = self.policy.decide(&[question.access()], &self.remembered);
        if verdict.decision == Decision::Ask && !self.refused.is_disjoint(&verdict.asks) {
            Verdict {
                decision: Decision::Deny,
                rule: "session".to_owned(),
                why: "it was refused for good by an earlier answer".to_owned(),
                remedy: String::new(),
                ..verdict
            }
        } else {
            verdict
        }
    }
}

impl HostQuestion {
    pub(crate) fn access(&self) -> Access {
        Access::Connect(self.host.clone(), self.port)
    }
}

impl Decided {
    fn by(verdict: Verdict) -> Decided {
        let Verdict { decision, rule, why, remedy, .. } = verdict;
        match decision {
            Decision::Allow => Decided::Allowed { rule },
            Decision::Ask | Decision::Deny => Decided::Refused { rule, why, remedy },
        }
    }

    fn refused(rule: &str, why: &str) -> Decided {
        Decided::Refused { rule: rule.to_owned(), why: why.to_owned(), remedy: String::new() }
    }

    fn unanswered(attempt: &Attempt, verdict: Verdict) -> Decided {
        let seconds = ANSWER_TIMEOUT.as_secs();
        let target = attempt.target();
        let why = format!("asked about {target}; not answered in {seconds} s; run it again");
        Decided::Refused { rule: verdict.rule, why, remedy: verdict.remedy }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use toolcrib_net::Host;

    use super::*;

    #[test]
    fn the_notes_of_an_ended_command_wait_for_its_inspected_connections() {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let network = SessionConnections { expose: Vec::new(), inspection: None, state, changed };
        let host = Host::parse("a.example").unwrap();
        let attempt = Attempt { requester: "1".into(), host, port: 443, number: 7 };
        network.state.lock().job(&attempt.requester).inspected.insert(attempt.number);
        assert!(network.take_notes("1", false).is_empty(), "a running command does not wait");
        let notes = std::thread::scope(|scope| {
            let notes = scope.spawn(|| network.take_notes("1", true));
            std::thread::sleep(Duration::from_millis(50));
            network.refused(&attempt, "the program does not accept the certificate");
            network.ended(&ConnectionRecord {
                attempt,
                outcome: Outcome::Connected,
                rule: String::new(),
                address: None,
                sent: 0,
                received: 0,
                duration: Duration::ZERO,
            });
            notes.join().unwrap()
        });
        assert_eq!(notes.len(), 1);
    }
}
