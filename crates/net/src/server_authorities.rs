//! The certificate authorities of servers that the user configured.

use std::path::Path;

use rustls::RootCertStore;

use crate::inspect::{SystemTrust, authorities_in, root_store};

/// The authorities in a file. Without a file, those that the system trusts.
///
/// # Errors
///
/// Fails if the file cannot be used. Those of the system never take its place: they would accept other servers.
pub(crate) fn server_authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let Some(file) = file else { return root_store(SystemTrust::read(None, &[]).roots()) };
    let pem = authorities_in(file);
    let pem = pem.ok_or_else(|| format!("{} cannot be read", file.display()))?;
    root_store(&pem).map_err(|_| format!("{} has no certificate", file.display()))
}
