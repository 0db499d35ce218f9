//! Identities with a real issuer on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests write the files of the operator, and fail by panicking"
)]

mod attacks;
mod issuer_keys;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolcrib_identity::{Identified, Identity, KeyTimes, NotIdentified, ScopeName, Settings};
use toolcrib_testkit::TokenIssuer;

const RESOURCE: &str = "https://tools.example/mcp";

/// The settings for an issuer whose metadata say where its keys are, with more lines.
fn settings(issuer: &TokenIssuer, more: &str) -> Settings {
    let text = format!("[[issuer]]\nurl = \"{}\"\n{more}", issuer.url());
    toml::from_str(&text).unwrap()
}

fn identity(settings: Settings, times: KeyTimes) -> Identity {
    Identity::new(settings, false, times, |_| {}).unwrap()
}

fn identify(identity: &Identity, token: &str) -> Result<Identified, NotIdentified> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(identity.identify(token.as_bytes(), RESOURCE, None))
}

fn header(algorithm: &str, key: &str) -> Value {
    json!({"alg": algorithm, "kid": key, "typ": "at+jwt"})
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

fn scopes(names: &[ScopeName]) -> BTreeSet<ScopeName> {
    names.iter().copied().collect()
}
