//! The requests that a rule for a host is restricted to.

use super::url_path::UrlPathPattern;
use crate::decision::Decision;

/// The longest name of a method.
const MAX_METHOD: usize = 32;

/// A request of HTTP to an inspected host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSubject<'a> {
    /// The method, as it was sent.
    pub method: &'a str,
    /// The path, normalized: it begins with `/`, has no empty and no dot segments, and encodes only what needs it.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: Option<&'a str>,
    /// Whether the client asks for another protocol, such as WebSocket.
    pub is_upgrade: bool,
}

/// What a rule says about requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestPatterns {
    /// If there are none, all.
    methods: Vec<String>,
    /// If there are none, all.
    paths: Vec<UrlPathPattern>,
    upgrade: bool,
}

impl RequestPatterns {
    /// The patterns of a rule. `None` if it has none.
    pub(super) fn parse(
        methods: Option<&[String]>,
        paths: &[String],
        upgrade: bool,
        decision: Decision,
    ) -> Result<Option<RequestPatterns>, String> {
        if methods.is_none() && paths.is_empty() {
            let problem = "`upgrade` has no effect without `methods` or `paths`";
            return if upgrade { Err(problem.to_owned()) } else { Ok(None) };
        }
        if methods.is_some_and(<[String]>::is_empty) {
            let problem = "`methods` is empty, so the rule can match nothing; to match all methods, remove it";
            return Err(problem.to_owned());
        }
        if decision == Decision::Ask {
            let problem =
                "a rule with `methods` or `paths` allows or denies: no request waits for an answer";
            return Err(problem.to_owned());
        }
        let method = |text: &String| {
            let is_name = text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
            if is_name && (1..=MAX_METHOD).contains(&text.len()) {
                Ok(text.to_ascii_uppercase())
            } else {
                Err(format!("{text:?} can match nothing: a method is a word such as GET"))
            }
        };
        let methods =
            methods.unwrap_or_default().iter().map(method).collect::<Result<Vec<_>, _>>()?;
        let paths =
            paths.iter().map(|text| UrlPathPattern::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if upgrade
            && (decision == Decision::Deny
                || !(methods.is_empty() || methods.iter().any(|one| one == "GET")))
        {
            return Err("`upgrade` belongs to a rule that allows GET".to_owned());
        }
        if decision == Decision::Deny && paths.iter().any(UrlPathPattern::has_query) {
            return Err(
                "a rule that denies cannot name a query, which has many spellings; allow the queries that you want"
                    .to_owned(),
            );
        }
        Ok(Some(RequestPatterns { methods, paths, upgrade }))
    }

    pub(super) fn allows(&self, request: &RequestSubject<'_>) -> bool {
        (self.methods.is_empty() || self.methods.iter().any(|method| method == request.method))
            && (self.upgrade || !request.is_upgrade)
            && (self.paths.is_empty()
                || self.paths.iter().any(|pattern| pattern.allows(request.path, request.query)))
    }

    pub(super) fn restricts(&self, request: &RequestSubject<'_>) -> bool {
        (self.methods.is_empty()
            || self.methods.iter().any(|method| method.eq_ignore_ascii_case(request.method)))
            && (self.paths.is_empty()
                || self.paths.iter().any(|pattern| pattern.restricts(request.path)))
    }
}

impl std::fmt::Display for RequestPatterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let methods = if self.methods.is_empty() { "*".to_owned() } else { self.methods.join(",") };
        let paths: Vec<String> = self.paths.iter().map(ToString::to_string).collect();
        let paths = if paths.is_empty() { "/**".to_owned() } else { paths.join(", ") };
        write!(f, "{methods} {paths}")
    }
}
