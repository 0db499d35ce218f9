//! What became of a call after it has ended: the end of its command, and what was refused to it.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib::{
    CallRecord, CommandEndRecord, ConnectionRecord, OperatorLogs, RefusalRecord, is_running_since,
};

use crate::api_error::ApiError;
use crate::live::Live;

/// Refused connections that are listed for a call.
const MAX_CONNECTIONS: usize = 50;

/// The logged outcome of a call whose command went on.
const RUNNING: &str = "running";

/// The rule that decides on hosts without a rule of the user.
const UNLISTED: &str = "network:list";

/// The refused connections of all logged commands, and the ends of those that went on after their calls.
pub(crate) struct LaterRecords<'a> {
    live: &'a Live,
    refused: HashMap<(u32, u64, String), Vec<ConnectionRecord>>,
    ends: HashMap<String, CommandEndRecord>,
}

impl LaterRecords<'_> {
    pub(crate) fn read<'a>(
        logs: &OperatorLogs,
        live: &'a Live,
    ) -> Result<LaterRecords<'a>, ApiError> {
        let mut refused: HashMap<_, Vec<ConnectionRecord>> = HashMap::new();
        for made in logs.connections()?.into_iter().filter(|made| made.decision == "refused") {
            let job = (made.process, made.session, made.job.clone());
            refused.entry(job).or_default().push(made);
        }
        let ends = logs.command_ends()?.into_iter().map(|end| (end.call.clone(), end));
        Ok(LaterRecords { live, refused, ends: ends.collect() })
    }

    /// How the command of a call ended, if it went on after the call.
    pub(crate) fn end(&self, call: &CallRecord) -> Option<&CommandEndRecord> {
        self.ends.get(&call.id).filter(|_| call.outcome == RUNNING)
    }

    /// The outcome of a call, with the end of its command.
    pub(crate) fn outcome<'a>(&self, call: &'a CallRecord) -> &'a str {
        match self.end(call) {
            None if self.ended_with_server(call) => "failed",
            None => &call.outcome,
            Some(end) if end.status == "completed" => "done",
            Some(_) => "failed",
        }
    }

    /// Whether the command of a call went on after it and ended with its server, which then could not log the end.
    pub(crate) fn ended_with_server(&self, call: &CallRecord) -> bool {
        call.outcome == RUNNING
            && self.end(call).is_none()
            && !self.live.has_server(server_id(call))
            && !process(call).is_some_and(|process| is_running_since(process, call.time_ms))
    }

    /// Everything that was refused to the command of a call.
    pub(crate) fn refusals(&self, call: &CallRecord) -> Vec<Value> {
        let by_sandbox = self.by_sandbox(call).iter().map(|refusal| {
            json!({"what": refusal.what, "setting": refusal.setting, "at": refusal.time_ms})
        });
        let connections = self.of(call).take(MAX_CONNECTIONS).map(|made| {
            let mut refusal = json!({
                "what": format!("connect {}:{}", made.host, made.port),
                "setting": reason(made),
                "at": made.time_ms,
            });
            if let Some(rule) = allowing_rule(made) {
                refusal["rule"] = rule.into();
            }
            refusal
        });
        by_sandbox.chain(connections).collect()
    }

    /// Whether anything was refused to the command of a call.
    pub(crate) fn has_refusals(&self, call: &CallRecord) -> bool {
        !self.by_sandbox(call).is_empty() || self.of(call).next().is_some()
    }

    /// The denied accesses. The record of the command's end has those before it, too.
    fn by_sandbox<'a>(&'a self, call: &'a CallRecord) -> &'a [RefusalRecord] {
        let later = self.end(call).map(|end| end.refusals.as_slice());
        later.filter(|later| !later.is_empty()).unwrap_or(&call.refusals)
    }

    fn of(&self, call: &CallRecord) -> impl Iterator<Item = &ConnectionRecord> {
        let job = call.job.clone().zip(process(call));
        let found = job.and_then(|(job, process)| self.refused.get(&(process, call.session, job)));
        found.into_iter().flatten().filter(|made| made.time_ms >= call.time_ms)
    }
}

/// Why a connection was refused, with the name of the rule.
fn reason(made: &ConnectionRecord) -> String {
    let ConnectionRecord { host, port, rule, .. } = made;
    let why = made.why.as_deref().unwrap_or("refused");
    // The words that the command got begin with the host and end with the rule.
    let begin = format!("Toolcrib refused the connection to {host}:{port}: ");
    let why = why.strip_prefix(&begin).unwrap_or(why).trim_end_matches('.');
    let why = why.strip_suffix(&format!(" ({rule})")).unwrap_or(why);
    format!("{why} ({rule})")
}

/// The rule that would allow a refused connection. `None` if a rule of the user refuses it, or if the name alone does not
/// decide, as for a name with a private address.
fn allowing_rule(made: &ConnectionRecord) -> Option<String> {
    let ConnectionRecord { host, port, .. } = made;
    let target = format!("{host}:{port}");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let is_unlisted = reason(made) == format!("no rule allows {target} ({UNLISTED})");
    (made.rule == UNLISTED && is_unlisted && host.chars().all(is_plain)).then(|| {
        format!("[[rule]]\ndecision = \"allow\"\nkind = \"network\"\nhosts = [\"{target}\"]\n")
    })
}

/// The server of a call: its id without the number.
pub(crate) fn server_id(call: &CallRecord) -> &str {
    call.id.rsplit_once('-').map_or("", |(server, _)| server)
}

/// The process of a call, which begins its id.
pub(crate) fn process(call: &CallRecord) -> Option<u32> {
    call.id.split('-').next().and_then(|process| process.parse().ok())
}
