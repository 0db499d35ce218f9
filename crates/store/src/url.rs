//! Where the store is and how it is reached: `postgres://USER@HOST[:PORT]/DATABASE[?sslmode=…]`.
//!
//! A mode that could send something in the clear without being asked to is refused, and so is every parameter that is not
//! known here: ignoring one could weaken the connection.

mod passwords;

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use toolcrib::{PrivateFile, PrivateFileError};
use toolcrib_net::ServerAddress;

use self::passwords::password_in;
use crate::error::StoreError;

/// The maximum length of an address.
const MAX_URL_BYTES: usize = 4_096;

/// The maximum size of a file with passwords.
const MAX_PASSWORDS_BYTES: u64 = 1 << 20;

const PORT: u16 = 5432;

/// The address of a store, with the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) address: ServerAddress,
    pub(crate) database: String,
    pub(crate) tls: Tls,
}

/// Whether the connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    /// With a certificate for the host, signed by an authority of this file, or of the system.
    Full(Option<PathBuf>),
}

impl StoreUrl {
    /// Whether a text looks like an address, and not like the path of a file with one.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Parses an address.
    ///
    /// # Errors
    ///
    /// Fails with the reason, which does not repeat the address.
    pub fn parse(url: &str) -> Result<StoreUrl, StoreError> {
        parse(url).map_err(|why| StoreError::settings(format!("the address of the store {why}")))
    }

    /// Reads the address from a file, which no other user may access.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, if others can access it, or if it has no address.
    pub fn read(file: &Path) -> Result<StoreUrl, StoreError> {
        let wrong = |why: String| StoreError::settings(format!("{}: {why}", file.display()));
        let content = read_private(file, MAX_URL_BYTES as u64).map_err(&wrong)?;
        let content = content.ok_or_else(|| wrong("there is no such file".to_owned()))?;
        let text = String::from_utf8(content).map_err(|_| wrong("is not text".to_owned()))?;
        parse(text.trim()).map_err(|why| wrong(format!("the address in it {why}")))
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The same address with a password, if it has none.
    #[must_use]
    pub fn or_password(self, password: Option<String>) -> StoreUrl {
        let password = self.password.clone().or(password);
        StoreUrl { password, ..self }
    }

    /// The same address with its password in a file in the format of `.pgpass`, if it has none and the file has one.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if others can access it.
    pub fn or_password_in(self, file: &Path) -> Result<StoreUrl, StoreError> {
        if self.has_password() {
            return Ok(self);
        }
        let wrong = |why: String| StoreError::settings(format!("{}: {why}", file.display()));
        let content = read_private(file, MAX_PASSWORDS_BYTES).map_err(wrong)?.unwrap_or_default();
        let password = password_in(&String::from_utf8_lossy(&content), &self);
        Ok(self.or_password(password))
    }

    /// The same address for another user.
    #[must_use]
    pub fn for_user(&self, user: &str, password: Option<String>) -> StoreUrl {
        StoreUrl { user: user.to_owned(), password, ..self.clone() }
    }

    /// The user, which is the tenant.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The whole address with its password, for a file that only its owner can read.
    pub fn with_secrets(&self) -> String {
        let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let password = self.password.as_deref().map(|word| format!(":{}", escape(word)));
        let (place, mut parameters) = match &self.address {
            ServerAddress::Host(host, port) if host.contains(':') => {
                (format!("[{host}]:{port}"), Vec::new())
            }
            ServerAddress::Host(host, port) => (format!("{host}:{port}"), Vec::new()),
            ServerAddress::Socket(path) => {
                let directory = path.parent().unwrap_or(Path::new("/")).display().to_string();
                let port = path.extension().map(|port| port.to_string_lossy().into_owned());
                let port = format!("port={}", port.unwrap_or_default());
                (String::new(), vec![format!("host={}", escape(&directory)), port])
            }
        };
        match (&self.tls, &self.address) {
            (Tls::Off, ServerAddress::Host(..)) => parameters.push("sslmode=disable".to_owned()),
            (Tls::Full(Some(file)), _) => {
                parameters.push(format!("sslrootcert={}", escape(&file.display().to_string())));
            }
            _ => {}
        }
        let (user, database) = (escape(&self.user), escape(&self.database));
        let mut url =
            format!("postgres://{user}{}@{place}/{database}", password.unwrap_or_default());
        for (at, parameter) in parameters.iter().enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url += parameter;
        }
        url
    }
}

