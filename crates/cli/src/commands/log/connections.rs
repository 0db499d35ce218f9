//! `toolcrib log --network`: lists the connections of commands, with the rule that decided on each and the number
//! of bytes.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{ConnectionEntry, Runtime};

use super::{page, print};
use crate::args::Common;
use crate::output::{self, DIM, NAME, REMOVED, WARNING};

pub(crate) fn log(common: &Common, runtime: &Runtime, limit: usize) -> Result<ExitCode, String> {
    let mut connections = runtime.connections().map_err(|error| error.to_string())?;
    let total = connections.len();
    connections.truncate(limit);
    if !output::for_people(common) {
        let shown: Vec<Value> = connections.iter().map(facts).collect();
        let complete = shown.len() == total;
        let object = json!({"connections": shown, "total": total, "complete": complete});
        return print(&format!("{object}\n"));
    }
    let mut text = String::new();
    for connection in &connections {
        text += &line(connection);
    }
    if total == 0 {
        text += "No connection was logged here yet.\n";
    } else if connections.len() < total {
        let _ =
            writeln!(text, "{DIM}{} of {total}; -n {total} shows all{DIM:#}", connections.len());
    }
    page(&text)
}

fn line(entry: &ConnectionEntry) -> String {
    let decision = match entry.decision.as_str() {
        "refused" => format!("{REMOVED}refused{REMOVED:#}"),
        "failed" => format!("{WARNING}failed{WARNING:#} "),
        other => format!("{:<7}", output::plain(other)),
    };
    let (age, host, job) = (entry.age(), output::plain(&entry.host), output::plain(&entry.job));
    let (port, rule) = (entry.port, output::plain(&entry.rule));
    let details = match &entry.why {
        Some(why) => output::plain(why),
        None if entry.is_open => "no end logged".to_owned(),
        None => format!("sent {}, received {} bytes", entry.sent, entry.received),
    };
    format!(
        "{DIM}{age:>12}{DIM:#}  {decision} {NAME}{host}:{port}{NAME:#} {details}  {DIM}{job}, {rule}{DIM:#}\n"
    )
}

fn facts(entry: &ConnectionEntry) -> Value {
    json!({
        "time_ms": entry.time_ms,
        "session": entry.session,
        "job": entry.job,
        "open": entry.is_open,
        "host": entry.host,
        "port": entry.port,
        "address": entry.address,
        "decision": entry.decision,
        "rule": entry.rule,
        "why": entry.why,
        "sent": entry.sent,
        "received": entry.received,
        "duration_ms": entry.duration_ms,
    })
}
