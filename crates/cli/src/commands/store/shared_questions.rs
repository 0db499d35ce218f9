//! The approval questions of a server, in the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::now_ms;
use toolcrib_monitor::protocol::{AnswerWord, Answerer, Settled};
use toolcrib_monitor::{SharedEntry, SharedOutcome, SharedQuestion, SharedQuestions, SharedState};
use toolcrib_store::{
    ApprovalAnswer, ApprovalOutcome, ApprovalState, AskedApproval, NewApproval, SharedApprovals,
};

/// The questions about one workspace.
pub(super) struct QuestionsInStore {
    pub(super) approvals: Arc<SharedApprovals>,
    /// The name of the workspace in the store.
    pub(super) workspace: String,
    /// The name of this machine, for people.
    pub(super) node: String,
}

impl fmt::Debug for QuestionsInStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionsInStore")
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

impl SharedQuestions for QuestionsInStore {
    fn workspace(&self) -> &str {
        &self.workspace
    }

    fn put(&self, question: SharedQuestion) -> Arc<dyn SharedEntry> {
        let asked = self.approvals.ask(NewApproval {
            workspace: self.workspace.clone(),
            digest: question.digest,
            caller: question.caller,
            question: question.text,
            rule: question.rule,
            seconds: question.expires_in.as_secs().clamp(1, 3_600),
        });
        Arc::new(QuestionInStore { asked, node: self.node.clone() })
    }
}

/// A question.
struct QuestionInStore {
    asked: AskedApproval,
    node: String,
}

impl SharedEntry for QuestionInStore {
    fn state(&self) -> SharedState {
        state(self.asked.state())
    }

    fn wait_until_known(&self, most: Duration) -> SharedState {
        state(self.asked.wait_until_known(most))
    }

    fn settle(&self, settled: &Settled, uses: bool) -> SharedOutcome {
        let allows = !matches!(settled.answer, AnswerWord::No | AnswerWord::Never);
        let by = format!("{} on {}", settled.by.name(), self.node);
        let answer = ApprovalAnswer { allows, by, message: settled.message.clone() };
        outcome(self.asked.settle(&answer, uses))
    }

    fn take(&self) -> SharedOutcome {
        outcome(self.asked.take())
    }

    fn give_back(&self) {
        self.asked.give_back();
    }

    fn withdraw(&self) {
        self.asked.withdraw();
    }

    fn leave(&self) {
        self.asked.leave();
    }
}

fn state(state: ApprovalState) -> SharedState {
    match state {
        ApprovalState::Unknown => SharedState::Unknown,
        ApprovalState::Open(id) => SharedState::Open(id),
        ApprovalState::Answered => SharedState::Answered,
        ApprovalState::UsedElsewhere => SharedState::UsedElsewhere,
        ApprovalState::Expired => SharedState::Expired,
        ApprovalState::Unavailable(why) => SharedState::Unavailable(why),
    }
}

fn outcome(outcome: ApprovalOutcome) -> SharedOutcome {
    match outcome {
        ApprovalOutcome::Own => SharedOutcome::Own,
        ApprovalOutcome::Other(answer) => SharedOutcome::Other(settled(answer)),
        ApprovalOutcome::UsedElsewhere => SharedOutcome::UsedElsewhere,
        ApprovalOutcome::Expired => SharedOutcome::Expired,
        ApprovalOutcome::Unreachable => SharedOutcome::Unreachable,
    }
}

/// An answer of the store. Whatever was answered on another machine, here it is for this call.
fn settled(answer: ApprovalAnswer) -> Settled {
    let word = if answer.allows { AnswerWord::Once } else { AnswerWord::No };
    let (by, at, message) = (Answerer::Store, now_ms(), answer.message);
    Settled { answer: word, minutes: None, by, at, message }
}
