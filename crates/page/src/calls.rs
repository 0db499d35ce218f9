//! The timeline: calls that have ended, from the logs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::{
    Access, CallRecord, ConnectionRecord, DecisionRecord, OperatorLogs, call_title, logged_access,
};

use crate::api_error::ApiError;
use crate::later_records::{LaterRecords, process, server_id};
use crate::live::Live;
use crate::query::Query;

/// Calls on one page of the timeline.
const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 1_000;

/// The beginning of the ids of calls of which only the decision was logged, and of the cursors to them.
const DECISION: &str = "decision-";

/// The tool that reverts changes.
const UNDO: &str = "Undo";

/// The calls that a filter selects.
#[derive(Debug, Default)]
struct Filter<'a> {
    words: Vec<String>,
    tool: Option<&'a str>,
    workspace: Option<&'a str>,
    server: Option<&'a str>,
    session: Option<&'a str>,
    path: Option<&'a str>,
    outcome: Option<&'a str>,
}

/// `GET /api/calls`
pub(crate) fn list(logs: &OperatorLogs, live: &Live, query: &Query) -> Result<Value, ApiError> {
    let limit = query.number("limit")?.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(1);
    let filter = Filter::of(query);
    let before = query.text("before");
    if let Some(rest) = before.and_then(|before| before.strip_prefix(DECISION)) {
        let (older_than, skipped) = rest.split_once('-').unwrap_or((rest, "0"));
        let cursor = older_than.parse().ok().zip(skipped.parse().ok());
        let (older_than, skipped) =
            cursor.ok_or_else(|| ApiError::invalid("`before` is not a cursor."))?;
        return decisions(logs, &filter, older_than, skipped, limit);
    }
    let mut oldest = u64::MAX;
    let later = LaterRecords::read(logs, live)?;
    let page = logs.calls(before, limit, |call| {
        oldest = call.time_ms;
        filter.includes(call, &later)
    })?;
    let undone = UndonePaths::of(logs, &page.calls)?;
    let calls = page.calls.iter().map(|call| call_json(call, &later, &undone));
    let calls: Vec<Value> = calls.collect();
    let mut answer = json!({"calls": calls});
    let next = match page.next {
        // Older calls have only a decision.
        None => Some(format!("{DECISION}{oldest}-0")).filter(|_| has_older(logs, oldest)),
        next => next,
    };
    if let Some(next) = next {
        answer["next"] = next.into();
    }
    if before.is_none() && filter.is_empty() {
        answer["total"] = logs.count_calls()?.into();
    }
    Ok(answer)
}

/// `GET /api/calls/ID`
pub(crate) fn one(logs: &OperatorLogs, live: &Live, id: &str) -> Result<Value, ApiError> {
    if id.starts_with(DECISION) {
        let all = logs.decisions()?;
        let found = all.iter().find(|decided| decision_id(decided) == id);
        return found.map(decision_json).ok_or_else(|| no_call(id));
    }
    let call = logs.call(id)?.ok_or_else(|| no_call(id))?;
    let connections = logs.connections()?;
    let connections = connections.iter().filter(|made| is_of(made, &call));
    let undone = UndonePaths::of(logs, std::slice::from_ref(&call))?;
    let mut answer = call_json(&call, &LaterRecords::read(logs, live)?, &undone);
    answer["arguments"] = call.arguments.clone();
    answer["connections"] =
        connections.map(|made| connection_json(made, &call)).collect::<Vec<_>>().into();
    Ok(answer)
}

fn no_call(id: &str) -> ApiError {
    ApiError::not_found(format!("The log has no call {id}."))
}

