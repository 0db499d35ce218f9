//! An issuer of access tokens on loopback, whose keys and answers a test chooses.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key that signs tokens.
pub enum SigningKey {
    /// For RS256 and PS256.
    Rsa(Box<RsaKeyPair>),
    /// For ES256.
    Ec(Box<EcdsaKeyPair>),
    /// For EdDSA.
    Ed(Box<Ed25519KeyPair>),
    /// For HS256, with any bytes as the secret.
    Secret(Vec<u8>),
    /// No signature at all.
    Unsigned,
}

impl SigningKey {
    /// The RSA key of all tests: making one takes long.
    pub fn rsa() -> SigningKey {
        let text: String = include_str!("rsa_test_key.txt").split_whitespace().collect();
        let der = STANDARD.decode(text).expect("the test key is base64");
        SigningKey::Rsa(Box::new(RsaKeyPair::from_der(&der).expect("the test key is a key")))
    }

    /// A new key on the curve P-256.
    pub fn ec() -> SigningKey {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("keys can be made");
        let key = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random);
        SigningKey::Ec(Box::new(key.expect("a new key is valid")))
    }

    /// A new key on the curve Ed25519.
    pub fn ed() -> SigningKey {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let document = document.expect("keys can be made");
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a new key is valid");
        SigningKey::Ed(Box::new(key))
    }

    /// The bytes of the public key, as an attacker knows them.
    pub fn public(&self) -> Vec<u8> {
        match self {
            SigningKey::Rsa(key) => key.public_key().as_ref().to_vec(),
            SigningKey::Ec(key) => key.public_key().as_ref().to_vec(),
            SigningKey::Ed(key) => key.public_key().as_ref().to_vec(),
            SigningKey::Secret(_) | SigningKey::Unsigned => Vec::new(),
        }
    }

    /// The public key as a JSON Web Key.
    pub fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let public = self.public();
        match self {
            SigningKey::Rsa(key) => {
                let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "kid": id, "n": text(&parts.n), "e": text(&parts.e)})
            }
            SigningKey::Ec(_) => {
                let (x, y) = public[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": text(x), "y": text(y)})
            }
            SigningKey::Ed(_) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": text(&public)})
            }
            SigningKey::Secret(secret) => json!({"kty": "oct", "kid": id, "k": text(secret)}),
            SigningKey::Unsigned => json!({}),
        }
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            SigningKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let how: &dyn ring::signature::RsaEncoding =
                    if algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                key.sign(how, &random, message, &mut signature).expect("the key signs");
                signature
            }
            SigningKey::Ec(key) => {
                key.sign(&random, message).expect("the key signs").as_ref().to_vec()
            }
            SigningKey::Ed(key) => key.sign(message).as_ref().to_vec(),
            SigningKey::Secret(secret) => {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
                ring::hmac::sign(&key, message).as_ref().to_vec()
            }
            SigningKey::Unsigned => Vec::new(),
        }
    }

    /// A token with this header and these claims.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = URL_SAFE_NO_PAD.encode(self.sign(algorithm, message.as_bytes()));
        format!("{message}.{signature}")
    }
}

/// The seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A server with the metadata and the keys of an issuer.
pub struct TokenIssuer {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    keys: String,
    /// The issuer in the metadata, if it is not the right one.
    named: Option<String>,
    is_down: bool,
    requests: usize,
    last_head: String,
}

impl TokenIssuer {
    /// Listens with these keys.
    pub fn start(keys: &[Value]) -> TokenIssuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let (url, state) = (format!("http://{address}"), Arc::<Mutex<State>>::default());
        let issuer = TokenIssuer { url: url.clone(), state: state.clone() };
        issuer.publish(keys);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (url, state) = (url.clone(), state.clone());
                thread::spawn(move || answer(stream, &url, &state));
            }
        });
        issuer
    }

    /// The issuer.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Replaces the keys.
    pub fn publish(&self, keys: &[Value]) {
        self.publish_text(json!({ "keys": keys }).to_string());
    }

    /// Replaces the key set by any text.
    pub fn publish_text(&self, text: String) {
        self.state().keys = text;
    }

    /// Names another issuer in the metadata.
    pub fn pretend(&self, issuer: &str) {
        self.state().named = Some(issuer.to_owned());
    }

    /// Closes connections without an answer, or answers again.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// How often the keys were requested, also while it was down.
    pub fn requests(&self) -> usize {
        self.state().requests
    }

    /// The head of the last request.
    pub fn last_head(&self) -> String {
        self.state().last_head.clone()
    }

    /// The claims of a token for this audience that expires in an hour.
    pub fn claims(&self, subject: &str, audience: &str, scope: &str) -> Value {
        json!({
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "exp": now() + 3_600,
            "iat": now(),
            "scope": scope,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(mut stream: TcpStream, url: &str, state: &Mutex<State>) {
    let mut head = String::new();
    let mut reader = BufReader::new(&stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.last_head = head;
    state.requests += usize::from(path == "/keys");
    if state.is_down {
        return;
    }
    let body = match path.as_str() {
        "/keys" => Some(state.keys.clone()),
        "/.well-known/openid-configuration" => {
            let issuer = state.named.clone().unwrap_or_else(|| url.to_owned());
            Some(json!({"issuer": issuer, "jwks_uri": format!("{url}/keys")}).to_string())
        }
        _ => None,
    };
    drop(state);
    let (status, body) = match &body {
        Some(body) => ("200 OK", body.as_str()),
        None => ("404 Not Found", ""),
    };
    let length = body.len();
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
}
