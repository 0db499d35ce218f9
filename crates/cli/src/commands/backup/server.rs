//! The object store of a backup: its address and keys, from the variables and files of Amazon's tools.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::user_machine;
use toolcrib_backup::{
    BackupAddress, CredentialSource, Credentials, Objects, ServerSettings, file_value,
};

/// Larger than any file of settings.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where a backup is, and how to sign in there.
#[derive(Clone)]
pub(super) struct BackupServer {
    pub(super) address: BackupAddress,
    source: CredentialSource,
    /// The files that keys may be in.
    pub(super) files: Vec<PathBuf>,
}

impl BackupServer {
    /// Finds the settings for an address. Nothing is connected yet, but there must be keys.
    pub(super) fn find(address: &str) -> Result<BackupServer, String> {
        let words = |error: toolcrib_backup::BackupError| error.to_string();
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let keys_file = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        let config_file = file("AWS_CONFIG_FILE", ".aws/config");
        let config = config_file.as_deref().map(read).transpose()?.flatten().unwrap_or_default();
        let configured = |key: &str| file_value(&config, &profile, key);
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let settings = ServerSettings {
            endpoint: endpoint.or_else(|| configured("endpoint_url")),
            region: region.or_else(|| configured("region")),
            authorities: variable("AWS_CA_BUNDLE").map(PathBuf::from),
        };
        let address = BackupAddress::parse(address, &settings).map_err(words)?;
        let files: Vec<PathBuf> = keys_file.iter().chain(&config_file).cloned().collect();
        let read_from = files.clone();
        let source = move || keys(&read_from, &profile);
        source()?;
        Ok(BackupServer { address, source: Arc::new(source), files })
    }

    /// The backup of one of many workspaces.
    pub(super) fn below(&self, id: &str) -> Result<BackupServer, String> {
        let address = self.address.below(id).map_err(|error| error.to_string())?;
        Ok(BackupServer { address, ..self.clone() })
    }

    pub(super) fn objects(&self) -> Objects {
        Objects::new(self.address.clone(), self.source.clone())
    }
}

/// The keys as they are now: a file may have new ones.
fn keys(files: &[PathBuf], profile: &str) -> Result<Credentials, String> {
    let words = |error: toolcrib_backup::BackupError| error.to_string();
    if let Some(keys) = Credentials::in_variables(variable).map_err(words)? {
        return Ok(keys);
    }
    for file in files {
        let text = read(file)?.unwrap_or_default();
        if let Some(keys) = Credentials::in_file(&text, profile).map_err(words)? {
            return Ok(keys);
        }
    }
    Err(format!(
        "there are no keys for the object store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write the profile {profile} to \
         ~/.aws/credentials"
    ))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn file(name: &str, usual: &str) -> Option<PathBuf> {
    let named = variable(name).map(PathBuf::from);
    named.or_else(|| user_machine::home().map(|home| home.join(usual)))
}

/// The text of a file. `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}