impl<'a> Filter<'a> {
    fn of(query: &'a Query) -> Filter<'a> {
        let words = query.text("text").unwrap_or_default().to_lowercase();
        Filter {
            words: words.split_whitespace().map(str::to_owned).collect(),
            tool: query.text("tool"),
            workspace: query.text("workspace"),
            server: query.text("server"),
            session: query.text("session"),
            path: query.text("path"),
            outcome: query.text("outcome"),
        }
    }

    fn is_empty(&self) -> bool {
        let Filter { words, tool, workspace, server, session, path, outcome } = self;
        let texts = [tool, workspace, server, session, path, outcome];
        words.is_empty() && texts.into_iter().all(Option::is_none)
    }

    fn includes(&self, call: &CallRecord, later: &LaterRecords<'_>) -> bool {
        let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        let is_here = |wanted: &str| Path::new(wanted) == Path::new(&call.workspace);
        is(self.tool, &call.tool)
            && is(self.outcome, later.outcome(call))
            && self.workspace.is_none_or(is_here)
            && is(self.server, server_id(call))
            && self.session.is_none_or(|session| session == call.session.to_string())
            && self.path.is_none_or(|path| call.accesses.iter().any(|(_, it)| it.contains(path)))
            && self.words.iter().all(|word| has_word(call, word))
    }

    fn includes_decision(&self, decided: &DecisionRecord) -> bool {
        let is_here = |wanted: &str| Path::new(wanted) == Path::new(&decided.workspace);
        let names = |part: &str| decided.what.iter().any(|what| what.contains(part));
        let has_word = |word: &String| {
            decided.what.iter().any(|what| what.to_lowercase().contains(word.as_str()))
        };
        self.tool.is_none_or(|tool| tool == decided.tool)
            && self.outcome.is_none_or(|wanted| decision_outcome(decided) == Some(wanted))
            && self.workspace.is_none_or(is_here)
            && self.server.is_none()
            && self.session.is_none_or(|session| session == decided.session.to_string())
            && self.path.is_none_or(names)
            && self.words.iter().all(has_word)
    }
}

/// Whether a lower-case word occurs in the texts of a call.
fn has_word(call: &CallRecord, word: &str) -> bool {
    let is_in = |text: &str| text.to_lowercase().contains(word);
    is_in(&call.tool)
        || call.accesses.iter().any(|(_, text)| is_in(text))
        || call.description.as_deref().is_some_and(is_in)
        || call.message.as_deref().is_some_and(is_in)
        || has_string(&call.arguments, &is_in)
}

fn has_string(value: &Value, is_in: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(|item| has_string(item, is_in)),
        Value::Object(fields) => fields.values().any(|value| has_string(value, is_in)),
        _ => false,
    }
}

/// A call in the form of the monitor.
fn call_json(call: &CallRecord, later: &LaterRecords<'_>, undone: &UndonePaths) -> Value {
    let accesses =
        call.accesses.iter().map(|(effect, text)| json!({"effect": effect, "text": text}));
    let refusals = later.refusals(call);
    let end = later
        .end(call)
        .map(|end| json!({"status": end.status, "exit_code": end.exit_code, "at": end.time_ms}));
    let lost = || later.ended_with_server(call).then(|| json!({"status": "server_ended"}));
    let end = end.or_else(lost);
    let answered = call.answered.as_ref().map(|(answer, by)| json!({"answer": answer, "by": by}));
    let mut answer = json!({
        "id": call.id,
        "server": server_id(call),
        "session": call.session.to_string(),
        "workspace": call.workspace,
        "tool": call.tool,
        "title": undone.title(call).unwrap_or_else(|| title(call)),
        "started": call.time_ms,
        "ms": call.ms,
        "outcome": later.outcome(call),
        "accesses": accesses.collect::<Vec<_>>(),
        "dry_run": call.dry_run,
    });
    let optional = [
        ("description", json!(call.description)),
        ("error_kind", json!(call.error_kind)),
        ("message", json!(call.message)),
        ("decision", json!(call.decision)),
        ("rule", json!(call.rule)),
        ("answered", json!(answered)),
        ("change", json!(call.change.map(|id| id.to_string()))),
        ("files_changed", json!(call.files_changed)),
        ("job", json!(call.job)),
        ("command_end", json!(end)),
        ("refusals", if refusals.is_empty() { Value::Null } else { refusals.into() }),
    ];
    for (name, value) in optional.into_iter().filter(|(_, value)| !value.is_null()) {
        answer[name] = value;
    }
    answer
}

/// The line that names a call. A truncated access still begins with what it is about.
fn title(call: &CallRecord) -> String {
    let access = |(effect, text): &(String, String)| {
        logged_access(effect, text.trim_end_matches('…').split("[masked: ").next().unwrap_or(""))
    };
    let accesses: Vec<Access> = call.accesses.iter().filter_map(access).collect();
    call_title(&call.tool, &accesses, &call.arguments, Path::new(&call.workspace))
}

/// The paths that undos changed: their accesses do not name them.
struct UndonePaths(HashMap<u64, (PathBuf, usize)>);

