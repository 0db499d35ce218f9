//! Tokens that are accepted, and tokens of attackers.

use serde_json::{Value, json};
use toolcrib_identity::{Identity, KeyTimes, NotIdentified, ScopeName};
use toolcrib_testkit::{SigningKey, TokenIssuer, now};

use crate::{RESOURCE, header, identify, identity, scopes, settings, with};

fn issuer_with(key: &SigningKey) -> (TokenIssuer, Identity) {
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let identity = identity(settings(&issuer, ""), KeyTimes::default());
    (issuer, identity)
}

fn fault(identity: &Identity, token: &str) -> &'static str {
    match identify(identity, token) {
        Err(NotIdentified::Invalid(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tokens_of_all_kinds_of_keys_are_accepted() {
    for (key, algorithm) in [
        (SigningKey::rsa(), "RS256"),
        (SigningKey::rsa(), "PS256"),
        (SigningKey::ec(), "ES256"),
        (SigningKey::ed(), "EdDSA"),
    ] {
        let (issuer, identity) = issuer_with(&key);
        let claims = issuer.claims("alice", RESOURCE, "openid read write other");
        let token = key.token(&header(algorithm, "k"), &claims);
        let found = identify(&identity, &token).unwrap();
        assert_eq!((found.issuer.as_str(), found.subject.as_str()), (issuer.url(), "alice"));
        assert_eq!(found.in_token, scopes(&[ScopeName::Read, ScopeName::Write]), "{algorithm}");
        assert_eq!(found.granted, scopes(&ScopeName::ALL));
        // Also without the name of the key, if only one fits.
        let token = key.token(&json!({"alg": algorithm}), &claims);
        assert!(identify(&identity, &token).is_ok());
    }
}

#[test]
fn claims_are_checked() {
    let key = SigningKey::ec();
    let (issuer, identity) = issuer_with(&key);
    let right = issuer.claims("alice", RESOURCE, "read");
    let sign = |claims: &Value| key.token(&header("ES256", "k"), claims);
    let changed = |name: &str, value: Value| sign(&with(right.clone(), name, value));
    assert!(identify(&identity, &sign(&right)).is_ok());
    // Clocks differ a little.
    assert!(identify(&identity, &changed("exp", json!(now() - 5))).is_ok());
    assert!(identify(&identity, &changed("nbf", json!(now() + 5))).is_ok());
    assert!(identify(&identity, &changed("aud", json!(["https://x.example", RESOURCE]))).is_ok());
    for (name, value, problem) in [
        ("exp", json!(now() - 600), "expired"),
        ("exp", json!(0), "expired"),
        ("exp", Value::Null, "lacks"),
        ("exp", json!("never"), "lacks"),
        ("exp", json!(-1), "lacks"),
        ("nbf", json!(now() + 600), "not valid yet"),
        ("nbf", json!("soon"), "malformed"),
        ("aud", json!("https://other.example/mcp"), "another audience"),
        ("aud", json!("https://tools.example/mcp/"), "another audience"),
        ("aud", json!("https://tools.example"), "another audience"),
        ("aud", json!("HTTPS://tools.example/mcp"), "another audience"),
        ("aud", json!(["https://a.example", "https://b.example"]), "another audience"),
        ("aud", json!([]), "another audience"),
        ("aud", Value::Null, "lacks"),
        ("aud", json!({"x": RESOURCE}), "lacks"),
        ("iss", json!("https://other.example"), "issuer of the token is unknown"),
        ("iss", json!(format!("{}/", issuer.url())), "issuer of the token is unknown"),
        ("iss", json!([issuer.url()]), "names no issuer"),
        ("sub", Value::Null, "lacks"),
        ("sub", json!(""), "subject"),
        ("sub", json!(5), "lacks"),
        ("sub", json!("a\nb"), "subject"),
        ("cnf", json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}), "bound to a key"),
        (
            "cnf",
            json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}),
            "bound to a key",
        ),
        ("cnf", json!({}), "bound to a key"),
        ("cnf", Value::Null, "bound to a key"),
        ("sub", json!("x".repeat(10_000)), "subject"),
    ] {
        let fault = fault(&identity, &changed(name, value.clone()));
        assert!(fault.contains(problem), "{name} {value}: {fault}");
    }
    let long = changed("x", json!("x".repeat(20_000)));
    assert!(fault(&identity, &long).contains("too long"));
}

