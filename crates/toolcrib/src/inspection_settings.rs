//! Settings of inspected hosts that only the operator gives.

use std::fmt;
use std::path::PathBuf;

/// Settings of inspected hosts.
#[derive(Debug, Clone, Default)]
pub struct InspectionSettings {
    /// Credentials that requests to some hosts get.
    pub injections: Vec<Injection>,
    /// A file with the certificate authorities that inspected hosts are verified with, in PEM. `None` for those of the
    /// system.
    pub roots: Option<PathBuf>,
}

/// A credential that requests to one host get. Commands never have it.
#[derive(Clone)]
pub struct Injection {
    /// The host: a name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The header, such as `Authorization`. What a command sends in it is removed.
    pub header: String,
    /// The value of the header, in which `{}` stands for the secret.
    pub format: String,
    /// The secret.
    pub secret: String,
    /// A variable in which commands get a placeholder. Where they send it in the header, to this host, the secret takes
    /// its place.
    pub placeholder: Option<String>,
}

impl fmt::Debug for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injection")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
