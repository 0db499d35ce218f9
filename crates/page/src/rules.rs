//! The rules file: its rules, when each last decided, and additions and removals.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::{LocatedRule, OperatorLogs, Rules};

use crate::api_error::ApiError;
use crate::logged_call::PREVIEWED;
use crate::operator::{ExplainedSubject, Operator, RulesNotReplaced};

/// A change of the rules file: the body of `POST /api/rules` and of its preview.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleEdit {
    /// Rules to add at the end.
    Add(String),
    /// Lines to remove.
    Remove(RemovedLines),
}

/// Lines of the rules file, and the text that they are to have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemovedLines {
    first_line: usize,
    last_line: usize,
    text: String,
}

/// The body of `POST /api/rules/explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainBody {
    tool: String,
    command: Option<String>,
    path: Option<String>,
    host: Option<String>,
    workspace: PathBuf,
    profile: Option<String>,
}

/// `GET /api/rules`
pub(crate) fn list(logs: &OperatorLogs, operator: &dyn Operator) -> Result<Value, ApiError> {
    let text = operator.rules_text().map_err(ApiError::io)?;
    let file = operator.rules_file().map(|file| file.to_string_lossy().into_owned());
    let (rules, problem) = match Rules::locate(&text) {
        Ok(rules) => (rules, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let decided = decided(logs)?;
    let rule = |rule: &LocatedRule| {
        let (last, count) = decided.get(&rule.name).copied().unwrap_or((None, 0));
        let mut value = json!({
            "name": rule.name,
            "first_line": rule.first_line,
            "last_line": rule.last_line,
            "decision": rule.decision.name(),
            "kind": rule.kind,
            "decided_30_days": count,
        });
        if let Some(last) = last {
            value["last_decided"] = last.into();
        }
        value
    };
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    let mut answer = json!({"file": file, "text": text, "rules": rules});
    if let Some(problem) = problem {
        answer["problem"] = problem.into();
    }
    Ok(answer)
}

/// `POST /api/rules`
pub(crate) fn edit(
    logs: &OperatorLogs,
    operator: &dyn Operator,
    edit: &RuleEdit,
) -> Result<Value, ApiError> {
    let text = operator.rules_text().map_err(ApiError::io)?;
    let new = edited(operator, &text, edit)?;
    operator.replace_rules(&text, &new).map_err(|problem| match problem {
        RulesNotReplaced::Changed => ApiError::conflict("The rules file was changed meanwhile."),
        RulesNotReplaced::Failed(why) => ApiError::io(why),
    })?;
    list(logs, operator)
}

/// `POST /api/rules/explain`
pub(crate) fn explain(operator: &dyn Operator, body: ExplainBody) -> Result<Value, ApiError> {
    let subject = match (body.command, body.path, body.host) {
        (Some(command), None, None) => ExplainedSubject::Command(command),
        (None, Some(path), None) => {
            let arguments = match body.tool.as_str() {
                "LS" | "Glob" | "Grep" => json!({"path": path, "pattern": "*"}),
                "Write" => json!({"file_path": path, "content": ""}),
                "Edit" => json!({"file_path": path, "old_string": "a", "new_string": "b"}),
                _ => json!({"file_path": path}),
            };
            ExplainedSubject::Call { tool: body.tool, arguments }
        }
        (None, None, Some(host)) => ExplainedSubject::Host(host),
        _ => return Err(ApiError::invalid("Give one of `command`, `path` and `host`.")),
    };
    let profile = body.profile.as_deref();
    let text = operator.explain(&body.workspace, profile, &subject).map_err(ApiError::invalid)?;
    Ok(json!({"text": text}))
}

/// The text of the file after an edit. Fails if the result would not be the same rules, with or without some.
pub(crate) fn edited(
    operator: &dyn Operator,
    text: &str,
    edit: &RuleEdit,
) -> Result<String, ApiError> {
    match edit {
        RuleEdit::Add(rules) => {
            if Rules::parse(rules).map_err(|error| ApiError::invalid(error.to_string()))?.count()
                == 0
            {
                return Err(ApiError::invalid("There is no rule in this text."));
            }
            operator.with_rules(text, rules).map_err(ApiError::invalid)
        }
        RuleEdit::Remove(lines) => without(text, lines),
    }
}

fn without(text: &str, removed: &RemovedLines) -> Result<String, ApiError> {
    let changed = || ApiError::conflict("The text at these lines has changed.");
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let (first, last) = (removed.first_line, removed.last_line);
    if first == 0 || first > last {
        return Err(ApiError::invalid("`first_line` and `last_line` are lines of the file."));
    }
    let there = all.get(first - 1..last).ok_or_else(changed)?.concat();
    let same = |text: &str| text.trim_end_matches(['\r', '\n']).replace("\r\n", "\n");
    if same(&there) != same(&removed.text) {
        return Err(changed());
    }
    Rules::without_lines(text, first, last).map_err(|error| ApiError::invalid(error.to_string()))
}

/// For each rule, when it last decided, and how often in the last days.
fn decided(logs: &OperatorLogs) -> Result<HashMap<String, (Option<u64>, u64)>, ApiError> {
    let since = PREVIEWED.since();
    let mut all: HashMap<String, (Option<u64>, u64)> = HashMap::new();
    for decided in logs.decisions()? {
        let (last, count) = all.entry(decided.rule).or_default();
        *last = (*last).max(Some(decided.time_ms));
        *count += u64::from(decided.time_ms >= since);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n[[rule]]\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\"rm\"]\n\n# b\n\
                        [[rule]]\ndecision = \"ask\"\nkind = \"command\"\ncommands = [\"mv\"]\n";

    fn lines(first_line: usize, last_line: usize) -> RemovedLines {
        let all: Vec<&str> = TEXT.split_inclusive('\n').collect();
        RemovedLines { first_line, last_line, text: all[first_line - 1..last_line].concat() }
    }

    #[test]
    fn whole_rules_are_removed() {
        let new = without(TEXT, &lines(2, 5)).unwrap();
        assert!(new.starts_with("# mine\n# b\n[[rule]]\ndecision = \"ask\""), "{new}");
        let last = without(TEXT, &lines(8, 11)).unwrap();
        assert_eq!(Rules::parse(&last).unwrap().count(), 1);
    }

    #[test]
    fn changed_text_and_parts_of_rules_are_refused() {
        let other = RemovedLines { text: "x".into(), ..lines(2, 5) };
        assert_eq!(without(TEXT, &other).unwrap_err().status, 409);
        let behind = RemovedLines { first_line: 90, last_line: 91, text: "x".into() };
        assert_eq!(without(TEXT, &behind).unwrap_err().status, 409);
        for (first, last) in [(2, 4), (3, 5), (5, 8)] {
            assert_eq!(without(TEXT, &lines(first, last)).unwrap_err().status, 400, "{first}");
        }
        let none = RemovedLines { first_line: 0, last_line: 0, text: String::new() };
        assert_eq!(without(TEXT, &none).unwrap_err().status, 400);
    }
}
