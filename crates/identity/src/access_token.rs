//! Checks one access token, a JWT.

use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::verification_keys::VerificationKey;

/// The maximum size of a token.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The maximum length of the name of a key, and of a subject.
const MAX_NAME_BYTES: usize = 512;

/// How far the clocks of an issuer and of this machine may differ.
const LEEWAY_SECONDS: u64 = 30;

/// The types of access tokens. Many issuers do not use the one of RFC 9068.
const TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "JWT"];

/// Why a token is not accepted, in words for the client.
pub(crate) type Fault = &'static str;

/// A token whose form was checked, and nothing else.
pub(crate) struct UncheckedToken<'a> {
    text: &'a str,
    header: Header,
    /// The issuer that it names.
    pub(crate) issuer: String,
}

/// What a token must have.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
}

/// The claims of a valid token.
pub(crate) struct Claims {
    pub(crate) subject: String,
    pub(crate) all: Map<String, Value>,
}

#[derive(Deserialize)]
struct NamedIssuer {
    iss: String,
}

impl<'a> UncheckedToken<'a> {
    /// Checks the form of a token.
    pub(crate) fn parse(token: &'a [u8]) -> Result<Self, Fault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err("the token is too long");
        }
        let is_fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let text = std::str::from_utf8(token).ok().filter(|_| token.iter().all(is_fit));
        let text = text.filter(|text| text.split('.').count() == 3);
        let text = text.ok_or("the token is not a signed JWT")?;
        let header = decode_header(text)
            .map_err(|_| "the header of the token is malformed, or its algorithm is not allowed")?;
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err("the header of the token has extensions that are not supported");
        }
        if header.kid.as_ref().is_some_and(|id| id.len() > MAX_NAME_BYTES) {
            return Err("the name of the key is too long");
        }
        let named = insecure_decode::<NamedIssuer>(text);
        let issuer = named.map_err(|_| "the token names no issuer")?.claims.iss;
        Ok(UncheckedToken { text, header, issuer })
    }

    /// Checks the type.
    pub(crate) fn check_type(&self, require_at_jwt: bool) -> Result<(), Fault> {
        let types = if require_at_jwt { &TYPES[..2] } else { &TYPES };
        let is_fit = match &self.header.typ {
            None => !require_at_jwt,
            Some(given) => types.iter().any(|known| known.eq_ignore_ascii_case(given)),
        };
        if is_fit { Ok(()) } else { Err("the token is not an access token") }
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    /// Checks the signature and the claims.
    pub(crate) fn verify(
        &self,
        key: &VerificationKey,
        expected: &Expected<'_>,
    ) -> Result<Claims, Fault> {
        let mut validation = Validation::new(self.header.alg);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[expected.issuer]);
        validation.set_audience(&[expected.audience]);
        let decoded = decode::<Map<String, Value>>(self.text, &key.key, &validation);
        let all = decoded.map_err(|error| fault(error.kind()))?.claims;
        // The library also accepts a list of issuers.
        if all.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
            return Err("the token is from another issuer");
        }
        // Its owner would have to prove that they have the key (RFC 7800); here whoever has stolen the token could use it.
        if all.contains_key("cnf") {
            return Err("the token is bound to a key, and such tokens are not supported");
        }
        let subject = all.get("sub").and_then(Value::as_str).unwrap_or_default();
        let is_fit = (1..=MAX_NAME_BYTES).contains(&subject.len());
        if !is_fit || subject.chars().any(char::is_control) {
            return Err("the subject of the token is missing or malformed");
        }
        Ok(Claims { subject: subject.to_owned(), all })
    }
}

fn fault(kind: &ErrorKind) -> Fault {
    match kind {
        ErrorKind::InvalidSignature => "the signature of the token is wrong",
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks one of exp, iss, aud and sub",
        _ => "the token is malformed",
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn token(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.AAAA", part(header), part(claims))
    }

    fn parsed(header: &Value, claims: &Value) -> Result<String, Fault> {
        UncheckedToken::parse(token(header, claims).as_bytes()).map(|token| token.issuer)
    }

    #[test]
    fn only_signed_tokens_without_extensions_are_read() {
        let claims = json!({"iss": "i"});
        assert_eq!(parsed(&json!({"alg": "ES256", "kid": "k"}), &claims), Ok("i".to_owned()));
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "None"}),
            json!({"alg": ""}),
            json!({}),
            json!({"alg": ["ES256"]}),
            json!({"alg": "ES256", "crit": ["b64"], "b64": false}),
            json!({"alg": "ES256", "crit": []}),
            json!({"alg": "ES256", "zip": "DEF"}),
            json!({"alg": "RSA-OAEP", "enc": "A256GCM"}),
            json!({"alg": "ES256", "kid": "k".repeat(1_000)}),
            json!({"alg": "ES256", "kid": 5}),
        ] {
            assert!(parsed(&header, &claims).is_err(), "{header}");
        }
        for claims in [json!({}), json!({"iss": ["i"]}), json!({"iss": 5}), json!([])] {
            assert!(parsed(&json!({"alg": "ES256"}), &claims).is_err(), "{claims}");
        }
        let whole = token(&json!({"alg": "ES256"}), &claims);
        let (header, rest) = whole.split_once('.').unwrap();
        for text in [
            "",
            ".",
            "..",
            "...",
            header,
            &format!("{whole}."),
            &format!("{whole}.x"),
            &format!(" {whole}"),
            &format!("{whole}="),
            &format!("{header}\n.{rest}"),
            &"x".repeat(MAX_TOKEN_BYTES + 1),
        ] {
            assert!(UncheckedToken::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_type_of_a_token_is_checked() {
        let check = |header: &Value, strict| {
            let token = token(header, &json!({"iss": "i"}));
            UncheckedToken::parse(token.as_bytes()).unwrap().check_type(strict).is_ok()
        };
        for (kind, lax, strict) in [
            (json!("at+jwt"), true, true),
            (json!("AT+JWT"), true, true),
            (json!("application/at+jwt"), true, true),
            (json!("JWT"), true, false),
            (Value::Null, true, false),
            (json!("dpop+jwt"), false, false),
            (json!("secevent+jwt"), false, false),
            (json!("logout+jwt"), false, false),
        ] {
            let header = json!({"alg": "ES256", "typ": kind});
            assert_eq!((check(&header, false), check(&header, true)), (lax, strict), "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_token_has_an_answer(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            header in "\\PC{0,60}",
            claims in "\\PC{0,60}",
        ) {
            let _ = UncheckedToken::parse(&bytes);
            let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let header = format!("{{\"alg\": \"ES256\", {header}}}");
            for text in [
                format!("{}.{}.{}", part(&header), part(&claims), part(&claims)),
                format!("{}.{}.", part("{\"alg\":\"ES256\"}"), part(&format!("{{\"iss\":{claims}}}"))),
            ] {
                let _ = UncheckedToken::parse(text.as_bytes());
            }
        }
    }
}
