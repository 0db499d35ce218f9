//! The parameters of a request target.

use crate::api_error::ApiError;

/// Decoded parameters, in their order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Query {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Query(pairs.map(pair).collect())
    }

    /// A parameter. An empty one counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|_| ApiError::invalid(format!("`{name}` is not a number.")))
    }
}

/// Decodes one part of a target: a path segment, a name or a value.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse(Some("text=a+b%2Fc%zz%&limit=7&empty=&&x"));
        assert_eq!(query.text("text"), Some("a b/c%zz%"));
        assert_eq!(query.number("limit").unwrap(), Some(7));
        assert_eq!((query.text("empty"), query.text("y")), (None, None));
        assert!(query.number("text").is_err());
    }
}