#[test]
fn unsigned_tokens_and_shared_secrets_are_refused() {
    let key = SigningKey::rsa();
    let (issuer, identity) = issuer_with(&key);
    let claims = issuer.claims("alice", RESOURCE, "read");
    for algorithm in ["none", "None", "NONE", "", "HS256", "HS384", "HS512", "RS1", "ES256K"] {
        for unsigned in [SigningKey::Unsigned, SigningKey::Secret(key.public())] {
            let token = unsigned.token(&header(algorithm, "k"), &claims);
            fault(&identity, &token);
            // With the name of a key that the token brings itself.
            let own = with(header(algorithm, "k"), "jwk", unsigned.jwk("k"));
            fault(&identity, &unsigned.token(&own, &claims));
        }
    }
    // The public key in the forms in which it is published.
    let jwk = key.jwk("k");
    for secret in [jwk.to_string(), jwk["n"].as_str().unwrap().to_owned()] {
        let secret = SigningKey::Secret(secret.into_bytes());
        let token = secret.token(&header("HS256", "k"), &claims);
        assert!(fault(&identity, &token).contains("algorithm"));
    }
}

#[test]
fn a_key_is_used_with_its_own_algorithm_only() {
    let (rsa, ec, ed) = (SigningKey::rsa(), SigningKey::ec(), SigningKey::ed());
    let keys = [rsa.jwk("rsa"), ec.jwk("ec"), ed.jwk("ed")];
    let issuer = TokenIssuer::start(&keys);
    let identity = identity(settings(&issuer, ""), KeyTimes::default());
    let claims = issuer.claims("alice", RESOURCE, "read");
    for (key, algorithm, id) in [(&rsa, "RS256", "rsa"), (&ec, "ES256", "ec"), (&ed, "EdDSA", "ed")]
    {
        assert!(identify(&identity, &key.token(&header(algorithm, id), &claims)).is_ok());
        for (other, id) in [("RS256", "ec"), ("ES256", "rsa"), ("EdDSA", "ec"), ("ES384", "ec")] {
            fault(&identity, &key.token(&header(other, id), &claims));
        }
    }
    // A key of somebody else with the name of a known key.
    let token = SigningKey::ec().token(&header("ES256", "ec"), &claims);
    assert!(fault(&identity, &token).contains("signature"));
}

#[test]
fn a_changed_token_is_refused() {
    let key = SigningKey::ec();
    let (issuer, identity) = issuer_with(&key);
    let claims = issuer.claims("alice", RESOURCE, "read");
    let token = key.token(&header("ES256", "k"), &claims);
    let more = key.token(&header("ES256", "k"), &issuer.claims("alice", RESOURCE, "admin"));
    let parts: Vec<&str> = token.split('.').collect();
    let others: Vec<&str> = more.split('.').collect();
    let forged = format!("{}.{}.{}", parts[0], others[1], parts[2]);
    assert!(fault(&identity, &forged).contains("signature"));
    for cut in [format!("{}.{}.", parts[0], parts[1]), token[..token.len() - 2].to_owned()] {
        fault(&identity, &cut);
    }
}

