//! Checks audit logs in the store: each chain by itself, and against the local log that it is a copy of.

use toolcrib::{AuditOutbox, AuditReport, AuditVerifier, OutboxRecord};

use crate::audit_rows::{self, LogName};
use crate::connection::Connection;
use crate::error::StoreError;
use crate::outgoing_log::find_log;
use crate::schema::identify;
use crate::url::StoreUrl;

/// Limits of a batch of local records.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// A log in the store, compared with the local one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLog {
    /// The chain in the store.
    pub chain: AuditReport,
    /// The number of local records that the store does not have yet.
    pub unsent: u64,
    /// The number of the first record that is another one in the store than here.
    pub differs: Option<u64>,
    /// The first and the last record that only the store has, after the last local one.
    pub cut_here: Option<(u64, u64)>,
    /// The number of other logs of this workspace in the store.
    pub other_logs: u64,
}

impl StoredLog {
    /// The problem, in words.
    pub fn problem(&self) -> Option<String> {
        if let Some(broken) = &self.chain.broken {
            return Some(format!("in the store, {broken}"));
        }
        if let Some(record) = self.differs {
            return Some(format!("record {record} is another one in the store than here"));
        }
        let (first, last) = self.cut_here?;
        Some(format!(
            "records {first} to {last} are in the store, but not here: the end was cut off"
        ))
    }
}

/// Compares a local log with its copy. `None` if the store has no record of it.
///
/// # Errors
///
/// Fails if the store or the local log cannot be read. Wrong records are in the report.
pub fn compare(
    url: &StoreUrl,
    outbox: &mut AuditOutbox,
    workspace: &str,
) -> Result<Option<StoredLog>, StoreError> {
    let mut connection = Connection::open(url)?;
    let store = identify(&mut connection)?;
    let (name, _) = find_log(&mut connection, &store, outbox, workspace)?;
    let Some(name) = name else { return Ok(None) };
    if audit_rows::last(&mut connection, &name)?.is_none() {
        return Ok(None);
    }
    let other_logs = audit_rows::count_logs(&mut connection, &name.workspace)?.saturating_sub(1);
    let mut verifier = AuditVerifier::new(None);
    let (mut unsent, mut differs, mut cut_here) = (0, None, None);
    let mut here = Here { outbox, batch: Vec::new().into_iter(), last: 0 };
    let mut there =
        There { connection: &mut connection, name: &name, page: Vec::new().into_iter(), last: 0 };
    let (mut local, mut stored) = (here.next()?, there.next()?);
    loop {
        match (&local, &stored) {
            (None, None) => break,
            (Some(record), Some((seq, line))) if record.seq == *seq => {
                verifier.line(line.as_bytes());
                if record.line != *line && differs.is_none() {
                    differs = Some(*seq);
                }
                (local, stored) = (here.next()?, there.next()?);
            }
            (Some(record), other) if other.as_ref().is_none_or(|(seq, _)| record.seq < *seq) => {
                unsent += u64::from(other.is_none());
                local = here.next()?;
            }
            (_, Some((seq, line))) => {
                verifier.line(line.as_bytes());
                if local.is_none() {
                    cut_here = Some(cut_here.map_or((*seq, *seq), |(first, _)| (first, *seq)));
                }
                stored = there.next()?;
            }
            (Some(_), None) => local = here.next()?,
        }
    }
    Ok(Some(StoredLog { chain: verifier.finish(0), unsent, differs, cut_here, other_logs }))
}

/// The records of the local log.
struct Here<'o> {
    outbox: &'o mut AuditOutbox,
    batch: std::vec::IntoIter<OutboxRecord>,
    last: u64,
}

impl Here<'_> {
    fn next(&mut self) -> Result<Option<OutboxRecord>, StoreError> {
        if self.batch.len() == 0 {
            let batch = self.outbox.after(self.last, BATCH_RECORDS, BATCH_BYTES);
            self.batch = batch.map_err(StoreError::local)?.into_iter();
        }
        let next = self.batch.next();
        self.last = next.as_ref().map_or(self.last, |record| record.seq);
        Ok(next)
    }
}

/// The records in the store.
struct There<'c> {
    connection: &'c mut Connection,
    name: &'c LogName,
    page: std::vec::IntoIter<(u64, String)>,
    last: u64,
}

impl There<'_> {
    fn next(&mut self) -> Result<Option<(u64, String)>, StoreError> {
        if self.page.len() == 0 {
            let page = audit_rows::lines_after(self.connection, None, self.name, self.last)?;
            self.page = page.into_iter();
        }
        let next = self.page.next();
        // A server that repeats numbers would never end.
        if next.as_ref().is_some_and(|(seq, _)| *seq <= self.last) {
            return Err(StoreError::connection("the server sent records in the wrong order"));
        }
        self.last = next.as_ref().map_or(self.last, |(seq, _)| *seq);
        Ok(next)
    }
}

/// A log that the role sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedLog {
    /// The tenant.
    pub tenant: String,
    /// The name of the workspace.
    pub workspace: String,
    /// The id of the log.
    pub log: String,
    /// The result.
    pub chain: AuditReport,
}

/// Checks the chains of all logs that the role sees: a tenant its own, the owner all.
///
/// # Errors
///
/// Fails if the store cannot be read. Wrong records are in the reports.
pub fn check_all(url: &StoreUrl) -> Result<Vec<CheckedLog>, StoreError> {
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    let logs = audit_rows::logs(&mut connection)?;
    let mut checked = Vec::new();
    for (tenant, name) in logs {
        let (mut verifier, mut last) = (AuditVerifier::new(None), 0);
        loop {
            let page = audit_rows::lines_after(&mut connection, Some(&tenant), &name, last)?;
            let Some((seq, _)) = page.last().filter(|(seq, _)| *seq > last) else { break };
            last = *seq;
            page.iter().for_each(|(_, line)| verifier.line(line.as_bytes()));
        }
        let LogName { workspace, log } = name;
        checked.push(CheckedLog { tenant, workspace, log, chain: verifier.finish(0) });
    }
    Ok(checked)
}
