//! A credential that requests to one host get, and that commands never have.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::host::Host;

/// The place of the secret in the value of a header.
const SECRET_PLACE: &str = "{}";

/// The longest secret.
const MAX_SECRET: usize = 16 << 10;

/// The scheme of HTTP whose credentials are encoded.
const BASIC: &str = "Basic ";

/// A credential for the requests to a host.
#[derive(Clone)]
pub struct Credential {
    host: Host,
    port: u16,
    header: HeaderName,
    /// The value of the header.
    value: HeaderValue,
    secret: String,
    placeholder: Option<String>,
}

impl Credential {
    /// A credential in a header. `format` is the value of the header, in which `{}` stands for the secret. Where a
    /// command sends `placeholder` in that header, the secret takes its place.
    ///
    /// # Errors
    ///
    /// Fails with the problem, without the secret.
    pub fn new(
        host: &str,
        port: u16,
        header: &str,
        format: &str,
        secret: &str,
    ) -> Result<Credential, String> {
        let parsed = Host::parse(host).ok_or_else(|| format!("{host:?} is not a host"))?;
        let name: HeaderName =
            header.parse().map_err(|_| format!("{header:?} is not the name of a header"))?;
        if super::headers::is_of_connection(&name) {
            return Err(format!("{header} cannot be set: it does not reach the host as it is"));
        }
        if format.matches(SECRET_PLACE).count() != 1 {
            return Err(format!(
                "{format:?} must contain {SECRET_PLACE} once, in place of the secret"
            ));
        }
        if secret.is_empty() || secret.len() > MAX_SECRET {
            return Err(format!("the secret must have 1 to {MAX_SECRET} bytes"));
        }
        let mut value = HeaderValue::from_str(&format.replacen(SECRET_PLACE, secret, 1))
            .map_err(|_| "the secret has characters that a header cannot have".to_owned())?;
        // Hides it from debug output, and keeps it out of the compression state of HTTP/2.
        value.set_sensitive(true);
        let secret = secret.to_owned();
        Ok(Credential { host: parsed, port, header: name, value, secret, placeholder: None })
    }

    /// Swaps this placeholder, where a command sends it in the header, for the secret.
    #[must_use]
    pub fn with_placeholder(self, placeholder: String) -> Credential {
        Credential { placeholder: Some(placeholder), ..self }
    }

    /// Whether it is for a host.
    pub fn is_for(&self, host: &Host, port: u16) -> bool {
        self.host == *host && self.port == port
    }

    /// Replaces what the command has sent.
    pub(super) fn set(&self, headers: &mut HeaderMap) {
        let sent = headers.get(&self.header).and_then(|sent| self.swapped(sent));
        headers.insert(&self.header, sent.unwrap_or_else(|| self.value.clone()));
    }

    /// The header that a command has sent, with the secret in place of the placeholder. `None` if it does not have the
    /// placeholder.
    fn swapped(&self, sent: &HeaderValue) -> Option<HeaderValue> {
        let placeholder = self.placeholder.as_deref()?;
        let sent = sent.to_str().ok()?;
        let swapped = match sent.strip_prefix(BASIC) {
            Some(encoded) => {
                let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
                let swapped = replaced(&decoded, placeholder, &self.secret)?;
                format!("{BASIC}{}", STANDARD.encode(swapped))
            }
            None => replaced(sent, placeholder, &self.secret)?,
        };
        let mut value = HeaderValue::from_str(&swapped).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// The text with the secret in place of the placeholder, if it has that once.
fn replaced(text: &str, placeholder: &str, secret: &str) -> Option<String> {
    (text.matches(placeholder).count() == 1).then(|| text.replacen(placeholder, secret, 1))
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(value: &str) -> String {
        let credential = Credential::new("a.example", 443, "Authorization", "Bearer {}", "s3cret");
        let credential = credential.unwrap().with_placeholder("PLACE".to_owned());
        let mut headers = HeaderMap::new();
        if !value.is_empty() {
            headers.append("authorization", value.parse().unwrap());
            headers.append("authorization", "second".parse().unwrap());
        }
        credential.set(&mut headers);
        assert_eq!(headers.len(), 1, "what the command sent is gone");
        assert!(!format!("{headers:?} {credential:?}").contains("s3cret"));
        headers["authorization"].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_header_of_the_command_is_replaced() {
        assert_eq!(sent(""), "Bearer s3cret");
        assert_eq!(sent("Bearer mine"), "Bearer s3cret");
        assert_eq!(sent("token PLACE"), "token s3cret");
        assert_eq!(sent("PLACE PLACE"), "Bearer s3cret");
        let basic = format!("Basic {}", STANDARD.encode("me:PLACE"));
        assert_eq!(sent(&basic), format!("Basic {}", STANDARD.encode("me:s3cret")));
        assert_eq!(sent("Basic ?"), "Bearer s3cret");
    }

    #[test]
    fn invalid_credentials_are_errors_without_the_secret() {
        for (host, header, format, secret) in [
            ("a b", "Authorization", "{}", "s3cret"),
            ("a.example", "a b", "{}", "s3cret"),
            ("a.example", "Connection", "{}", "s3cret"),
            ("a.example", "Host", "{}", "s3cret"),
            ("a.example", "X-Key", "Bearer", "s3cret"),
            ("a.example", "X-Key", "{} {}", "s3cret"),
            ("a.example", "X-Key", "{}", ""),
            ("a.example", "X-Key", "{}", "s3cret\n"),
        ] {
            let error = Credential::new(host, 443, header, format, secret).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