#[test]
fn the_algorithms_of_an_issuer_can_be_limited() {
    let (rsa, ec) = (SigningKey::rsa(), SigningKey::ec());
    let issuer = TokenIssuer::start(&[rsa.jwk("r"), ec.jwk("e")]);
    let more = "algorithms = [\"ES256\"]\nrequire_at_jwt = true";
    let identity = identity(settings(&issuer, more), KeyTimes::default());
    let claims = issuer.claims("alice", RESOURCE, "read");
    assert!(identify(&identity, &ec.token(&header("ES256", "e"), &claims)).is_ok());
    let other = rsa.token(&header("RS256", "r"), &claims);
    assert!(fault(&identity, &other).contains("algorithm"));
    let untyped = ec.token(&json!({"alg": "ES256", "kid": "e", "typ": "JWT"}), &claims);
    assert!(fault(&identity, &untyped).contains("not an access token"));
}

#[test]
fn a_token_of_kubernetes_has_the_scopes_of_its_grants() {
    let key = SigningKey::rsa();
    let directory = tempfile::tempdir().unwrap();
    let (keys, bearer) = (directory.path().join("keys.json"), directory.path().join("token"));
    std::fs::write(&keys, json!({"keys": [key.jwk("k")]}).to_string()).unwrap();
    std::fs::write(&bearer, "pod-token\n").unwrap();
    let server = TokenIssuer::start(&[key.jwk("k")]);
    let issuer = "https://kubernetes.default.svc.cluster.local";
    for place in [
        format!("jwks_file = {keys:?}"),
        format!("jwks_url = \"{}/keys\"\nbearer_file = {bearer:?}", server.url()),
    ] {
        let text = format!(
            "[[issuer]]\nurl = \"{issuer}\"\naudience = \"toolcrib\"\nscopes_from = \"grants\"\n{place}\n\
             [[grant]]\nsubject = \"system:serviceaccount:agents:*\"\nscopes = [\"exec\"]\n"
        );
        let identity = identity(toml::from_str(&text).unwrap(), KeyTimes::default());
        let claims = |namespace: &str, audience: &str| {
            json!({
                "iss": issuer,
                "aud": [audience],
                "sub": format!("system:serviceaccount:{namespace}:runner"),
                "exp": now() + 600,
                "nbf": now(),
                "kubernetes.io": {"namespace": namespace},
            })
        };
        let sign = |claims: &Value| key.token(&json!({"alg": "RS256", "kid": "k"}), claims);
        let found = identify(&identity, &sign(&claims("agents", "toolcrib"))).unwrap();
        assert_eq!(found.subject, "system:serviceaccount:agents:runner");
        assert_eq!(found.in_token, scopes(&[ScopeName::Exec]));
        let other = identify(&identity, &sign(&claims("other", "toolcrib"))).unwrap();
        assert!(other.granted.is_empty() && other.in_token.is_empty());
        // The token that every pod has for the API server.
        assert!(fault(&identity, &sign(&claims("agents", issuer))).contains("audience"));
    }
    assert!(server.last_head().contains("\r\nAuthorization: Bearer pod-token\r\n"));
}

#[test]
fn several_issuers_do_not_speak_for_each_other() {
    let (one, two) = (SigningKey::ec(), SigningKey::ec());
    let first = TokenIssuer::start(&[one.jwk("k")]);
    let second = TokenIssuer::start(&[two.jwk("k")]);
    let text =
        format!("[[issuer]]\nurl = \"{}\"\n[[issuer]]\nurl = \"{}\"\n", first.url(), second.url());
    let identity = identity(toml::from_str(&text).unwrap(), KeyTimes::default());
    let claims = first.claims("alice", RESOURCE, "read");
    assert!(identify(&identity, &one.token(&header("ES256", "k"), &claims)).is_ok());
    let forged = two.token(&header("ES256", "k"), &claims);
    assert!(fault(&identity, &forged).contains("signature"));
    let of_second = second.claims("alice", RESOURCE, "read");
    let found = identify(&identity, &two.token(&header("ES256", "k"), &of_second)).unwrap();
    assert_eq!(found.issuer, second.url());
}
