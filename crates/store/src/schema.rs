//! The tables of the store, and the roles that use them.

use postgres_protocol::escape::{escape_identifier, escape_literal};
use postgres_protocol::password::scram_sha_256;

use crate::connection::{Connection, column, number};
use crate::error::StoreError;
use crate::url::StoreUrl;

/// The changes that make the tables, oldest first. The first makes version 1.
const MIGRATIONS: &[&str] =
    &[include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// The oldest server that supports the tables.
const LEAST_SERVER: u32 = 130_000;

/// The most connections of a tenant.
const TENANT_CONNECTIONS: u32 = 200;

/// The longest name of a role.
const MAX_NAME_BYTES: usize = 63;

/// Which store a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreId(pub(crate) String);

/// What [`initialize`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Initialized {
    /// The version before, or 0.
    pub before: usize,
    /// The version now.
    pub now: usize,
}

/// The statements that [`initialize`] runs on an empty database.
pub fn statements() -> String {
    MIGRATIONS.join("\n")
}

/// Makes or updates the tables, as a role that may create schemas and roles.
///
/// # Errors
///
/// Fails if the server is too old, does not allow it, or has tables of a newer program. The tables are unchanged then.
pub fn initialize(url: &StoreUrl) -> Result<Initialized, StoreError> {
    let mut connection = Connection::open(url)?;
    let settings =
        "SELECT current_setting('server_version_num'), current_setting('server_encoding')";
    let rows = connection.query(settings, &[])?;
    let row = rows.first().ok_or_else(|| StoreError::connection("the server sent no settings"))?;
    if number::<u32>(row, 0)? < LEAST_SERVER {
        return Err(StoreError::settings("the store needs PostgreSQL 13 or later"));
    }
    if column(row, 1)? != "UTF8" {
        return Err(StoreError::settings("the store needs a database with the encoding UTF8"));
    }
    connection.batch("BEGIN")?;
    // Another program may do the same now. The number stands for this purpose only.
    connection.query("SELECT pg_advisory_xact_lock(7400631270516)", &[])?;
    let before = match id_and_version(&mut connection)? {
        Some((_, version)) => version,
        None => 0,
    };
    check_version(before, before)?;
    for migration in MIGRATIONS.iter().skip(before) {
        connection.batch(migration)?;
    }
    let version = MIGRATIONS.len().to_string();
    connection.query("UPDATE toolcrib.store SET version = $1::integer", &[&version])?;
    connection.batch("COMMIT")?;
    Ok(Initialized { before, now: MIGRATIONS.len() })
}

/// The id and the version of the store. `None` if the database has none.
fn id_and_version(connection: &mut Connection) -> Result<Option<(String, usize)>, StoreError> {
    let exists = connection.query("SELECT to_regclass('toolcrib.store') IS NOT NULL", &[])?;
    if exists.first().map(|row| column(row, 0)).transpose()? != Some("t") {
        return Ok(None);
    }
    let rows = connection.query("SELECT id, version FROM toolcrib.store", &[])?;
    rows.first().map(|row| Ok((column(row, 0)?.to_owned(), number(row, 1)?))).transpose()
}

fn check_version(found: usize, needed: usize) -> Result<(), StoreError> {
    if found > MIGRATIONS.len() {
        return Err(StoreError::settings(format!(
            "the store has version {found}, which a newer Toolcrib has made; this one knows version {}",
            MIGRATIONS.len()
        )));
    }
    if found < needed {
        return Err(StoreError::settings(format!(
            "the store has version {found}, and this Toolcrib needs version {needed}: run `toolcrib store init`"
        )));
    }
    Ok(())
}

/// Checks that the server has a store of this version.
pub(crate) fn identify(connection: &mut Connection) -> Result<StoreId, StoreError> {
    let found = id_and_version(connection).map_err(|error| {
        if error.has_code("42501") {
            return StoreError::settings(
                "the role may not use the store: `toolcrib store add-tenant` makes roles that may",
            );
        }
        error
    })?;
    let (id, version) = found.ok_or_else(|| {
        StoreError::settings("the database has no store: run `toolcrib store init` as its owner")
    })?;
    check_version(version, MIGRATIONS.len())?;
    Ok(StoreId(id))
}

/// Makes a role for a tenant, or gives an existing one a new password. Returns the address with which the tenant signs in.
///
/// # Errors
///
/// Fails if the name cannot be used, or if the server does not allow it.
pub fn add_tenant(url: &StoreUrl, name: &str, password: &str) -> Result<StoreUrl, StoreError> {
    let is_name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    let is_right = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(is_name)
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with("pg_")
        && name != "toolcrib_runtime";
    if !is_right {
        return Err(StoreError::settings(
            "the name of a tenant has lower-case letters, digits and `_`, begins with a letter, and is no longer than 63 characters",
        ));
    }
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    let known = connection.query(
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole, pg_has_role(rolname, 'toolcrib_runtime', 'MEMBER') FROM pg_roles WHERE rolname = $1",
        &[name],
    )?;
    let name = escape_identifier(name);
    // The server gets no password that its log could have.
    let verifier = escape_literal(&scram_sha_256(password.as_bytes()));
    let statements = match known.first() {
        None => format!(
            "CREATE ROLE {name} LOGIN INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS \
             CONNECTION LIMIT {TENANT_CONNECTIONS} PASSWORD {verifier}; GRANT toolcrib_runtime TO {name}"
        ),
        Some(row) if column(row, 0)? == "f" && column(row, 1)? == "t" => {
            format!("ALTER ROLE {name} PASSWORD {verifier}")
        }
        Some(_) => {
            return Err(StoreError::settings(
                "there is a role of this name that is no tenant: use another name",
            ));
        }
    };
    connection.batch(&statements)?;
    Ok(url.for_user(name.trim_matches('"'), Some(password.to_owned())))
}
