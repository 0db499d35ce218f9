//! The statements about limits and use.

use serde_json::json;

use crate::connection::{Connection, Row, column, number};
use crate::error::StoreError;

/// Limits of a result. Those of tenants come before those of workspaces.
const MAX_ROWS: &str = "20000";

/// Seconds for which running commands count after their process has reported them.
const SEEN_SECONDS: u64 = 30;

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaName {
    /// Calls in a minute.
    CallsPerMinute,
    /// Commands that run at the same time.
    Commands,
    /// Seconds that commands run in a day.
    CommandSecondsPerDay,
}

impl QuotaName {
    /// All of them.
    pub const ALL: [QuotaName; 3] =
        [QuotaName::CallsPerMinute, QuotaName::Commands, QuotaName::CommandSecondsPerDay];

    /// The name in the store and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            QuotaName::CallsPerMinute => "calls-per-minute",
            QuotaName::Commands => "commands",
            QuotaName::CommandSecondsPerDay => "command-seconds-per-day",
        }
    }

    /// The limit of a name.
    pub fn parse(name: &str) -> Option<QuotaName> {
        QuotaName::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// A limit of a tenant or of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantQuota {
    /// The tenant.
    pub tenant: String,
    /// The workspace. `None` for all workspaces of the tenant together.
    pub workspace: Option<String>,
    /// The name of a limit.
    pub name: QuotaName,
    /// How much.
    pub value: u64,
    /// How much of it is used in the present minute or day.
    pub used: u64,
}

/// A limit, as a process reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadLimit {
    pub(crate) tenant: String,
    /// Empty for all workspaces.
    pub(crate) workspace: String,
    pub(crate) name: QuotaName,
    pub(crate) value: u64,
    /// What others use; of commands the time in milliseconds.
    pub(crate) used: u64,
    /// The minute and the day that this is about.
    pub(crate) minute: u64,
    pub(crate) day: u64,
}

/// What a process has used in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportedUse {
    pub(crate) workspace: String,
    pub(crate) minute: u64,
    pub(crate) calls: u64,
    pub(crate) day: u64,
    pub(crate) command_ms: u64,
    pub(crate) commands: u64,
}

/// The workspaces of a report. It is far below what the store accepts.
pub(crate) const MAX_REPORTED: usize = 500;

/// Reports what a process has used. Returns the time of the database, in seconds since 1970.
pub(crate) fn report(
    connection: &mut Connection,
    process: &str,
    used: &[ReportedUse],
) -> Result<f64, StoreError> {
    let row = |one: &ReportedUse| {
        json!({
            "workspace": one.workspace,
            "minute": one.minute,
            "calls": one.calls,
            "day": one.day,
            "command_ms": one.command_ms,
            "commands": one.commands,
        })
    };
    let used: Vec<_> = used.iter().map(row).collect();
    let used = json!(used).to_string();
    let rows = connection.query("SELECT toolcrib.report_usage($1, $2::json)", &[process, &used])?;
    let row = rows.first().ok_or_else(|| StoreError::connection("the server sent no time"))?;
    number(row, 0)
}

/// The limits of a tenant with what others than a process use; without a tenant those of the one who has signed in, or with
/// `all` those that the role sees.
pub(crate) fn limits(
    connection: &mut Connection,
    process: &str,
    all: bool,
) -> Result<Vec<ReadLimit>, StoreError> {
    let own = if all { "" } else { "WHERE q.tenant = session_user" };
    let statement = format!(
        "WITH moment AS (SELECT clock_timestamp() - interval '{SEEN_SECONDS} seconds' AS seen, \
         floor(extract(epoch FROM clock_timestamp()) / 60)::bigint AS minute, \
         floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint AS day) \
         SELECT q.tenant, q.workspace, q.name, q.value, m.minute, m.day, least(coalesce(CASE q.name \
         WHEN 'calls-per-minute' THEN sum(u.calls) FILTER (WHERE u.minute = m.minute) \
         WHEN 'command-seconds-per-day' THEN sum(u.command_ms) FILTER (WHERE u.day = m.day) \
         ELSE sum(u.commands) FILTER (WHERE u.seen > m.seen) END, 0), 1000000000000000)::bigint \
         FROM toolcrib.quotas q CROSS JOIN moment m LEFT JOIN toolcrib.usage u ON u.tenant = q.tenant \
         AND (q.workspace = '' OR u.workspace = q.workspace) AND u.process <> $1 \
         {own} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY q.tenant, q.workspace, q.name LIMIT {MAX_ROWS}"
    );
    let rows = connection.query(&statement, &[process])?;
    let limit = |row: &Row| {
        // A newer program may know more.
        let Some(name) = QuotaName::parse(column(row, 2)?) else { return Ok(None) };
        Ok(Some(ReadLimit {
            tenant: column(row, 0)?.to_owned(),
            workspace: column(row, 1)?.to_owned(),
            name,
            value: number(row, 3)?,
            minute: number(row, 4)?,
            day: number(row, 5)?,
            used: number(row, 6)?,
        }))
    };
    rows.iter().filter_map(|row| limit(row).transpose()).collect()
}

/// Whether there is such a tenant.
pub(crate) fn has_tenant(connection: &mut Connection, name: &str) -> Result<bool, StoreError> {
    let rows = connection.query(
        "SELECT FROM pg_roles WHERE rolname = $1 AND NOT rolsuper AND pg_has_role(oid, 'toolcrib_runtime', 'MEMBER')",
        &[name],
    )?;
    Ok(!rows.is_empty())
}

/// Removes the limits of a tenant: those of all its workspaces together, or those of one workspace.
pub(crate) fn clear(
    connection: &mut Connection,
    (tenant, workspace): (&str, &str),
) -> Result<(), StoreError> {
    let statement = "DELETE FROM toolcrib.quotas WHERE tenant = $1 AND workspace = $2";
    connection.query(statement, &[tenant, workspace]).map(drop)
}

/// Sets a limit.
pub(crate) fn set(
    connection: &mut Connection,
    (tenant, workspace): (&str, &str),
    name: QuotaName,
    value: u64,
) -> Result<(), StoreError> {
    let statement = "INSERT INTO toolcrib.quotas (tenant, workspace, name, value) VALUES ($1, $2, $3, $4::bigint) \
         ON CONFLICT (tenant, workspace, name) DO UPDATE SET value = excluded.value";
    let parameters = [tenant, workspace, name.name(), &value.to_string()];
    connection.query(statement, &parameters).map(drop)
}
