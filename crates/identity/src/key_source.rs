//! Where the keys of an issuer are read from. Reading blocks.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toolcrib_net::{HttpGet, HttpTarget, get};

use crate::settings::IssuerSettings;
use crate::verification_keys::{self, VerificationKey};

/// The maximum size of a key set, or of the metadata of an issuer.
const MAX_DOCUMENT_BYTES: usize = 512 << 10;

/// The maximum size of a token that is sent to the server of an issuer.
const MAX_BEARER_BYTES: usize = 16 << 10;

/// The time limit for one document.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where keys are.
#[derive(Debug)]
enum Place {
    File(PathBuf),
    Url(HttpTarget),
    /// The addresses of the issuer's metadata, in the order in which they are tried.
    Metadata(Vec<HttpTarget>),
}

/// The keys of an issuer, where they are published.
#[derive(Debug)]
pub(crate) struct KeySource {
    issuer: String,
    place: Place,
    authorities: Option<PathBuf>,
    bearer_file: Option<PathBuf>,
}

/// The part of an issuer's metadata that is used here.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl KeySource {
    /// Fails if the settings name no place, several, or one without encryption.
    pub(crate) fn new(settings: &IssuerSettings) -> Result<KeySource, String> {
        let place = match (&settings.jwks_url, &settings.jwks_file) {
            (Some(_), Some(_)) => {
                return Err("jwks_url and jwks_file exclude each other".to_owned());
            }
            (Some(url), None) => Place::Url(confidential(url)?),
            (None, Some(file)) => Place::File(file.clone()),
            (None, None) => Place::Metadata(metadata_addresses(&settings.url)?),
        };
        // A token must reach only the server that the operator has named.
        if settings.bearer_file.is_some() && !matches!(place, Place::Url(_)) {
            return Err("bearer_file needs jwks_url".to_owned());
        }
        Ok(KeySource {
            issuer: settings.url.clone(),
            place,
            authorities: settings.ca_file.clone(),
            bearer_file: settings.bearer_file.clone(),
        })
    }

    /// Whether reading the keys again costs nothing.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Reads the keys. Fails with the reason.
    pub(crate) fn read(&self) -> Result<Vec<VerificationKey>, String> {
        let document = match &self.place {
            Place::File(file) => bounded(file, MAX_DOCUMENT_BYTES)?,
            Place::Url(url) => self.fetch(url)?,
            Place::Metadata(addresses) => self.fetch(&self.find_keys(addresses)?)?,
        };
        verification_keys::parse(&document)
    }

    /// The address of the keys, from the first metadata that exist.
    fn find_keys(&self, addresses: &[HttpTarget]) -> Result<HttpTarget, String> {
        let mut problem = String::new();
        for address in addresses {
            match self.fetch(address) {
                Err(error) => problem = error,
                Ok(document) => {
                    let metadata: Metadata = serde_json::from_slice(&document)
                        .map_err(|error| format!("not the metadata of an issuer: {error}"))?;
                    if metadata.issuer != self.issuer {
                        return Err("the metadata are those of another issuer".to_owned());
                    }
                    return confidential(&metadata.jwks_uri);
                }
            }
        }
        Err(format!("no metadata: {problem}"))
    }

    fn fetch(&self, target: &HttpTarget) -> Result<Vec<u8>, String> {
        let bearer = self.bearer_file.as_ref().map(|file| {
            let token = bounded(file, MAX_BEARER_BYTES)?;
            let token = String::from_utf8(token).map_err(|_| "the token is not text".to_owned())?;
            Ok::<_, String>(("Authorization".to_owned(), format!("Bearer {}", token.trim())))
        });
        let headers: Vec<(String, String)> = bearer.transpose()?.into_iter().collect();
        get(
            target,
            &HttpGet {
                headers: &headers,
                max_bytes: MAX_DOCUMENT_BYTES,
                timeout: TIMEOUT,
                authorities: self.authorities.as_ref(),
            },
        )
    }
}

