//! What is logged about a call after it has ended: the end of its command, and what was refused to it.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib::{CallRecord, CommandEndRecord, ConnectionRecord, OperatorLogs, RefusalRecord};

use crate::api_error::ApiError;

/// Refused connections that are listed for a call.
const MAX_CONNECTIONS: usize = 50;

/// The logged outcome of a call whose command went on.
const RUNNING: &str = "running";

/// The refused connections of all logged commands, and the ends of those that went on after their calls.
pub(crate) struct LaterRecords {
    refused: HashMap<(u32, u64, String), Vec<ConnectionRecord>>,
    ends: HashMap<String, CommandEndRecord>,
}

impl LaterRecords {
    pub(crate) fn read(logs: &OperatorLogs) -> Result<LaterRecords, ApiError> {
        let mut refused: HashMap<_, Vec<ConnectionRecord>> = HashMap::new();
        for made in logs.connections()?.into_iter().filter(|made| made.decision == "refused") {
            let job = (made.process, made.session, made.job.clone());
            refused.entry(job).or_default().push(made);
        }
        let ends = logs.command_ends()?.into_iter().map(|end| (end.call.clone(), end));
        Ok(LaterRecords { refused, ends: ends.collect() })
    }

    /// How the command of a call ended, if it went on after the call.
    pub(crate) fn end(&self, call: &CallRecord) -> Option<&CommandEndRecord> {
        self.ends.get(&call.id).filter(|_| call.outcome == RUNNING)
    }

    /// The outcome of a call, with the end of its command.
    pub(crate) fn outcome<'a>(&self, call: &'a CallRecord) -> &'a str {
        match self.end(call) {
            None => &call.outcome,
            Some(end) if end.status == "completed" => "done",
            Some(_) => "failed",
        }
    }

    /// Everything that was refused to the command of a call.
    pub(crate) fn refusals(&self, call: &CallRecord) -> Vec<Value> {
        let by_sandbox = self.by_sandbox(call).iter().map(|refusal| {
            json!({"what": refusal.what, "setting": refusal.setting, "at": refusal.time_ms})
        });
        let connections = self.of(call).take(MAX_CONNECTIONS).map(|made| {
            let why = made.why.as_deref().unwrap_or("refused");
            json!({
                "what": format!("connect {}:{}", made.host, made.port),
                "setting": format!("{why} ({})", made.rule),
                "at": made.time_ms,
            })
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

/// The process of a call, which begins its id.
pub(crate) fn process(call: &CallRecord) -> Option<u32> {
    call.id.split('-').next().and_then(|process| process.parse().ok())
}
