//! `toolcrib store quota`: the limits of tenants and workspaces in the store.

use std::process::ExitCode;

use serde_json::json;
use toolcrib_store::{QuotaName, StoreUrl, TenantQuota, quotas, set_quotas};

use crate::args::Common;
use crate::output::{self, one_line};

/// The limits that a command is about, and their new values.
pub(super) struct QuotaRequest<'a> {
    pub(super) tenant: Option<&'a str>,
    pub(super) workspace: Option<&'a str>,
    pub(super) clears: bool,
    pub(super) values: &'a [(QuotaName, u64)],
}

/// Changes the limits if the request does, and lists them.
pub(super) fn run(
    common: &Common,
    url: &StoreUrl,
    request: &QuotaRequest<'_>,
) -> Result<ExitCode, String> {
    let &QuotaRequest { tenant, workspace, clears, values } = request;
    let words = |error: toolcrib_store::StoreError| error.to_string();
    if clears || !values.is_empty() {
        let tenant = tenant.ok_or("--set and --clear need --tenant NAME")?;
        set_quotas(url, (tenant, workspace), clears, values).map_err(words)?;
    }
    let mut listed = quotas(url).map_err(words)?;
    listed.retain(|one| {
        tenant.is_none_or(|tenant| one.tenant == tenant)
            && workspace.is_none_or(|workspace| one.workspace.as_deref() == Some(workspace))
    });
    let as_json = |one: &TenantQuota| {
        json!({
            "tenant": one.tenant,
            "workspace": one.workspace,
            "limit": one.name.name(),
            "value": one.value,
            "used": one.used,
        })
    };
    if output::for_people(common) {
        output::lines(&listed, shown, "There are no limits that this role sees.");
    } else {
        output::json_list("quotas", &listed, as_json);
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(one: &TenantQuota) -> String {
    let workspace = one.workspace.as_deref().map(|name| format!(" {}", one_line(name)));
    let period = match one.name {
        QuotaName::CallsPerMinute => "this minute",
        QuotaName::Commands => "now",
        QuotaName::CommandSecondsPerDay => "today",
    };
    format!(
        "{}{}: {}={}, {} used {period}",
        one_line(&one.tenant),
        workspace.unwrap_or_default(),
        one.name.name(),
        one.value,
        one.used
    )
}
