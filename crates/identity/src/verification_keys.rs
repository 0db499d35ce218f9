//! The public keys of an issuer, from its JSON Web Key Set.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// More keys than any issuer has at the same time.
const MAX_KEYS: usize = 100;

/// A key, and the algorithms that its type and its own description allow.
#[derive(Debug, Clone)]
pub(crate) struct VerificationKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// The keys for signatures in a key set. Keys of unknown types are skipped. If none is left, the issuer has no key that is
/// valid here: it may have removed all of them.
pub(crate) fn parse(json: &[u8]) -> Result<Vec<VerificationKey>, String> {
    let KeySet { keys } =
        serde_json::from_slice(json).map_err(|error| format!("not a key set: {error}"))?;
    if keys.len() > MAX_KEYS {
        return Err(format!("the key set has more than {MAX_KEYS} keys"));
    }
    Ok(keys.into_iter().filter_map(verification_key).collect())
}

fn verification_key(value: Value) -> Option<VerificationKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let common = &jwk.common;
    let for_signatures =
        common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
    let verifies = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !for_signatures || !verifies {
        return None;
    }
    let of_type: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(point) => match point.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        // Also secrets: an issuer that publishes one has published it to everybody.
        _ => return None,
    };
    let algorithms: Vec<Algorithm> = match common.key_algorithm {
        None => of_type.to_vec(),
        Some(named) => {
            let named = named.to_string().parse::<Algorithm>().ok()?;
            of_type.iter().copied().filter(|known| *known == named).collect()
        }
    };
    if algorithms.is_empty() {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some(VerificationKey { id: jwk.common.key_id, algorithms, key })
}

/// The key of a token: the one that it names, or the only one that fits if it names none.
pub(crate) fn select(
    keys: &[VerificationKey],
    id: Option<&str>,
    algorithm: Algorithm,
) -> Option<VerificationKey> {
    let fits = |key: &&VerificationKey| key.algorithms.contains(&algorithm);
    let mut named = keys.iter().filter(|key| id.is_none() || key.id.as_deref() == id).filter(fits);
    let (first, second) = (named.next(), named.next());
    first.filter(|_| second.is_none()).cloned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rsa(id: &str) -> Value {
        json!({"kty": "RSA", "kid": id, "n": "sXch", "e": "AQAB"})
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    fn parsed(keys: &[Value]) -> Result<Vec<VerificationKey>, String> {
        parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn only_keys_for_signatures_are_used() {
        let point = json!({"kty": "EC", "crv": "P-256", "kid": "e", "x": "AAAA", "y": "AAAA"});
        let edwards = json!({"kty": "OKP", "crv": "Ed25519", "kid": "o", "x": "AAAA"});
        let unusable = [
            with(rsa("a"), "use", json!("enc")),
            with(rsa("b"), "key_ops", json!(["encrypt"])),
            with(rsa("c"), "alg", json!("RSA-OAEP")),
            with(rsa("d"), "alg", json!("HS256")),
            with(rsa("d"), "alg", json!("ES256")),
            with(rsa("d"), "n", json!(5)),
            json!({"kty": "oct", "kid": "f", "k": "AAAA"}),
            json!({"kty": "AKP", "kid": "g", "pub": "AAAA"}),
            with(point.clone(), "crv", json!("P-521")),
            json!("nonsense"),
        ];
        assert!(parsed(&unusable).unwrap().is_empty() && parsed(&[]).unwrap().is_empty());
        let usable = [rsa("r"), with(rsa("s"), "use", json!("sig")), point, edwards];
        let keys = parsed(&[&unusable[..], &usable].concat()).unwrap();
        assert_eq!(keys.len(), 4);
        let find = |id: Option<&str>, algorithm| select(&keys, id, algorithm).is_some();
        assert!(find(Some("r"), Algorithm::RS256) && find(Some("r"), Algorithm::PS512));
        assert!(!find(Some("r"), Algorithm::ES256) && !find(Some("r"), Algorithm::HS256));
        assert!(find(Some("e"), Algorithm::ES256) && !find(Some("e"), Algorithm::ES384));
        assert!(!find(Some("e"), Algorithm::RS256) && !find(Some("x"), Algorithm::RS256));
        assert!(find(None, Algorithm::ES256) && find(None, Algorithm::EdDSA));
        assert!(!find(None, Algorithm::RS256), "two keys fit");
    }

    #[test]
    fn an_algorithm_of_a_key_is_the_only_one() {
        let keys = parsed(&[with(rsa("r"), "alg", json!("PS256"))]).unwrap();
        assert!(select(&keys, Some("r"), Algorithm::PS256).is_some());
        assert!(select(&keys, Some("r"), Algorithm::RS256).is_none());
    }

    #[test]
    fn a_large_or_malformed_set_is_refused() {
        let many: Vec<Value> = (0..=MAX_KEYS).map(|number| rsa(&number.to_string())).collect();
        assert!(parsed(&many).unwrap_err().contains("more than 100"));
        for text in ["", "[]", "{}", r#"{"keys": {}}"#, "{\"keys\": [}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let text = format!("{{\"keys\": [{}]}}", String::from_utf8_lossy(&bytes));
            let _ = parse(text.as_bytes());
        }
    }
}
