//! Questions that other machines can answer, too, and the interface to the place where they do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::Settled;

/// The longest rule that is shown with a question.
const MAX_RULE_BYTES: usize = 4_096;

/// Where other machines can answer questions about a workspace. Nothing of it waits for the network for longer than a moment.
pub trait SharedQuestions: fmt::Debug + Send + Sync {
    /// The name of the workspace, which is the same on all machines.
    fn workspace(&self) -> &str;

    /// Puts a question there, without waiting.
    fn put(&self, question: SharedQuestion) -> Arc<dyn SharedEntry>;
}

/// A question for other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedQuestion {
    /// Digest of the call and of everything that the answer covers. The same call on another machine has the same.
    pub digest: String,
    /// The text, with control characters escaped.
    pub text: String,
    /// The rule that would always allow the call.
    pub rule: Option<String>,
    /// Who makes the call.
    pub caller: Option<String>,
    /// How long it can be answered, and its answer can be used.
    pub expires_in: Duration,
}

/// A question that was put there. Dropping it leaves the question there.
pub trait SharedEntry: Send + Sync {
    /// How it is there, as far as it is known.
    fn state(&self) -> SharedState;

    /// The same, once it is known. Waits at most for a time.
    fn wait_until_known(&self, most: Duration) -> SharedState;

    /// Settles it by an answer, unless it is settled there. If a call uses the answer now, no other call gets it.
    fn settle(&self, settled: &Settled, uses: bool) -> SharedOutcome;

    /// Uses the answer for this call: no other call gets it.
    fn take(&self) -> SharedOutcome;

    /// The call was cancelled and has not used the answer.
    fn give_back(&self);

    /// It needs no answer any more.
    fn withdraw(&self);

    /// The call does not wait any more.
    fn leave(&self);
}

/// How a question is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedState {
    /// Not known yet.
    Unknown,
    /// It waits for its answer, with this id.
    Open(String),
    /// It has an answer for this call.
    Answered,
    /// The same call on another machine has used the answer.
    UsedElsewhere,
    /// It was not answered in time.
    Expired,
    /// It cannot be there now, for this reason.
    Unavailable(String),
}

/// What came of an answer elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedOutcome {
    /// It counts.
    Own,
    /// This one was first.
    Other(Settled),
    /// The same call on another machine has used the answer.
    UsedElsewhere,
    /// There is no answer that this call can use.
    Expired,
    /// It cannot be found out now.
    Unreachable,
}

/// The call of a question, for other machines.
#[derive(Debug, Clone, Copy)]
pub struct SharedCall<'a> {
    /// Where its questions go.
    pub questions: &'a dyn SharedQuestions,
    /// The tool, the arguments and the caller, so that the answer is for no other call.
    pub identity: &'a [u8],
    /// Who makes the call.
    pub caller: Option<&'a str>,
}

impl SharedCall<'_> {
    /// Puts a question of the call there.
    pub(crate) fn put(
        &self,
        question: &toolcrib::Question<'_>,
        roots: &[String],
        expires_in: Duration,
    ) -> Arc<dyn SharedEntry> {
        let rule = question.always.map(toolcrib::Proposal::text);
        self.questions.put(SharedQuestion {
            digest: self.digest(question, roots),
            text: question.parts().concat() + &question.because() + &question.for_good(),
            rule: rule.filter(|rule| rule.len() <= MAX_RULE_BYTES),
            caller: self.caller.map(str::to_owned),
            expires_in,
        })
    }

    /// Digest of the call and of everything that the question shows. Machines may have the workspace at different paths.
    fn digest(&self, question: &toolcrib::Question<'_>, roots: &[String]) -> String {
        let diff = question.preview.map(|preview| preview.full_diff_text());
        let texts = [
            question.parts().concat(),
            diff.unwrap_or_default().to_owned(),
            question.directory.to_string_lossy().into_owned(),
            question.because(),
        ];
        let texts = texts.map(|text| without_roots(text, roots));
        let mut hasher = blake3::Hasher::new();
        let fixed = [self.questions.workspace().as_bytes(), self.identity];
        for part in fixed.into_iter().chain(texts.iter().map(String::as_bytes)) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The text with a mark in place of the path of each root.
fn without_roots(text: String, roots: &[String]) -> String {
    roots.iter().enumerate().fold(text, |text, (number, root)| {
        if root.len() <= 1 {
            return text;
        }
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
        let mut parts = text.split(root.as_str());
        let mut marked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // The beginning of a longer name is another path.
            if part.starts_with(is_name) {
                marked += root;
            } else {
                marked += &format!("\0{number}");
            }
            marked += part;
        }
        marked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_workspace_does_not_matter() {
        let marked = |text: &str, root: &str| without_roots(text.to_owned(), &[root.to_owned()]);
        let one = marked("write /srv/a/x.txt\n  in /srv/a\n", "/srv/a");
        assert_eq!(one, marked("write /data/b/x.txt\n  in /data/b\n", "/data/b"));
        assert_eq!(one, "write \x000/x.txt\n  in \x000\n");
        // Another directory with a longer name.
        assert_eq!(marked("write /srv/ab/x", "/srv/a"), "write /srv/ab/x");
        assert_eq!(marked("write /etc/x", "/"), "write /etc/x");
    }
}
