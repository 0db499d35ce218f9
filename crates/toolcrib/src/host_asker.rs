//! Asks the approver of a call about hosts, while connections of its command wait.

use std::sync::Arc;
use std::thread::Scope;

use toolcrib_policy::{Decision, Verdict};

use crate::approve::{Answer, AnswerRecord, PendingQuestion, Question};
use crate::call_recorder::Recorder;
use crate::message_names::{SHELL_TOOL, Spelling};
use crate::network::{
    ANSWER_TIMEOUT, ConnectionSink, HostAnswer, HostQuestion, SessionConnections, SessionRules,
};
use crate::request::Options;
use crate::services::Services;
use crate::session::Session;

/// A call that can ask about hosts as long as this exists.
pub(crate) struct HostAsker<'a> {
    network: Arc<SessionConnections>,
    services: &'a Services,
    session: &'a Session,
    /// Number of the call.
    call: u64,
    options: Options<'a>,
}

impl<'a> HostAsker<'a> {
    pub(crate) fn new(
        network: Arc<SessionConnections>,
        services: &'a Services,
        session: &'a Session,
        (call, options): (u64, Options<'a>),
    ) -> HostAsker<'a> {
        network.set_rules(session_rules(services, session));
        network.add_asker();
        HostAsker { network, services, session, call, options }
    }

    /// Starts to ask the questions that wait, on threads of their own. Most commands have none.
    pub(crate) fn ask_waiting<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        while let Some(question) = self.network.take_question() {
            scope.spawn(move || self.ask(&question));
        }
    }

    fn ask(&self, question: &HostQuestion) {
        let _names = Spelling::of(self.options.dialect);
        let answer = loop {
            if self.options.cancel.is_cancelled() {
                break HostAnswer::Unanswered;
            }
            let known_changes = self.session.questions().changes();
            let Some(verdict) = self.decide(question) else { break HostAnswer::ByRules };
            if let Some(answer) = self.put(question, &verdict, known_changes) {
                break answer;
            }
            // The answer to another question has decided it.
        };
        self.network.set_rules(session_rules(self.services, self.session));
        self.network.answer(question, answer);
    }

    /// The decision, if it is still to ask.
    fn decide(&self, question: &HostQuestion) -> Option<Verdict> {
        let policy = self.services.policy.for_call(self.session, SHELL_TOOL, &[]);
        let verdict = policy.decide(&[question.access()], &self.session.remembered());
        let is_open = verdict.decision == Decision::Ask && !self.session.has_refused(&verdict.asks);
        is_open.then_some(verdict)
    }

    /// Puts the question to the approver, and remembers the answer as far as it goes. `None` if it needs no answer.
    fn put(
        &self,
        question: &HostQuestion,
        verdict: &Verdict,
        known_changes: u64,
    ) -> Option<HostAnswer> {
        let policy = self.services.policy.of_tool(SHELL_TOOL);
        let accesses = [question.access()];
        let directory = self.session.directory().path();
        let propose = |decision| policy.proposal(&directory, &accesses, verdict, decision);
        let (always, never) = (propose(Decision::Allow), propose(Decision::Deny));
        let asked = Question {
            call: self.call,
            session: self.session.id(),
            tool: SHELL_TOOL,
            description: None,
            accesses: &accesses,
            directory: &directory,
            rule: &verdict.rule,
            why: &verdict.why,
            remedy: &verdict.remedy,
            asks: &verdict.asks,
            always: always.as_ref(),
            always_directory: None,
            never: never.as_ref(),
            preview: None,
        };
        let is_cancelled = || self.options.cancel.is_cancelled();
        let is_needed = || self.decide(question).is_some();
        let pending = PendingQuestion::alone(&asked, Some(ANSWER_TIMEOUT)).of_session(
            (self.session.questions(), known_changes),
            &is_cancelled,
            &is_needed,
        );
        let answer = self.options.approver.ask_pending(&pending)?;
        self.services.decisions.record_answer(
            (self.session, &self.services.secrets(self.session)),
            SHELL_TOOL,
            &question.access(),
            verdict,
            AnswerRecord { answer: answer.name(), by: self.options.approver.name() },
        );
        Some(match answer {
            Answer::Allow => HostAnswer::Allowed,
            Answer::AllowForSession => {
                self.session.remember(verdict.asks.clone());
                HostAnswer::ByRules
            }
            Answer::AllowFor(time) => {
                self.session.remember_for(verdict.asks.clone(), time);
                HostAnswer::ByRules
            }
            Answer::AllowAlways | Answer::AllowDirectoryAlways => {
                match always {
                    Some(rules) => self.session.agree(rules),
                    None => self.session.remember(verdict.asks.clone()),
                }
                HostAnswer::ByRules
            }
            Answer::Deny(_) => HostAnswer::Refused,
            Answer::DenyAlways(_) => {
                match never {
                    Some(rules) => self.session.agree(rules),
                    None => self.session.refuse(verdict.asks.clone()),
                }
                HostAnswer::ByRules
            }
            // There was no approver, so the reply names the rule.
            Answer::NoApprover => HostAnswer::ByRules,
            Answer::LeftOpen(_) | Answer::Unanswered(_) => HostAnswer::Unanswered,
        })
    }
}

/// The rules and the answers of a session, for the connections of its commands.
pub(crate) fn session_rules(services: &Services, session: &Session) -> SessionRules {
    SessionRules {
        policy: services.policy.for_call(session, SHELL_TOOL, &[]),
        remembered: session.remembered(),
        refused: session.refused(),
        journal: services.history.journal().cloned(),
        on_connection: services.recorder.clone().map(connection_sink),
        session: session.id(),
        workspace: services.paths.workspace.top().path().display().to_string(),
    }
}

/// Passes connections to the recorder.
fn connection_sink(recorder: Arc<dyn Recorder>) -> ConnectionSink {
    Arc::new(move |connection| recorder.connection(connection))
}

impl Drop for HostAsker<'_> {
    fn drop(&mut self) {
        self.network.remove_asker();
    }
}
