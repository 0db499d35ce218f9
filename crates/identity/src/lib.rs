//! Who makes a request: access tokens of identity providers, and what their owners may do.
//!
//! An [`Identity`] is made from [`Settings`]. [`Identity::identify`] takes an access token, a JWT, and says who has it and
//! what they may do, or why it is not accepted. `jsonwebtoken` checks signatures, with ring, and claims.
//!
//! The keys of an issuer are read from its own metadata, an address or a file, and kept. Reading them never blocks a
//! request whose key is known. Everything that an issuer or a client sends is bounded.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it reads the operator's files with keys and authorities, which are outside every workspace"
)]

mod access_token;
mod claim_values;
mod grants;
mod identity;
mod key_cache;
mod key_source;
mod ring_provider;
mod settings;
mod verification_keys;
mod wildcard;

pub use identity::{Identified, Identity, NotIdentified};
pub use key_cache::KeyTimes;
pub use settings::{AlgorithmName, GrantSettings, IssuerSettings, ScopeName, ScopesFrom, Settings};
