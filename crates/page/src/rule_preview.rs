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

/// Different workspaces in which calls are decided on again.
const MAX_WORKSPACES: usize = 32;

const NOTE: &str = "The calls are decided on by the text of their log, with the settings of now and without answers of \
                    sessions. Calls whose text is masked or truncated, and calls in directories that are gone, are \
                    left out.";

/// The policies of one workspace, before and after the change.
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
    let mut workspaces: HashMap<String, Option<Policies>> = HashMap::new();
    let (mut listed, mut total, mut left_out) = (Vec::new(), 0, 0);
    for call in PREVIEWED.read(logs)? {
        if !workspaces.contains_key(&call.workspace) {
            let policies = (workspaces.len() < MAX_WORKSPACES)
                .then(|| Policies::of(operator, &call.workspace, &new))
                .flatten();
            workspaces.insert(call.workspace.clone(), policies);
        }
        let policies = workspaces.get_mut(&call.workspace).and_then(Option::as_mut);
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
    fn of(operator: &dyn Operator, workspace: &str, rules: &str) -> Option<Policies> {
        let runtime = |rules: Option<&str>| {
            let runtime = operator.agent_runtime(Path::new(workspace), rules).ok()?;
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
