//! The operator's settings: which issuers are trusted, and what the owners of their tokens may do.

use std::path::PathBuf;

use jsonwebtoken::Algorithm;
use serde::Deserialize;

/// The content of the operator's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The trusted issuers.
    #[serde(default)]
    pub issuer: Vec<IssuerSettings>,
    /// What owners of tokens may do. Without any, a token gives what it says.
    #[serde(default)]
    pub grant: Vec<GrantSettings>,
    /// The scopes that a client without a token is told to request.
    pub initial_scopes: Option<Vec<ScopeName>>,
}

/// An issuer of tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSettings {
    /// The issuer, exactly as in the claim `iss`.
    pub url: String,
    /// The audience of its tokens. Without it, the URL of the resource.
    pub audience: Option<String>,
    /// Where its keys are. Without it and without a file, its metadata say it.
    pub jwks_url: Option<String>,
    /// The file with its keys.
    pub jwks_file: Option<PathBuf>,
    /// The certificate authorities of its server, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// A file with the token that its server wants to see before it gives out its keys. It is read for each request.
    pub bearer_file: Option<PathBuf>,
    /// The algorithms of its signatures. Without it, all that are supported.
    pub algorithms: Option<Vec<AlgorithmName>>,
    /// Accepts only tokens of the type `at+jwt`.
    #[serde(default)]
    pub require_at_jwt: bool,
    /// The claim with scopes. Without it, `scope` or `scp`.
    pub scope_claim: Option<String>,
    /// What its scopes have before the names that are used here.
    #[serde(default)]
    pub scope_prefix: String,
    /// Where the scopes of its tokens come from.
    #[serde(default)]
    pub scopes_from: ScopesFrom,
}

/// Where scopes come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopesFrom {
    /// From the token, and grants limit them.
    #[default]
    Token,
    /// From grants alone: the tokens have no scopes.
    Grants,
}

/// What some owners of tokens may do.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantSettings {
    /// The issuer of the tokens. Without it, any.
    pub issuer: Option<String>,
    /// A pattern for the subject.
    pub subject: Option<String>,
    /// The claim that `values` are compared with.
    pub claim: Option<String>,
    /// Patterns for the claim. One of them must match one of its values.
    #[serde(default)]
    pub values: Vec<String>,
    /// What is granted.
    pub scopes: Vec<ScopeName>,
    /// Patterns for the workspaces in which it is granted.
    #[serde(default)]
    pub workspaces: Vec<String>,
    /// A claim with names of workspaces in which it is granted.
    pub workspaces_claim: Option<String>,
}

/// The name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeName {
    /// Reads files.
    Read,
    /// Changes files.
    Write,
    /// Runs commands.
    Exec,
    /// Answers questions about calls.
    Approve,
    /// All of it.
    Admin,
}

impl ScopeName {
    /// All of them.
    pub const ALL: [ScopeName; 5] =
        [ScopeName::Read, ScopeName::Write, ScopeName::Exec, ScopeName::Approve, ScopeName::Admin];

    /// As in tokens, without a prefix.
    pub fn as_str(self) -> &'static str {
        match self {
            ScopeName::Read => "read",
            ScopeName::Write => "write",
            ScopeName::Exec => "exec",
            ScopeName::Approve => "approve",
            ScopeName::Admin => "admin",
        }
    }
}

/// The name of an algorithm with a public key. There are no others: with a shared secret, everybody who can check a token
/// can make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names of the standard")]
pub enum AlgorithmName {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl AlgorithmName {
    pub(crate) const ALL: [AlgorithmName; 9] = [
        AlgorithmName::RS256,
        AlgorithmName::RS384,
        AlgorithmName::RS512,
        AlgorithmName::PS256,
        AlgorithmName::PS384,
        AlgorithmName::PS512,
        AlgorithmName::ES256,
        AlgorithmName::ES384,
        AlgorithmName::EdDSA,
    ];

    pub(crate) fn algorithm(self) -> Algorithm {
        match self {
            AlgorithmName::RS256 => Algorithm::RS256,
            AlgorithmName::RS384 => Algorithm::RS384,
            AlgorithmName::RS512 => Algorithm::RS512,
            AlgorithmName::PS256 => Algorithm::PS256,
            AlgorithmName::PS384 => Algorithm::PS384,
            AlgorithmName::PS512 => Algorithm::PS512,
            AlgorithmName::ES256 => Algorithm::ES256,
            AlgorithmName::ES384 => Algorithm::ES384,
            AlgorithmName::EdDSA => Algorithm::EdDSA,
        }
    }
}
