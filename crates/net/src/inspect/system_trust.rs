//! The files in which a system has its certificate authorities, and the same files with one more.

#![allow(
    clippy::disallowed_methods,
    reason = "the files of the system are outside every workspace, and no command can change them"
)]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::java_keystore;

/// Files with all authorities, in PEM. The first that exists is that of the system.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The directory in which OpenSSL finds an authority by the hash of its name.
const HASHED: &str = "/etc/ssl/certs";

/// Keystores of Java. Mostly symlinks to the first.
const JAVA: &str = "/etc/ssl/certs/java/cacerts";

/// The name of the authority in keystores of Java.
const JAVA_ALIAS: &str = "toolcrib-inspected-hosts";

/// A larger file is no list of authorities.
const MAX_BYTES: u64 = 16 << 20;

/// A file that commands see in place of another, or in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFile {
    /// Its directory, which is to be copied for it. `None` if it replaces a single file.
    pub directory: Option<PathBuf>,
    /// The path, or the name in the directory.
    pub path: PathBuf,
    /// The content.
    pub content: Vec<u8>,
}

/// The authorities that a system trusts.
#[derive(Debug, Clone, Default)]
pub struct SystemTrust {
    /// In PEM.
    roots: Vec<u8>,
    /// The files with authorities.
    bundles: Vec<(PathBuf, Vec<u8>)>,
    hashed: Option<PathBuf>,
    java: Option<Vec<u8>>,
}

impl SystemTrust {
    /// Reads the files of this system. `own` is the user's file in place of that of the system, and `others` are files
    /// that programs of the user use.
    pub fn read(own: Option<&Path>, others: &[PathBuf]) -> SystemTrust {
        let mut bundles: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let usual = BUNDLES.iter().map(PathBuf::from);
        for path in usual.chain(own.map(Path::to_owned)).chain(others.iter().cloned()) {
            let Ok(path) = path.canonicalize() else { continue };
            let is_known = bundles.iter().any(|(known, _)| *known == path);
            if let Some(content) = read(&path).filter(|_| !is_known) {
                bundles.push((path, content));
            }
        }
        let own = own.and_then(read);
        let roots = own.or_else(|| Some(bundles.first()?.1.clone())).unwrap_or_default();
        let hashed = Path::new(HASHED).canonicalize().ok().filter(|path| path.is_dir());
        SystemTrust { roots, bundles, hashed, java: read(Path::new(JAVA)) }
    }

    /// The authorities that the user trusts, in PEM.
    pub fn roots(&self) -> &[u8] {
        &self.roots
    }

    /// The authorities with one more, in PEM.
    pub(super) fn with_authority(
        &self,
        pem: &str,
        der: &[u8],
        hashed_name: &str,
    ) -> Vec<TrustedFile> {
        let mut files = Vec::new();
        let mut add = |path: &Path, content: Vec<u8>| {
            let inside = self.hashed.as_ref().and_then(|hashed| {
                Some((hashed.clone(), path.strip_prefix(hashed).ok()?.to_owned()))
            });
            let (directory, path) = inside.map_or_else(
                || (None, path.to_owned()),
                |(directory, name)| (Some(directory), name),
            );
            files.push(TrustedFile { directory, path, content });
        };
        for (path, content) in &self.bundles {
            add(path, joined(content, pem));
        }
        if let Some(hashed) = &self.hashed {
            add(&hashed.join(hashed_name), pem.as_bytes().to_vec());
            let java = self.java.as_ref();
            let java = java.and_then(|java| java_keystore::with_authority(java, JAVA_ALIAS, der));
            java.into_iter().for_each(|java| add(Path::new(JAVA), java));
        }
        files
    }

    /// The authorities of the system with one more, in PEM.
    pub fn bundle_with(&self, pem: &str) -> Vec<u8> {
        joined(self.bundles.first().map_or(&[], |(_, content)| content), pem)
    }
}

fn joined(bundle: &[u8], pem: &str) -> Vec<u8> {
    [bundle, b"\n", pem.as_bytes()].concat()
}

/// The authorities in a file. `None` if it cannot be read, or is too large.
pub(crate) fn authorities_in(path: &Path) -> Option<Vec<u8>> {
    read(path)
}

/// The content of a file. `None` if it cannot be read, or is too large.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let read = File::open(path).ok()?.take(MAX_BYTES + 1).read_to_end(&mut content).ok()?;
    (read as u64 <= MAX_BYTES).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gets_the_authority() {
        let system = SystemTrust {
            roots: b"one".to_vec(),
            bundles: vec![
                ("/etc/ssl/certs/ca-certificates.crt".into(), b"one".to_vec()),
                ("/home/me/own.pem".into(), b"two".to_vec()),
            ],
            hashed: Some("/etc/ssl/certs".into()),
            java: Some(b"no keystore".to_vec()),
        };
        let files = system.with_authority("added\n", b"der", "12345678.0");
        let shown: Vec<(bool, &str, String)> = files
            .iter()
            .map(|file| {
                let content = String::from_utf8(file.content.clone()).unwrap();
                (file.directory.is_some(), file.path.to_str().unwrap(), content)
            })
            .collect();
        assert_eq!(
            shown,
            [
                (true, "ca-certificates.crt", "one\nadded\n".to_owned()),
                (false, "/home/me/own.pem", "two\nadded\n".to_owned()),
                (true, "12345678.0", "added\n".to_owned()),
            ]
        );
        assert_eq!(system.bundle_with("added"), b"one\nadded");
    }
}
