//! The files of `--tls-cert` and `--tls-key`. They are read again when they have changed, so that a certificate can be
//! renewed while the server runs.

use std::path::Path;

use toolcrib_mcp::Listener;

#[cfg(not(feature = "identity"))]
pub(super) struct Files;

#[cfg(not(feature = "identity"))]
impl Files {
    pub(super) fn new(_: &Path, _: &Path) -> Result<Files, String> {
        Err("this program was built without TLS".to_owned())
    }

    pub(super) fn key(&self) -> &Path {
        Path::new("")
    }

    pub(super) fn begin(&self, tcp: std::net::TcpListener) -> Result<Listener, String> {
        Ok(Listener::Tcp(tcp))
    }
}

#[cfg(feature = "identity")]
pub(super) use self::with_tls::Files;

#[cfg(feature = "identity")]
mod with_tls {
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use toolcrib::PrivateFile;
    use toolcrib_mcp::ServerTls;

    use super::super::file_version::{FileVersion, file_version};
    use super::super::token;
    use super::{Listener, Path};
    use crate::output;

    /// Larger than any chain of certificates.
    const MAX_BYTES: u64 = 1 << 20;

    /// How often the files are compared with what was read.
    const INTERVAL: Duration = Duration::from_secs(10);

    /// The certificate and the key.
    #[derive(Clone)]
    pub(in super::super) struct Files {
        certificate: PathBuf,
        key: PathBuf,
        tls: Arc<ServerTls>,
        version: Version,
    }

    type Version = [Option<FileVersion>; 2];

    impl Files {
        /// Reads both files. Fails if they do not belong together, or if other users could read the key.
        pub(in super::super) fn new(certificate: &Path, key: &Path) -> Result<Files, String> {
            let version = versions(certificate, key);
            let (chain, secret) = (read(certificate)?, read_key(key)?);
            let failed = |problem| format!("--tls-cert {}: {problem}", certificate.display());
            let tls = ServerTls::new(&chain, &secret).map_err(failed)?;
            let (certificate, key) = (certificate.to_owned(), key.to_owned());
            Ok(Files { certificate, key, tls: Arc::new(tls), version })
        }

        /// The file with the key.
        pub(in super::super) fn key(&self) -> &Path {
            &self.key
        }

        /// Encrypts the connections of a listener, and follows changes of the files.
        pub(in super::super) fn begin(&self, tcp: TcpListener) -> Result<Listener, String> {
            let mut files = self.clone();
            let name = thread::Builder::new().name("tls-files".to_owned());
            let follow = move || loop {
                thread::sleep(INTERVAL);
                if let Err(problem) = files.follow() {
                    output::warning(&format!("the old certificate stays in use: {problem}"));
                }
            };
            name.spawn(follow).map_err(|error| error.to_string())?;
            Ok(Listener::Tls(tcp, self.tls.clone()))
        }

        /// Reads the files if they have changed.
        fn follow(&mut self) -> Result<(), String> {
            let version = versions(&self.certificate, &self.key);
            if version == self.version {
                return Ok(());
            }
            // A problem is reported once.
            self.version = version;
            self.tls.replace(&read(&self.certificate)?, &read_key(&self.key)?)
        }
    }

    fn versions(certificate: &Path, key: &Path) -> Version {
        // The files of a Kubernetes secret are symlinks, which are replaced.
        [certificate, key].map(|file| file_version(&file.canonicalize().ok()?))
    }

    fn read(file: &Path) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        if std::fs::metadata(file).map_err(failed)?.len() > MAX_BYTES {
            return Err(format!("{}: more than {MAX_BYTES} bytes", file.display()));
        }
        std::fs::read(file).map_err(failed)
    }

    fn read_key(file: &Path) -> Result<Vec<u8>, String> {
        let read = || {
            let real = file.canonicalize().map_err(|error| error.to_string())?;
            let private =
                PrivateFile::locate(&real).map_err(|error| token::problem("key", error))?;
            let content = private.read(MAX_BYTES).map_err(|error| token::problem("key", error))?;
            content.ok_or_else(|| "the file does not exist".to_owned())
        };
        read().map_err(|problem: String| format!("--tls-key {}: {problem}", file.display()))
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::PermissionsExt as _;

        use super::*;

        fn write(file: &Path, text: &str, mode: u32) {
            std::fs::write(file, text).unwrap();
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn changed_files_are_read_again_and_invalid_ones_are_not_used() {
            let directory = tempfile::tempdir().unwrap();
            let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
            let (chain, secret) = toolcrib_testkit::self_signed_certificate();
            write(&cert, &chain, 0o644);
            write(&key, &secret, 0o644);
            let refusal = Files::new(&cert, &key).err().unwrap();
            assert!(refusal.contains("chmod 600") && refusal.contains("the key"), "{refusal}");
            write(&key, &secret, 0o600);
            let mut files = Files::new(&cert, &key).unwrap();
            assert_eq!(files.follow(), Ok(()));
            write(&cert, "nonsense", 0o644);
            assert!(files.follow().is_err());
            assert_eq!(files.follow(), Ok(()), "it is reported once");
            let (other, of_other) = toolcrib_testkit::self_signed_certificate();
            write(&cert, &other, 0o644);
            assert!(files.follow().is_err(), "the key is still the old one");
            write(&key, &of_other, 0o600);
            assert_eq!(files.follow(), Ok(()));
            std::fs::remove_file(&key).unwrap();
            assert!(files.follow().is_err());
        }
    }
}
