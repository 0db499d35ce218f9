//! How clients reach the HTTP server, and who they are: the options `--identity`, `--public-url` and `--tls-…`.

use std::path::{Path, PathBuf};

use toolcrib_mcp::{Identify, Listener, PublicUrl};

use super::{identity, renewed_files, tls};
use crate::args::{ListenAt, ServeArgs};

/// The checked options.
pub(super) struct Exposure {
    identity: Option<(PathBuf, identity::Read)>,
    tls: Option<tls::Files>,
    public_url: Option<PublicUrl>,
}

impl Exposure {
    /// Reads the files. Fails if other machines could reach the server without encryption or without identities.
    pub(super) fn new(args: &ServeArgs, at: &ListenAt) -> Result<Exposure, String> {
        let public_url = args.public_url.as_deref().map(PublicUrl::parse).transpose();
        let public_url = public_url.map_err(|problem| format!("--public-url {problem}"))?;
        let is_https = public_url.as_ref().is_some_and(PublicUrl::is_https);
        if at.is_reachable() {
            if args.identity.is_none() {
                return Err(format!(
                    "other machines could reach {at}: that needs --identity, because the token file is for this machine only; \
                     or listen on 127.0.0.1 and use `ssh -L`, or a TLS proxy on this machine that --allow-host names"
                ));
            }
            if !is_https {
                return Err(format!(
                    "other machines could reach {at}: name the URL that clients use with --public-url https://HOST, and \
                     encrypt with --tls-cert and --tls-key or with a TLS proxy in front of this server"
                ));
            }
        }
        let read = |file: &PathBuf| {
            let file = absolute(file)?;
            let read = identity::read(&file, args.workspaces.is_some())?;
            Ok::<_, String>((file, read))
        };
        let identity = args.identity.as_ref().map(read).transpose()?;
        let tls = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
        let tls = tls.map(|(cert, key)| tls::Files::new(&absolute(cert)?, &absolute(key)?));
        Ok(Exposure { identity, tls: tls.transpose()?, public_url })
    }

    /// Whether callers have access tokens of an identity provider.
    pub(super) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// The paths that no tool may access: the settings, keys and tokens, and the directories in which they are renewed. Fails
    /// if such a directory cannot be hidden with these roots.
    pub(super) fn private_paths(&self, roots: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
        let of_identity = self.identity.iter().flat_map(|(file, read)| {
            std::iter::once(file.clone()).chain(read.private_files.iter().cloned())
        });
        let files = of_identity.chain(self.tls.iter().map(|tls| tls.key().to_owned()));
        renewed_files::hidden_paths(files, roots)
    }

    /// Says who is served.
    pub(super) fn describe(&self) -> Option<String> {
        let (_, read) = self.identity.as_ref()?;
        Some(format!("access tokens come from {}", read.issuers.join(", ")))
    }

    /// Listens. Returns the listener and the address of a path, for display.
    pub(super) fn listen(&self, at: &ListenAt, path: &str) -> Result<(Listener, String), String> {
        let (listener, address) = at.listen(path)?;
        let (listener, address) = match (&self.tls, listener) {
            (None, listener) => (listener, address),
            (Some(tls), Listener::Tcp(tcp)) => {
                (tls.begin(tcp)?, address.replacen("http://", "https://", 1))
            }
            (Some(_), _) => return Err("TLS needs an address, not a socket path".to_owned()),
        };
        let public = self.public_url.as_ref();
        let address = match public {
            Some(public) => format!("{address}, for clients at {public}{path}"),
            None => address,
        };
        Ok((listener, address))
    }

    /// The parts for the server.
    pub(super) fn into_parts(self) -> (Option<Box<dyn Identify>>, Option<PublicUrl>) {
        (self.identity.map(|(_, read)| read.identify), self.public_url)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
