//! Where a backup is: `s3://BUCKET/PREFIX`, on a server.

use std::fmt;
use std::path::PathBuf;

use toolcrib_net::HttpTarget;

use crate::error::BackupError;

const SCHEME: &str = "s3://";

/// The region of servers that have none.
const USUAL_REGION: &str = "us-east-1";

const MAX_PREFIX_BYTES: usize = 512;

/// Settings of the server from the user's environment and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The URL of the server. Without one it is that of Amazon.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// A file with certificates that are trusted instead of those of the system.
    pub authorities: Option<PathBuf>,
}

/// The place of one backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupAddress {
    bucket: String,
    prefix: String,
    pub(crate) target: HttpTarget,
    /// What comes before the prefix in the path of a request.
    base: String,
    pub(crate) region: String,
    pub(crate) authorities: Option<PathBuf>,
}

impl BackupAddress {
    /// Parses an address.
    ///
    /// # Errors
    ///
    /// Fails if it is not one, or if files would be sent in the clear to another machine.
    pub fn parse(text: &str, settings: &ServerSettings) -> Result<BackupAddress, BackupError> {
        let wrong =
            |why: &str| BackupError::settings(format!("{text} is no address of a backup: {why}"));
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("it must begin with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_bucket =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_bucket) {
            return Err(wrong("a bucket has 3 to 63 lower-case letters, digits, `.`, `-` or `_`"));
        }
        if !is_prefix(prefix) {
            return Err(wrong(
                "after the bucket it needs names of letters, digits, `.`, `-`, `_` or `=`, with `/` between them",
            ));
        }
        let region = settings.region.clone().unwrap_or_else(|| USUAL_REGION.to_owned());
        let is_region = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if region.is_empty() || region.len() > 64 || !region.bytes().all(is_region) {
            return Err(BackupError::settings(
                "the region has characters that a region cannot have",
            ));
        }
        // A certificate is for one name before the domain.
        let by_name = settings.endpoint.is_none() && !bucket.contains(['.', '_']);
        let url = match &settings.endpoint {
            Some(endpoint) => endpoint.clone(),
            None if by_name => format!("https://{bucket}.s3.{region}.amazonaws.com"),
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let target = HttpTarget::parse(&url).map_err(BackupError::settings)?;
        if !target.is_confidential() {
            return Err(BackupError::settings(format!(
                "{url} would send the files in the clear to another machine: use https://"
            )));
        }
        let path = target.path().trim_end_matches('/');
        if path.contains('?') {
            return Err(BackupError::settings(format!("{url} has a query")));
        }
        let base = if by_name { path.to_owned() } else { format!("{path}/{bucket}") };
        let authorities = settings.authorities.clone();
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(BackupAddress { bucket, prefix, target, base, region, authorities })
    }

    /// The address of one of many workspaces, which has this name.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be part of an address.
    pub fn below(&self, name: &str) -> Result<BackupAddress, BackupError> {
        let prefix = format!("{}/{name}", self.prefix);
        if name.contains('/') || !is_prefix(&prefix) {
            return Err(BackupError::settings(format!(
                "{name} cannot be part of the address of a backup"
            )));
        }
        Ok(BackupAddress { prefix, ..self.clone() })
    }

    /// The name of an object in the bucket.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// The path of a request for an object in the bucket, or for the bucket itself.
    pub(crate) fn path(&self, key: &str) -> String {
        // Keys have only characters that need no encoding, except `=`.
        format!("{}/{}", self.base, key.replace('=', "%3D"))
    }
}

impl fmt::Display for BackupAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.bucket, self.prefix)
    }
}

fn is_prefix(prefix: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_=".contains(&byte);
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.bytes().all(is_part);
    prefix.len() <= MAX_PREFIX_BYTES && prefix.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(endpoint: Option<&str>) -> ServerSettings {
        ServerSettings { endpoint: endpoint.map(str::to_owned), ..ServerSettings::default() }
    }

    #[test]
    fn addresses_are_parsed() {
        let amazon = BackupAddress::parse("s3://my-bucket/a/b=1/", &at(None)).unwrap();
        assert_eq!(amazon.target.host_header(), "my-bucket.s3.us-east-1.amazonaws.com");
        assert_eq!(amazon.path(&amazon.key("blobs/x")), "/a/b%3D1/blobs/x");
        assert_eq!(amazon.to_string(), "s3://my-bucket/a/b=1");
        let dotted = BackupAddress::parse("s3://my.bucket/a", &at(None)).unwrap();
        assert_eq!(dotted.target.host_header(), "s3.us-east-1.amazonaws.com");
        assert_eq!(dotted.path(&dotted.key("x")), "/my.bucket/a/x");
        let own =
            BackupAddress::parse("s3://bucket/a", &at(Some("http://127.0.0.1:9/s3/"))).unwrap();
        let one = own.below("alice").unwrap();
        assert_eq!(one.path(&one.key("x")), "/s3/bucket/a/alice/x");
        assert!(own.below("..").is_err() && own.below("a/b").is_err() && own.below("").is_err());
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for text in [
            "",
            "s3:/",
            "s3://",
            "s3://bucket",
            "s3://bucket/",
            "s3://bucket//a",
            "s3://Bucket/a",
            "s3://b/a",
            "s3://bucket/../a",
            "s3://bucket/a b",
            "s3://bucket/a?b",
            "http://bucket/a",
        ] {
            assert!(BackupAddress::parse(text, &at(None)).is_err(), "{text}");
        }
        for endpoint in ["http://other.example", "ftp://x", "https://x/?a", "https://u:p@x"] {
            assert!(
                BackupAddress::parse("s3://bucket/a", &at(Some(endpoint))).is_err(),
                "{endpoint}"
            );
        }
    }
}