impl UndonePaths {
    fn of(logs: &OperatorLogs, calls: &[CallRecord]) -> Result<UndonePaths, ApiError> {
        let undos = calls.iter().filter(|call| call.tool == UNDO);
        let ids: Vec<u64> = undos.filter_map(|call| call.change).collect();
        Ok(UndonePaths(logs.changed_paths(&ids)?))
    }

    /// The line that names an undo. `None` if the journal does not have it.
    fn title(&self, call: &CallRecord) -> Option<String> {
        let (path, count) = call.change.and_then(|change| self.0.get(&change))?;
        let path = path.strip_prefix(&call.workspace).unwrap_or(path).to_string_lossy();
        Some(match count {
            1 => format!("{UNDO} {path}"),
            2 => format!("{UNDO} {path} and 1 more file"),
            _ => format!("{UNDO} {path} and {} more files", count - 1),
        })
    }
}

/// Whether a connection was made by the command of a call.
fn is_of(made: &ConnectionRecord, call: &CallRecord) -> bool {
    process(call) == Some(made.process)
        && made.session == call.session
        && call.job.as_deref() == Some(made.job.as_str())
        && made.time_ms >= call.time_ms
}

fn connection_json(made: &ConnectionRecord, call: &CallRecord) -> Value {
    json!({
        "call": call.id,
        "host": made.host,
        "port": made.port,
        // A connection that failed was allowed.
        "decision": if made.decision == "refused" { "deny" } else { "allow" },
        "rule": made.rule,
        "why": made.why,
        "bytes_up": made.sent,
        "bytes_down": made.received,
        "at": made.time_ms,
    })
}

/// Whether there are decisions older than the oldest call.
fn has_older(logs: &OperatorLogs, time_ms: u64) -> bool {
    let oldest = logs.decisions().ok().and_then(|all| all.last().map(|one| one.time_ms));
    oldest.is_some_and(|oldest| oldest < time_ms)
}

/// Calls of which only the decision is known: an earlier version made them.
fn decisions(
    logs: &OperatorLogs,
    filter: &Filter<'_>,
    older_than: u64,
    skipped: usize,
    limit: usize,
) -> Result<Value, ApiError> {
    let all = logs.decisions()?;
    let older = all.iter().filter(|decided| decided.time_ms < older_than);
    let wanted = older.filter(|decided| filter.includes_decision(decided)).skip(skipped);
    let mut calls: Vec<Value> = wanted.take(limit + 1).map(decision_json).collect();
    let has_more = calls.len() > limit;
    calls.truncate(limit);
    let mut answer = json!({"calls": calls});
    if has_more {
        answer["next"] = format!("{DECISION}{older_than}-{}", skipped + limit).into();
    }
    Ok(answer)
}

fn decision_id(decided: &DecisionRecord) -> String {
    format!("{DECISION}{}-{}-{}", decided.process, decided.session, decided.time_ms)
}

/// The outcome, if the decision tells it.
fn decision_outcome(decided: &DecisionRecord) -> Option<&'static str> {
    let is_no = decided.answer.as_deref().is_some_and(|answer| answer.starts_with("no"));
    (decided.decision == "deny" || is_no).then_some("denied")
}

fn decision_json(decided: &DecisionRecord) -> Value {
    let access = |what: &String| {
        let (effect, text) = what.split_once(' ').unwrap_or(("reach", what));
        match effect {
            "read" | "write" => json!({"effect": effect, "text": text}),
            "run" => json!({"effect": "command", "text": text}),
            _ => json!({"effect": "reach", "text": what}),
        }
    };
    let accesses: Vec<Value> = decided.what.iter().map(access).collect();
    let about = accesses.first().and_then(|access| access["text"].as_str()).unwrap_or_default();
    let answered = decided.answer.as_ref().zip(decided.by.as_ref());
    json!({
        "id": decision_id(decided),
        "session": decided.session.to_string(),
        "workspace": decided.workspace,
        "tool": decided.tool,
        "title": format!("{} {about}", decided.tool),
        "started": decided.time_ms,
        "ms": null,
        "outcome": decision_outcome(decided),
        "accesses": accesses,
        "dry_run": decided.dry_run,
        "decision": decided.decision,
        "rule": decided.rule,
        "answered": answered.map(|(answer, by)| json!({"answer": answer, "by": by})),
    })
}
