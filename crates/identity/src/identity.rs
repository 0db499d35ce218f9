//! From an access token to its owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonwebtoken::Algorithm;

use crate::access_token::{Claims, Expected, UncheckedToken};
use crate::grants::{self, Owner};
use crate::key_cache::{KeyCache, KeyTimes};
use crate::key_source::KeySource;
use crate::settings::{
    AlgorithmName, GrantSettings, IssuerSettings, ScopeName, ScopesFrom, Settings,
};
use crate::{claim_values, ring_provider, verification_keys};

/// The trusted issuers, and what the owners of their tokens may do.
pub struct Identity {
    issuers: Vec<Issuer>,
    grants: Vec<GrantSettings>,
    initial_scopes: Vec<ScopeName>,
}

struct Issuer {
    settings: IssuerSettings,
    algorithms: Vec<Algorithm>,
    keys: KeyCache,
}

/// The owner of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// The issuer of the token.
    pub issuer: String,
    /// Who it is for, in the words of the issuer.
    pub subject: String,
    /// What the token allows.
    pub in_token: BTreeSet<ScopeName>,
    /// What the operator allows its owner.
    pub granted: BTreeSet<ScopeName>,
}

/// Why nobody was identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotIdentified {
    /// The token is not valid, in words for the client.
    Invalid(&'static str),
    /// The keys of the issuer are not known now.
    Unavailable,
}

impl Identity {
    /// Checks the settings, and begins to read the keys. `has_workspaces` says whether the server has several workspaces;
    /// then each grant names some. `report` gets problems of reading keys.
    pub fn new(
        settings: Settings,
        has_workspaces: bool,
        times: KeyTimes,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Identity, String> {
        ring_provider::install();
        check(&settings, has_workspaces)?;
        let report = Arc::new(report);
        let issuers = settings.issuer.into_iter().map(|settings| {
            let name = settings.url.clone();
            let source =
                KeySource::new(&settings).map_err(|problem| format!("issuer {name}: {problem}"))?;
            let keys = KeyCache::new(&name, source, times, report.clone());
            let named = settings.algorithms.as_deref().unwrap_or(&AlgorithmName::ALL);
            let algorithms = named.iter().map(|name| name.algorithm()).collect();
            Ok(Issuer { settings, algorithms, keys })
        });
        let issuers: Vec<Issuer> = issuers.collect::<Result<_, String>>()?;
        issuers.iter().for_each(|issuer| issuer.keys.begin());
        let usual = vec![ScopeName::Read, ScopeName::Write, ScopeName::Exec];
        let initial_scopes = settings.initial_scopes.unwrap_or(usual);
        Ok(Identity { issuers, grants: settings.grant, initial_scopes })
    }

    /// The issuers that a client can get a token from.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.settings.url.as_str())
    }

    /// The scopes that a client without a token should request.
    pub fn initial_scopes(&self) -> &[ScopeName] {
        &self.initial_scopes
    }

    /// What scopes have before their names, as the issuers write them.
    pub fn scope_prefix(&self) -> &str {
        scope_prefix(self.issuers.iter().map(|issuer| &issuer.settings))
    }

    /// The owner of a token, and what they may do in a workspace. The token must be for the resource, which is a URL,
    /// unless the settings name another audience.
    pub async fn identify(
        &self,
        token: &[u8],
        resource: &str,
        workspace: Option<&str>,
    ) -> Result<Identified, NotIdentified> {
        let token = UncheckedToken::parse(token).map_err(NotIdentified::Invalid)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.settings.url == token.issuer);
        let issuer = issuer.ok_or(NotIdentified::Invalid("the issuer of the token is unknown"))?;
        let claims = issuer.verify(&token, resource).await?;
        let owner =
            Owner { issuer: &issuer.settings.url, subject: &claims.subject, claims: &claims.all };
        // Without grants everybody with a token may do what it says; `check` requires them where it says nothing.
        let granted = if self.grants.is_empty() {
            BTreeSet::from(ScopeName::ALL)
        } else {
            grants::granted(&self.grants, &owner, workspace)
        };
        let in_token = match issuer.settings.scopes_from {
            ScopesFrom::Token => issuer.scopes(&claims),
            ScopesFrom::Grants => granted.clone(),
        };
        let issuer = issuer.settings.url.clone();
        Ok(Identified { issuer, subject: claims.subject, in_token, granted })
    }
}

