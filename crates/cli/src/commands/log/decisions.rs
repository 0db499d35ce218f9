//! `toolcrib log --decisions`: lists permission decisions, their rules and the answers.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{DecisionEntry, Runtime};

use super::{page, print};
use crate::args::Common;
use crate::output::{self, DIM, NAME, REMOVED, WARNING};

/// The name of the answer without an approver.
const NOBODY: &str = "nobody";

pub(crate) fn log(common: &Common, runtime: &Runtime, limit: usize) -> Result<ExitCode, String> {
    let mut decisions = runtime.decisions().map_err(|error| error.to_string())?;
    let total = decisions.len();
    decisions.truncate(limit);
    if !output::for_people(common) {
        let shown: Vec<Value> = decisions.iter().map(facts).collect();
        let complete = shown.len() == total;
        let object = json!({"decisions": shown, "total": total, "complete": complete});
        return print(&format!("{object}\n"));
    }
    let mut text = String::new();
    for decision in &decisions {
        text += &line(decision);
    }
    if total == 0 {
        text += "No decisions are recorded here yet.\n";
    } else if decisions.len() < total {
        let _ = writeln!(text, "{DIM}{} of {total}; -n {total} shows all{DIM:#}", decisions.len());
    }
    page(&text)
}

fn line(entry: &DecisionEntry) -> String {
    let decision = match entry.decision.as_str() {
        "deny" => format!("{REMOVED}deny{REMOVED:#} "),
        "ask" => format!("{WARNING}ask{WARNING:#}  "),
        other => format!("{:<5}", output::plain(other)),
    };
    let answered =
        entry.answered.as_ref().map_or(String::new(), |(answer, by)| match answer.as_str() {
            NOBODY => ", denied: nobody could be asked".to_owned(),
            answer => format!(", {} by {}", output::plain(answer), output::plain(by)),
        });
    let dry = if entry.dry_run { ", a dry run" } else { "" };
    let (age, tool) = (entry.age(), output::plain(&entry.tool));
    let (what, rule) = (output::plain(&entry.what.join("; ")), output::plain(&entry.rule));
    format!(
        "{DIM}{age:>12}{DIM:#}  {decision} {NAME}{tool}{NAME:#} {what}  {DIM}{rule}{answered}{dry}{DIM:#}\n"
    )
}

fn facts(entry: &DecisionEntry) -> Value {
    json!({
        "time_ms": entry.time_ms,
        "tool": entry.tool,
        "what": entry.what,
        "decision": entry.decision,
        "rule": entry.rule,
        "answer": entry.answered.as_ref().map(|(answer, _)| answer),
        "by": entry.answered.as_ref().map(|(_, by)| by),
        "dry_run": entry.dry_run,
    })
}
