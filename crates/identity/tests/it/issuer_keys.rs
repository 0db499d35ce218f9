//! Reading the keys of an issuer: rotation, failures, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_identity::{Identity, KeyTimes, NotIdentified};
use toolcrib_testkit::{SigningKey, TokenIssuer};

use crate::{RESOURCE, header, identify, identity, settings};

/// Keys are read again whenever it is useful, and a request waits for them.
fn eager() -> KeyTimes {
    KeyTimes {
        least_interval: Duration::ZERO,
        max_wait: Duration::from_secs(600),
        ..KeyTimes::default()
    }
}

const UNKNOWN_KEY: Result<(), NotIdentified> =
    Err(NotIdentified::Invalid("the key of the token is unknown"));

fn outcome(identity: &Identity, token: &str) -> Result<(), NotIdentified> {
    identify(identity, token).map(|_| ())
}

#[test]
fn a_new_key_is_found_and_a_removed_one_is_forgotten() {
    let (old, new) = (SigningKey::ec(), SigningKey::ec());
    let issuer = TokenIssuer::start(&[old.jwk("old")]);
    let identity = identity(settings(&issuer, ""), eager());
    let claims = issuer.claims("alice", RESOURCE, "read");
    let by_old = old.token(&header("ES256", "old"), &claims);
    let by_new = new.token(&header("ES256", "new"), &claims);
    assert_eq!(outcome(&identity, &by_old), Ok(()));
    assert_eq!(outcome(&identity, &by_new), UNKNOWN_KEY);
    issuer.publish(&[old.jwk("old"), new.jwk("new")]);
    assert_eq!(outcome(&identity, &by_new), Ok(()));
    issuer.publish(&[new.jwk("new")]);
    // A token with an unknown key has the keys read again.
    let unknown = new.token(&header("ES256", "unknown"), &claims);
    assert_eq!(outcome(&identity, &unknown), UNKNOWN_KEY);
    assert_eq!(outcome(&identity, &by_old), UNKNOWN_KEY);
}

#[test]
fn unknown_keys_cause_few_requests() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let times = KeyTimes { least_interval: Duration::from_secs(3_600), ..eager() };
    let identity = identity(settings(&issuer, ""), times);
    let claims = issuer.claims("alice", RESOURCE, "read");
    for number in 0..200 {
        let token = key.token(&header("ES256", &format!("unknown-{number}")), &claims);
        assert_eq!(outcome(&identity, &token), UNKNOWN_KEY);
    }
    assert_eq!(outcome(&identity, &key.token(&header("ES256", "k"), &claims)), Ok(()));
    assert_eq!(issuer.requests(), 1);
}

#[test]
fn requests_at_the_same_time_read_the_keys_once() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let times = KeyTimes { least_interval: Duration::from_secs(3_600), ..eager() };
    let identity = identity(settings(&issuer, ""), times);
    let token = key.token(&header("ES256", "k"), &issuer.claims("alice", RESOURCE, "read"));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(outcome(&identity, &token), Ok(())));
        }
    });
    assert_eq!(issuer.requests(), 1);
}

#[test]
fn known_keys_are_used_while_the_issuer_is_down_but_not_for_ever() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = reports.clone();
    let report = move |problem: &str| {
        assert!(problem.contains("the keys of http://127.0.0.1:"), "{problem}");
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let identity = Identity::new(settings(&issuer, ""), false, eager(), report).unwrap();
    let claims = issuer.claims("alice", RESOURCE, "read");
    let token = key.token(&header("ES256", "k"), &claims);
    assert_eq!(outcome(&identity, &token), Ok(()));
    issuer.set_down(true);
    // Nobody can say whether a token with another key is valid.
    let unknown = key.token(&header("ES256", "unknown"), &claims);
    for _ in 0..3 {
        assert_eq!(outcome(&identity, &unknown), Err(NotIdentified::Unavailable));
        assert_eq!(outcome(&identity, &token), Ok(()));
    }
    assert_eq!(reports.load(Ordering::Relaxed), 1);
    issuer.set_down(false);
    assert_eq!(outcome(&identity, &unknown), UNKNOWN_KEY);
    // Keys that are too old are not used.
    let short = KeyTimes { max_age: Duration::ZERO, ..eager() };
    let strict = crate::identity(settings(&issuer, ""), short);
    issuer.set_down(true);
    assert_eq!(outcome(&strict, &token), Err(NotIdentified::Unavailable));
}

#[test]
fn an_issuer_that_was_down_at_the_start_is_tried_again() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    issuer.set_down(true);
    let identity = identity(settings(&issuer, ""), eager());
    let token = key.token(&header("ES256", "k"), &issuer.claims("alice", RESOURCE, "read"));
    assert_eq!(outcome(&identity, &token), Err(NotIdentified::Unavailable));
    issuer.set_down(false);
    assert_eq!(outcome(&identity, &token), Ok(()));
}