/// Reads a file that must be private. `None` if it does not exist.
fn read_private(file: &Path, max: u64) -> Result<Option<Vec<u8>>, String> {
    let read = PrivateFile::locate(file).and_then(|file| file.read(max));
    read.map_err(|error| match error {
        PrivateFileError::Io(error) => error.to_string(),
        PrivateFileError::NotPrivate(why) => format!("the file {why}"),
    })
}

/// Without the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreUrl { user, database, .. } = self;
        match &self.address {
            ServerAddress::Host(host, port) => {
                write!(f, "postgres://{user}@{host}:{port}/{database}")
            }
            ServerAddress::Socket(path) => write!(f, "{database} at {}, as {user}", path.display()),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

fn parse(url: &str) -> Result<StoreUrl, String> {
    if url.len() > MAX_URL_BYTES || url.chars().any(|char| char.is_control() || char == ' ') {
        return Err("is too long, or has spaces or control characters".to_owned());
    }
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or("must begin with postgres://")?;
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (decoded(user)?, Some(decoded(password)?)),
        None => (decoded(user)?, None),
    };
    let (mut host, mut port) = host_and_port(place)?;
    let (mut mode, mut authorities) = (None, None);
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decoded(value)?;
        match name {
            "host" if host.is_empty() => host = value,
            "port" if port.is_none() => port = Some(port_number(&value)?),
            "sslmode" if mode.is_none() => mode = Some(value),
            "sslrootcert" if authorities.is_none() => authorities = Some(value),
            "host" | "port" | "sslmode" | "sslrootcert" => {
                return Err(format!("has {name} twice"));
            }
            _ => {
                let name: String =
                    name.chars().filter(char::is_ascii_alphanumeric).take(30).collect();
                return Err(format!(
                    "has the parameter {name:?}, which is not supported: host, port, sslmode and sslrootcert are"
                ));
            }
        }
    }
    if user.is_empty() {
        return Err("names no user; the user is the tenant".to_owned());
    }
    if host.is_empty() {
        return Err("names no host".to_owned());
    }
    let database = decoded(database)?;
    if database.is_empty() {
        return Err("names no database".to_owned());
    }
    let port = port.unwrap_or(PORT);
    let is_socket = host.starts_with('/');
    let authorities = authorities.filter(|file| file != "system").map(PathBuf::from);
    let tls = tls(mode.as_deref(), is_socket, authorities)?;
    let address = if is_socket {
        ServerAddress::Socket(Path::new(&host).join(format!(".s.PGSQL.{port}")))
    } else {
        ServerAddress::Host(host, port)
    };
    Ok(StoreUrl { user, password, address, database, tls })
}

/// Without a mode, a connection to a host is encrypted and its certificate is checked.
fn tls(mode: Option<&str>, is_socket: bool, file: Option<PathBuf>) -> Result<Tls, String> {
    match mode {
        None | Some("disable") if is_socket => Ok(Tls::Off),
        None | Some("verify-full") if !is_socket => Ok(Tls::Full(file)),
        Some("disable") => Ok(Tls::Off),
        Some("verify-full") => Err("has sslmode=verify-full, which a unix socket cannot have".to_owned()),
        Some("allow" | "prefer") => Err(
            "has an sslmode that goes on in the clear if the server has no TLS: use verify-full or disable".to_owned(),
        ),
        Some("require" | "verify-ca") => Err(
            "has an sslmode that does not check the name of the server: use verify-full, with sslrootcert=FILE for an \
             authority of your own, or disable"
                .to_owned(),
        ),
        _ => Err("has an unknown sslmode: use verify-full or disable".to_owned()),
    }
}

