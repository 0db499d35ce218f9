//! What the owners of tokens may do, by the operator's settings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::claim_values;
use crate::settings::{GrantSettings, ScopeName};
use crate::wildcard;

/// The owner of a token, as grants see them.
pub(crate) struct Owner<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) claims: &'a Map<String, Value>,
}

/// Fails if a grant is for nobody in particular, or grants nothing.
pub(crate) fn check(grant: &GrantSettings, issuers: &[&str]) -> Result<(), String> {
    if grant.subject.is_none() && grant.claim.is_none() {
        return Err("a grant needs subject or claim; subject = \"*\" is for everybody".to_owned());
    }
    if grant.claim.is_some() == grant.values.is_empty() {
        return Err("claim and values of a grant belong together".to_owned());
    }
    if grant.scopes.is_empty() {
        return Err("a grant needs scopes".to_owned());
    }
    match &grant.issuer {
        Some(issuer) if !issuers.contains(&issuer.as_str()) => {
            Err(format!("a grant names the issuer {issuer}, which is not in the file"))
        }
        None if issuers.len() > 1 => {
            // The same subject of another issuer is somebody else.
            Err("a grant needs issuer if there are several issuers".to_owned())
        }
        _ => Ok(()),
    }
}

/// What is granted to somebody in a workspace; without one, in the only one of the server.
pub(crate) fn granted(
    grants: &[GrantSettings],
    owner: &Owner<'_>,
    workspace: Option<&str>,
) -> BTreeSet<ScopeName> {
    let fits = |grant: &&GrantSettings| {
        is_for(grant, owner) && workspace.is_none_or(|name| is_in(grant, owner, name))
    };
    grants.iter().filter(fits).flat_map(|grant| grant.scopes.iter().copied()).collect()
}

fn is_for(grant: &GrantSettings, owner: &Owner<'_>) -> bool {
    let by_issuer = grant.issuer.as_ref().is_none_or(|issuer| issuer == owner.issuer);
    let by_subject = grant.subject.as_ref();
    let by_subject = by_subject.is_none_or(|pattern| wildcard::matches(pattern, owner.subject));
    let by_claim = grant.claim.as_ref().is_none_or(|claim| {
        let texts = claim_values::texts(owner.claims, claim);
        let is_wanted =
            |text: &&str| grant.values.iter().any(|value| wildcard::matches(value, text));
        texts.iter().any(is_wanted)
    });
    by_issuer && by_subject && by_claim
}

fn is_in(grant: &GrantSettings, owner: &Owner<'_>, workspace: &str) -> bool {
    let is_claimed = grant
        .workspaces_claim
        .as_ref()
        .is_some_and(|claim| claim_values::texts(owner.claims, claim).contains(&workspace));
    is_claimed || grant.workspaces.iter().any(|pattern| wildcard::matches(pattern, workspace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://i.example";

    fn grants() -> Vec<GrantSettings> {
        let text = r#"
            [[grant]]
            subject = "alice"
            scopes = ["exec", "approve"]
            workspaces = ["alice", "team-*"]

            [[grant]]
            claim = "groups"
            values = ["readers", "audit-*"]
            scopes = ["read"]
            workspaces = ["*"]

            [[grant]]
            subject = "bot-*"
            claim = "kind"
            values = ["bot"]
            scopes = ["write"]
            workspaces_claim = "rooms"
        "#;
        toml::from_str::<crate::Settings>(text).unwrap().grant
    }

    fn found(subject: &str, claims: &Value, workspace: Option<&str>) -> Vec<&'static str> {
        let Value::Object(claims) = claims else { panic!() };
        let owner = Owner { issuer: ISSUER, subject, claims };
        granted(&grants(), &owner, workspace).into_iter().map(ScopeName::as_str).collect()
    }

    #[test]
    fn grants_are_for_their_owners_in_their_workspaces() {
        let none = json!({});
        assert_eq!(found("alice", &none, Some("alice")), ["exec", "approve"]);
        assert_eq!(found("alice", &none, Some("team-1")), ["exec", "approve"]);
        assert!(found("alice", &none, Some("bob")).is_empty());
        assert!(found("Alice", &none, Some("alice")).is_empty());
        let reader = json!({"groups": ["x", "audit-1"]});
        assert_eq!(found("bob", &reader, Some("bob")), ["read"]);
        assert_eq!(found("alice", &reader, Some("alice")), ["read", "exec", "approve"]);
        let bot = json!({"kind": "bot", "rooms": ["a", "b"]});
        assert_eq!(found("bot-1", &bot, Some("a")), ["write"]);
        assert!(found("bot-1", &bot, Some("c")).is_empty());
        assert!(found("bob", &bot, Some("a")).is_empty());
        assert!(found("bot-1", &json!({"rooms": "a"}), Some("a")).is_empty());
        assert_eq!(found("alice", &none, None), ["exec", "approve"]);
    }

    #[test]
    fn an_unclear_grant_is_refused() {
        let of = |text: &str| {
            let text = format!("[[grant]]\n{text}");
            toml::from_str::<crate::Settings>(&text).unwrap().grant.remove(0)
        };
        let other = "https://other.example";
        for (text, issuers, problem) in [
            ("scopes = [\"read\"]", &[ISSUER][..], "needs subject or claim"),
            ("scopes = [\"read\"]\nclaim = \"x\"", &[ISSUER], "belong together"),
            (
                "scopes = [\"read\"]\nsubject = \"x\"\nvalues = [\"y\"]",
                &[ISSUER],
                "belong together",
            ),
            ("scopes = []\nsubject = \"x\"", &[ISSUER], "needs scopes"),
            ("scopes = [\"read\"]\nsubject = \"x\"", &[ISSUER, other], "several issuers"),
            (
                "scopes = [\"read\"]\nsubject = \"x\"\nissuer = \"https://x\"",
                &[ISSUER, other],
                "not in the file",
            ),
        ] {
            let refusal = check(&of(text), issuers).unwrap_err();
            assert!(refusal.contains(problem), "{refusal}");
        }
        assert!(toml::from_str::<crate::Settings>("[[grant]]\nscopes = [\"all\"]").is_err());
        assert!(toml::from_str::<crate::Settings>("[[grant]]\nscope = [\"read\"]").is_err());
    }
}