/// The addresses of an issuer's metadata: those of RFC 8414 first, then those of OpenID Connect.
fn metadata_addresses(issuer: &str) -> Result<Vec<HttpTarget>, String> {
    let whole = issuer.strip_suffix('/').unwrap_or(issuer);
    let (scheme, rest) = whole.split_once("://").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if path.contains(['?', '#']) || host.contains(['?', '#']) {
        return Err(format!("{issuer} has a query or a fragment, so it is not an issuer"));
    }
    let inserted =
        |name: &str| confidential(&format!("{scheme}://{host}/.well-known/{name}{path}"));
    let mut addresses =
        vec![inserted("oauth-authorization-server")?, inserted("openid-configuration")?];
    if !path.is_empty() {
        addresses.push(confidential(&format!("{whole}/.well-known/openid-configuration"))?);
    }
    Ok(addresses)
}

/// An address whose answers nobody on the way can change.
fn confidential(url: &str) -> Result<HttpTarget, String> {
    let target = HttpTarget::parse(url)?;
    if target.is_confidential() {
        Ok(target)
    } else {
        Err(format!("{url}: keys are read over https only, or from this machine"))
    }
}

/// The content of a file of the operator.
fn bounded(file: &Path, max: usize) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut content = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    opened.take(max as u64 + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() > max {
        return Err(format!("{}: more than {max} bytes", file.display()));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(change: impl FnOnce(&mut IssuerSettings)) -> Result<KeySource, String> {
        let mut settings =
            IssuerSettings { url: "https://i.example/t".to_owned(), ..IssuerSettings::default() };
        change(&mut settings);
        KeySource::new(&settings)
    }

    #[test]
    fn metadata_are_looked_for_at_the_addresses_of_the_standards() {
        let addresses = |issuer: &str| metadata_addresses(issuer).unwrap();
        let target = |url: &str| HttpTarget::parse(url).unwrap();
        let two = [
            target("https://i.example/.well-known/oauth-authorization-server"),
            target("https://i.example/.well-known/openid-configuration"),
        ];
        assert_eq!(addresses("https://i.example"), two);
        assert_eq!(addresses("https://i.example/"), two);
        assert_eq!(
            addresses("https://i.example/t/v2"),
            [
                target("https://i.example/.well-known/oauth-authorization-server/t/v2"),
                target("https://i.example/.well-known/openid-configuration/t/v2"),
                target("https://i.example/t/v2/.well-known/openid-configuration"),
            ]
        );
        for issuer in ["", "i.example", "http://i.example", "https://i.example/?x", "ftp://x"] {
            assert!(metadata_addresses(issuer).is_err(), "{issuer}");
        }
    }

    #[test]
    fn unusable_authorities_are_not_replaced_by_those_of_the_system() {
        for file in ["/missing/ca.pem", "/dev", "/dev/null"] {
            let source = source(|settings| {
                settings.jwks_url = Some("https://127.0.0.1:1/keys".to_owned());
                settings.ca_file = Some(file.into());
            });
            let refusal = source.unwrap().read().unwrap_err();
            assert!(refusal.contains(&format!("{file} ")), "{refusal}");
        }
    }

    #[test]
    fn keys_have_one_place_that_nobody_else_can_write() {
        let url = |url: &str| Some(url.to_owned());
        assert!(source(|settings| settings.jwks_url = url("https://i.example/keys")).is_ok());
        assert!(source(|settings| settings.jwks_url = url("http://127.0.0.1:1/keys")).is_ok());
        assert!(source(|settings| settings.jwks_file = Some("keys".into())).unwrap().is_local());
        for (change, problem) in [
            (
                (|settings: &mut IssuerSettings| {
                    settings.jwks_url = Some("http://i.example/keys".to_owned());
                }) as fn(&mut IssuerSettings),
                "over https only",
            ),
            (|settings| settings.bearer_file = Some("token".into()), "needs jwks_url"),
            (
                |settings| {
                    settings.jwks_url = Some("https://i.example/keys".to_owned());
                    settings.jwks_file = Some("keys".into());
                },
                "exclude each other",
            ),
        ] {
            let refusal = source(change).unwrap_err();
            assert!(refusal.contains(problem), "{refusal}");
        }
    }
}