#[test]
fn bad_key_sets_are_not_used() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let identity = identity(settings(&issuer, ""), eager());
    let claims = issuer.claims("alice", RESOURCE, "read");
    let token = key.token(&header("ES256", "k"), &claims);
    let unknown = key.token(&header("ES256", "unknown"), &claims);
    assert_eq!(outcome(&identity, &token), Ok(()));
    let huge = json!({"keys": [key.jwk("unknown")], "padding": "x".repeat(1 << 20)});
    let many: Vec<Value> = (0..1_000).map(|number| key.jwk(&number.to_string())).collect();
    for text in [
        String::new(),
        "nonsense".to_owned(),
        "[".repeat(100_000),
        huge.to_string(),
        json!({ "keys": many }).to_string(),
    ] {
        issuer.publish_text(text);
        assert_eq!(outcome(&identity, &unknown), Err(NotIdentified::Unavailable));
        assert_eq!(outcome(&identity, &token), Ok(()), "the last good keys are used");
    }
}

#[test]
fn a_removed_key_is_not_used_when_the_keys_are_overdue() {
    let (old, new) = (SigningKey::ec(), SigningKey::ec());
    let issuer = TokenIssuer::start(&[old.jwk("old")]);
    // They are overdue at each request.
    let times = KeyTimes { refresh: Duration::ZERO, ..eager() };
    let identity = identity(settings(&issuer, ""), times);
    let claims = issuer.claims("alice", RESOURCE, "read");
    let by_old = old.token(&header("ES256", "old"), &claims);
    assert_eq!(outcome(&identity, &by_old), Ok(()));
    issuer.publish(&[new.jwk("new")]);
    assert_eq!(outcome(&identity, &by_old), UNKNOWN_KEY);
    issuer.publish(&[old.jwk("old")]);
    assert_eq!(outcome(&identity, &by_old), Ok(()));
    // A failure does not remove keys.
    issuer.set_down(true);
    assert_eq!(outcome(&identity, &by_old), Ok(()));
}

#[test]
fn a_key_set_without_keys_revokes_all_of_them() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = reports.clone();
    let report = move |problem: &str| {
        assert!(problem.contains("no key for signatures"), "{problem}");
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let times = KeyTimes { refresh: Duration::ZERO, ..eager() };
    let identity = Identity::new(settings(&issuer, ""), false, times, report).unwrap();
    let token = key.token(&header("ES256", "k"), &issuer.claims("alice", RESOURCE, "read"));
    assert_eq!(outcome(&identity, &token), Ok(()));
    issuer.publish(&[]);
    for _ in 0..3 {
        assert_eq!(outcome(&identity, &token), UNKNOWN_KEY);
    }
    assert_eq!(reports.load(Ordering::Relaxed), 1);
    issuer.publish(&[key.jwk("k")]);
    assert_eq!(outcome(&identity, &token), Ok(()));
    issuer.publish(&[json!({"kty": "oct", "kid": "k", "k": "AAAA"})]);
    assert_eq!(outcome(&identity, &token), UNKNOWN_KEY);
    assert_eq!(reports.load(Ordering::Relaxed), 2);
}

#[test]
fn metadata_of_another_issuer_are_not_used() {
    let key = SigningKey::ec();
    let issuer = TokenIssuer::start(&[key.jwk("k")]);
    issuer.pretend("https://other.example");
    let identity = identity(settings(&issuer, ""), eager());
    let token = key.token(&header("ES256", "k"), &issuer.claims("alice", RESOURCE, "read"));
    assert_eq!(outcome(&identity, &token), Err(NotIdentified::Unavailable));
    assert_eq!(issuer.requests(), 0);
}

#[test]
fn settings_are_checked_as_a_whole() {
    let check = |text: &str, has_workspaces| {
        let settings = toml::from_str(text).unwrap();
        Identity::new(settings, has_workspaces, KeyTimes::default(), |_| {})
            .err()
            .unwrap_or_default()
    };
    let issuer = "[[issuer]]\nurl = \"http://127.0.0.1:1\"\n";
    let grant = "[[grant]]\nsubject = \"a\"\nscopes = [\"read\"]\n";
    let in_all = "workspaces = [\"*\"]\n";
    assert_eq!(check(issuer, false), "");
    assert_eq!(check(&format!("{issuer}{grant}"), false), "");
    assert_eq!(check(&format!("{issuer}{grant}{in_all}"), true), "");
    for (text, has_workspaces, problem) in [
        (String::new(), false, "[[issuer]] is missing"),
        (issuer.repeat(2), false, "occurs twice"),
        ("[[issuer]]\nurl = \"\"".to_owned(), false, "needs url"),
        ("[[issuer]]\nurl = \"http://x.example\"".to_owned(), false, "https only"),
        (format!("{issuer}algorithms = []"), false, "algorithms is empty"),
        (format!("{issuer}audience = \"\""), false, "audience is empty"),
        (format!("{issuer}scopes_from = \"grants\""), false, "needs [[grant]]"),
        (format!("{issuer}scope_prefix = 'a\"'"), false, "scope_prefix"),
        (issuer.to_owned(), true, "[[grant]] says who"),
        (format!("{issuer}{grant}"), true, "needs workspaces"),
        (format!("{issuer}{grant}{in_all}"), false, "need --workspaces"),
    ] {
        let refusal = check(&text, has_workspaces);
        assert!(refusal.contains(problem), "{text}: {refusal}");
    }
    for text in ["[[issuer]]\nurl = \"x\"\nalgorithms = [\"HS256\"]", "x = 1"] {
        assert!(toml::from_str::<toolcrib_identity::Settings>(text).is_err(), "{text}");
    }
}
