//! What was refused to the command of a call: accesses by the sandbox, and connections.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib::{CallRecord, ConnectionRecord, OperatorLogs};

use crate::api_error::ApiError;

/// Refused connections that are listed for a call.
const MAX_CONNECTIONS: usize = 50;

/// The refused connections of all logged commands.
pub(crate) struct RefusedConnections(HashMap<(u32, u64, String), Vec<ConnectionRecord>>);

impl RefusedConnections {
    pub(crate) fn read(logs: &OperatorLogs) -> Result<RefusedConnections, ApiError> {
        let mut all: HashMap<_, Vec<ConnectionRecord>> = HashMap::new();
        for made in logs.connections()?.into_iter().filter(|made| made.decision == "refused") {
            let job = (made.process, made.session, made.job.clone());
            all.entry(job).or_default().push(made);
        }
        Ok(RefusedConnections(all))
    }

    /// Everything that was refused to the command of a call.
    pub(crate) fn refusals(&self, call: &CallRecord) -> Vec<Value> {
        let by_sandbox = call.refusals.iter().map(|refusal| {
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
        !call.refusals.is_empty() || self.of(call).next().is_some()
    }

    fn of(&self, call: &CallRecord) -> impl Iterator<Item = &ConnectionRecord> {
        let job = call.job.clone().zip(process(call));
        let found = job.and_then(|(job, process)| self.0.get(&(process, call.session, job)));
        found.into_iter().flatten().filter(|made| made.time_ms >= call.time_ms)
    }
}

/// The process of a call, which begins its id.
pub(crate) fn process(call: &CallRecord) -> Option<u32> {
    call.id.split('-').next().and_then(|process| process.parse().ok())
}