impl Issuer {
    async fn verify(
        &self,
        token: &UncheckedToken<'_>,
        resource: &str,
    ) -> Result<Claims, NotIdentified> {
        let settings = &self.settings;
        token.check_type(settings.require_at_jwt).map_err(NotIdentified::Invalid)?;
        let algorithm = token.algorithm();
        if !self.algorithms.contains(&algorithm) {
            return Err(NotIdentified::Invalid("the algorithm of the token is not allowed"));
        }
        let id = token.key_id();
        let found = self.keys.find(|keys| verification_keys::select(keys, id, algorithm)).await;
        let key = found.map_err(|_| NotIdentified::Unavailable)?;
        let key = key.ok_or(NotIdentified::Invalid("the key of the token is unknown"))?;
        let audience = settings.audience.as_deref().unwrap_or(resource);
        let expected = Expected { issuer: &settings.url, audience };
        token.verify(&key, &expected).map_err(NotIdentified::Invalid)
    }

    /// The scopes in a token. Others than ours are ignored.
    fn scopes(&self, claims: &Claims) -> BTreeSet<ScopeName> {
        let words = match &self.settings.scope_claim {
            Some(claim) => claim_values::words(&claims.all, claim),
            None => ["scope", "scp"]
                .into_iter()
                .flat_map(|claim| claim_values::words(&claims.all, claim))
                .collect(),
        };
        let names =
            words.into_iter().filter_map(|word| word.strip_prefix(&*self.settings.scope_prefix));
        let known = |name: &str| ScopeName::ALL.into_iter().find(|scope| scope.as_str() == name);
        names.filter_map(known).collect()
    }
}

/// The prefix of the first issuer whose tokens have scopes.
fn scope_prefix<'a>(mut issuers: impl Iterator<Item = &'a IssuerSettings>) -> &'a str {
    issuers.find(|issuer| has_scopes(issuer)).map_or("", |issuer| &issuer.scope_prefix)
}

fn has_scopes(issuer: &IssuerSettings) -> bool {
    issuer.scopes_from == ScopesFrom::Token
}

/// Checks the settings as a whole.
fn check(settings: &Settings, has_workspaces: bool) -> Result<(), String> {
    if settings.issuer.is_empty() {
        return Err("[[issuer]] is missing".to_owned());
    }
    let issuers: Vec<&str> = settings.issuer.iter().map(|issuer| issuer.url.as_str()).collect();
    if let Some(twice) = issuers.iter().enumerate().find(|(at, url)| issuers[..*at].contains(url)) {
        return Err(format!("the issuer {} occurs twice", twice.1));
    }
    for issuer in &settings.issuer {
        let url = &issuer.url;
        if url.is_empty() {
            return Err("an issuer needs url".to_owned());
        }
        if issuer.algorithms.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("issuer {url}: algorithms is empty"));
        }
        if issuer.audience.as_ref().is_some_and(String::is_empty) {
            return Err(format!("issuer {url}: audience is empty"));
        }
        if issuer.scopes_from == ScopesFrom::Grants && settings.grant.is_empty() {
            return Err(format!("issuer {url}: scopes_from = \"grants\" needs [[grant]]"));
        }
    }
    let prefix = scope_prefix(settings.issuer.iter());
    let with_scopes = settings.issuer.iter().filter(|issuer| has_scopes(issuer));
    if with_scopes.into_iter().any(|issuer| issuer.scope_prefix != prefix) {
        return Err("scope_prefix must be the same for all issuers".to_owned());
    }
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if !prefix.bytes().all(is_fit) {
        return Err("scope_prefix has characters that a scope cannot have".to_owned());
    }
    for grant in &settings.grant {
        grants::check(grant, &issuers)?;
        let names_workspaces = !grant.workspaces.is_empty() || grant.workspaces_claim.is_some();
        if has_workspaces && !names_workspaces {
            return Err(
                "a grant needs workspaces or workspaces_claim; workspaces = [\"*\"] is for all"
                    .to_owned(),
            );
        }
        if !has_workspaces && names_workspaces {
            return Err("workspaces of a grant need --workspaces".to_owned());
        }
    }
    if has_workspaces && settings.grant.is_empty() {
        return Err("with --workspaces, [[grant]] says who may use which workspace".to_owned());
    }
    Ok(())
}
