//! Texts in the claims of a token.

use serde_json::{Map, Value};

/// The texts of a claim: a string, or an array of strings. The claim is named by its key, or by a path of keys with `.`
/// between them.
pub(crate) fn texts<'a>(claims: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    match claims.get(name).or_else(|| at_path(claims, name)) {
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The words of a claim: as its texts, and each text is split at spaces.
pub(crate) fn words<'a>(claims: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    texts(claims, name).into_iter().flat_map(|text| text.split(' ')).collect()
}

fn at_path<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let first = claims.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_found_by_its_key_or_its_path() {
        let claims = json!({
            "scope": "read write",
            "scp": ["read", 5, "write"],
            "realm_access": {"roles": ["a", "b"]},
            "https://x.example/roles": ["c"],
            "number": 5,
        });
        let Value::Object(claims) = claims else { panic!() };
        let found = |name: &str| texts(&claims, name);
        assert_eq!(found("scp"), ["read", "write"]);
        assert_eq!(found("realm_access.roles"), ["a", "b"]);
        assert_eq!(found("https://x.example/roles"), ["c"]);
        assert_eq!(words(&claims, "scope"), ["read", "write"]);
        for name in ["number", "realm_access", "scope.x", "", "."] {
            assert!(found(name).is_empty(), "{name}");
        }
    }
}
