//! The statements about records of audit logs. Each is about the rows of the tenant who has signed in, even for a role that
//! may see more.

use toolcrib::OutboxRecord;

use crate::connection::{Connection, column, number};
use crate::error::StoreError;

/// The code with which the store refuses a record whose number another one has.
pub(crate) const OTHER_RECORD: &str = "TC002";

/// Records of a page. With the largest records it is far below the limit of a result.
const PAGE_RECORDS: &str = "200";

/// A log in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogName {
    pub(crate) workspace: String,
    pub(crate) log: String,
}

/// Adds records. Those that are there already are ignored.
pub(crate) fn add(
    connection: &mut Connection,
    name: &LogName,
    records: &[OutboxRecord],
) -> Result<(), StoreError> {
    let mut statement =
        "INSERT INTO toolcrib.records (workspace, log, seq, line) VALUES ".to_owned();
    let numbers: Vec<String> = records.iter().map(|record| record.seq.to_string()).collect();
    let mut parameters = vec![name.workspace.as_str(), name.log.as_str()];
    for (at, (record, number)) in records.iter().zip(&numbers).enumerate() {
        let (comma, seq, line) = (if at == 0 { "" } else { ", " }, 2 * at + 3, 2 * at + 4);
        statement += &format!("{comma}($1::text, $2::text, ${seq}::bigint, ${line}::text)");
        parameters.extend([number.as_str(), record.line.as_str()]);
    }
    statement += " ON CONFLICT DO NOTHING";
    connection.query(&statement, &parameters).map(drop)
}

/// The hash of a record, if the store has it.
pub(crate) fn hash(
    connection: &mut Connection,
    name: &LogName,
    seq: u64,
) -> Result<Option<String>, StoreError> {
    let rows = connection.query(
        "SELECT encode(hash, 'hex') FROM toolcrib.records \
         WHERE tenant = session_user AND workspace = $1 AND log = $2 AND seq = $3::bigint",
        &[&name.workspace, &name.log, &seq.to_string()],
    )?;
    rows.first().map(|row| Ok(column(row, 0)?.to_owned())).transpose()
}

/// The number and the hash of the last record of a log.
pub(crate) fn last(
    connection: &mut Connection,
    name: &LogName,
) -> Result<Option<(u64, String)>, StoreError> {
    let rows = connection.query(
        "SELECT seq, encode(hash, 'hex') FROM toolcrib.records \
         WHERE tenant = session_user AND workspace = $1 AND log = $2 ORDER BY seq DESC LIMIT 1",
        &[&name.workspace, &name.log],
    )?;
    rows.first().map(|row| Ok((number(row, 0)?, column(row, 1)?.to_owned()))).transpose()
}

/// The log of a workspace that has this record.
pub(crate) fn log_with(
    connection: &mut Connection,
    workspace: &str,
    record: &OutboxRecord,
) -> Result<Option<String>, StoreError> {
    let rows = connection.query(
        "SELECT log FROM toolcrib.records WHERE tenant = session_user AND workspace = $1 \
         AND seq = $2::bigint AND hash = decode($3, 'hex') ORDER BY received DESC LIMIT 1",
        &[workspace, &record.seq.to_string(), &record.hash],
    )?;
    rows.first().map(|row| Ok(column(row, 0)?.to_owned())).transpose()
}

/// The numbers and lines of records after a number.
pub(crate) fn lines_after(
    connection: &mut Connection,
    tenant: Option<&str>,
    name: &LogName,
    seq: u64,
) -> Result<Vec<(u64, String)>, StoreError> {
    let statement = format!(
        "SELECT seq, line FROM toolcrib.records WHERE tenant = coalesce(nullif($1, ''), session_user) \
         AND workspace = $2 AND log = $3 AND seq > $4::bigint ORDER BY seq LIMIT {PAGE_RECORDS}"
    );
    let (tenant, seq) = (tenant.unwrap_or_default(), seq.to_string());
    let rows = connection.query(&statement, &[tenant, &name.workspace, &name.log, &seq])?;
    rows.iter().map(|row| Ok((number(row, 0)?, column(row, 1)?.to_owned()))).collect()
}

/// The number of logs of a workspace.
pub(crate) fn count_logs(connection: &mut Connection, workspace: &str) -> Result<u64, StoreError> {
    let rows = connection.query(
        "SELECT count(DISTINCT log) FROM toolcrib.records WHERE tenant = session_user AND workspace = $1",
        &[workspace],
    )?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// The logs that this role sees, with their tenants.
pub(crate) fn logs(connection: &mut Connection) -> Result<Vec<(String, LogName)>, StoreError> {
    let rows = connection.query(
        "SELECT tenant, workspace, log FROM toolcrib.records GROUP BY 1, 2, 3 ORDER BY 1, 2, min(received) LIMIT 100000",
        &[],
    )?;
    let log = |row: &crate::connection::Row| {
        let name =
            LogName { workspace: column(row, 1)?.to_owned(), log: column(row, 2)?.to_owned() };
        Ok((column(row, 0)?.to_owned(), name))
    };
    rows.iter().map(log).collect()
}
