//! What a change of the rules would have decided differently: the logged calls, decided on again.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::{Access, Decision, OperatorLogs, Runtime, Session};

use crate::api_error::ApiError;
use crate::logged_call::{LoggedCall, PREVIEWED};
use crate::operator::Operator;
use crate::rules::{RuleEdit, edited};

/// Calls that a preview lists. The total counts all.
const MAX_LISTED: usize = 200;

/// Different workspaces and profiles with which calls are decided on again.
const MAX_POLICIES: usize = 32;

const NOTE: &str = "Each logged call is decided on again, with the profile of its agent and your other settings of \
                    now. Answers for sessions do not count. Calls whose text is masked or cut are left out, and calls \
                    in directories that are gone.";

/// The policies of one workspace and profile, before and after the change.
struct Policies {
    before: (Runtime, Session),
    after: (Runtime, Session),
    /// Decisions on equal calls.
    known: HashMap<(String, Vec<Access>), (Decision, Decision)>,
}

/// `POST /api/rules/preview`
pub(crate) fn preview(
    logs: &OperatorLogs,
    operator: &dyn Operator,
    edit: &RuleEdit,
) -> Result<Value, ApiError> {
    let text = operator.rules_text().map_err(ApiError::io)?;
    let toml = match edit {
        RuleEdit::Add(rules) => Some(rules.as_str()),
        RuleEdit::Remove(_) => None,
    };
    let answer = |listed: Vec<Value>, total: usize, left_out: usize| {
        let mut answer = json!({
            "calls": listed, "total": total, "not_replayed": left_out, "days": PREVIEWED.days, "note": NOTE,
        });
        if let Some(toml) = toml {
            answer["toml"] = toml.into();
        }
        answer
    };
    let new = match edited(operator, &text, edit) {
        Ok(new) => new,
        Err(error) if error.status == 400 => {
            let mut answer = answer(Vec::new(), 0, 0);
            answer["problem"] = error.message.into();
            return Ok(answer);
        }
        Err(error) => return Err(error),
    };
    let mut all: HashMap<(String, Option<String>), Option<Policies>> = HashMap::new();
    let (mut listed, mut total, mut left_out) = (Vec::new(), 0, 0);
    for call in PREVIEWED.read(logs)? {
        let key = (call.workspace.clone(), call.profile.clone());
        let has_room = all.len() < MAX_POLICIES;
        let policies = all.entry(key).or_insert_with(|| {
            let policies = has_room.then(|| Policies::of(operator, &call, &new));
            policies.flatten()
        });
        let policies = policies.as_mut();
        let Some((before, after)) = policies.and_then(|policies| policies.decide(&call)) else {
            left_out += 1;
            continue;
        };
        if before != after {
            total += 1;
            if listed.len() < MAX_LISTED {
                listed.push(json!({
                    "at": call.time_ms, "tool": call.tool, "what": call.what, "workspace": call.workspace,
                    "before": before.name(), "after": after.name(),
                }));
            }
        }
    }
    Ok(answer(listed, total, left_out))
}

impl Policies {
    /// `None` if the workspace is gone.
    fn of(operator: &dyn Operator, call: &LoggedCall, rules: &str) -> Option<Policies> {
        let (workspace, profile) = (Path::new(&call.workspace), call.profile.as_deref());
        let runtime = |rules: Option<&str>| {
            let runtime = operator.agent_runtime(workspace, profile, rules).ok()?;
            let session = runtime.session();
            Some((runtime, session))
        };
        Some(Policies {
            before: runtime(None)?,
            after: runtime(Some(rules))?,
            known: HashMap::new(),
        })
    }

    /// `None` if the log does not say enough.
    fn decide(&mut self, call: &LoggedCall) -> Option<(Decision, Decision)> {
        let accesses = call.accesses.as_ref()?;
        let key = (call.tool.clone(), accesses.clone());
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let decide =
            |(runtime, session): &(Runtime, Session)| runtime.decide(session, &call.tool, accesses);
        let decided = (decide(&self.before), decide(&self.after));
        self.known.insert(key, decided);
        Some(decided)
    }
}
