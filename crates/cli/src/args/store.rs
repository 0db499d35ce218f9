//! Arguments of `store`.

use std::path::PathBuf;

use clap::Subcommand;
use toolcrib_store::QuotaName;

use super::parse::number;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Make or update the tables, as a role that may create schemas and roles; --dry-run prints the statements
    Init {
        /// The store: postgres://OWNER@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// Make the role of a tenant with a random password, and write its address to a file; an existing tenant gets a new password
    AddTenant {
        /// The store: postgres://OWNER@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Name of the tenant: lower-case letters, digits and `_`
        name: String,
        /// The file for the address and the password. Only you will be able to read it
        #[arg(long, value_name = "FILE")]
        address_file: PathBuf,
    },
    /// Check the audit logs in the store: a tenant its own, the owner all
    Verify {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// List the limits of tenants and what is used of them, or set them as the owner of the store
    Quota {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Only the limits of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// The limits of this workspace, by its name in the store, instead of those of all workspaces together
        #[arg(long, value_name = "NAME", value_parser = workspace_name)]
        workspace: Option<String>,
        /// Set a limit: calls-per-minute=N, commands=N (that run at the same time) or command-seconds-per-day=N
        #[arg(long, value_name = "LIMIT=N", value_parser = quota_value)]
        set: Vec<(QuotaName, u64)>,
        /// Remove the limits of the tenant or of the workspace, except those of --set
        #[arg(long)]
        clear: bool,
    },
    /// List the approval questions that wait for an answer
    Approvals {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// Allow the call of an approval question, once
    Approve {
        /// The store: postgres://TENANT@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Id of the question, from `toolcrib store approvals`
        id: String,
        /// A message to the agent
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Deny the call of an approval question
    Deny {
        /// The store: postgres://TENANT@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Id of the question, from `toolcrib store approvals`
        id: String,
        /// A message to the agent
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
}

pub(super) const STORE: &str = "\
Set up and check a store in PostgreSQL, to which `toolcrib serve --store` sends the audit logs of many machines.

An address is postgres://ROLE@HOST[:PORT]/DATABASE. The connection is encrypted and the certificate of the server is checked, unless the \
address has ?sslmode=disable or names a unix socket (?host=/run/postgresql). sslrootcert=FILE names an authority of your own.

A password is never an argument: keep the whole address in a file that only you can read and give the path of the file, or use \
PGPASSFILE, ~/.pgpass or PGPASSWORD.";

/// The largest limit: a bound of the store.
const MAX_QUOTA: u64 = 1_000_000_000_000;

/// Parses a limit and its value.
fn quota_value(text: &str) -> Result<(QuotaName, u64), String> {
    let (name, value) = text.split_once('=').ok_or("not LIMIT=N")?;
    let known = QuotaName::ALL.map(QuotaName::name).join(", ");
    let name = QuotaName::parse(name).ok_or(format!("the limits are {known}"))?;
    let value: u64 = number(value)?;
    if value > MAX_QUOTA { Err(format!("at most {MAX_QUOTA}")) } else { Ok((name, value)) }
}

/// Parses the name of a workspace in the store.
fn workspace_name(text: &str) -> Result<String, &'static str> {
    let is_name = (1..=1_024).contains(&text.len());
    if is_name { Ok(text.to_owned()) } else { Err("a name has 1 to 1024 bytes") }
}
