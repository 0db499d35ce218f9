//! What the sandbox refused, from the log of calls.

use serde_json::{Value, json};
use toolcrib::OperatorLogs;

use crate::api_error::ApiError;
use crate::later_records::LaterRecords;
use crate::live::Live;
use crate::query::Query;

/// Calls with refusals on one page.
const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 500;

/// `GET /api/refusals`: each refusal once per call, newest first, with the number of times it occurred.
pub(crate) fn list(logs: &OperatorLogs, live: &Live, query: &Query) -> Result<Value, ApiError> {
    let limit = query.number("limit")?.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(1);
    let refused = LaterRecords::read(logs, live)?;
    let page = logs.calls(query.text("before"), limit, |call| refused.has_refusals(call))?;
    let mut all: Vec<Value> = Vec::new();
    for call in &page.calls {
        let first = all.len();
        for mut one in refused.refusals(call) {
            let known = all[first..].iter_mut().find(|known| known["what"] == one["what"]);
            if let Some(known) = known {
                known["count"] = (known["count"].as_u64().unwrap_or(0) + 1).into();
                continue;
            }
            one["call"] = call.id.clone().into();
            one["tool"] = call.tool.clone().into();
            one["workspace"] = call.workspace.clone().into();
            one["count"] = 1.into();
            all.push(one);
        }
    }
    let mut answer = json!({"refusals": all});
    if let Some(next) = page.next {
        answer["next"] = next.into();
    }
    Ok(answer)
}
