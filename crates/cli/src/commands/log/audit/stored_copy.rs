//! The copy of the audit log in PostgreSQL.

use serde_json::json;
use toolcrib::Runtime;
use toolcrib_store::{StoredLog, compare};

use super::Copy;
use crate::commands::store::{url, workspace_name};

/// Compares the log of a workspace with its copy.
pub(super) fn compared(runtime: &Runtime, store: &str) -> Result<Copy, String> {
    let outbox = runtime.audit_outbox();
    let mut outbox = outbox.ok_or("there is no audit log: audit = false turns it off")?;
    let position = outbox.position().map_err(|error| error.to_string())?;
    let name = position.map_or_else(|| workspace_name(outbox.workspace()), |kept| kept.name);
    let url = url(store)?.url;
    let found = compare(&url, &mut outbox, &name).map_err(|error| error.to_string())?;
    Ok(described(found.as_ref()))
}

fn described(found: Option<&StoredLog>) -> Copy {
    let Some(found) = found else {
        let sentence = "\nThe store has no records of this log yet.".to_owned();
        return Copy { sentence, facts: Some(json!({"records": 0})), is_wrong: false };
    };
    let chain = &found.chain;
    let last = (chain.first + chain.records).saturating_sub(1);
    let problem = found.problem();
    let mut sentence = match &problem {
        Some(problem) => format!("\nBROKEN: {problem}."),
        None => {
            format!("\nThe store has records {} to {last}, and they are the same.", chain.first)
        }
    };
    if found.unsent > 0 {
        sentence += &format!("\n{} records are not sent yet.", found.unsent);
    }
    if found.other_logs > 0 {
        sentence += &format!(
            "\nThe store has {} other logs of this workspace: of other machines or state directories, or from before this log was replaced.",
            found.other_logs
        );
    }
    let facts = json!({
        "records": chain.records,
        "first": chain.first,
        "head": Some(&chain.head).filter(|head| !head.is_empty()),
        "unsent": found.unsent,
        "other_logs": found.other_logs,
        "problem": problem,
    });
    Copy { sentence, facts: Some(facts), is_wrong: problem.is_some() }
}
