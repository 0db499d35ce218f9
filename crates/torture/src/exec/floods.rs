//! Output that is large, slow or binary: the server's memory stays constant and every byte is counted.

use std::path::Path;

use serde_json::json;

use super::{Effort, Report, Result, call, session};
use crate::report::Row;

/// The memory limit of the server, whatever its commands write.
const MAX_MEMORY: u64 = 64 << 20;

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flood: u64 = if effort.smoke { 200_000_000 } else { 5_000_000_000 };
    for (what, script, bytes) in [
        ("a flood", format!("head -c {flood} /dev/zero | tr '\\0' x"), flood),
        ("a flood of lines", format!("yes | head -c {flood}"), flood),
        (
            "a flood of bytes that are no text",
            "head -c 50000000 /dev/urandom".to_owned(),
            50_000_000,
        ),
        ("a drip", "for n in $(seq 100); do printf x; sleep 0.01; done".to_owned(), 100),
        ("a bar", "for n in $(seq 100000); do printf '%d\\r' $n; done".to_owned(), 588_895),
    ] {
        let mut row = Row::new("floods", what);
        let mut session = session(binary, directory.path(), "open")?;
        let reply = call(&mut session, "Bash", json!({"command": script}))?;
        let counted = reply.pointer("/metadata/bytes").and_then(serde_json::Value::as_u64);
        if counted != Some(bytes) {
            row.violate(format!("{counted:?} bytes were counted of {bytes}"), script.clone());
        }
        let memory = session.peak_memory()?;
        if memory > MAX_MEMORY {
            row.violate(format!("the server had {memory} bytes in memory"), script.clone());
        }
        row.tally.add_many("MB of memory", memory >> 20);
        session.end()?;
        report.add(row);
    }
    Ok(())
}