fn host_and_port(place: &str) -> Result<(String, Option<u16>), String> {
    if place.contains(',') {
        return Err("names several hosts; name one".to_owned());
    }
    let (host, port) = match place.strip_prefix('[') {
        Some(inside) => {
            let (host, rest) = inside.split_once(']').ok_or("has `[` without `]`")?;
            (host, rest.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.filter(|port| !port.is_empty()).map(port_number).transpose()?;
    Ok((decoded(host)?, port))
}

fn port_number(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| "has a wrong port".to_owned())
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| "is not UTF-8")?;
    if decoded.contains('\0') {
        return Err("has a NUL character".to_owned());
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_parsed_and_shown_without_the_password() {
        let url =
            StoreUrl::parse("postgres://acme:p%40ss@db.example:6432/tools?sslrootcert=/ca.pem");
        let url = url.unwrap();
        assert_eq!(url.password.as_deref(), Some("p@ss"));
        assert_eq!(url.address, ServerAddress::Host("db.example".to_owned(), 6432));
        assert_eq!(url.tls, Tls::Full(Some("/ca.pem".into())));
        assert_eq!(url.to_string(), "postgres://acme@db.example:6432/tools");
        assert!(!format!("{url:?}").contains("p@ss"));
        assert_eq!(StoreUrl::parse(&url.with_secrets()).unwrap(), url);
        let socket = StoreUrl::parse("postgresql://acme@/tools?host=/run/pg&port=5433").unwrap();
        assert_eq!(socket.address, ServerAddress::Socket("/run/pg/.s.PGSQL.5433".into()));
        assert_eq!((socket.tls.clone(), socket.has_password()), (Tls::Off, false));
        assert_eq!(StoreUrl::parse(&socket.with_secrets()).unwrap(), socket);
        let escaped = StoreUrl::parse("postgres://acme@%2Frun%2Fpg/tools").unwrap();
        assert_eq!(escaped.address, ServerAddress::Socket("/run/pg/.s.PGSQL.5432".into()));
        let clear = StoreUrl::parse("postgres://a:b@[::1]/tools?sslmode=disable").unwrap();
        assert_eq!(clear.tls, Tls::Off);
        assert_eq!(StoreUrl::parse(&clear.with_secrets()).unwrap(), clear);
    }

    /// Nothing is silently weakened, and no message has the password.
    #[test]
    fn other_addresses_are_refused() {
        for (url, why) in [
            ("postgres://a:secret@h/d?sslmode=prefer", "in the clear"),
            ("postgres://a:secret@h/d?sslmode=allow", "in the clear"),
            ("postgres://a:secret@h/d?sslmode=require", "does not check"),
            ("postgres://a:secret@h/d?sslmode=verify-ca", "does not check"),
            ("postgres://a:secret@h/d?sslmode=no", "unknown sslmode"),
            ("postgres://a:secret@h/d?sslmode=disable&sslmode=verify-full", "twice"),
            ("postgres://a:secret@/d?host=/run&sslmode=verify-full", "unix socket"),
            ("postgres://a:secret@h/d?channel_binding=require", "not supported"),
            ("postgres://a:secret@h/d?options=-c%20x", "not supported"),
            ("postgres://a:secret@h,i/d", "several hosts"),
            ("postgres://a:secret@h:0/d", "port"),
            ("postgres://h/d", "user"),
            ("postgres://a:secret@/d", "no host"),
            ("postgres://a:secret@h", "database"),
            ("mysql://a:secret@h/d", "begin with"),
            ("postgres://a:secret @h/d", "spaces"),
            ("postgres://a:secret@h/d%00", "NUL"),
        ] {
            let refusal = StoreUrl::parse(url).unwrap_err().to_string();
            assert!(refusal.contains(why) && !refusal.contains("secret"), "{url}: {refusal}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in "(postgres://)?[ -~é]{0,60}") {
            if let Err(error) = StoreUrl::parse(&text) {
                prop_assert!(error.to_string().len() < 300);
            }
        }

        #[test]
        fn an_address_survives_being_written(user in "[ -~é]{1,20}", password in "[ -~é]{0,20}") {
            let url = StoreUrl::parse("postgres://a@h/d").unwrap().for_user(&user, Some(password));
            prop_assert_eq!(StoreUrl::parse(&url.with_secrets()).unwrap(), url);
        }
    }
}
