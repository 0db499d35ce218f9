//! Inspected hosts of a runtime: the certificate authority, the files that make commands trust it, and credentials.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use toolcrib_exec::{Replacement, ReplacementFiles};
use toolcrib_fs::random_bytes;
use toolcrib_net::{Credential, Host, Inspector, NamespaceGateway, SystemTrust};

use crate::inspection_settings::{Injection, InspectionSettings};

/// Where commands see the certificate of the authority, and all authorities.
const AUTHORITY: &str = "/run/toolcrib/ca.pem";
const ALL_AUTHORITIES: &str = "/run/toolcrib/ca-bundle.pem";

/// Variables that name a file with more authorities, for programs with a list of their own.
const MORE_AUTHORITIES: [&str; 2] = ["DENO_CERT", "NODE_EXTRA_CA_CERTS"];

/// Variables that name a file with all authorities.
const AUTHORITY_FILES: [&str; 8] = [
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// Random bytes of a placeholder.
const PLACEHOLDER_BYTES: usize = 16;

/// The inspected hosts of a runtime.
pub(crate) struct Inspection {
    credentials: Vec<Credential>,
    /// Names and values.
    placeholders: Vec<(String, String)>,
    secrets: Vec<(String, String)>,
    roots: Option<PathBuf>,
    /// Made for the first command.
    ready: OnceLock<Result<Ready, String>>,
}

/// What the first command needs.
struct Ready {
    inspector: Arc<Inspector>,
    files: ReplacementFiles,
}

impl Inspection {
    /// Fails with the problem of a credential.
    pub(crate) fn new(settings: InspectionSettings) -> Result<Inspection, String> {
        let mut made = Inspection {
            credentials: Vec::new(),
            placeholders: Vec::new(),
            secrets: Vec::new(),
            roots: settings.roots,
            ready: OnceLock::new(),
        };
        for injection in settings.injections {
            let about = |problem: String| format!("inject for {}: {problem}", injection.host);
            made.add(&injection).map_err(about)?;
        }
        Ok(made)
    }

    fn add(&mut self, injection: &Injection) -> Result<(), String> {
        let Injection { host, port, header, format, secret, placeholder } = injection;
        let mut credential = Credential::new(host, *port, header, format, secret)?;
        if let Some(variable) = placeholder {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if variable.is_empty() || !variable.chars().all(is_plain) {
                return Err(format!("{variable:?} is not the name of a variable"));
            }
            let random = random_bytes::<PLACEHOLDER_BYTES>().map_err(|error| error.to_string())?;
            let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let value = format!("placeholder-{random}");
            credential = credential.with_placeholder(value.clone());
            self.placeholders.push((variable.clone(), value));
        }
        self.credentials.push(credential);
        let name = placeholder.clone().unwrap_or_else(|| format!("{header} of {host}"));
        self.secrets.push((name, secret.clone()));
        Ok(())
    }

    /// The secrets, each with a name.
    pub(crate) fn secrets(&self) -> &[(String, String)] {
        &self.secrets
    }

    /// Whether a variable of the user is not for commands: it has a secret, or the name of a placeholder.
    pub(crate) fn withholds(&self, name: &str, value: &str) -> bool {
        self.placeholders.iter().any(|(placeholder, _)| placeholder == name)
            || self.secrets.iter().any(|(_, secret)| value.contains(secret.as_str()))
    }

    /// Whether requests to a host get a credential.
    pub(crate) fn has_credential_for(&self, host: &Host, port: u16) -> bool {
        self.credentials.iter().any(|credential| credential.is_for(host, port))
    }

    /// Makes the authority and the files of commands, in `parent`, unless they exist. `variables` are those of the user.
    pub(crate) fn prepare(&self, parent: &Path, variables: &[(OsString, OsString)]) {
        self.ready.get_or_init(|| self.make(parent, variables));
    }

    fn make(&self, parent: &Path, variables: &[(OsString, OsString)]) -> Result<Ready, String> {
        let names_file = |(name, _): &&(OsString, OsString)| {
            AUTHORITY_FILES.iter().chain(&MORE_AUTHORITIES).any(|known| name == known)
        };
        let others: Vec<PathBuf> = variables
            .iter()
            .filter(names_file)
            .map(|(_, value)| PathBuf::from(value))
            .filter(|path| path.is_absolute())
            .collect();
        let system = SystemTrust::read(self.roots.as_deref(), &others);
        let inspector = Inspector::new(system.roots(), self.credentials.clone())?;
        let failed = |error: std::io::Error| format!("the certificates cannot be stored: {error}");
        let mut files = ReplacementFiles::make(parent).map_err(failed)?;
        let pem = inspector.certificate();
        files.file(Path::new(AUTHORITY), pem.as_bytes()).map_err(failed)?;
        files.file(Path::new(ALL_AUTHORITIES), &system.bundle_with(&pem)).map_err(failed)?;
        let (inside, single): (Vec<_>, Vec<_>) =
            inspector.trusted_files(&system).into_iter().partition(|file| file.directory.is_some());
        for file in single {
            files.file(&file.path, &file.content).map_err(failed)?;
        }
        if let Some(directory) = inside.first().and_then(|file| file.directory.clone()) {
            let changed: Vec<(&str, &[u8])> = inside
                .iter()
                .filter_map(|file| Some((file.path.to_str()?, file.content.as_slice())))
                .collect();
            files.directory(&directory, &changed).map_err(failed)?;
        }
        Ok(Ready { inspector: Arc::new(inspector), files })
    }

    /// Why requests cannot be inspected, if they cannot.
    pub(crate) fn problem(&self) -> Option<&str> {
        match self.ready.get() {
            Some(Ok(_)) => None,
            Some(Err(problem)) => Some(problem),
            None => Some("this needs sandbox level 3 or 4"),
        }
    }

    /// Makes a gateway inspect connections.
    pub(crate) fn attach(&self, gateway: &NamespaceGateway) {
        if let Some(Ok(ready)) = self.ready.get() {
            gateway.inspect_with(ready.inspector.clone());
        }
    }

    /// The files that commands see in place of those of the system.
    pub(crate) fn replacements(&self) -> &[Replacement] {
        match self.ready.get() {
            Some(Ok(ready)) => ready.files.replacements(),
            _ => &[],
        }
    }

    /// Adds the variables of a command. Those that it has are kept.
    pub(crate) fn add_variables(&self, environment: &mut Vec<(OsString, OsString)>) {
        let more = MORE_AUTHORITIES.iter().map(|name| (*name, AUTHORITY));
        let all = AUTHORITY_FILES.iter().map(|name| (*name, ALL_AUTHORITIES));
        let placeholders = self.placeholders.iter();
        let placeholders = placeholders.map(|(name, value)| (name.as_str(), value.as_str()));
        let files = more.chain(all).filter(|_| self.problem().is_none());
        for (name, value) in files.chain(placeholders) {
            if !environment.iter().any(|(known, _)| known == name) {
                environment.push((name.into(), value.into()));
            }
        }
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection").finish_non_exhaustive()
    }
}
