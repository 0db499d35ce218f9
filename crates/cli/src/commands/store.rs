//! `toolcrib store`: sets up and checks the store in PostgreSQL, sets limits and answers approval questions in it; and the store of a
//! server.

mod address;
mod approvals;
mod quota;
mod served;
mod shared_questions;

use std::process::ExitCode;

use serde_json::json;
use toolcrib::{PrivateFile, PrivateFileError, random_bytes};
use toolcrib_store::{CheckedLog, StoreUrl, add_tenant, check_all, initialize, statements};

pub(crate) use self::address::url;
use self::quota::QuotaRequest;
pub(super) use self::served::{ServedStore, workspace_name};
use super::log::print;
use crate::args::{Common, StoreCommand};
use crate::output;

pub(crate) fn run(common: &Common, command: &StoreCommand) -> Result<ExitCode, String> {
    match command {
        StoreCommand::Init { .. } if common.dry_run => print(&statements()),
        StoreCommand::Init { store } => init(&url(store)?.url),
        StoreCommand::AddTenant { store, name, address_file } => {
            add(&url(store)?.url, name, address_file)
        }
        StoreCommand::Verify { store } => verify(common, &url(store)?.url),
        StoreCommand::Quota { store, tenant, workspace, set, clear } => {
            let request = QuotaRequest {
                tenant: tenant.as_deref(),
                workspace: workspace.as_deref(),
                clears: *clear,
                values: set,
            };
            quota::run(common, &url(store)?.url, &request)
        }
        StoreCommand::Approvals { store } => approvals::list(common, &url(store)?.url),
        StoreCommand::Approve { store, id, message } => {
            approvals::answer(common, &url(store)?.url, id, (true, message.as_deref()))
        }
        StoreCommand::Deny { store, id, message } => {
            approvals::answer(common, &url(store)?.url, id, (false, message.as_deref()))
        }
    }
}

fn init(url: &StoreUrl) -> Result<ExitCode, String> {
    let made = initialize(url).map_err(|error| error.to_string())?;
    output::answer(&match (made.before, made.now) {
        (0, now) => format!(
            "The store is in {url}, with version {now}. `toolcrib store add-tenant` makes a role for a tenant."
        ),
        (before, now) if before == now => format!("The store in {url} has version {now} already."),
        (before, now) => {
            format!("The store in {url} has version {now} now, after version {before}.")
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// Makes the role of a tenant with a random password, which only the file has.
fn add(url: &StoreUrl, name: &str, file: &std::path::Path) -> Result<ExitCode, String> {
    let failed = |error: PrivateFileError| match error {
        PrivateFileError::Io(error) => format!("{}: {error}", file.display()),
        PrivateFileError::NotPrivate(why) => format!("{}: the file {why}", file.display()),
    };
    // Before the role exists: its password cannot be read again.
    let private = PrivateFile::locate(file).map_err(failed)?;
    private.read(1).map_err(failed)?;
    let random = random_bytes::<24>().map_err(|error| error.to_string())?;
    let password = random.map(|byte| format!("{byte:02x}")).concat();
    let tenant = add_tenant(url, name, &password).map_err(|error| error.to_string())?;
    private.replace(format!("{}\n", tenant.with_secrets()).as_bytes()).map_err(failed)?;
    output::answer(&format!(
        "The tenant {name} can use the store. Its address and password are in {0}: toolcrib serve --store {0}",
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn verify(common: &Common, url: &StoreUrl) -> Result<ExitCode, String> {
    let checked = check_all(url).map_err(|error| error.to_string())?;
    let is_right = checked.iter().all(|one| one.chain.broken.is_none());
    let as_json = |one: &CheckedLog| {
        json!({
            "tenant": one.tenant,
            "workspace": one.workspace,
            "log": one.log,
            "records": one.chain.records,
            "first": one.chain.first,
            "head": Some(&one.chain.head).filter(|head| !head.is_empty()),
            "problem": one.chain.broken.as_ref().map(ToString::to_string),
        })
    };
    if output::for_people(common) {
        output::lines(&checked, sentence, "The store has no records that this role sees.");
    } else {
        output::json_list("logs", &checked, as_json);
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sentence(one: &CheckedLog) -> String {
    let name = output::plain(&format!("{} {} ({})", one.tenant, one.workspace, one.log));
    let (first, records) = (one.chain.first, one.chain.records);
    let last = (first + records).saturating_sub(1);
    match &one.chain.broken {
        Some(broken) => format!("{name}: BROKEN: {broken}."),
        None => format!(
            "{name}: records {first} to {last} are intact. Hash of the last: {}",
            one.chain.head
        ),
    }
}
